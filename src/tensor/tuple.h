/* tuple.h: elements of a queue, in lists that never need memory to move an element. */
#ifndef TUTTI_TENSOR_TUPLE_H
#define TUTTI_TENSOR_TUPLE_H

#include "tutti/tensor.h"

typedef struct tutti_tuple {
    struct tutti_tuple *next, *previous;
    int count;
    uint64_t number; /* the queue's, in order of arrival */
    tutti_tensor *tensors[];
} tutti_tuple;

/* A zeroed struct is an empty list. */
typedef struct tutti_tuple_list {
    tutti_tuple *first, *last;
    int64_t count;
} tutti_tuple_list;

/* With room for `room` tensors and none in it yet: tuple->tensors[tuple->count++] = …. */
tutti_status tutti__tuple_empty(int room, tutti_tuple **ret);
/* Retains the tensors. */
tutti_status tutti__tuple_create(int count, tutti_tensor *const *tensors, tutti_tuple **ret);
void tutti__tuple_destroy(tutti_tuple *tuple); /* releases them; NULL is fine */

void tutti__tuple_append(tutti_tuple_list *list, tutti_tuple *tuple);
tutti_tuple *tutti__tuple_take_first(tutti_tuple_list *list); /* NULL when empty */
/* Moves all of `front` before the elements of `list`, in order. */
void tutti__tuple_put_back(tutti_tuple_list *list, tutti_tuple_list *front);
void tutti__tuple_clear(tutti_tuple_list *list);

/* The slices along axis 0 of each tensor, as tuples of views. Sizes of axis 0 must agree. */
tutti_status tutti__tuple_split(int count, tutti_tensor *const *tensors, tutti_tuple_list *ret);
/* The i-th tensors of all tuples (at least one), stacked along a new axis 0 in a new host tensor.
 * Their shapes must be equal; `padded`: their ranks, and smaller ones are followed by zeros. */
tutti_status tutti__tuple_stack(const tutti_tuple_list *list, int i, bool padded,
                                tutti_tensor **ret);

#endif
