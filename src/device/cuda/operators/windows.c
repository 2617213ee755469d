/* windows.c: see windows.cu: convolutions and pooling of any type. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/windows.h"
#include "tables/cuda_texts.h"

/* One axis, as ops/network/window.h places it. */
static void place(tutti_cuda_windows *w, int d, const char *padding, int64_t pad)
{
    int64_t extent = (w->size[d] - 1) * w->dilation[d] + 1;
    int64_t total = (w->out[d] - 1) * w->stride[d] + extent - w->in[d];
    w->before[d] = strcmp(padding, "explicit") == 0 ? pad
                   : strcmp(padding, "same") == 0   ? (total > 0 ? total / 2 : 0)
                                                    : 0;
}

tutti_cuda_windows tutti__cuda_windows(const tutti_attr *attrs, int attr_count, const int64_t *in,
                                       const int64_t *out, const int64_t *size)
{
    tutti_cuda_windows w;
    const int64_t *strides, *dilations, *pads;
    const char *padding = tutti_attr_string(attrs, attr_count, "padding");
    int axes = tutti_attr_ints(attrs, attr_count, "strides", &strides);
    bool dilated = tutti_attr_ints(attrs, attr_count, "dilations", &dilations) == axes;
    tutti_attr_ints(attrs, attr_count, "pads", &pads);
    for (int d = 0; d < 3; d++) {
        int axis = d - (3 - axes);
        w.in[d] = axis < 0 ? 1 : in[axis];
        w.out[d] = axis < 0 ? 1 : out[axis];
        w.size[d] = axis < 0 ? 1 : size[axis];
        w.stride[d] = axis < 0 ? 1 : strides[axis] > 0 ? strides[axis] : size[axis];
        w.dilation[d] = axis < 0 || !dilated ? 1 : dilations[axis];
        place(&w, d, axis < 0 ? "valid" : padding, axis < 0 ? 0 : pads[2 * axis]);
    }
    w.batch = w.groups = w.cin = w.cout = 1;
    return w;
}

#define START(entry, blocks, ...)                                                                  \
    tutti__cuda_start(c, &tutti_cuda_source_windows, entry, blocks, 256, (void *[]){__VA_ARGS__},  \
                      "-DTYPE=%s -DPLACE=i64", tutti__cuda_dtype(c->call->outputs[0].dtype))

/* x, kernel and y of whichever of the three operators. */
tutti_cuda_windows tutti__cuda_convolution_windows(const tutti_cuda_call *c, int *ret_kind)
{
    const tutti_kernel_call *call = c->call;
    bool input = strstr(call->op->name, "_backward_input") != NULL;
    bool kernel = strstr(call->op->name, "_backward_kernel") != NULL;
    const tutti_view *x = input ? &call->outputs[0] : &call->inputs[0];
    const tutti_view *k = kernel ? &call->outputs[0] : &call->inputs[input ? 0 : 1];
    const tutti_view *y = input || kernel ? &call->inputs[1] : &call->outputs[0];
    tutti_cuda_windows w =
        tutti__cuda_windows(call->attrs, call->attr_count, x->dims + 1, y->dims + 1, k->dims);
    w.batch = x->dims[0];
    w.groups = tutti_attr_int(call->attrs, call->attr_count, "groups");
    w.cin = k->dims[k->rank - 2];
    w.cout = w.groups > 0 ? k->dims[k->rank - 1] / w.groups : 0;
    *ret_kind = input ? 1 : kernel ? 2 : 0;
    return w;
}

tutti_status tutti__cuda_convolve(const tutti_cuda_call *c)
{
    int kind;
    tutti_cuda_windows w = tutti__cuda_convolution_windows(c, &kind);
    tutti_cu_pointer a = tutti__cuda_in(c, 0), b = tutti__cuda_in(c, 1), y = tutti__cuda_out(c, 0);
    int64_t count = tutti__cuda_count(&c->call->outputs[0]);
    if (kind == 2)
        return START("convolve_kernel", tutti__cuda_ceil(count, 8), &a, &b, &w, &count, &y);
    return START(kind ? "convolve_input" : "convolve", tutti__cuda_blocks(count), &a, &b, &w,
                 &count, &y);
}

/* The form of the window is compiled in: there are few, and loops over it unroll. */
static tutti_status start_pool(const tutti_cuda_call *c, const char *entry, int64_t count,
                               const tutti_cuda_windows *w, void **arguments)
{
    int64_t reads = w->batch * w->in[0] * w->in[1] * w->in[2] * w->cin;
    const char *place = count < INT32_MAX / 2 && reads < INT32_MAX / 2 ? "i32" : "i64";
    return tutti__cuda_start(
        c, &tutti_cuda_source_windows, entry, tutti__cuda_blocks(count), 256, arguments,
        "-DTYPE=%s -DPLACE=%s -DFORM -DS0=%d -DS1=%d -DS2=%d -DT0=%d -DT1=%d -DT2=%d -DD0=%d "
        "-DD1=%d -DD2=%d",
        tutti__cuda_dtype(c->call->outputs[0].dtype), place, (int)w->size[0], (int)w->size[1],
        (int)w->size[2], (int)w->stride[0], (int)w->stride[1], (int)w->stride[2],
        (int)w->dilation[0], (int)w->dilation[1], (int)w->dilation[2]);
}

static tutti_status pool(const tutti_cuda_call *c)
{
    const tutti_kernel_call *call = c->call;
    const char *op = call->op->name;
    bool backward = strstr(op, "_backward") != NULL, largest = op[0] == 'm';
    const tutti_view *x = backward ? &call->outputs[0] : &call->inputs[0];
    const tutti_view *y = !backward ? &call->outputs[0] : &call->inputs[largest ? 1 : 0];
    const int64_t *window;
    tutti_attr_ints(call->attrs, call->attr_count, "window", &window);
    tutti_cuda_windows w =
        tutti__cuda_windows(call->attrs, call->attr_count, x->dims + 1, y->dims + 1, window);
    tutti_cu_pointer first = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0), none = 0;
    tutti_cu_pointer second = call->input_count > 1 ? tutti__cuda_in(c, 1) : 0;
    int64_t count = tutti__cuda_count(&call->outputs[0]);
    w.batch = x->dims[0];
    w.cin = x->dims[3];
    if (strcmp(op, "average_pool2d") == 0)
        return start_pool(c, "pool_average", count, &w, (void *[]){&first, &w, &count, &to});
    if (!backward)
        return start_pool(
            c, "pool_largest", count, &w,
            (void *[]){&first, strcmp(op, "max_pool2d") == 0 ? &first : &second, &w, &count, &to});
    return start_pool(
        c, "pool_gradient", count, &w,
        (void *[]){largest ? &first : &none, largest ? &second : &first, &w, &count, &to});
}

static const char *const convolutions[] = {
    "conv2d", "conv2d_backward_input", "conv2d_backward_kernel",
    "conv3d", "conv3d_backward_input", "conv3d_backward_kernel",
    NULL};
static const char *const pools[] = {"max_pool2d",        "max_pool2d_backward",
                                    "average_pool2d",    "average_pool2d_backward",
                                    "max_pool2d_gather", NULL};

/* Products in parts of bf16 and the like are for libraries. */
static int convolution_score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == query->node.inputs[1].dtype ? 20 : 0;
}

static const char *const variants[] = {
    "-DTYPE=float -DPLACE=i64", "-DTYPE=double -DPLACE=i64",
    "-DTYPE=bf16 -DPLACE=i32 -DFORM -DS0=1 -DS1=3 -DS2=3 -DT0=1 -DT1=2 -DT2=2 -DD0=1 -DD1=1 -DD2=1",
    NULL};

const tutti_cuda_source tutti_cuda_source_windows = {
    .name = "windows",
    .text = &tutti__cuda_text_windows_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_convolution_direct = {
    .name = "convolution.direct",
    .version = 1,
    .op = "conv2d",
    .ops = convolutions,
    .score = convolution_score,
    .run = tutti__cuda_convolve,
};

const tutti_cuda_kernel tutti_cuda_kernel_pool = {
    .name = "pool",
    .version = 1,
    .op = "max_pool2d",
    .ops = pools,
    .run = pool,
};
