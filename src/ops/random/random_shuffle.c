/* random_shuffle.c: rows in random order. */
#include <stdlib.h>

#include "ops/random/random.h"
#include "ops/shape/move.h"
#include "ops/sort.h"

/* counter, x [rows, ...] -> y like x, order i64 [rows] */
static tutti_status random_shuffle_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_counter(node));
    if (node->inputs[1].rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "a scalar has no rows to shuffle");
    node->outputs[0] = node->inputs[1];
    node->outputs[1] = tutti_type_make(TUTTI_I64, 1, node->inputs[1].dims);
    return TUTTI_OK;
}

/* Row i stands where its key of 64 random bits stands among all keys. */
static tutti_status random_shuffle_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[1], *y = &call->outputs[0], *order = &call->outputs[1];
    int64_t rows = x->dims[0];
    size_t bytes = (size_t)tutti__row_count(x) * tutti_dtype_size(x->dtype);
    tutti_draw draw = tutti__draw_of(call, order);
    tutti_keyed *keys = calloc(2 * ((size_t)rows + 1), sizeof *keys);
    if (!keys)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for the keys of %lld rows",
                         (long long)rows);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t high = tutti__random_u32(draw.key, 2 * (uint64_t)i);
        uint64_t low = tutti__random_u32(draw.key, 2 * (uint64_t)i + 1);
        keys[i] = (tutti_keyed){high << 32 | low, i};
    }
    tutti__sort_keyed(rows, keys, keys + rows);
    int64_t *places = order->data;
    for (int64_t i = 0; i < rows; i++)
        places[i] = keys[i].place;
    free(keys);
    if (bytes > 0)
        tutti__pick(bytes, rows, y->data, x->data, places);
    return TUTTI_OK;
}

/* dx[order[i]] = dy[i] */
static tutti_status random_shuffle_gradient(tutti_gradient_call *node)
{
    if (node->wanted[1] && tutti_sym_ok(node->output_grads[0]))
        node->input_grads[1] =
            tutti_rows_to_dense(node->output_grads[0], node->outputs[1], node->inputs[1]);
    return TUTTI_OK;
}

/* Rows may be cut across, never between: the order is of all of them. */
static int random_shuffle_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0;
    for (int axis = 1; axis < node->inputs[1].rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] = (tutti_split){.inputs = {TUTTI_WHOLE, (int8_t)axis},
                                      .outputs = {(int8_t)axis, TUTTI_WHOLE}};
    return ways;
}

static const tutti_attr_spec attrs[] = {
    {"seed", TUTTI_ATTR_INT, "0"},
    {"salt", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "i64[]{=3} f32[6,2]",
    "i64[]{=0} f64[5] | seed=4",
    "i64[]{=1} i64[9]",
    "i64[]{=1} f32[0,3]",
    NULL,
};

extern const tutti_op tutti_op_random_shuffle;

tutti_sym tutti_random_shuffle_with(tutti_sym x, const tutti_random_options *options)
{
    if (!tutti_sym_ok(x))
        return tutti__poison_of("random_shuffle", 1, &x);
    return tutti__random_build(x.node->graph, &tutti_op_random_shuffle, options, 1, &x, 0, NULL);
}

const tutti_op tutti_op_random_shuffle = {
    .struct_size = sizeof(tutti_op),
    .name = "random_shuffle",
    .version = 1,
    .doc = "random_shuffle(counter, x): y[i] = x[order[i]], order a random permutation",
    .category = "random",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .flags = TUTTI_OP_RANDOM,
    .attrs = attrs,
    .infer = random_shuffle_infer,
    .gradient = random_shuffle_gradient,
    .cost = tutti__cost_move,
    .split = random_shuffle_split,
    .reference = random_shuffle_reference,
    .samples = samples,
};
