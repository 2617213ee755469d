/* decoding.c: what layers use that are built to answer step by step. */
#include <math.h>
#include <stdio.h>

#include "nn/model/model.h"
#include "ops/build.h"
#include "ops/state/state.h"

static tutti_decoding *decoding_of(const tutti_layer_call *call)
{
    return ((const tutti_building *)call->graph->building)->decoding;
}

tutti_sym tutti__decoding_append(tutti_layer_call *call, tutti_sym x)
{
    tutti_decoding *d = decoding_of(call);
    tutti_type type = tutti_sym_type(x);
    char name[64];
    if (!x.node)
        return x;
    /* By number: a layer that stands in two places has two caches. */
    snprintf(name, sizeof name, "cache/%d", d->caches++);
    tutti_hidden_scopes hidden = tutti__scopes_hide(call->graph);
    tutti_sym cache = tutti_get_variable(
        call->graph, name, tutti_zeros(type.dims[0], type.dims[1], d->capacity, type.dims[3]),
        .dtype = type.dtype, .not_trainable = true);
    tutti__scopes_show(call->graph, hidden);
    return tutti_assign_slice(cache, x, d->position, 2);
}

/* first, first + 1, …: `count` of them. */
static tutti_sym numbers(tutti_graph *graph, int64_t count)
{
    return tutti_range(graph, 0, (double)count, 1, TUTTI_I64);
}

tutti_sym tutti__decoding_mask(tutti_layer_call *call, tutti_dtype dtype)
{
    tutti_decoding *d = decoding_of(call);
    tutti_sym *mask = &d->masks[dtype];
    if (mask->node)
        return *mask;
    tutti_sym steps = tutti_expand_dims(tutti_add(numbers(call->graph, d->steps), d->position), 1);
    tutti_sym seen = tutti_less_equal(numbers(call->graph, d->capacity), steps);
    *mask = tutti_where(seen, tutti_scalar(call->graph, dtype, 0),
                        tutti_scalar(call->graph, dtype, -INFINITY));
    return *mask;
}

tutti_sym tutti__decoding_positions(tutti_layer_call *call, int64_t most)
{
    tutti_decoding *d = decoding_of(call);
    if (d->limit == 0 || most < d->limit)
        d->limit = most;
    return tutti_add(numbers(call->graph, d->steps), d->position);
}
