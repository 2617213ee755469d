/* blocks.c: the largest elements of rows that are split over ranks: each rank finds those of its
 * block, and the ranks exchange them. */
#include "ops/reduce/reduce.h"

/* The last axis of x as blocks, one for each rank; false: they would not be of one size. */
static bool blocks_of(const tutti_expansion *node, tutti_sym *ret, int64_t *ret_size)
{
    tutti_type x = tutti_sym_type(node->inputs[0]);
    int64_t dims[TUTTI_MAX_RANK + 1];
    int last = x.rank - 1;
    if (node->input != 0 || node->dimension != last || x.rank == TUTTI_MAX_RANK ||
        x.dims[last] % node->ranks != 0)
        return false;
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[last] = node->ranks;
    dims[last + 1] = *ret_size = x.dims[last] / node->ranks;
    *ret = (tutti_reshape)(node->inputs[0], x.rank + 1, dims);
    return true;
}

/* Where the blocks begin: [ranks]. */
static tutti_sym begins_of(const tutti_expansion *node, int64_t size, tutti_dtype dtype)
{
    return tutti_range(node->graph, 0, (double)(size * node->ranks), (double)size, dtype);
}

tutti_status tutti__top_k_expand_on(tutti_expansion *node)
{
    tutti_sym blocks;
    int64_t size, k = RULE_INT(node, "k");
    tutti_type x = tutti_sym_type(node->inputs[0]);
    int last = x.rank - 1;
    if (k < 1 || 2 * k * node->ranks > x.dims[last] || !blocks_of(node, &blocks, &size))
        return TUTTI_OK;
    tutti_sym own = tutti_top_k(blocks, k); /* [.., ranks, k] */
    tutti_sym places = tutti_add(tutti_sym_output(own, 1),
                                 tutti_expand_dims(begins_of(node, size, TUTTI_I32), -1));
    int64_t dims[TUTTI_MAX_RANK];
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[last] = k * node->ranks;
    tutti_sym best = tutti_top_k((tutti_reshape)(tutti_sym_output(own, 0), x.rank, dims), k);
    node->outputs[0] = tutti_sym_output(best, 0);
    node->outputs[1] =
        tutti_take_along((tutti_reshape)(places, x.rank, dims), tutti_sym_output(best, 1), -1);
    return TUTTI_OK;
}

tutti_status tutti__argmax_expand_on(tutti_expansion *node)
{
    tutti_sym blocks;
    int64_t size;
    int rank = tutti_sym_type(node->inputs[0]).rank, axis = (int)RULE_INT(node, "axis");
    axis += axis < 0 ? rank : 0;
    if (axis != rank - 1 || !blocks_of(node, &blocks, &size) || size < 2)
        return TUTTI_OK;
    tutti_sym place = tutti_add(tutti_argmax(blocks, -1), begins_of(node, size, TUTTI_I64));
    tutti_sym block = tutti_argmax(tutti_max(blocks, .axes = TUTTI_AXES(-1)), -1);
    node->outputs[0] = tutti_squeeze(tutti_take_along(place, tutti_expand_dims(block, -1), -1), -1);
    return TUTTI_OK;
}
