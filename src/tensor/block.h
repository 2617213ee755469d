/* block.h: boxes of values: a part of every dimension. */
#ifndef TUTTI_TENSOR_BLOCK_H
#define TUTTI_TENSOR_BLOCK_H

#include "tensor/tensor.h"

/* What a box is of a value: where it begins, and its sizes. */
typedef struct tutti_box {
    int64_t offset[TUTTI_MAX_RANK];
    int64_t dims[TUTTI_MAX_RANK];
} tutti_box;

tutti_box tutti__box_whole(const tutti_type *type);
bool tutti__box_equal(const tutti_box *a, const tutti_box *b, int rank);
/* Whether it lies inside a value of that type. */
bool tutti__box_fits(const tutti_box *box, const tutti_type *type);
/* What two boxes of one value have in common; false: nothing. */
bool tutti__box_common(const tutti_box *a, const tutti_box *b, int rank, tutti_box *ret);
int64_t tutti__box_count(const tutti_box *box, int rank);
/* "[0:4, 2:6]" */
enum { TUTTI_BOX_TEXT = 48 * TUTTI_MAX_RANK };
const char *tutti__box_text(const tutti_box *box, int rank, char text[TUTTI_BOX_TEXT]);

/* Copies the elements of `box` (of the whole value) from one box's memory to another's, both
 * contiguous and on the host; elements have `size` bytes. */
void tutti__box_copy(void *to, const tutti_box *to_box, const void *from, const tutti_box *from_box,
                     const tutti_box *box, int rank, size_t size);
/* A new contiguous tensor on the host: the box of a contiguous host tensor. */
tutti_status tutti__tensor_box(const tutti_tensor *whole, const tutti_box *box, tutti_tensor **ret);

#endif
