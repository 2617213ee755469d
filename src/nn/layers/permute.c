/* permute.c: the axes of each example in another order. */
#include "nn/layers/common.h"

static tutti_sym permute_call(tutti_layer_call *call)
{
    const tutti_dims_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t order[TUTTI_MAX_RANK] = {0};
    bool seen[TUTTI_MAX_RANK] = {false}, fits = s->rank == x.rank - 1;
    for (int i = 0; fits && i < s->rank; i++) {
        fits = s->dims[i] >= 1 && s->dims[i] < x.rank && !seen[s->dims[i]];
        order[i + 1] = s->dims[i];
        if (fits)
            seen[s->dims[i]] = true;
    }
    if (!fits) {
        char text[TUTTI_TYPE_TEXT];
        return tutti_layer_fail(call,
                                "needs each of the axes 1 to %d of %s once; the batch is axis 0 "
                                "and stays",
                                x.rank - 1, tutti_type_text(&x, text));
    }
    return (tutti_transpose)(call->inputs[0], x.rank, order);
}

const tutti_layer_kind tutti_layer_permute = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "permute",
    .doc = "permute(axes): axis i of the output is axis axes[i] of the input; the batch stays",
    .settings_size = sizeof(tutti_dims_settings),
    .fields = tutti__dims_fields,
    .call = permute_call,
};
