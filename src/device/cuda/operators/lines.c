/* lines.c: see lines.cu: cumsum, cumprod, prod_except, top_k, det, outer. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/lines.h"
#include "tables/cuda_texts.h"

#define START(entry, blocks, threads, ...)                                                         \
    tutti__cuda_start(c, &tutti_cuda_source_lines, entry, blocks, threads,                         \
                      (void *[]){__VA_ARGS__}, "-DTYPE=%s",                                        \
                      tutti__cuda_dtype(c->call->inputs[0].dtype))

static int attr_int(const tutti_cuda_call *c, const char *name)
{
    return (int)tutti_attr_int(c->call->attrs, c->call->attr_count, name);
}

static tutti_status running(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t n[3];
    int product = strcmp(c->call->op->name, "cumprod") == 0, exclusive = attr_int(c, "exclusive");
    int reverse = attr_int(c, "reverse");
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti__cuda_around(x, attr_int(c, "axis"), n);
    int64_t lines = n[0] * n[2];
    if (tutti__cuda_count(x) == 0)
        return TUTTI_OK;
    if (n[1] >= 256 && lines < 65536)
        return START("running_long", lines, 256, &from, &n[1], &n[2], &product, &exclusive,
                     &reverse, &to);
    return START("running", tutti__cuda_blocks(lines), 256, &from, &lines, &n[1], &n[2], &product,
                 &exclusive, &reverse, &to);
}

static tutti_status products_except(const tutti_cuda_call *c)
{
    int64_t n[3];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cu_pointer scratch = tutti__cuda_work(c);
    tutti__cuda_around(&c->call->inputs[0], attr_int(c, "axis"), n);
    int64_t lines = n[0] * n[2];
    return START("products_except", tutti__cuda_blocks(lines), 256, &from, &lines, &n[1], &n[2],
                 &scratch, &to);
}

static tutti_status top_k(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t size = x->dims[x->rank - 1], k = attr_int(c, "k");
    tutti_cu_pointer from = tutti__cuda_in(c, 0), y = tutti__cuda_out(c, 0);
    tutti_cu_pointer places = tutti__cuda_out(c, 1);
    return START("top_k", size > 0 && k > 0 ? tutti__cuda_count(x) / size : 0, 256, &from, &size,
                 &k, &y, &places);
}

static tutti_status det(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t n = x->dims[x->rank - 1], count = tutti__cuda_count(&c->call->outputs[0]);
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cu_pointer scratch = tutti__cuda_work(c);
    return START("det", tutti__cuda_ceil(count, 64), 64, &from, &count, &n, &scratch, &to);
}

tutti_status tutti__cuda_multiply(const tutti_cuda_call *c, const tutti_cuda_multiply *p)
{
    tutti_cuda_multiply m = *p;
    int64_t batch = 1;
    for (int i = 0; i < m.batch.rank; i++)
        batch *= m.batch.dim[i];
    int64_t blocks = batch * tutti__cuda_ceil(m.m, 16) * tutti__cuda_ceil(m.n, 16);
    return START("multiply", blocks, 256, &m.a, &m.b, &m.m, &m.n, &m.k, &m.batch, &m.at_a, &m.at_b,
                 &m.strides_a, &m.strides_b, &m.y);
}

static tutti_status outer(const tutti_cuda_call *c)
{
    return tutti__cuda_multiply(c, &(tutti_cuda_multiply){.a = tutti__cuda_in(c, 0),
                                                          .b = tutti__cuda_in(c, 1),
                                                          .y = tutti__cuda_out(c, 0),
                                                          .m = c->call->inputs[0].dims[0],
                                                          .n = c->call->inputs[1].dims[0],
                                                          .k = 1,
                                                          .strides_a = {1, 1},
                                                          .strides_b = {1, 1}});
}

static const struct {
    const char *op;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"cumsum", running}, {"cumprod", running}, {"prod_except", products_except},
    {"top_k", top_k},    {"det", det},         {"outer", outer},
};

static bool lines_covers(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return true;
    return false;
}

static size_t lines_workspace(const tutti_kernel_query *query)
{
    const char *op = query->node.op->name;
    bool scratch = strcmp(op, "prod_except") == 0 || strcmp(op, "det") == 0;
    return scratch ? (size_t)tutti__cuda_type_count(&query->node.inputs[0]) * 8 : 0;
}

static tutti_status lines_run(const tutti_cuda_call *c)
{
    size_t i = 0;
    while (strcmp(table[i].op, c->call->op->name) != 0)
        i++;
    return table[i].run(c);
}

static const char *const variants[] = {"-DTYPE=float", "-DTYPE=i32", "-DTYPE=f16", NULL};

const tutti_cuda_source tutti_cuda_source_lines = {
    .name = "lines",
    .text = &tutti__cuda_text_lines_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_lines = {
    .name = "lines",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = lines_covers,
    .workspace = lines_workspace,
    .run = lines_run,
};
