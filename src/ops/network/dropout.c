/* dropout(x, counter): y = x * keep / (1 - rate). Element i is kept when number i of the stream
 * (seed mixed with salt, counter) is at least `rate`. i is the element's index in the whole tensor,
 * also when x is a piece of one; see ops/random/draw.h. */
#include "ops/network/network.h"
#include "ops/random/random.h"

extern const tutti_op tutti_op_dropout;

static tutti_status dropout_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    double rate = RULE_FLOAT(node, "rate");
    TUTTI_TRY(tutti__need_floats(node, 0, 1));
    if (!(rate >= 0 && rate < 1))
        return RULE_FAIL(node, TUTTI_INVALID, "rate is %g, needs a number in [0, 1)", rate);
    if (node->inputs[1].dtype != TUTTI_I64 || node->inputs[1].rank != 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "counter is %s, needs the scalar i64[] that counts steps",
                         tutti_type_text(&node->inputs[1], text));
    TUTTI_TRY(tutti__need_piece(node, &node->inputs[0]));
    return tutti_infer_same(node);
}

/* The same mask: dx = dropout(dy). */
static tutti_status dropout_gradient(tutti_gradient_call *node)
{
    tutti_sym inputs[] = {node->output_grads[0], node->inputs[1]};
    if (tutti_sym_ok(inputs[0]) && node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_dropout, inputs, SAME_ATTR(node, "rate"),
                                          SAME_ATTR(node, "seed"), SAME_ATTR(node, "salt"),
                                          SAME_ATTR(node, "global_dims"), SAME_ATTR(node, "start"));
    return TUTTI_OK;
}

/* An element: ten rounds of two products each for every four numbers, a comparison, a product. */
static void dropout_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 7 * tutti__elements(&node->inputs[0]), ret);
}

/* Along every axis; the piece's place goes into the attributes. */
static int dropout_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    for (int axis = 0; axis < node->inputs[0].rank; axis++)
        tutti__way_add(&ways, SLOTS(axis, TUTTI_WHOLE), SLOTS(axis));
    return ways.count;
}

static tutti_draw draw_of(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    tutti_draw draw = {.rank = x->rank, .dims = x->dims};
    const int64_t *global_dims, *start;
    draw.key.seed =
        tutti__hash_mix((uint64_t)CALL_INT(call, "seed"), (uint64_t)CALL_INT(call, "salt"));
    draw.key.stream = (uint64_t)tutti_view_get_int(&call->inputs[1], 0);
    if (tutti_attr_ints(call->attrs, call->attr_count, "global_dims", &global_dims) > 0) {
        tutti_attr_ints(call->attrs, call->attr_count, "start", &start);
        draw.global_dims = global_dims;
        draw.start = start;
    }
    return draw;
}

static tutti_status run(const tutti_kernel_call *call, const double *const *inputs,
                        double *const *outputs, tutti_arena *scratch)
{
    double rate = CALL_FLOAT(call, "rate"), factor = 1 / (1 - rate);
    int64_t count = tutti_view_count(&call->inputs[0]);
    tutti_draw draw = draw_of(call);
    for (int64_t i = 0; i < count; i++) {
        bool keep = (double)tutti__random_f32(draw.key, tutti__draw_index(&draw, i)) >= rate;
        outputs[0][i] = keep ? inputs[0][i] * factor : 0;
    }
    return TUTTI_OK;
}

static tutti_status dropout_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, run);
}

/* A salt that is not given comes from the node's name, so that two dropouts differ. */
tutti_sym tutti_nn_dropout_with(tutti_sym x, double rate, const tutti_dropout_options *given)
{
    TAKE_OPTIONS(tutti_dropout_options, options, given);
    if (!tutti_sym_ok(x))
        return tutti__poison_of("dropout", 1, &x);
    bool own = tutti_sym_ok(options.counter);
    tutti_sym inputs[] = {x, own ? options.counter : tutti__random_counter(tutti_sym_graph(x))};
    tutti_sym y = TUTTI_NARY(&tutti_op_dropout, inputs, TUTTI_FLOAT("rate", rate),
                             TUTTI_INT("seed", options.seed), TUTTI_INT("salt", options.salt));
    if (tutti_sym_ok(y) && options.salt == 0)
        tutti__attr_set_int(y.node, "salt", tutti__random_salt(y.node, NULL, own));
    return y;
}

static const tutti_attr_spec attrs[] = {
    {"rate", TUTTI_ATTR_FLOAT, "0.5"},
    TUTTI_RANDOM_ATTRS,
    {NULL, TUTTI_ATTR_NONE, NULL},
};

static const char *const samples[] = {
    "f32[4,5] i64[]{=7}",
    "f32[3,2,3] i64[]{=0} | rate=0.2 seed=3 salt=5",
    "f32[6] i64[]{=1} | rate=0",
    "f64[2,3] i64[]{=123456789} | rate=0.9 global_dims=[4,5] start=[2,1]",
    NULL,
};

const tutti_op tutti_op_dropout = {
    .struct_size = sizeof(tutti_op),
    .name = "dropout",
    .version = 1,
    .doc = "dropout(x, counter): y[i] = random(seed, salt, counter, i) >= rate ? "
           "x[i] / (1 - rate) : 0",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_RANDOM,
    .attrs = attrs,
    .infer = dropout_infer,
    .gradient = dropout_gradient,
    .cost = dropout_cost,
    .split = dropout_split,
    .reference = dropout_reference,
    .samples = samples,
};
