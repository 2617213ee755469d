/* reshape.c: other dimensions for each example. */
#include "nn/layers/common.h"

/* The dimension that is given as -1: what is left of an example's elements; 0 after a mistake. */
static int64_t solve(tutti_layer_call *call, const tutti_dims_settings *s)
{
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t given = 1, have = 1;
    char text[TUTTI_TYPE_TEXT];
    int open = 0;
    for (int i = 1; i < x.rank; i++)
        have *= x.dims[i];
    for (int i = 0; i < s->rank; i++) {
        open += s->dims[i] == -1;
        given *= s->dims[i] == -1 ? 1 : s->dims[i];
    }
    if (open > 1 || (open ? given == 0 || have % given != 0 : given != have)) {
        tutti_layer_fail(call, "the examples of %s do not fit into the %lld elements asked for%s",
                         tutti_type_text(&x, text), (long long)given,
                         open > 1 ? "; one dimension may be -1" : "");
        return 0;
    }
    return open ? have / given : 1;
}

static tutti_sym reshape_call(tutti_layer_call *call)
{
    const tutti_dims_settings *s = call->settings;
    int64_t dims[TUTTI_MAX_RANK] = {-1};
    if (s->rank < 0 || s->rank >= TUTTI_MAX_RANK)
        return tutti_layer_fail(call, "needs 0 to %d dimensions, not %lld", TUTTI_MAX_RANK - 1,
                                (long long)s->rank);
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i] < -1)
            return tutti_layer_fail(call, "%lld is no dimension", (long long)s->dims[i]);
    if (!tutti__layer_knows(call, 1))
        return TUTTI_NO_SYM;
    int64_t rest = solve(call, s);
    if (rest == 0 && tutti_graph_check(call->graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    for (int i = 0; i < s->rank; i++)
        dims[i + 1] = s->dims[i] == -1 ? rest : s->dims[i];
    return (tutti_reshape)(call->inputs[0], (int)s->rank + 1, dims);
}

const tutti_layer_kind tutti_layer_reshape = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "reshape",
    .doc = "reshape(dims): the elements of each example under other dimensions",
    .settings_size = sizeof(tutti_dims_settings),
    .fields = tutti__dims_fields,
    .call = reshape_call,
};
