/* recurrent.c: the rules that simple_rnn, gru and lstm share; see recurrent.h. */
#include "ops/network/recurrent.h"

static int output_count(const tutti_cell *cell)
{
    return 1 + cell->states + (cell->kept > 0);
}

tutti_rnn_slots tutti__rnn_slots(const tutti_cell *cell, int64_t grads, int input_count)
{
    int next = 1 + cell->states;
    tutti_rnn_slots slots = {.reserve = -1, .grads = {-1, -1, -1, -1}, .lengths = -1};
    slots.kernel = next++;
    slots.recurrent = next++;
    slots.y = next++;
    if (cell->kept > 0)
        slots.reserve = next++;
    for (int i = 0; i < output_count(cell); i++)
        if (grads >> i & 1)
            slots.grads[i] = next++;
    if (input_count > next)
        slots.lengths = next++;
    slots.count = next;
    return slots;
}

static tutti_status check_lengths(const tutti_infer *node, int i, int64_t batch)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_dtype dtype = node->inputs[i].dtype;
    if (dtype != TUTTI_I32 && dtype != TUTTI_I64)
        return RULE_FAIL(node, TUTTI_INVALID, "lengths are %s, need i32[batch] or i64[batch]",
                         tutti_type_text(&node->inputs[i], text));
    TUTTI_TRY(tutti__need_rank(node, i, "lengths", 1, "[batch]"));
    return tutti__need_dim(node, i, "lengths", 0, batch, "batch of x");
}

/* x, states and the two kernels, which both operators have in front, kernel at `kernel`. */
static tutti_status check_operands(const tutti_infer *node, const tutti_cell *cell, int kernel,
                                   tutti_sequence *ret)
{
    const tutti_type *x = &node->inputs[0], *u = &node->inputs[kernel + 1];
    TUTTI_TRY(tutti__need_floats(node, 0, kernel + 2));
    TUTTI_TRY(tutti__need_rank(node, 0, "x", 3, "[batch,time,features]"));
    TUTTI_TRY(tutti__need_rank(node, kernel, "kernel", 2, "[features,gates*units]"));
    TUTTI_TRY(tutti__need_rank(node, kernel + 1, "recurrent", 2, "[units,gates*units]"));
    TUTTI_TRY(tutti__need_dim(node, kernel, "kernel", 0, x->dims[2], "features of x"));
    int64_t batch = x->dims[0], units = u->dims[0];
    if (units > INT32_MAX)
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "%lld units", (long long)units);
    if (units == TUTTI_ANY && u->dims[1] != TUTTI_ANY)
        units = u->dims[1] / cell->gates;
    int64_t wide = units == TUTTI_ANY ? TUTTI_ANY : units * cell->gates;
    TUTTI_TRY(tutti__need_dim(node, kernel, "kernel", 1, wide, "gates times units"));
    TUTTI_TRY(tutti__need_dim(node, kernel + 1, "recurrent", 1, wide, "gates times units"));
    for (int i = 1; i < kernel; i++) {
        const char *what = i == 1 ? "initial state h" : "initial state c";
        TUTTI_TRY(tutti__need_rank(node, i, what, 2, "[batch,units]"));
        TUTTI_TRY(tutti__need_dim(node, i, what, 0, batch, "batch of x"));
        TUTTI_TRY(tutti__need_dim(node, i, what, 1, units, "units"));
        batch = tutti__known(batch, node->inputs[i].dims[0]);
        units = tutti__known(units, node->inputs[i].dims[1]);
    }
    *ret = (tutti_sequence){cell, batch, x->dims[1], x->dims[2], units, false, NULL};
    return TUTTI_OK;
}

/* The types of y, final states and reserve. */
static int output_types(const tutti_sequence *s, tutti_dtype dtype, tutti_type *ret)
{
    int count = 0, kept = s->cell->kept;
    ret[count++] = tutti_type_make(dtype, 3, (int64_t[]){s->batch, s->time, s->units});
    for (int i = 0; i < s->cell->states; i++)
        ret[count++] = tutti_type_make(dtype, 2, (int64_t[]){s->batch, s->units});
    int64_t wide = s->units == TUTTI_ANY ? TUTTI_ANY : s->units * kept;
    if (kept > 0)
        ret[count++] = tutti_type_make(dtype, 3, (int64_t[]){s->batch, s->time, wide});
    return count;
}

static tutti_type bias_type(const tutti_sequence *s, tutti_dtype dtype)
{
    int64_t wide = s->units == TUTTI_ANY ? TUTTI_ANY : s->units * s->cell->gates;
    int64_t dims[] = {2, wide};
    return tutti_type_make(dtype, s->cell->biases, s->cell->biases == 1 ? dims + 1 : dims);
}

tutti_status tutti__rnn_infer(tutti_infer *node, const tutti_cell *cell)
{
    int kernel = 1 + cell->states;
    tutti_sequence s = {.cell = cell};
    TUTTI_TRY(check_operands(node, cell, kernel, &s));
    tutti_type bias = bias_type(&s, node->inputs[0].dtype);
    TUTTI_TRY(tutti__need_floats(node, 0, kernel + 3));
    TUTTI_TRY(tutti__need_like(node, kernel + 2, "bias", &bias));
    if (node->input_count > kernel + 3)
        TUTTI_TRY(check_lengths(node, kernel + 3, s.batch));
    output_types(&s, node->inputs[0].dtype, node->outputs);
    return TUTTI_OK;
}

tutti_status tutti__rnn_backward_infer(tutti_infer *node, const tutti_cell *cell)
{
    static const char *const grad_names[] = {"gradient of output 0", "gradient of output 1",
                                             "gradient of output 2", "gradient of output 3"};
    tutti_rnn_slots slots = tutti__rnn_slots(cell, RULE_INT(node, "grads"), node->input_count);
    tutti_sequence s = {.cell = cell};
    tutti_type outputs[4] = {0};
    if (slots.count != node->input_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d inputs, its attribute grads asks for %d",
                         node->input_count, slots.count);
    TUTTI_TRY(check_operands(node, cell, slots.kernel, &s));
    TUTTI_TRY(tutti__need_floats(node, 0, slots.count - (slots.lengths >= 0)));
    int count = output_types(&s, node->inputs[0].dtype, outputs);
    TUTTI_TRY(tutti__need_like(node, slots.y, "y", &outputs[0]));
    if (slots.reserve >= 0)
        TUTTI_TRY(tutti__need_like(node, slots.reserve, "reserve", &outputs[count - 1]));
    for (int i = 0; i < count; i++)
        if (slots.grads[i] >= 0)
            TUTTI_TRY(tutti__need_like(node, slots.grads[i], grad_names[i], &outputs[i]));
    if (slots.lengths >= 0)
        TUTTI_TRY(check_lengths(node, slots.lengths, s.batch));
    for (int i = 0; i <= slots.recurrent; i++)
        node->outputs[i] = node->inputs[i];
    node->outputs[slots.recurrent + 1] = bias_type(&s, node->inputs[0].dtype);
    return TUTTI_OK;
}

tutti_status tutti__rnn_gradient(tutti_gradient_call *node, const tutti_cell *cell)
{
    tutti_sym inputs[TUTTI_SPLIT_SLOTS];
    int front = 3 + cell->states, outputs = output_count(cell), count = front;
    int64_t grads = 0;
    memcpy(inputs, node->inputs, (size_t)front * sizeof *inputs);
    inputs[count++] = node->outputs[0];
    if (cell->kept > 0)
        inputs[count++] = node->outputs[outputs - 1];
    for (int i = 0; i < outputs; i++)
        if (tutti_sym_ok(node->output_grads[i])) {
            inputs[count++] = node->output_grads[i];
            grads |= (int64_t)1 << i;
        }
    if (grads == 0)
        return TUTTI_OK;
    if (node->input_count > front + 1)
        inputs[count++] = node->inputs[front + 1];
    tutti_attr attrs[] = {SAME_ATTR(node, "reverse"), TUTTI_INT("grads", grads)};
    tutti_sym back = tutti_apply_op(node->graph, cell->backward, count, inputs, 2, attrs);
    for (int i = 0; i <= front; i++)
        if (node->wanted[i])
            node->input_grads[i] = tutti_sym_output(back, i);
    return TUTTI_OK;
}

/* FLOPs of the two products for every step, and of the functions of the gates. */
static double step_flops(const tutti_infer *node, int kernel, double products, double functions)
{
    const tutti_type *x = &node->inputs[0], *w = &node->inputs[kernel], *u = w + 1;
    tutti_type steps = tutti_type_make(x->dtype, 2, x->dims);
    return tutti__elements(&steps) * (products * (tutti__elements(w) + tutti__elements(u)) +
                                      functions * (double)(u->dims[1] < 0 ? 1 : u->dims[1]));
}

void tutti__rnn_cost(const tutti_infer *node, const tutti_cell *cell, tutti_cost *ret)
{
    tutti__cost_flops(node, step_flops(node, 1 + cell->states, 2, 18), ret);
}

void tutti__rnn_backward_cost(const tutti_infer *node, const tutti_cell *cell, tutti_cost *ret)
{
    tutti__cost_flops(node, step_flops(node, 1 + cell->states, 4, 6), ret);
}

int tutti__rnn_split(const tutti_infer *node, const tutti_cell *cell, int capacity,
                     tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int inputs[TUTTI_SPLIT_SLOTS] = {0}, outputs[TUTTI_SPLIT_SLOTS] = {0};
    for (int i = 0; i < 3; i++)
        inputs[1 + cell->states + i] = TUTTI_WHOLE;
    tutti__way_add(&ways, node->input_count, inputs, node->output_count, outputs);
    return ways.count;
}

int tutti__rnn_backward_split(const tutti_infer *node, const tutti_cell *cell, int capacity,
                              tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int inputs[TUTTI_SPLIT_SLOTS] = {0}, outputs[TUTTI_SPLIT_SLOTS] = {0};
    inputs[1 + cell->states] = inputs[2 + cell->states] = TUTTI_WHOLE;
    for (int i = 0; i < 3; i++)
        outputs[1 + cell->states + i] = TUTTI_PARTIAL_SUM;
    tutti__way_add(&ways, node->input_count, inputs, node->output_count, outputs);
    return ways.count;
}

tutti_sym tutti__rnn_build(const tutti_op *op, int count, tutti_sym *inputs,
                           const tutti_rnn_options *given)
{
    TAKE_OPTIONS(tutti_rnn_options, options, given);
    if (tutti_sym_ok(options.lengths))
        inputs[count++] = options.lengths;
    return tutti__nary(op, count, inputs, 1, &TUTTI_INT("reverse", options.reverse));
}
