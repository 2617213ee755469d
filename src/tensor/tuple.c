/* tuple.c: lists of tuples of tensors; cutting a batch into tuples and stacking tuples to a batch.
 */
#include "tensor/tuple.h"

#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

tutti_status tutti__tuple_empty(int room, tutti_tuple **ret)
{
    tutti_tuple *tuple = malloc(sizeof *tuple + (size_t)room * sizeof tuple->tensors[0]);
    if (tuple == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "queue: no memory for an element of %d tensors", room);
    tuple->next = tuple->previous = NULL;
    tuple->count = 0;
    tuple->number = 0;
    *ret = tuple;
    return TUTTI_OK;
}

tutti_status tutti__tuple_create(int count, tutti_tensor *const *tensors, tutti_tuple **ret)
{
    tutti_tuple *tuple = NULL;
    TUTTI_TRY(tutti__tuple_empty(count, &tuple));
    for (; tuple->count < count; tuple->count++)
        tuple->tensors[tuple->count] = tutti_tensor_retain(tensors[tuple->count]);
    *ret = tuple;
    return TUTTI_OK;
}

void tutti__tuple_destroy(tutti_tuple *tuple)
{
    for (int i = 0; tuple != NULL && i < tuple->count; i++)
        tutti_tensor_release(tuple->tensors[i]);
    free(tuple);
}

void tutti__tuple_append(tutti_tuple_list *list, tutti_tuple *tuple)
{
    tuple->next = NULL;
    tuple->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = tuple;
    list->last = tuple;
    list->count++;
}

tutti_tuple *tutti__tuple_take_first(tutti_tuple_list *list)
{
    tutti_tuple *tuple = list->first;
    if (tuple == NULL)
        return NULL;
    list->first = tuple->next;
    *(list->first != NULL ? &list->first->previous : &list->last) = NULL;
    list->count--;
    return tuple;
}

void tutti__tuple_put_back(tutti_tuple_list *list, tutti_tuple_list *front)
{
    if (front->first == NULL)
        return;
    front->last->next = list->first;
    *(list->first != NULL ? &list->first->previous : &list->last) = front->last;
    list->first = front->first;
    list->count += front->count;
    *front = (tutti_tuple_list){0};
}

void tutti__tuple_clear(tutti_tuple_list *list)
{
    tutti_tuple *tuple;
    while ((tuple = tutti__tuple_take_first(list)) != NULL)
        tutti__tuple_destroy(tuple);
}

static tutti_status check_split(int count, tutti_tensor *const *tensors)
{
    char text[TUTTI_TYPE_TEXT], first[TUTTI_TYPE_TEXT];
    for (int i = 0; i < count; i++) {
        if (tensors[i]->type.rank == 0)
            return tutti_fail(TUTTI_INVALID,
                              "component %d is %s, which has no axis 0 to cut into elements", i,
                              tutti_type_text(&tensors[i]->type, text));
        if (tensors[i]->type.dims[0] != tensors[0]->type.dims[0])
            return tutti_fail(TUTTI_INVALID,
                              "component %d is %s and component 0 %s; axis 0 of all components "
                              "needs the same size",
                              i, tutti_type_text(&tensors[i]->type, text),
                              tutti_type_text(&tensors[0]->type, first));
    }
    return TUTTI_OK;
}

/* Row i of a tensor, without axis 0. */
static tutti_status row_of(const tutti_tensor *tensor, int64_t i, tutti_tensor **ret)
{
    const int64_t *dims = tensor->type.dims;
    tutti_type type = tutti_type_make(tensor->type.dtype, tensor->type.rank - 1, dims + 1);
    size_t step = tutti_dtype_size(type.dtype) * (size_t)tensor->strides[0];
    return tutti__tensor_strided(tensor, &type, tensor->strides + 1,
                                 tensor->offset + (size_t)i * step, ret);
}

static tutti_status split_row(int count, tutti_tensor *const *tensors, int64_t row,
                              tutti_tuple **ret)
{
    tutti_tuple *tuple = NULL;
    TUTTI_TRY(tutti__tuple_empty(count, &tuple));
    for (; tuple->count < count; tuple->count++) {
        tutti_status status = row_of(tensors[tuple->count], row, &tuple->tensors[tuple->count]);
        if (status != TUTTI_OK) {
            tutti__tuple_destroy(tuple);
            return status;
        }
    }
    *ret = tuple;
    return TUTTI_OK;
}

tutti_status tutti__tuple_split(int count, tutti_tensor *const *tensors, tutti_tuple_list *ret)
{
    TUTTI_TRY(check_split(count, tensors));
    tutti_tuple_list list = {0};
    for (int64_t row = 0; row < tensors[0]->type.dims[0]; row++) {
        tutti_tuple *tuple = NULL;
        tutti_status status = split_row(count, tensors, row, &tuple);
        if (status != TUTTI_OK) {
            tutti__tuple_clear(&list);
            return status;
        }
        tutti__tuple_append(&list, tuple);
    }
    *ret = list;
    return TUTTI_OK;
}

/* The smallest type that holds a and b, which differ in sizes only. */
static bool widen(tutti_type *a, const tutti_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (b->dims[axis] > a->dims[axis])
            a->dims[axis] = b->dims[axis];
    return true;
}

static tutti_status stack_type(const tutti_tuple_list *list, int i, bool padded, tutti_type *ret)
{
    char text[TUTTI_TYPE_TEXT], first[TUTTI_TYPE_TEXT];
    tutti_type widest = list->first->tensors[i]->type, *element = &widest;
    if (element->rank == TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_INVALID,
                          "component %d is %s; with one more axis its rank exceeds %d", i,
                          tutti_type_text(element, text), TUTTI_MAX_RANK);
    for (const tutti_tuple *tuple = list->first; tuple != NULL; tuple = tuple->next)
        if (padded ? !widen(&widest, &tuple->tensors[i]->type)
                   : !tutti_type_equal(&tuple->tensors[i]->type, element))
            return tutti_fail(TUTTI_INVALID,
                              "component %d is %s in one element and %s in another; only equal "
                              "types can be stacked%s",
                              i, tutti_type_text(element, first),
                              tutti_type_text(&tuple->tensors[i]->type, text),
                              padded ? ", after padding" : "");
    *ret = (tutti_type){.dtype = element->dtype, .rank = element->rank + 1, .dims = {list->count}};
    memcpy(ret->dims + 1, element->dims, (size_t)element->rank * sizeof element->dims[0]);
    return TUTTI_OK;
}

/* The corner of `row` that has the size of `element`. */
static tutti_status copy_to_corner(tutti_tensor *row, tutti_tensor *element)
{
    tutti_tensor *corner = tutti_tensor_retain(row);
    tutti_status status = TUTTI_OK;
    for (int axis = 0; axis < row->type.rank && status == TUTTI_OK; axis++) {
        tutti_tensor *smaller = NULL;
        status = tutti_tensor_slice(corner, axis, 0, element->type.dims[axis], 1, &smaller);
        if (status == TUTTI_OK) {
            tutti_tensor_release(corner);
            corner = smaller;
        }
    }
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(corner, element);
    tutti_tensor_release(corner);
    return status;
}

tutti_status tutti__tuple_stack(const tutti_tuple_list *list, int i, bool padded,
                                tutti_tensor **ret)
{
    tutti_type type;
    tutti_tensor *stacked = NULL;
    TUTTI_TRY(stack_type(list, i, padded, &type));
    if (padded)
        TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &stacked));
    else
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &stacked));
    int64_t row = 0;
    for (const tutti_tuple *tuple = list->first; tuple != NULL; tuple = tuple->next, row++) {
        tutti_tensor *place = NULL;
        tutti_status status = row_of(stacked, row, &place);
        if (status == TUTTI_OK)
            status = copy_to_corner(place, tuple->tensors[i]);
        tutti_tensor_release(place);
        if (status != TUTTI_OK) {
            tutti_tensor_release(stacked);
            return status;
        }
    }
    *ret = stacked;
    return TUTTI_OK;
}
