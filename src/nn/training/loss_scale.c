/* loss_scale.c: see loss_scale.h. */
#include "nn/training/loss_scale.h"

#include <stdlib.h>

#include "ops/build.h"
#include "ops/state/state.h"
#include "ops/update/update.h"

tutti_loss_scale tutti__loss_scale_open(tutti_graph *graph)
{
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_loss_scale scale = {
        .scale = tutti_get_variable(graph, "loss_scale/scale", tutti_full(TUTTI_LOSS_SCALE_START),
                                    .not_trainable = true, .dtype = TUTTI_F32),
        .good_steps = tutti_get_variable(graph, "loss_scale/good_steps", tutti_zeros(),
                                         .not_trainable = true, .dtype = TUTTI_I64)};
    tutti__scopes_show(graph, hidden);
    return scale;
}

/* x times a f32 scalar. */
static tutti_sym times(tutti_sym x, tutti_sym factor)
{
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    return tutti_mul(x, dtype == TUTTI_F32 ? factor : tutti_cast(factor, dtype));
}

tutti_sym tutti__loss_scale_up(const tutti_loss_scale *scale, tutti_sym loss)
{
    return times(loss, tutti_read(scale->scale));
}

/* steps = finite ? steps + 1 : 0, back to 0 when full;
 * scale = finite ? (full ? 2 scale : scale) : max(scale / 2, 1). */
static tutti_sym move_scale(tutti_graph *graph, const tutti_loss_scale *scale)
{
    tutti_sym one = tutti_scalar(graph, TUTTI_I64, 1), none = tutti_scalar(graph, TUTTI_I64, 0),
              many = tutti_scalar(graph, TUTTI_I64, TUTTI_LOSS_SCALE_STEPS);
    tutti_sym now = tutti_read(scale->scale);
    tutti_sym steps = tutti_add(tutti_read(scale->good_steps), one);
    tutti_sym full = tutti_greater_equal(steps, many);
    tutti_sym up = tutti_where(full, tutti_mul(now, 2), now);
    tutti_sym down = tutti_maximum(tutti_mul(now, 0.5), tutti_scalar(graph, TUTTI_F32, 1));
    tutti_sym counted = tutti_where(full, none, steps);
    tutti_sym writes[] = {
        tutti_assign(scale->scale, tutti_where(scale->finite, up, down)),
        tutti_assign(scale->good_steps, tutti_where(scale->finite, counted, none)),
    };
    return (tutti_group)(graph, NULL, 2, writes);
}

tutti_sym tutti__loss_scale_build(tutti_loss_scale *scale, int count, const tutti_grad *grads,
                                  tutti_grad *ret_grads)
{
    tutti_graph *graph = tutti_sym_graph(scale->scale);
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    tutti_sym *values = calloc((size_t)count + 1, sizeof *values);
    if (!values)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d gradients", count);
    tutti_sym inverse = tutti_reciprocal(tutti_read(scale->scale));
    int used = 0;
    for (int i = 0; i < count; i++) {
        tutti_grad grad = grads[i];
        if (tutti_grad_ok(grad)) {
            grad.value = times(grad.value, inverse);
            values[used++] =
                grad.value; /* the same that is updated with: replicas add it up once */
        }
        ret_grads[i] = grad;
    }
    tutti_sym rescale = TUTTI_NO_SYM;
    if (used == 0) {
        tutti__poison(graph, TUTTI_INVALID, "loss scaling: there is no gradient");
    } else {
        scale->finite = tutti__all_finite(used, values);
        rescale = move_scale(graph, scale);
    }
    free(values);
    return rescale;
}
