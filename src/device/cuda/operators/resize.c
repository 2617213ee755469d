/* resize.c: see resize.cu: resize and resize_backward, one axis after the other; between them
 * numbers lie in the work space as floats (doubles for f64), so that a result is rounded once. */
#include <math.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

/* As the kernel has it. */
typedef struct axis {
    int64_t in, out, outer, inner, reach;
    double scale, start, end, cubic, squeeze, outside;
    int coordinates, nearest, linear, exclude;
} axis;

static int word_of(const tutti_cuda_call *c, const char *attr, const char *const *words)
{
    const char *text = tutti_attr_string(c->call->attrs, c->call->attr_count, attr);
    int i = 0;
    while (words[i + 1] && strcmp(text, words[i]) != 0)
        i++;
    return i;
}

static int floats_of(const tutti_cuda_call *c, const char *name, const double **ret)
{
    const tutti_attr *attr = tutti_attr_find(c->call->attrs, c->call->attr_count, name);
    *ret = attr ? attr->value.floats : NULL;
    return attr ? attr->count : 0;
}

/* The axes that are resized, and each one's scale. */
static int axes_of(const tutti_cuda_call *c, const tutti_view *x, const tutti_view *y, int *ret,
                   double *ret_scales)
{
    const int64_t *axes, *sizes;
    const double *scales;
    const char *aspect = tutti_attr_string(c->call->attrs, c->call->attr_count, "aspect");
    int count = tutti_attr_ints(c->call->attrs, c->call->attr_count, "axes", &axes);
    bool sized = tutti_attr_ints(c->call->attrs, c->call->attr_count, "sizes", &sizes) > 0;
    bool scaled = floats_of(c, "scales", &scales) > 0, smaller = strcmp(aspect, "not_larger") == 0;
    bool named = count > 0;
    double common = 0;
    for (int i = 0; i < (named ? count : x->rank - 2); i++)
        ret[i] = named ? (int)(axes[i] < 0 ? axes[i] + x->rank : axes[i]) : i + 1;
    count = named ? count : x->rank - 2;
    for (int i = 0; i < count; i++) {
        int64_t in = x->dims[ret[i]], out = sized ? sizes[i] : y->dims[ret[i]];
        double own = in > 0 ? (double)out / (double)in : 1;
        ret_scales[i] = scaled ? scales[i] : own;
        common = i == 0 || (smaller ? own < common : own > common) ? own : common;
    }
    for (int i = 0; i < count && sized && !scaled && strcmp(aspect, "stretch") != 0; i++)
        ret_scales[i] = common;
    return count;
}

static axis describe(const tutti_cuda_call *c, int i, int count, double scale, int64_t in)
{
    static const char *const coordinates[] = {"half_pixel",
                                              "pytorch_half_pixel",
                                              "half_pixel_symmetric",
                                              "align_corners",
                                              "asymmetric",
                                              "tf_crop_and_resize",
                                              NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil", NULL};
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    const double *roi;
    bool cut = floats_of(c, "roi", &roi) > 0;
    int mode = word_of(c, "mode", modes);
    axis a = {.scale = scale, .start = cut ? roi[i] : 0, .end = cut ? roi[count + i] : 1};
    a.coordinates = word_of(c, "coordinates", coordinates);
    a.nearest = word_of(c, "nearest_mode", nearest);
    a.linear = mode == 1;
    a.exclude = tutti_attr_int(c->call->attrs, c->call->attr_count, "exclude_outside") != 0;
    a.cubic = tutti_attr_float(c->call->attrs, c->call->attr_count, "cubic_coefficient");
    a.outside = tutti_attr_float(c->call->attrs, c->call->attr_count, "extrapolation_value");
    bool antialias = tutti_attr_int(c->call->attrs, c->call->attr_count, "antialias") != 0;
    a.squeeze = antialias && scale < 1 && mode != 0 ? scale : 1;
    double reach = -floor(-(double)(mode == 2 ? 2 : 1) / a.squeeze), most = 8 * (double)in + 8;
    a.reach = (int64_t)(reach > most ? most : reach);
    return a;
}

static tutti_status resize_run(const tutti_cuda_call *c)
{
    bool backward = strstr(c->call->op->name, "_backward") != NULL;
    const tutti_view *given = &c->call->inputs[0], *made = &c->call->outputs[0];
    const tutti_view *x = backward ? made : given, *y = backward ? given : made;
    bool nearest =
        strcmp(tutti_attr_string(c->call->attrs, c->call->attr_count, "mode"), "nearest") == 0;
    const char *type = tutti__cuda_dtype(given->dtype);
    const char *between = nearest && !backward        ? type
                          : given->dtype == TUTTI_F64 ? "double"
                                                      : "float";
    int axes[TUTTI_MAX_RANK];
    double scales[TUTTI_MAX_RANK];
    int count = axes_of(c, x, y, axes, scales);
    int64_t dims[TUTTI_MAX_RANK], all = 1, room = 0;
    tutti_cu_pointer from = tutti__cuda_in(c, 0), buffers[2] = {tutti__cuda_work(c), 0};
    for (int d = 0; d < given->rank; d++) {
        dims[d] = given->dims[d];
        all *= x->dims[d] > y->dims[d] ? x->dims[d] : y->dims[d];
    }
    room = tutti__cuda_ceil(all * 8, 256) * 256;
    buffers[1] = buffers[0] + (uint64_t)room;
    for (int i = 0; i < count; i++) {
        bool last = i + 1 == count;
        axis a = describe(c, i, count, scales[i], x->dims[axes[i]]);
        tutti_cu_pointer to = last ? tutti__cuda_out(c, 0) : buffers[i % 2];
        int64_t elements = 1;
        a.in = x->dims[axes[i]];
        a.out = y->dims[axes[i]];
        dims[axes[i]] = backward ? a.in : a.out;
        a.outer = a.inner = 1;
        for (int d = 0; d < given->rank; d++) {
            elements *= dims[d];
            a.outer *= d < axes[i] ? dims[d] : 1;
            a.inner *= d > axes[i] ? dims[d] : 1;
        }
        TUTTI_TRY(tutti__cuda_start(
            c, &tutti_cuda_source_resize, "resize_axis", tutti__cuda_blocks(elements), 256,
            (void *[]){&from, &a, &elements, &to}, "-DTYPE=%s -DOUT=%s -DNEAREST=%d -DBACKWARD=%d",
            i == 0 ? type : between, last ? tutti__cuda_dtype(made->dtype) : between, nearest,
            backward));
        from = to;
    }
    return TUTTI_OK;
}

static size_t resize_workspace(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0], *y = &query->node.outputs[0];
    int64_t all = 1;
    for (int d = 0; d < x->rank; d++)
        all *= x->dims[d] > y->dims[d] ? x->dims[d] : y->dims[d];
    return (size_t)(2 * tutti__cuda_ceil(all * 8, 256) * 256);
}

static const char *const others[] = {"resize_backward", NULL};
static const char *const variants[] = {"-DTYPE=float -DOUT=float -DNEAREST=0 -DBACKWARD=0",
                                       "-DTYPE=u8 -DOUT=u8 -DNEAREST=1 -DBACKWARD=0",
                                       "-DTYPE=bf16 -DOUT=float -DNEAREST=0 -DBACKWARD=1", NULL};

const tutti_cuda_source tutti_cuda_source_resize = {
    .name = "resize",
    .text = &tutti__cuda_text_resize_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_resize = {
    .name = "resize",
    .version = 1,
    .op = "resize",
    .ops = others,
    .workspace = resize_workspace,
    .run = resize_run,
};
