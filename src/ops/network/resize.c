/* resize.c: images made larger or smaller by interpolation. */
#include "ops/network/resize.h"

#include <stdlib.h>

extern const tutti_op tutti_op_resize;

static tutti_status resize_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    tutti_resizing r;
    if (x->handle)
        return RULE_FAIL(node, TUTTI_INVALID, "x is a handle, needs a tensor");
    TUTTI_TRY(tutti__resize_infer(node, x, &r));
    bool nearest = strcmp(RULE_STRING(node, "mode"), "nearest") == 0;
    if (!nearest)
        TUTTI_TRY(tutti__need_floats(node, 0, 1));
    if (x->dtype == TUTTI_STRING &&
        strcmp(RULE_STRING(node, "coordinates"), "tf_crop_and_resize") == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "strings have no extrapolation_value; use other coordinates");
    node->outputs[0] = *x;
    for (int i = 0; i < r.count; i++)
        node->outputs[0].dims[r.axes[i].axis] = r.axes[i].out;
    return TUTTI_OK;
}

/* The adjoint. Where x's sizes are not known yet, x says them. */
static tutti_status resize_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]) || !node->wanted[0])
        return TUTTI_OK;
    tutti_type x = tutti_sym_type(node->inputs[0]);
    int axes[TUTTI_MAX_RANK];
    int count = tutti__resize_axes(node->attrs, node->attr_count, x.rank, axes);
    bool known = true;
    for (int i = 0; i < count; i++)
        known = known && x.dims[axes[i]] != TUTTI_ANY;
    tutti_sym inputs[] = {node->output_grads[0], node->inputs[0]};
    tutti_attr attrs[] = {SAME_RESIZE(node), TUTTI_INTS("dims", x.rank, x.dims)};
    node->input_grads[0] = tutti_apply_op(node->graph, "resize_backward", known ? 1 : 2, inputs,
                                          (int)TUTTI_COUNT(attrs) - (known ? 0 : 1), attrs);
    return TUTTI_OK;
}

/* Lines of `inner` doubles: to[outer, i] = sum over i's taps of weight * from[outer, index]. */
static void mix(const tutti_resize_taps *t, const int64_t shape[3], double fill, const double *from,
                double *to)
{
    int64_t outer = shape[0], in = shape[1], inner = shape[2];
    for (int64_t o = 0; o < outer; o++, from += in * inner)
        for (int64_t i = 0; i < t->count; i++, to += inner) {
            bool empty = t->first[i] == t->first[i + 1];
            for (int64_t k = 0; k < inner; k++)
                to[k] = empty ? fill : 0;
            for (int64_t tap = t->first[i]; tap < t->first[i + 1]; tap++)
                for (int64_t k = 0; k < inner; k++)
                    to[k] += t->weight[tap] * from[t->index[tap] * inner + k];
        }
}

static int64_t product(const int64_t *dims, int first, int end)
{
    int64_t count = 1;
    for (int i = first; i < end; i++)
        count *= dims[i];
    return count;
}

tutti_status tutti__resize_doubles(const tutti_kernel_call *call, const tutti_resizing *resize,
                                   const int64_t *dims, bool backward, const double *x, double *y,
                                   tutti_arena *scratch)
{
    int64_t shape[TUTTI_MAX_RANK];
    int rank = call->outputs[0].rank;
    double fill = backward ? 0 : CALL_FLOAT(call, "extrapolation_value");
    memcpy(shape, dims, (size_t)rank * sizeof *shape);
    for (int i = 0; i < resize->count; i++) {
        const tutti_resize_axis *a = &resize->axes[i];
        tutti_resize_taps *taps;
        double *to = y;
        TUTTI_TRY(tutti__resize_taps(call->attrs, call->attr_count, a, backward, &taps));
        int64_t lines[] = {product(shape, 0, a->axis), shape[a->axis],
                           product(shape, a->axis + 1, rank)};
        tutti_status status = TUTTI_OK;
        if (i + 1 < resize->count)
            status = tutti__scratch_doubles(scratch, lines[0] * taps->count * lines[2], &to);
        if (status == TUTTI_OK)
            mix(taps, lines, fill, x, to);
        shape[a->axis] = taps->count;
        x = to;
        free(taps);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_status run(const tutti_kernel_call *call, const double *const *inputs,
                        double *const *outputs, tutti_arena *scratch)
{
    const tutti_view *x = &call->inputs[0];
    tutti_resizing r = tutti__resize_of(call->attrs, call->attr_count, x->rank, x->dims);
    return tutti__resize_doubles(call, &r, x->dims, false, inputs[0], outputs[0], scratch);
}

/* Nearest, any element type: where each output comes from, -1 for what is extrapolated. */
static tutti_status pick(const tutti_kernel_call *call, const tutti_resizing *r,
                         tutti_arena *scratch, int64_t **ret_from)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t count = tutti_view_count(y);
    int64_t *from = tutti__arena_array(scratch, (size_t)count + 1, sizeof *from);
    if (from == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld indices", (long long)count);
    for (int axis = 0; axis < x->rank; axis++) {
        tutti_resize_taps *taps = NULL;
        for (int i = 0; i < r->count; i++)
            if (r->axes[i].axis == axis)
                TUTTI_TRY(
                    tutti__resize_taps(call->attrs, call->attr_count, &r->axes[i], false, &taps));
        int64_t inner = product(y->dims, axis + 1, y->rank);
        for (int64_t k = 0; k < count; k++) {
            int64_t at = k / inner % y->dims[axis];
            bool empty = taps != NULL && taps->first[at] == taps->first[at + 1];
            int64_t index = taps == NULL ? at : empty ? 0 : taps->index[taps->first[at]];
            from[k] = from[k] < 0 || empty ? -1 : from[k] * x->dims[axis] + index;
        }
        free(taps);
    }
    *ret_from = from;
    return TUTTI_OK;
}

static tutti_status move(const tutti_kernel_call *call, tutti_arena *scratch)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    size_t size = tutti_dtype_size(x->dtype);
    tutti_resizing r = tutti__resize_of(call->attrs, call->attr_count, x->rank, x->dims);
    int64_t *from;
    TUTTI_TRY(pick(call, &r, scratch, &from));
    for (int64_t k = 0; k < tutti_view_count(y); k++) {
        if (from[k] < 0)
            tutti_view_set(y, k, CALL_FLOAT(call, "extrapolation_value"));
        else
            memcpy((char *)y->data + (size_t)k * size, (char *)x->data + (size_t)from[k] * size,
                   size);
    }
    return TUTTI_OK;
}

static tutti_status resize_reference(const tutti_kernel_call *call)
{
    if (strcmp(tutti_attr_string(call->attrs, call->attr_count, "mode"), "nearest") != 0)
        return tutti__on_doubles(call, run);
    tutti_arena scratch = {0};
    tutti_status status = move(call, &scratch);
    tutti__arena_free(&scratch);
    return status;
}

static const char *text_or(const char *text, const char *fallback)
{
    return text == NULL ? fallback : text;
}

tutti_sym tutti_resize_with(tutti_sym x, const tutti_resize_options *given)
{
    TAKE_OPTIONS(tutti_resize_options, o, given);
    tutti_sym inputs[] = {x};
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    int count = o.axes.count > 0 ? o.axes.count : rank > 2 ? rank - 2 : 0;
    count = count < TUTTI_MAX_RANK ? count : TUTTI_MAX_RANK; /* more axes are refused */
    bool cut = false, sized = false;
    for (int i = 0; i < 2 * count && i < (int)TUTTI_COUNT(o.roi); i++)
        cut = cut || o.roi[i] != 0;
    for (int i = 0; i < count; i++)
        sized = sized || o.sizes[i] != 0;
    return TUTTI_NARY(
        &tutti_op_resize, inputs, tutti__axes_attr("axes", &o.axes),
        TUTTI_INTS("sizes", sized ? count : 0, o.sizes),
        TUTTI_FLOATS("scales", o.scales[0] != 0 ? count : 0, o.scales),
        TUTTI_STR("mode", text_or(o.mode, "nearest")),
        TUTTI_STR("coordinates", text_or(o.coordinates, "half_pixel")),
        TUTTI_STR("nearest_mode", text_or(o.nearest_mode, "round_prefer_floor")),
        TUTTI_FLOAT("cubic_coefficient", o.cubic_coefficient == 0 ? -0.75 : o.cubic_coefficient),
        TUTTI_INT("exclude_outside", o.exclude_outside), TUTTI_INT("antialias", o.antialias),
        TUTTI_STR("aspect", text_or(o.aspect, "stretch")),
        TUTTI_FLOATS("roi", cut ? 2 * count : 0, o.roi),
        TUTTI_FLOAT("extrapolation_value", o.extrapolation_value));
}

static const tutti_attr_spec attrs[] = {RESIZE_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,4,3] | sizes=[6,7]",
    "f32[2,3,4,2] | scales=[2,1.5] mode=linear",
    "f32[1,5,6,2] | sizes=[3,2] mode=linear coordinates=align_corners",
    "f32[1,4,5,1] | scales=[0.6,0.6] mode=linear antialias=true",
    "f32[1,4,3,2] | sizes=[7,5] mode=cubic",
    "f32[4,5] | axes=[-1,0] sizes=[8,3] mode=cubic coordinates=asymmetric exclude_outside=true",
    "f32[1,6,7,1] | sizes=[3,3] mode=cubic antialias=true coordinates=half_pixel_symmetric",
    "f32[1,4,2] | sizes=[3] mode=linear coordinates=tf_crop_and_resize roi=[0.4,1.2]",
    "f32[1,5,2] | sizes=[9] coordinates=asymmetric nearest_mode=floor",
    "f32[2,4,6,1] | sizes=[3,9] mode=linear aspect=not_larger coordinates=pytorch_half_pixel",
    "i32[1,2,3,1] | sizes=[4,3] nearest_mode=ceil",
    NULL,
};

const tutti_op tutti_op_resize = {
    .struct_size = sizeof(tutti_op),
    .name = "resize",
    .version = 1,
    .doc = "resize(x): along each of `axes` y[o] = sum over i near c(o) of weight(i - c(o)) x[i], "
           "nearest, linear or cubic; c as `coordinates` says",
    .category = "network",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = resize_infer,
    .gradient = resize_gradient,
    .cost = tutti__resize_cost,
    .split = tutti__resize_split,
    .reference = resize_reference,
    .samples = samples,
};
