/* convolution.c: convolutions in two dimensions and their gradients by cuDNN; element by element
 * where it is not installed, or has no engine for the shape. The library wants a kernel as [out,
 * height, width, in]; ours are [height, width, in, out] and are turned in the work space. */
#include "device/cuda/dnn/convolution.h"

#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/copies.h"
#include "device/cuda/operators/dnn.h"
#include "device/cuda/operators/windows.h"

/* For bits that do not depend on how many images stand beside one, CHUNK of them are convolved at a
 * time, always. */
enum { CHUNK = 8 };

static bool house_type(tutti_dtype dtype, tutti_cuda_type *ret)
{
    *ret = dtype == TUTTI_F32    ? TUTTI_CUDA_F32
           : dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                 : TUTTI_CUDA_F16;
    return dtype == TUTTI_F32 || dtype == TUTTI_BF16 || dtype == TUTTI_F16;
}

static tutti_cuda_convolution describe(const tutti_cuda_call *c, const tutti_cuda_windows *w,
                                       int kind)
{
    tutti_cuda_convolution d;
    memset(&d, 0, sizeof d); /* it is a key */
    house_type(c->call->outputs[0].dtype, &d.type);
    d.kind = (tutti_cuda_convolution_kind)kind;
    d.deterministic = c->deterministic;
    d.tf32 = c->tf32;
    d.batch = c->deterministic && kind != 2 ? CHUNK : w->batch;
    d.height = w->in[1];
    d.width = w->in[2];
    d.in = w->cin;
    d.out = w->cout;
    for (int i = 0; i < 2; i++) {
        int64_t extent = (w->size[1 + i] - 1) * w->dilation[1 + i] + 1;
        d.kernel[i] = w->size[1 + i];
        d.stride[i] = w->stride[1 + i];
        d.dilation[i] = w->dilation[1 + i];
        d.before[i] = w->before[1 + i];
        d.after[i] = (w->out[1 + i] - 1) * d.stride[i] + extent - w->in[1 + i] - d.before[i];
        d.after[i] = d.after[i] < 0 ? 0 : d.after[i];
    }
    return d;
}

/* Between [taps * in][out], ours, and [out][taps * in]. */
static tutti_status turn(const tutti_cuda_call *c, const tutti_cuda_windows *w, bool to_library,
                         tutti_cu_pointer from, tutti_cu_pointer to)
{
    int64_t rows = w->size[1] * w->size[2] * w->cin, columns = w->cout;
    tutti_cuda_copies m = {.size = (int)tutti_dtype_size(c->call->outputs[0].dtype),
                           .x = from,
                           .y = to,
                           .rank = 2,
                           .dim = {to_library ? columns : rows, to_library ? rows : columns},
                           .from = {1, to_library ? columns : rows},
                           .to = {to_library ? rows : columns, 1}};
    return tutti__cuda_copies(c, &m);
}

static int64_t padded(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

/* Images by chunks; the last ones in memory of a whole chunk. */
static tutti_status run_chunks(const tutti_cuda_call *c, const tutti_cuda_graph *graph,
                               const tutti_cuda_windows *w, bool back, tutti_cu_pointer kernel,
                               tutti_cu_pointer few)
{
    int64_t size = (int64_t)tutti_dtype_size(c->call->outputs[0].dtype);
    int64_t x_bytes = w->in[1] * w->in[2] * w->cin * size;
    int64_t y_bytes = w->out[1] * w->out[2] * w->cout * size;
    int64_t from_bytes = back ? y_bytes : x_bytes, to_bytes = back ? x_bytes : y_bytes;
    tutti_cu_pointer made = few + (uint64_t)padded(CHUNK * from_bytes);
    tutti_cu_pointer rest = tutti__cuda_dnn_workspace(c->dnn);
    for (int64_t at = 0; at < w->batch; at += CHUNK) {
        int64_t count = w->batch - at < CHUNK ? w->batch - at : CHUNK;
        tutti_cu_pointer from = tutti__cuda_in(c, back ? 1 : 0) + (uint64_t)(at * from_bytes);
        tutti_cu_pointer to = tutti__cuda_out(c, 0) + (uint64_t)(at * to_bytes), into = to;
        if (count < CHUNK) {
            TUTTI_TRY(tutti__cuda_copy(c, few, from, count * from_bytes));
            from = few;
            into = made;
        }
        TUTTI_TRY(tutti__cuda_convolution_run(graph, c->on.stream, back ? into : from, kernel,
                                              back ? from : into, rest));
        if (into != to)
            TUTTI_TRY(tutti__cuda_copy(c, to, into, count * to_bytes));
    }
    return TUTTI_OK;
}

static tutti_status convolution_run(const tutti_cuda_call *c)
{
    int kind;
    const tutti_cuda_graph *graph;
    tutti_cuda_windows w = tutti__cuda_convolution_windows(c, &kind);
    tutti_cuda_convolution d = describe(c, &w, kind);
    tutti_cu_pointer turned = tutti__cuda_work(c), x, y;
    tutti_cu_pointer first = tutti__cuda_in(c, 0), second = tutti__cuda_in(c, 1);
    int64_t bytes = w.size[1] * w.size[2] * w.cin * w.cout *
                    (int64_t)tutti_dtype_size(c->call->outputs[0].dtype);
    /* Its gradient of the kernel is wrong where padding stands on one side more than on the other.
     */
    bool lopsided = kind == 2 && (d.before[0] != d.after[0] || d.before[1] != d.after[1]);
    if (!c->dnn || lopsided || tutti__cuda_count(&c->call->outputs[0]) == 0 ||
        tutti__cuda_count(&c->call->inputs[0]) == 0 ||
        tutti__cuda_count(&c->call->inputs[1]) == 0 ||
        tutti__cuda_dnn_convolution(c->dnn, &d, &graph) != TUTTI_OK)
        return tutti__cuda_convolve(c);
    x = kind == 1 ? tutti__cuda_out(c, 0) : first;
    y = kind == 0 ? tutti__cuda_out(c, 0) : second;
    if (kind != 2)
        TUTTI_TRY(turn(c, &w, true, kind == 1 ? first : second, turned));
    if (kind != 2 && c->deterministic)
        return run_chunks(c, graph, &w, kind == 1, turned, turned + (uint64_t)padded(bytes));
    TUTTI_TRY(tutti__cuda_convolution_run(graph, c->on.stream, x, turned, y,
                                          tutti__cuda_dnn_workspace(c->dnn)));
    return kind == 2 ? turn(c, &w, false, turned, tutti__cuda_out(c, 0)) : TUTTI_OK;
}

static int convolution_score(const tutti_kernel_query *query)
{
    tutti_cuda_type type;
    const tutti_infer *node = &query->node;
    return house_type(node->inputs[0].dtype, &type) &&
                   node->inputs[0].dtype == node->inputs[1].dtype &&
                   tutti_attr_int(node->attrs, node->attr_count, "groups") == 1
               ? 100
               : 0;
}

static size_t convolution_workspace(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    const tutti_type *kernel = strstr(node->op->name, "_kernel")  ? &node->outputs[0]
                               : strstr(node->op->name, "_input") ? &node->inputs[0]
                                                                  : &node->inputs[1];
    int64_t size = (int64_t)tutti_dtype_size(kernel->dtype), images = 0;
    for (int i = 0; kernel != &node->outputs[0] && i < 2; i++) {
        const tutti_type *type =
            i == 0 ? &node->outputs[0] : &node->inputs[kernel == &node->inputs[0]];
        int64_t image = type->dims[0] > 0 ? tutti__cuda_type_count(type) / type->dims[0] : 0;
        images += padded(CHUNK * image * size);
    }
    return (size_t)(padded(tutti__cuda_type_count(kernel) * size) + images);
}

static const char *const others[] = {"conv2d_backward_input", "conv2d_backward_kernel", NULL};

const tutti_cuda_kernel tutti_cuda_kernel_convolution_cudnn = {
    .name = "convolution.cudnn",
    .version = 1,
    .op = "conv2d",
    .ops = others,
    .score = convolution_score,
    .workspace = convolution_workspace,
    .run = convolution_run,
};
