/* optimizer_clip.c: gradients cut down before they move anything.
 *
 * Of gradients that are rows, rows of one index are summed first: the norm, and what is too large,
 * is that of the dense gradient. */
#include <stdlib.h>

#include "nn/optimizers/optimizer.h"
#include "ops/build.h"
#include "ops/update/update.h"

static tutti_sym times(tutti_sym x, tutti_sym f32_factor)
{
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    return tutti_mul(x, dtype == TUTTI_F32 ? f32_factor : tutti_cast(f32_factor, dtype));
}

/* c / max(norm, c), which is NaN when the norm is: a gradient that is not finite stays so. */
static tutti_sym factor_of(tutti_graph *graph, double most, int count, const tutti_sym *values)
{
    tutti_sym limit = tutti_scalar(graph, TUTTI_F32, most);
    tutti_sym norm = tutti_sqrt(tutti__square_sum(count, values));
    tutti_sym factor = tutti_div(limit, tutti_maximum(norm, limit));
    return tutti_add(factor, tutti_sub(norm, norm));
}

static void clip_together(tutti_graph *graph, double most, int count, tutti_grad *grads)
{
    tutti_sym *values = calloc((size_t)count + 1, sizeof *values);
    int used = 0;
    if (!values) {
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory to clip %d gradients", count);
        return;
    }
    for (int i = 0; i < count; i++)
        if (tutti_grad_ok(grads[i]))
            values[used++] = grads[i].value;
    if (used > 0) {
        tutti_sym factor = factor_of(graph, most, used, values);
        for (int i = 0; i < count; i++)
            if (tutti_grad_ok(grads[i]))
                grads[i].value = times(grads[i].value, factor);
    }
    free(values);
}

void tutti__optimizer_clip(const char *name, tutti_clipping clipping, tutti_graph *graph, int count,
                           tutti_grad *grads)
{
    double value = clipping.value, norm = clipping.norm, global = clipping.global_norm;
    if ((value != 0) + (norm != 0) + (global != 0) > 1 ||
        !(value >= 0 && norm >= 0 && global >= 0)) {
        tutti__poison(graph, TUTTI_INVALID,
                      "%s: clip_value is %g, clip_norm %g, global_clip_norm %g; only one may be "
                      "given, and it must be above 0",
                      name, value, norm, global);
        return;
    }
    if (value == 0 && norm == 0 && global == 0)
        return;
    for (int i = 0; i < count; i++) {
        if (!tutti_grad_ok(grads[i]))
            continue;
        if (grads[i].rows.node)
            grads[i].value = tutti__combine_rows(grads[i].value, grads[i].rows);
        if (value > 0)
            grads[i].value = tutti_clip(grads[i].value, -value, value);
        if (norm > 0)
            grads[i].value = times(grads[i].value, factor_of(graph, norm, 1, &grads[i].value));
    }
    if (global > 0)
        clip_together(graph, global, count, grads);
}
