/* recurrent.c: what simple_rnn, gru and lstm have alike: weights, directions, masks, states. */
#include "nn/layers/common.h"

#include <stdio.h>

/* kernel, recurrent_kernel and bias of one direction. */
static void read_weights(tutti_layer_call *call, const tutti_recurrence *kind, const char *prefix,
                         tutti_sym ret[3])
{
    const tutti_rnn_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t wide = kind->gates * s->units;
    char name[64];
    bool forget = kind->gates == 4 && !s->no_unit_forget_bias && !s->bias_initializer;
    snprintf(name, sizeof name, "%skernel", prefix);
    ret[0] =
        tutti_weight(call, name, TUTTI_TYPE(TUTTI_F32, x.dims[2], wide),
                     .initializer = s->kernel_initializer, .regularizer = s->kernel_regularizer,
                     .constraint = s->kernel_constraint, .sharding = "embed,hidden");
    snprintf(name, sizeof name, "%srecurrent_kernel", prefix);
    ret[1] = tutti_weight(call, name, TUTTI_TYPE(TUTTI_F32, s->units, wide),
                          .initializer = tutti__text_or(s->recurrent_initializer, "orthogonal"),
                          .regularizer = s->recurrent_regularizer,
                          .constraint = s->recurrent_constraint, .sharding = "-,hidden");
    tutti_type bias =
        kind->two_biases ? TUTTI_TYPE(TUTTI_F32, 2, wide) : TUTTI_TYPE(TUTTI_F32, wide);
    snprintf(name, sizeof name, "%sbias", prefix);
    if (s->no_bias)
        ret[2] = (tutti_fill)(call->graph, x.dtype, 0, bias.rank, bias.dims);
    else
        ret[2] = tutti_weight(call, name, bias,
                              .initializer = forget ? "unit_forget"
                                                    : tutti__text_or(s->bias_initializer, "zeros"),
                              .regularizer = s->bias_regularizer, .constraint = s->bias_constraint,
                              .sharding = kind->two_biases ? "-,hidden" : "hidden");
}

/* One direction, 0 or 1: its sequence, whose other outputs are the final states. */
static tutti_sym recurrent_run(tutti_layer_call *call, const tutti_recurrence *kind, tutti_sym x,
                               tutti_sym lengths, int direction)
{
    const tutti_rnn_settings *s = call->settings;
    tutti_rnn_options options = {.struct_size = sizeof options,
                                 .lengths = lengths,
                                 .reverse = direction == 1 || s->go_backwards};
    const char *prefix = !s->bidirectional ? "" : direction == 0 ? "forward/" : "backward/";
    tutti_sym weights[3], states[2];
    read_weights(call, kind, prefix, weights);
    for (int i = 0; i < kind->states; i++) {
        int input = 1 + direction * kind->states + i;
        states[i] =
            input < call->input_count ? call->inputs[input] : tutti__layer_zeros(x, s->units);
    }
    return kind->run(x, states, weights, &options);
}

/* Both directions' results as one. */
static tutti_sym recurrent_join(tutti_layer_call *call, tutti_sym a, tutti_sym b)
{
    const tutti_rnn_settings *s = call->settings;
    const char *mode = tutti__text_or(s->merge_mode, "concat");
    if (strcmp(mode, "concat") == 0)
        return tutti_concatenate(TUTTI_SYMS(a, b), .axis = -1);
    if (strcmp(mode, "sum") == 0)
        return tutti_add(a, b);
    if (strcmp(mode, "mul") == 0)
        return tutti_mul(a, b);
    if (strcmp(mode, "ave") == 0)
        return tutti_mul(tutti_add(a, b), 0.5);
    return tutti_layer_fail(call, "merge_mode is \"concat\", \"sum\", \"mul\" or \"ave\", not '%s'",
                            mode);
}

static bool recurrent_check(tutti_layer_call *call, const tutti_recurrence *kind)
{
    const tutti_rnn_settings *s = call->settings;
    int states = kind->states * (s->bidirectional ? 2 : 1);
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return false;
    if (s->units < 1)
        tutti_layer_fail(call, "needs at least one unit, not %lld", (long long)s->units);
    else if (s->bidirectional && s->go_backwards)
        tutti_layer_fail(call, "is bidirectional: it goes backwards already");
    else if (call->input_count != 1 && call->input_count != 1 + states)
        tutti_layer_fail(call,
                         "takes a sequence, or a sequence and %d initial states; it is called "
                         "with %d inputs",
                         states, call->input_count);
    else
        return true;
    return false;
}

/* Where the steps that a mask shows stand when those it hides are moved behind them. All are
 * numbers of rows of [batch * time, …], as i64 [batch, time]. */
typedef struct packing {
    tutti_sym order; /* the shown steps in order, then the hidden ones */
    tutti_sym
        forward; /* the result of each step: for a hidden one that of the last shown before, */
    tutti_sym started; /* bool: where there is one */
    tutti_sym
        backward; /* the same from the right: a hidden step has the next shown one's, or none */
    tutti_sym lengths; /* [batch] */
} packing;

/* With c[t] the number of shown steps up to t, a shown one goes to c[t] - 1, a hidden one to
 * length + t - c[t]. */
static packing pack(tutti_sym mask)
{
    tutti_sym shown = tutti_cast(mask, TUTTI_I64), one = tutti_ones_like(shown);
    tutti_sym count = tutti_cumsum(shown, 1), t = tutti_sub(tutti_cumsum(one, 1), one);
    tutti_sym row = tutti_reshape_like(tutti_cumsum(tutti_reshape(one, -1), 0), one);
    tutti_sym first = tutti_sub(tutti_sub(row, one), t); /* the row of each example's step 0 */
    tutti_sym lengths = tutti_sum(shown, .axes = TUTTI_AXES(1));
    tutti_sym before = tutti_sub(count, one);
    tutti_sym behind = tutti_add(tutti_expand_dims(lengths, 1), tutti_sub(t, count));
    tutti_sym place = tutti_where(mask, before, behind);
    return (packing){
        .order = tutti_add(tutti_scatter_elements(t, place, t, 1, NULL), first),
        .forward = tutti_add(tutti_maximum(before, tutti_zeros_like(before)), first),
        .started = tutti_greater(count, tutti_zeros_like(count)),
        .backward = tutti_add(tutti_where(mask, before, count), first),
        .lengths = lengths,
    };
}

/* The steps of x [batch, time, features] at these rows. */
static tutti_sym take_steps(tutti_sym x, tutti_sym rows)
{
    tutti_sym flat = tutti_reshape(x, -1, tutti_sym_type(x).dims[2]);
    return tutti_reshape_like(tutti_gather(flat, tutti_reshape(rows, -1), 0), x);
}

/* One direction's results at the steps' own places. */
static tutti_sym unpack(const packing *p, tutti_sym y, bool backward)
{
    if (!p->order.node)
        return y;
    if (backward)
        return take_steps(y, p->backward);
    tutti_sym started = tutti_expand_dims(tutti_cast(p->started, tutti_sym_type(y).dtype), 2);
    return tutti_mul(take_steps(y, p->forward), started);
}

/* The sequence as it leaves the layer: bidirectional ones are 0 where the mask hides, backward ones
 * come in the order they were made. */
static tutti_sym recurrent_finish(tutti_layer_call *call, tutti_sym y)
{
    const tutti_rnn_settings *s = call->settings;
    call->ret_mask = call->mask;
    if (s->go_backwards) {
        call->ret_mask = call->mask.node ? tutti_reverse(call->mask, 1) : TUTTI_NO_SYM;
        return tutti_reverse(y, 1);
    }
    if (!s->bidirectional || !call->mask.node)
        return y;
    return tutti_mul(y, tutti_expand_dims(tutti_cast(call->mask, tutti_sym_type(y).dtype), 2));
}

tutti_sym tutti__layer_recurrent(tutti_layer_call *call, const tutti_recurrence *kind)
{
    const tutti_rnn_settings *s = call->settings;
    tutti_sym runs[2] = {TUTTI_NO_SYM};
    packing packed = {.order = TUTTI_NO_SYM, .lengths = TUTTI_NO_SYM};
    int directions = s->bidirectional ? 2 : 1;
    if (!recurrent_check(call, kind))
        return TUTTI_NO_SYM;
    tutti_sym x = tutti__layer_dropout_shared(call, call->inputs[0], s->dropout, s->seed, 1, 2);
    if (call->mask.node) {
        packed = pack(call->mask);
        x = take_steps(x, packed.order);
    }
    for (int i = 0; i < directions; i++)
        runs[i] = recurrent_run(call, kind, x, packed.lengths, i);
    if (!runs[0].node)
        return TUTTI_NO_SYM;
    for (int i = 0; s->return_state && i < directions * kind->states; i++)
        call->extra[call->extra_count++] =
            tutti_sym_output(runs[i / kind->states], 1 + i % kind->states);
    tutti_sym y[2];
    for (int i = 0; i < directions; i++)
        y[i] = s->return_sequences
                   ? unpack(&packed, tutti_sym_output(runs[i], 0), i == 1 || s->go_backwards)
                   : tutti_sym_output(runs[i], 1);
    tutti_sym both = s->bidirectional ? recurrent_join(call, y[0], y[1]) : y[0];
    return s->return_sequences ? recurrent_finish(call, both) : both;
}
