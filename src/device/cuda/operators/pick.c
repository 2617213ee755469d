/* pick.c: see pick.cu: gather, gather_nd, take_along, one_hot, range, pad, pad_grad, trilu. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/copies.h"
#include "tables/cuda_texts.h"

typedef struct padding {
    int64_t before[TUTTI_MAX_RANK];
} padding;

static int64_t attr_int(const tutti_cuda_call *c, const char *name)
{
    return tutti_attr_int(c->call->attrs, c->call->attr_count, name);
}

static double attr_float(const tutti_cuda_call *c, const char *name)
{
    return tutti_attr_float(c->call->attrs, c->call->attr_count, name);
}

static const char *index_type(const tutti_view *indices)
{
    return tutti__cuda_dtype(indices->dtype);
}

/* The largest unit that rows of so many bytes are made of. */
static const char *unit_of(int64_t row, int *ret_bytes)
{
    static const struct {
        int bytes;
        const char *type;
    } units[] = {{16, "sixteen -DWIDE"}, {8, "u64"}, {4, "u32"}, {2, "u16"}, {1, "u8"}};
    int at = 0;
    while (row % units[at].bytes != 0)
        at++;
    *ret_bytes = units[at].bytes;
    return units[at].type;
}

static tutti_status gather(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *indices = &c->call->inputs[1];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), by = tutti__cuda_in(c, 1);
    tutti_cu_pointer to = tutti__cuda_out(c, 0), fault = c->fault;
    int64_t n[3], number = tutti__cuda_count(indices);
    int bytes;
    tutti__cuda_around(x, attr_int(c, "axis"), n);
    const char *unit = unit_of(n[2] * (int64_t)tutti_dtype_size(x->dtype), &bytes);
    int64_t inner = n[2] * (int64_t)tutti_dtype_size(x->dtype) / bytes;
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "gather",
                             tutti__cuda_blocks(n[0] * number * inner), 256,
                             (void *[]){&from, &by, &n[0], &n[1], &inner, &number, &to, &fault},
                             "-DTYPE=%s -DINDEX=%s", unit, index_type(indices));
}

static tutti_status gather_nd(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *indices = &c->call->inputs[1];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), by = tutti__cuda_in(c, 1);
    tutti_cu_pointer to = tutti__cuda_out(c, 0), fault = c->fault;
    int columns = (int)indices->dims[indices->rank - 1], bytes;
    int64_t inner = 1, rows = 1;
    for (int i = 0; i < indices->rank - 1; i++)
        rows *= indices->dims[i];
    for (int i = columns; i < x->rank; i++)
        inner *= x->dims[i];
    int64_t size = (int64_t)tutti_dtype_size(x->dtype);
    const char *unit = unit_of(inner * size, &bytes);
    tutti_cuda_shape s = tutti__cuda_shape(x->rank, x->dims);
    tutti_cuda_places p = tutti__cuda_dense(x->rank, x->dims);
    for (int i = 0; i < columns; i++)
        p.stride[i] = p.stride[i] * size / bytes;
    inner = inner * size / bytes;
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "gather_nd",
                             tutti__cuda_blocks(rows * inner), 256,
                             (void *[]){&from, &by, &rows, &columns, &inner, &s, &p, &to, &fault},
                             "-DTYPE=%s -DINDEX=%s", unit, index_type(indices));
}

static tutti_status take_along(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *indices = &c->call->inputs[1];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), by = tutti__cuda_in(c, 1);
    tutti_cu_pointer to = tutti__cuda_out(c, 0), fault = c->fault;
    int64_t axis = attr_int(c, "axis"), count = tutti__cuda_count(indices);
    int bytes;
    tutti_cuda_shape s = tutti__cuda_shape(indices->rank, indices->dims);
    tutti_cuda_places p = tutti__cuda_dense(x->rank, x->dims);
    axis = axis < 0 ? axis + x->rank : axis;
    int64_t size = x->dims[axis], stride = p.stride[axis];
    p.stride[axis] = 0;
    const char *unit = unit_of((int64_t)tutti_dtype_size(x->dtype), &bytes);
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "take_along", tutti__cuda_blocks(count),
                             256,
                             (void *[]){&from, &by, &count, &s, &p, &size, &stride, &to, &fault},
                             "-DTYPE=%s -DINDEX=%s", unit, index_type(indices));
}

/* A number as an element of this type, in the first bytes. */
static uint64_t element_of(tutti_dtype dtype, double value)
{
    uint64_t bits = 0;
    tutti_view one = {&bits, dtype, 0, NULL, NULL};
    tutti_view_set(&one, 0, value);
    return bits;
}

static tutti_status one_hot(const tutti_cuda_call *c)
{
    const tutti_view *indices = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cu_pointer by = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    int64_t count = tutti__cuda_count(indices), depth = attr_int(c, "depth");
    uint64_t on = element_of(y->dtype, attr_float(c, "on"));
    uint64_t off = element_of(y->dtype, attr_float(c, "off"));
    int bytes;
    return tutti__cuda_start(
        c, &tutti_cuda_source_pick, "one_hot", tutti__cuda_blocks(count * depth), 256,
        (void *[]){&by, &count, &depth, &on, &off, &to}, "-DTYPE=%s -DINDEX=%s",
        unit_of((int64_t)tutti_dtype_size(y->dtype), &bytes), index_type(indices));
}

static tutti_status range(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0];
    tutti_cu_pointer to = tutti__cuda_out(c, 0);
    int64_t count = tutti__cuda_count(y);
    double start = attr_float(c, "start"), delta = attr_float(c, "delta");
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "range", tutti__cuda_blocks(count), 256,
                             (void *[]){&start, &delta, &count, &to}, "-DTYPE=%s -DNUMBERS=%d",
                             tutti__cuda_dtype(y->dtype), tutti_dtype_is_int(y->dtype));
}

static int pad_mode(const tutti_cuda_call *c)
{
    const char *mode = tutti_attr_string(c->call->attrs, c->call->attr_count, "mode");
    return mode[0] == 'r' ? 1 : mode[0] == 'e' ? 2 : 0;
}

/* The padded shape, the other one, and what stands before. */
static padding padding_of(const tutti_cuda_call *c, int rank)
{
    padding p = {{0}};
    const int64_t *all;
    tutti_attr_ints(c->call->attrs, c->call->attr_count, "paddings", &all);
    for (int i = 0; i < rank; i++)
        p.before[i] = all[2 * i];
    return p;
}

static tutti_status pad(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cuda_shape s = tutti__cuda_shape(y->rank, y->dims);
    tutti_cuda_shape own = tutti__cuda_shape(x->rank, x->dims);
    padding p = padding_of(c, y->rank);
    int mode = pad_mode(c), bytes;
    int64_t count = tutti__cuda_count(y);
    uint64_t value = element_of(y->dtype, attr_float(c, "value"));
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "pad", tutti__cuda_blocks(count), 256,
                             (void *[]){&from, &count, &s, &own, &p, &mode, &value, &to},
                             "-DTYPE=%s", unit_of((int64_t)tutti_dtype_size(y->dtype), &bytes));
}

static tutti_status pad_grad(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti_cuda_shape s = tutti__cuda_shape(x->rank, x->dims);
    tutti_cuda_shape own = tutti__cuda_shape(y->rank, y->dims);
    padding p = padding_of(c, y->rank);
    int mode = pad_mode(c);
    int64_t count = tutti__cuda_count(y);
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "pad_grad", tutti__cuda_blocks(count), 128,
                             (void *[]){&from, &count, &s, &own, &p, &mode, &to},
                             "-DTYPE=%s -DNUMBERS=0", tutti__cuda_dtype(y->dtype));
}

static tutti_status trilu(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    int64_t count = tutti__cuda_count(x), rows = x->dims[x->rank - 2];
    int64_t columns = x->dims[x->rank - 1], offset = attr_int(c, "offset");
    int upper = attr_int(c, "upper") != 0, bytes;
    offset = offset > columns ? columns : offset < -rows ? -rows : offset;
    return tutti__cuda_start(c, &tutti_cuda_source_pick, "trilu", tutti__cuda_blocks(count), 256,
                             (void *[]){&from, &count, &rows, &columns, &upper, &offset, &to},
                             "-DTYPE=%s", unit_of((int64_t)tutti_dtype_size(x->dtype), &bytes));
}

static const struct {
    const char *op;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"gather", gather},     {"gather_nd", gather_nd}, {"take_along", take_along},
    {"one_hot", one_hot},   {"range", range},         {"pad", pad},
    {"pad_grad", pad_grad}, {"trilu", trilu},
};

static bool pick_covers(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return true;
    return false;
}

static tutti_status pick_run(const tutti_cuda_call *c)
{
    size_t i = 0;
    while (strcmp(table[i].op, c->call->op->name) != 0)
        i++;
    return table[i].run(c);
}

static const char *const variants[] = {"-DTYPE=u32 -DINDEX=i32",
                                       "-DTYPE=sixteen -DWIDE -DINDEX=i64",
                                       "-DTYPE=bf16 -DNUMBERS=0",
                                       "-DTYPE=i32 -DNUMBERS=1",
                                       "-DTYPE=u16",
                                       NULL};

const tutti_cuda_source tutti_cuda_source_pick = {
    .name = "pick",
    .text = &tutti__cuda_text_pick_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_pick = {
    .name = "pick",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = pick_covers,
    .run = pick_run,
};
