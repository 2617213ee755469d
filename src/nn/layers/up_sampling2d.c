/* up_sampling2d.c: larger images. */
#include "nn/layers/common.h"

#include <math.h>

static tutti_sym nearest(tutti_sym x, int64_t down, int64_t across)
{
    tutti_type type = tutti_sym_type(x);
    tutti_sym parts = tutti_expand_dims(tutti_expand_dims(x, 3), 2);
    tutti_sym wide = tutti_broadcast_to(parts, -1, -1, down, -1, across, -1);
    return tutti_reshape(wide, -1, type.dims[1] * down, type.dims[2] * across, type.dims[3]);
}

/* [size * times, size]: row i mixes the two pixels between whose centres pixel i's centre lies, at
 * (i + 1/2) / times - 1/2; beyond the outermost centres it is the outermost pixel. */
static tutti_sym mixing(tutti_layer_call *call, int64_t size, int64_t times, tutti_dtype dtype)
{
    tutti_tensor *matrix, *cast;
    int64_t dims[2] = {size * times, size};
    if (tutti_tensor_create(TUTTI_F32, 2, dims, &matrix) != TUTTI_OK)
        return tutti_layer_fail(call, "%s", tutti_error_message());
    for (int64_t i = 0; i < dims[0]; i++) {
        double at = ((double)i + 0.5) / (double)times - 0.5, low = floor(at), part = at - low;
        int64_t a = low < 0 ? 0 : (int64_t)low, b = (int64_t)low + 1;
        b = b < size ? b : size - 1;
        tutti_tensor_set(matrix, i * size + a, tutti_tensor_get(matrix, i * size + a) + 1 - part);
        tutti_tensor_set(matrix, i * size + b, tutti_tensor_get(matrix, i * size + b) + part);
    }
    tutti_status status = tutti_tensor_cast(matrix, dtype, &cast);
    tutti_tensor_release(matrix);
    if (status != TUTTI_OK)
        return tutti_layer_fail(call, "%s", tutti_error_message());
    tutti_sym constant = tutti_constant(call->graph, cast);
    tutti_tensor_release(cast);
    return constant;
}

/* Rows by one matrix product over [height, width * channels], columns by another. */
static tutti_sym bilinear(tutti_layer_call *call, tutti_sym x, int64_t down, int64_t across)
{
    tutti_type t = tutti_sym_type(x);
    tutti_sym flat = tutti_reshape(x, -1, t.dims[1], t.dims[2] * t.dims[3]);
    tutti_sym rows = tutti_matmul(mixing(call, t.dims[1], down, t.dtype), flat);
    tutti_sym tall = tutti_reshape(rows, -1, t.dims[1] * down, t.dims[2], t.dims[3]);
    return tutti_matmul(mixing(call, t.dims[2], across, t.dtype), tall);
}

static tutti_sym call(tutti_layer_call *call)
{
    const tutti_up_sampling2d_settings *s = call->settings;
    int64_t down = tutti__pair(s->size, 0, 2), across = tutti__pair(s->size, 1, 2);
    const char *how = tutti__text_or(s->interpolation, "nearest");
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES) || !tutti__layer_knows(call, 1))
        return TUTTI_NO_SYM;
    if (strcmp(how, "nearest") == 0)
        return nearest(call->inputs[0], down, across);
    if (strcmp(how, "bilinear") == 0)
        return bilinear(call, call->inputs[0], down, across);
    return tutti_layer_fail(call, "interpolation is \"nearest\" or \"bilinear\", not '%s'", how);
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_up_sampling2d_settings, size),
    TUTTI_TEXT_FIELD(tutti_up_sampling2d_settings, interpolation),
    {0},
};

const tutti_layer_kind tutti_layer_up_sampling2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "up_sampling2d",
    .doc =
        "up_sampling2d(size): y[h, w] = x[h / size, w / size], or bilinear between centres of pixels",
    .settings_size = sizeof(tutti_up_sampling2d_settings),
    .fields = fields,
    .call = call,
};
