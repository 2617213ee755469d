/* unique.c: elements, or slices along an axis, without repetitions. */
#include <stdlib.h>

#include "ops/shape/rule.h"
#include "ops/sort.h"

#define FLAT (-1000) /* attribute axis: over all elements */

/* Outputs: y [.., m, ..], first i64[m], inverse i64[n], counts i64[m]. */
static tutti_status unique_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    tutti_type y = *x;
    int axis = 0;
    int64_t any = TUTTI_ANY, all = tutti_type_count(x);
    if (x->dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "x holds strings, needs numbers or bools");
    if (RULE_INT(node, "axis") == FLAT)
        y = tutti_type_make(x->dtype, 1, &any);
    else
        TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    if (RULE_INT(node, "axis") != FLAT) {
        all = x->dims[axis];
        y.dims[axis] = TUTTI_ANY;
    }
    all = all < 0 ? TUTTI_ANY : all;
    TUTTI_TRY(tutti__shape_output(node, 0, y.dtype, y.rank, y.dims));
    for (int i = 1; i < 4; i++)
        TUTTI_TRY(tutti__shape_output(node, i, TUTTI_I64, 1, i == 2 ? &all : &any));
    return TUTTI_OK;
}

/* One slice: elements (outer, index, inner) for all outer and inner. */
typedef struct slice {
    const tutti_view *x;
    const tutti_blocks *blocks;
    int64_t index, first; /* first: the least index of an equal slice */
} slice;

/* NaNs stand behind all numbers and equal each other: sorting needs an order in which nothing
 * equals two things that differ. */
static uint64_t key_of(const tutti_view *x, int64_t i)
{
    return tutti_dtype_is_float(x->dtype) ? tutti__key_of_double(tutti_view_get(x, i))
                                          : tutti__key_of_int(tutti_view_get_int(x, i));
}

static int compare_elements(const tutti_view *x, int64_t i, int64_t j)
{
    uint64_t a = key_of(x, i), b = key_of(x, j);
    return (a > b) - (a < b);
}

static int compare_values(const slice *a, const slice *b)
{
    const tutti_blocks *k = a->blocks;
    int order = 0;
    for (int64_t o = 0; order == 0 && o < k->outer; o++)
        for (int64_t i = 0; order == 0 && i < k->inner; i++)
            order = compare_elements(a->x, (o * k->size + a->index) * k->inner + i,
                                     (o * k->size + b->index) * k->inner + i);
    return order;
}

/* By value, then by place. */
static int unique_compare(const void *p, const void *q)
{
    const slice *a = p, *b = q;
    int order = compare_values(a, b);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

enum { NARROW = 8 }; /* elements up to which slices are sorted by keys, one after the other */

/* Slices in order, equal ones by place. Each pass is stable, so the last element goes first. */
static void sort_narrow(slice *slices, tutti_keyed *keys)
{
    const tutti_view *x = slices->x;
    const tutti_blocks *k = slices->blocks;
    for (int64_t i = 0; i < k->size; i++)
        keys[i].place = i;
    for (int64_t e = k->outer * k->inner - 1; e >= 0; e--) {
        int64_t start = e / k->inner * k->size * k->inner + e % k->inner;
        for (int64_t i = 0; i < k->size; i++)
            keys[i].key = key_of(x, start + keys[i].place * k->inner);
        tutti__sort_keyed(k->size, keys, keys + k->size);
    }
    for (int64_t i = 0; i < k->size; i++)
        slices[i].index = keys[i].place;
}

/* By the first of its value, then by place, which is the order already. */
static void sort_by_first(slice *slices, tutti_keyed *keys)
{
    int64_t size = slices->blocks->size;
    for (int64_t i = 0; i < size; i++)
        keys[slices[i].index] = (tutti_keyed){(uint64_t)slices[i].first, slices[i].index};
    tutti__sort_keyed(size, keys, keys + size);
    for (int64_t i = 0; i < size; i++) {
        slices[i].index = keys[i].place;
        slices[i].first = (int64_t)keys[i].key;
    }
}

/* y [outer, found, inner] takes the slices that are the first of their value. */
static void copy_slices(const tutti_kernel_call *call, const slice *slices, int64_t found)
{
    const tutti_blocks *k = slices->blocks;
    size_t size = tutti_dtype_size(call->inputs[0].dtype) * (size_t)k->inner;
    const char *from = call->inputs[0].data;
    char *to = call->outputs[0].data;
    int64_t at = -1;
    for (int64_t i = 0; i < k->size; i++) {
        at += slices[i].index == slices[i].first;
        for (int64_t o = 0; slices[i].index == slices[i].first && o < k->outer; o++)
            memcpy(to + (size_t)(o * found + at) * size,
                   from + (size_t)(o * k->size + slices[i].index) * size, size);
    }
}

static tutti_status give(const tutti_kernel_call *call, const slice *slices, const tutti_blocks *k,
                         int64_t found, int axis)
{
    const tutti_view *x = &call->inputs[0];
    int64_t dims[TUTTI_MAX_RANK] = {found}, at = -1;
    bool flat = RULE_INT(call, "axis") == FLAT;
    if (!flat)
        memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[flat ? 0 : axis] = found;
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, flat ? 1 : x->rank, dims));
    TUTTI_TRY(tutti_kernel_call_allocate(call, 1, 1, &found));
    TUTTI_TRY(tutti_kernel_call_allocate(call, 2, 1, &k->size));
    TUTTI_TRY(tutti_kernel_call_allocate(call, 3, 1, &found));
    int64_t *first = call->outputs[1].data, *inverse = call->outputs[2].data;
    int64_t *counts = call->outputs[3].data;
    for (int64_t i = 0; i < k->size; i++) {
        if (slices[i].index == slices[i].first) {
            first[++at] = slices[i].index;
            counts[at] = 0;
        }
        counts[at]++;
        inverse[slices[i].index] = at;
    }
    if (found > 0)
        copy_slices(call, slices, found);
    return TUTTI_OK;
}

/* Slices in the order of the result, each with the first of its value. How many values. */
static int64_t sort_slices(slice *slices, tutti_keyed *keys, bool sorted)
{
    const tutti_blocks *k = slices->blocks;
    int64_t found = 0, width = k->outer * k->inner;
    if (width <= NARROW)
        sort_narrow(slices, keys);
    else
        qsort(slices, (size_t)k->size, sizeof *slices, unique_compare);
    for (int64_t i = 0; i < k->size; i++) {
        bool again = i > 0 && (width == 1 ? keys[i].key == keys[i - 1].key
                                          : compare_values(&slices[i], &slices[i - 1]) == 0);
        slices[i].first = again ? slices[i - 1].first : slices[i].index;
        found += !again;
    }
    if (!sorted)
        sort_by_first(slices, keys);
    return found;
}

static tutti_status unique_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    bool flat = RULE_INT(call, "axis") == FLAT, fits;
    int axis = flat ? 0 : tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_blocks k = {1, tutti_view_count(x), 1};
    if (!flat)
        k = tutti__blocks(x, axis);
    fits = k.size < INT64_MAX / 64;
    slice *slices = fits ? malloc((size_t)(k.size + 1) * sizeof *slices) : NULL;
    tutti_keyed *keys = fits ? malloc(2 * (size_t)(k.size + 1) * sizeof *keys) : NULL;
    tutti_status status;
    if (slices && keys) {
        slices[0] = (slice){x, &k, 0, 0};
        for (int64_t i = 1; i < k.size; i++)
            slices[i] = (slice){x, &k, i, i};
        int64_t found = sort_slices(slices, keys, RULE_INT(call, "sorted"));
        status = give(call, slices, &k, found, axis);
    } else {
        status = RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld slices", (long long)k.size);
    }
    free(keys);
    free(slices);
    return status;
}

extern const tutti_op tutti_op_unique;
tutti_sym tutti_unique_with(tutti_sym x, const tutti_unique_options *options)
{
    RULE_OPTIONS(tutti_unique_options, o, options);
    return TUTTI_NARY(&tutti_op_unique, ((tutti_sym[]){x}),
                      TUTTI_INT("axis", o.along_axis ? o.axis : FLAT),
                      TUTTI_INT("sorted", !o.unsorted));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1000"}, /* FLAT */
    {"sorted", TUTTI_ATTR_INT, "true"},
    {NULL},
};

static const char *const samples[] = {
    "f32[6]{=2,1,1,3,4,3}",
    "i64[6]{=2,1,1,3,4,3} | sorted=false",
    "f32[3,3]{=1,0,0,1,0,0,2,3,4} | axis=0",
    "i32[2,4]{=1,1,0,1,2,2,5,2} | axis=-1",
    "i32[0]",
    NULL,
};

const tutti_op tutti_op_unique = {
    .struct_size = sizeof(tutti_op),
    .name = "unique",
    .version = 1,
    .doc =
        "unique(x; axis, sorted): (y, first, inverse, counts): elements or slices without repetitions, where each stands first, the place of each of x in y, and how often each is there",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 4,
    .flags = TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = unique_infer,
    .cost = tutti__cost_move,
    .reference = unique_reference,
    .samples = samples,
};
