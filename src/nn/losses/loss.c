/* loss.c: losses by name, and from one loss an example to one number. */
#include "nn/losses/loss.h"

#include <string.h>

#include "tables/loss_def.h"

tutti_loss tutti_loss_by_name(const char *name, const tutti_loss *like)
{
    tutti_loss loss = like ? *like : (tutti_loss){0};
    loss.def = NULL;
    for (const tutti_loss_def *const *def = tutti__loss_def_table; *def; def++)
        if (name && strcmp((*def)->name, name) == 0)
            loss.def = *def;
    return loss;
}

static tutti_sym call_custom(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    return loss->fn(loss, truth, guess);
}

tutti_loss tutti_custom_loss(tutti_loss_fn *fn, void *context, const char *name)
{
    static const tutti_loss_def custom = {.name = "custom", .doc = "", .each = call_custom};
    return (tutti_loss){.def = fn ? &custom : NULL, .fn = fn, .context = context, .name = name};
}

tutti_sym tutti__targets_for(tutti_sym truth, tutti_sym guess, bool classes)
{
    if (!truth.node || !guess.node)
        return TUTTI_NO_SYM;
    tutti_type have = tutti_sym_type(truth), want = tutti_sym_type(guess);
    if (classes) {
        if (have.rank == want.rank && have.rank > 0 && have.dims[have.rank - 1] == 1)
            truth = tutti_squeeze(truth, -1);
        return tutti_dtype_is_int(have.dtype) ? truth : tutti_cast(truth, TUTTI_I64);
    }
    if (have.rank + 1 == want.rank && want.dims[want.rank - 1] == 1)
        truth = tutti_expand_dims(truth, -1);
    return have.dtype == want.dtype ? truth : tutti_cast(truth, want.dtype);
}

tutti_sym tutti__weights_like(tutti_sym weights, tutti_sym x)
{
    if (!weights.node || !x.node)
        return weights;
    int missing = tutti_sym_type(x).rank - tutti_sym_type(weights).rank;
    for (int i = 0; i < missing; i++)
        weights = tutti_expand_dims(weights, -1);
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    return tutti_sym_type(weights).dtype == dtype ? weights : tutti_cast(weights, dtype);
}

bool tutti__targets_agree(const char *what, const char *name, tutti_sym truth, tutti_sym guess,
                          bool classes)
{
    if (!truth.node)
        return false;
    char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
    tutti_type t = tutti_sym_type(truth), g = tutti_sym_type(guess);
    bool agree = t.rank == g.rank - classes;
    for (int i = 0; agree && i < t.rank; i++)
        agree = t.dims[i] == g.dims[i] || t.dims[i] == TUTTI_ANY || g.dims[i] == TUTTI_ANY;
    if (!agree)
        tutti__poison(guess.node->graph, TUTTI_INVALID,
                      "%s %s: targets are %s, outputs %s; targets need %s", what, name,
                      tutti_type_text(&t, have), tutti_type_text(&g, want),
                      classes ? "the outputs' shape without its last axis: class numbers"
                              : "the outputs' shape");
    return agree;
}

/* Before their types are looked at: a value of an earlier step of a tape has none. Losses of users
 * may do without a target. */
static bool are_usable(tutti_graph *graph, const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    tutti_status status = tutti__sym_usable(graph, guess, "the output", -1);
    if (status == TUTTI_OK && (truth.node || !loss->fn))
        status = tutti__sym_usable(graph, truth, "the target", -1);
    if (status != TUTTI_OK)
        tutti__poison(graph, status, "loss %s: %s", loss->def->name, tutti_error_message());
    return status == TUTTI_OK;
}

tutti_sym(tutti_loss_per_example)(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    if (!guess.node && !truth.node)
        return TUTTI_NO_SYM;
    tutti_graph *graph = guess.node ? guess.node->graph : truth.node->graph;
    if (!loss || !loss->def)
        return tutti__poison(graph, TUTTI_NOT_FOUND, "there is no such loss");
    if (!(loss->label_smoothing >= 0 && loss->label_smoothing <= 1))
        return tutti__poison(graph, TUTTI_INVALID,
                             "loss %s: label_smoothing is from 0 to 1, not %g", loss->def->name,
                             loss->label_smoothing);
    if (!are_usable(graph, loss, truth, guess))
        return TUTTI_NO_SYM;
    if (loss->fn) {
        tutti_sym each = loss->def->each(loss, truth, guess);
        if (!each.node && tutti_graph_check(graph) == TUTTI_OK)
            tutti__poison(graph, TUTTI_INVALID, "loss %s: its function gave nothing",
                          loss->name ? loss->name : loss->def->name);
        return each;
    }
    truth = tutti__targets_for(truth, guess, loss->def->classes);
    bool agree = tutti__targets_agree("loss", loss->def->name, truth, guess, loss->def->classes);
    return agree ? loss->def->each(loss, truth, guess) : TUTTI_NO_SYM;
}

tutti_loss_parts tutti__loss_parts(const tutti_loss *loss, tutti_sym truth, tutti_sym guess,
                                   tutti_sym weights)
{
    tutti_sym each = (tutti_loss_per_example)(loss, truth, guess);
    tutti_loss_parts parts = {0};
    if (!each.node)
        return parts;
    tutti_graph *graph = each.node->graph;
    tutti_sym number = tutti_cast(tutti_size(each), TUTTI_F32);
    if (!weights.node && loss->reduction != TUTTI_LOSS_SUM) {
        parts.value = tutti_mean(each); /* one pass where loss and gradient are fused */
        parts.count = number;
        parts.sum = tutti_mul(parts.value, number);
        return parts;
    }
    tutti_sym weighted = each, share = TUTTI_NO_SYM;
    if (weights.node) {
        share = tutti_broadcast_like(tutti__weights_like(weights, each), each);
        weighted = tutti_mul(each, share);
    }
    parts.sum = tutti_sum(weighted);
    parts.count = loss->reduction == TUTTI_LOSS_SUM ? tutti_scalar(graph, TUTTI_F32, 1)
                  : loss->reduction == TUTTI_LOSS_WEIGHTED_MEAN && weights.node ? tutti_sum(share)
                                                                                : number;
    parts.value =
        tutti_div(parts.sum, tutti_maximum(parts.count, tutti_scalar(graph, TUTTI_F32, 1e-30)));
    return parts;
}

tutti_sym tutti_compute_loss_with(const tutti_loss *loss, tutti_sym truth, tutti_sym guess,
                                  const tutti_compute_loss_options *options)
{
    return tutti__loss_parts(loss, truth, guess, options ? options->weights : TUTTI_NO_SYM).value;
}
