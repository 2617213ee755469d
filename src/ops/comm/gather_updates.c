/* gather_updates.c: variables of which each process has updated a part become whole on all. */
#include "ops/comm/comm.h"

enum { UNIT = 16 }; /* elements: values of a bucket begin at multiples of 64 bytes */

int64_t tutti__owned_block(int64_t count, int64_t size)
{
    return count / UNIT / size * UNIT;
}

void tutti__owned_bounds(int64_t count, int64_t size, int64_t rank, int64_t *ret_first,
                         int64_t *ret_end)
{
    int64_t block = tutti__owned_block(count, size);
    *ret_first = rank * block;
    *ret_end = rank + 1 < size ? *ret_first + block : count;
}

void tutti__owned_elements(int64_t count, int64_t size, int64_t rank, int64_t offset,
                           int64_t elements, int64_t *ret_first, int64_t *ret_end)
{
    int64_t first, end;
    tutti__owned_bounds(count, size, rank, &first, &end);
    first -= offset;
    end -= offset;
    *ret_first = first < 0 ? 0 : first < elements ? first : elements;
    *ret_end = end < *ret_first ? *ret_first : end < elements ? end : elements;
}

int64_t tutti__owned_count(const tutti_type *types, int count)
{
    return count == 1 ? tutti_type_count(&types[0]) : tutti__owned_offset(types, count);
}

int64_t tutti__owned_offset(const tutti_type *types, int count)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++)
        at += (tutti_type_count(&types[i]) + UNIT - 1) / UNIT * UNIT;
    return at;
}

static tutti_status gather_updates_infer(tutti_infer *node)
{
    const tutti_attr *of = tutti_attr_find(node->attrs, node->attr_count, "of");
    TUTTI_TRY(tutti__need_axis(node));
    int values = node->input_count - of->count;
    if (of->count < 1 || values < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "%d variables and %d values", of->count, values);
    for (int i = 0; i < of->count; i++) {
        int64_t at = of->value.ints[i];
        if (at < 0 || at >= values)
            return RULE_FAIL(node, TUTTI_INVALID, "variable %d is of value %lld, there are %d", i,
                             (long long)at, values);
        TUTTI_TRY(tutti__need_variable(node, i));
        if (tutti_type_count(&node->inputs[i]) != tutti_type_count(&node->inputs[of->count + at]))
            return RULE_FAIL(node, TUTTI_INVALID, "variable %d and its value differ in size", i);
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].dtype != TUTTI_F32)
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, must be f32", i,
                             tutti_dtype_name(node->inputs[i].dtype));
    return TUTTI_OK;
}

/* Along an axis of size 1 all of it is one's own. */
static tutti_status gather_updates_reference(const tutti_kernel_call *call)
{
    if (RULE_INT(call, "size") != 1)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED, "meets processes that are not there");
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"of", TUTTI_ATTR_INTS, NULL}, /* by variable: the value that its part was written over */
    {0},
};

const tutti_op tutti_op_gather_updates = {
    .struct_size = sizeof(tutti_op),
    .name = "gather_updates",
    .version = 1,
    .doc = "gather_updates(v0, v1, …, x0, x1, …): of the values x, one behind the other, each "
           "process of the axis has one part, the new elements of the variables; all get all",
    .category = "communication",
    .min_inputs = 2,
    .max_inputs = -1,
    .outputs = 0,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_COLLECTIVE |
             TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = gather_updates_infer,
    .reference = gather_updates_reference,
};
