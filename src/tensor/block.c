/* block.c: see block.h. */
#include "tensor/block.h"

#include <stdio.h>
#include <string.h>

tutti_box tutti__box_whole(const tutti_type *type)
{
    tutti_box box = {0};
    for (int d = 0; d < type->rank; d++)
        box.dims[d] = type->dims[d];
    return box;
}

bool tutti__box_equal(const tutti_box *a, const tutti_box *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (a->offset[d] != b->offset[d] || a->dims[d] != b->dims[d])
            return false;
    return true;
}

bool tutti__box_fits(const tutti_box *box, const tutti_type *type)
{
    for (int d = 0; d < type->rank; d++)
        if (box->offset[d] < 0 || box->dims[d] < 0 || box->dims[d] > type->dims[d] ||
            box->offset[d] > type->dims[d] - box->dims[d])
            return false;
    return true;
}

bool tutti__box_common(const tutti_box *a, const tutti_box *b, int rank, tutti_box *ret)
{
    *ret = (tutti_box){0};
    for (int d = 0; d < rank; d++) {
        int64_t begin = a->offset[d] > b->offset[d] ? a->offset[d] : b->offset[d];
        int64_t ends[] = {a->offset[d] + a->dims[d], b->offset[d] + b->dims[d]};
        int64_t end = ends[0] < ends[1] ? ends[0] : ends[1];
        if (end <= begin)
            return false;
        ret->offset[d] = begin;
        ret->dims[d] = end - begin;
    }
    return true;
}

int64_t tutti__box_count(const tutti_box *box, int rank)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= box->dims[d];
    return count;
}

const char *tutti__box_text(const tutti_box *box, int rank, char text[TUTTI_BOX_TEXT])
{
    size_t used = (size_t)snprintf(text, TUTTI_BOX_TEXT, "[");
    for (int d = 0; d < rank; d++)
        used +=
            (size_t)snprintf(text + used, TUTTI_BOX_TEXT - used, "%s%lld:%lld", d ? ", " : "",
                             (long long)box->offset[d], (long long)(box->offset[d] + box->dims[d]));
    snprintf(text + used, TUTTI_BOX_TEXT - used, "]");
    return text;
}

/* The element of the whole value that a box's memory begins with lies at its offset. */
static size_t place_in(const tutti_box *box, const int64_t *at, int rank)
{
    size_t place = 0;
    for (int d = 0; d < rank; d++)
        place = place * (size_t)box->dims[d] + (size_t)(at[d] - box->offset[d]);
    return place;
}

void tutti__box_copy(void *to, const tutti_box *to_box, const void *from, const tutti_box *from_box,
                     const tutti_box *box, int rank, size_t size)
{
    int64_t at[TUTTI_MAX_RANK];
    if (tutti__box_count(box, rank) == 0)
        return;
    /* Dimensions behind `last` are whole in both: a run of elements goes over them. */
    int last = rank - 1;
    size_t run = rank > 0 ? (size_t)box->dims[rank - 1] * size : size;
    while (last > 0 && box->dims[last] == to_box->dims[last] &&
           box->dims[last] == from_box->dims[last])
        run *= (size_t)box->dims[--last];
    for (int d = 0; d < rank; d++)
        at[d] = box->offset[d];
    for (int d = 0; d >= 0;) {
        memcpy((char *)to + place_in(to_box, at, rank) * size,
               (const char *)from + place_in(from_box, at, rank) * size, run);
        for (d = last - 1; d >= 0; d--) {
            if (++at[d] < box->offset[d] + box->dims[d])
                break;
            at[d] = box->offset[d];
        }
    }
}

tutti_status tutti__tensor_box(const tutti_tensor *whole, const tutti_box *box, tutti_tensor **ret)
{
    const tutti_type *type = &whole->type;
    tutti_box all = tutti__box_whole(type);
    tutti_tensor *part;
    char text[TUTTI_BOX_TEXT], have[TUTTI_TYPE_TEXT];
    if (!tutti__box_fits(box, type) || type->dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID, "there is no box %s of %s",
                          tutti__box_text(box, type->rank, text), tutti_type_text(type, have));
    tutti_type own = tutti_type_make(type->dtype, type->rank, box->dims);
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &own, &part));
    tutti__box_copy(tutti_tensor_data(part), box, tutti_tensor_data((tutti_tensor *)whole), &all,
                    box, type->rank, tutti_dtype_size(type->dtype));
    *ret = part;
    return TUTTI_OK;
}
