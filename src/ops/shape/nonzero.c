/* nonzero.c: where elements are not 0. */
#include "ops/shape/move.h"

static tutti_status nonzero_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    if (x->dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "x holds strings, needs numbers or bools");
    return tutti__shape_output(node, 0, TUTTI_I64, 2, (int64_t[]){x->rank, TUTTI_ANY});
}

enum { RUN = 512 }; /* elements looked at at once */

#define FIND(type, mask)                                                                           \
    {                                                                                              \
        type bits;                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            memcpy(&bits, from + i * (int64_t)sizeof bits, sizeof bits);                           \
            ret_places[found] = i;                                                                 \
            found += (bits & (type)(mask)) != 0;                                                   \
        }                                                                                          \
        break;                                                                                     \
    }

/* Which of elements [first, first + count), at most RUN, are not 0: their bits are not, but for the
 * sign of a float. */
static int64_t nonzero_find(const tutti_view *x, int64_t first, int64_t count, int64_t *ret_places)
{
    const char *from = tutti__element(x, first);
    int64_t found = 0;
    bool sign = tutti_dtype_is_float(x->dtype);
    switch (tutti_dtype_size(x->dtype)) {
    case 1:
        FIND(uint8_t, 0xff)
    case 2:
        FIND(uint16_t, sign ? 0x7fff : 0xffff)
    case 4:
        FIND(uint32_t, sign ? UINT32_MAX >> 1 : UINT32_MAX)
    default:
        FIND(uint64_t, sign ? UINT64_MAX >> 1 : UINT64_MAX)
    }
    return found;
}
#undef FIND

static int64_t count_all(const tutti_view *x)
{
    int64_t places[RUN], count = tutti_view_count(x), found = 0;
    for (int64_t i = 0; i < count; i += RUN)
        found += nonzero_find(x, i, count - i < RUN ? count - i : RUN, places);
    return found;
}

/* Row by row of the last axis: all places in one have the other axes in common. */
static void give(const tutti_view *x, int64_t found, int64_t *y)
{
    int64_t index[TUTTI_MAX_RANK] = {0}, places[RUN], at = 0, first = 0;
    int last = x->rank - 1, axis;
    do {
        for (int64_t i = 0; i < x->dims[last]; i += RUN) {
            int64_t run = x->dims[last] - i < RUN ? x->dims[last] - i : RUN;
            int64_t here = nonzero_find(x, first + i, run, places);
            for (int k = 0; k < last; k++)
                for (int64_t n = 0; n < here; n++)
                    y[k * found + at + n] = index[k];
            for (int64_t n = 0; n < here; n++)
                y[last * found + at + n] = i + places[n];
            at += here;
        }
        first += x->dims[last];
        for (axis = last - 1; axis >= 0 && ++index[axis] == x->dims[axis]; axis--)
            index[axis] = 0;
    } while (axis >= 0);
}

static tutti_status nonzero_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t found = count_all(x);
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, 2, (int64_t[]){x->rank, found}));
    if (x->rank > 0 && found > 0)
        give(x, found, call->outputs[0].data);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_nonzero;
tutti_sym(tutti_nonzero)(tutti_sym x)
{
    return tutti__nary(&tutti_op_nonzero, 1, (tutti_sym[]){x}, 0, NULL);
}

static const char *const samples[] = {
    "f32[2,3]{=0,1,0,-2,0.5,0}", "bool[2,2,2]", "i32[]{=1}", "i64[0,3]", NULL,
};

const tutti_op tutti_op_nonzero = {
    .struct_size = sizeof(tutti_op),
    .name = "nonzero",
    .version = 1,
    .doc =
        "nonzero(x): i64 [rank, n]: column by column the places where x is not 0, in row-major order",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_NO_GRADIENT,
    .infer = nonzero_infer,
    .cost = tutti__cost_move,
    .reference = nonzero_reference,
    .samples = samples,
};
