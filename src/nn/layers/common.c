/* common.c: what several layers share. */
#include "nn/layers/common.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "nn/model/model.h"

bool tutti__layer_takes(tutti_layer_call *call, int rank, const char *what)
{
    tutti_type x = tutti_sym_type(call->inputs[0]);
    char text[TUTTI_TYPE_TEXT];
    if (x.rank == rank && tutti_dtype_is_float(x.dtype))
        return true;
    tutti_layer_fail(call, "takes %s of floats, the input is %s", what, tutti_type_text(&x, text));
    return false;
}

bool tutti__layer_knows(tutti_layer_call *call, int first)
{
    tutti_type x = tutti_sym_type(call->inputs[0]);
    char text[TUTTI_TYPE_TEXT];
    for (int i = first; i < x.rank; i++)
        if (x.dims[i] < 0) {
            tutti_layer_fail(call,
                             "dimension %d of the input %s must be known; give the model an input "
                             "shape",
                             i, tutti_type_text(&x, text));
            return false;
        }
    return true;
}

tutti_sym tutti__layer_full(tutti_layer_call *call, tutti_dtype dtype, double value, int64_t size)
{
    return tutti_fill(call->graph, dtype, value, size);
}

tutti_sym tutti__layer_zeros(tutti_sym x, int64_t size)
{
    tutti_type type = tutti_sym_type(x);
    tutti_axes rest = {.count = type.rank - 1};
    for (int i = 1; i < type.rank; i++)
        rest.values[i - 1] = i;
    tutti_sym batch = type.rank > 1 ? tutti_sum(x, .axes = rest) : x;
    return tutti_zeros_like(tutti_broadcast_to(tutti_expand_dims(batch, 1), -1, size));
}

/* ---- dropout ---- */

tutti_sym tutti__layer_dropout(tutti_layer_call *call, tutti_sym x, double rate, int64_t seed,
                               const char *which)
{
    tutti_building *building = call->graph->building;
    if (!(rate >= 0 && rate < 1))
        return tutti_layer_fail(call, "the rate of dropout is from 0 to below 1, not %g", rate);
    if (!call->training || rate == 0)
        return x;
    uint64_t salt = tutti__hash_string(7, building->prefix);
    salt = tutti__hash_string(salt, tutti_layer_name(call->layer));
    if (which[0])
        salt = tutti__hash_string(salt, which);
    return tutti_nn_dropout(x, rate, .seed = seed ? seed : (int64_t)building->seed,
                            .salt = (int64_t)(salt >> 1));
}

tutti_sym tutti__layer_dropout_shared(tutti_layer_call *call, tutti_sym x, double rate,
                                      int64_t seed, int first, int end)
{
    tutti_slice_options one = {.struct_size = sizeof one};
    if (call->training && rate > 0) {
        one.begin.count = one.end.count = end;
        for (int i = 0; i < end; i++) {
            one.begin.values[i] = i < first ? TUTTI_FIRST : 0;
            one.end.values[i] = i < first ? TUTTI_LAST : 1;
        }
        tutti_sym ones = tutti_ones_like(tutti_slice_with(x, &one));
        return tutti_mul(x, tutti__layer_dropout(call, ones, rate, seed, ""));
    }
    return tutti__layer_dropout(call, x, rate, seed, "");
}

/* ---- masks ---- */

tutti_sym tutti__layer_mask(const tutti_layer_call *call, int i)
{
    return i < call->input_count ? tutti__mask_of(call->graph->building, call->inputs[i])
                                 : TUTTI_NO_SYM;
}

tutti_sym tutti__layer_masks_and(const tutti_layer_call *call)
{
    tutti_sym all = TUTTI_NO_SYM;
    for (int i = 0; i < call->input_count; i++) {
        tutti_sym mask = tutti__layer_mask(call, i);
        if (mask.node)
            all = all.node ? tutti_logical_and(all, mask) : mask;
    }
    return all;
}

/* ---- weights ---- */

tutti_sym tutti__layer_affine(tutti_layer_call *call, tutti_sym x, const tutti_affine *affine)
{
    char name[128];
    const char *slash = affine->name[0] ? "/" : "";
    tutti_type type = tutti_sym_type(x);
    snprintf(name, sizeof name, "%s%skernel", affine->name, slash);
    tutti_sym y = tutti_matmul(
        x, tutti_weight(call, name, TUTTI_TYPE(TUTTI_F32, type.dims[type.rank - 1], affine->units),
                        .initializer = affine->kernel_initializer, .sharding = affine->dims));
    if (!affine->no_bias) {
        snprintf(name, sizeof name, "%s%sbias", affine->name, slash);
        y = tutti_add(y,
                      tutti_weight(call, name, TUTTI_TYPE(TUTTI_F32, affine->units),
                                   .initializer = tutti__text_or(affine->bias_initializer, "zeros"),
                                   .sharding = affine->bias_dims));
    }
    return tutti_nn_activation(y, affine->activation);
}

tutti_status tutti__numbers_parse(const char *text, tutti_tensor **ret)
{
    int64_t count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ',';
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, &count, &tensor));
    for (int64_t i = 0; i < count; i++) {
        char *end;
        tutti_tensor_set(tensor, i, tutti__strtod(text, &end));
        while (*end == ' ')
            end++;
        if (end == text || (*end && *end != ',')) {
            tutti_tensor_release(tensor);
            return tutti_fail(TUTTI_INVALID,
                              "'%.40s' is no list of numbers; write them as \"0.1,0.2\"", text);
        }
        text = end + 1;
    }
    *ret = tensor;
    return TUTTI_OK;
}

tutti_status tutti__layer_open(const tutti_layer *layer, const char *kind, const char *what)
{
    if (!layer || !layer->kind || (kind && strcmp(layer->kind->name, kind) != 0))
        return tutti_fail(TUTTI_INVALID, "%s needs a layer of kind '%s', not '%s'", what,
                          kind ? kind : "?", tutti_layer_kind_name(layer));
    if (layer->owner && layer->owner->built)
        return tutti_fail(TUTTI_INVALID,
                          "%s: layer '%s' stands in model '%s', which is built already; adapt "
                          "layers before the model sees data",
                          what, tutti_layer_name(layer), tutti_model_name(layer->owner));
    return TUTTI_OK;
}
