/* rearrange.c: operators that move elements and compute nothing: views that need memory of their
 * own, transpose, slice, reverse, roll, broadcasts, concat, split and their like; and what fills.
 */
#include <string.h>

#include "device/cuda/operators/copies.h"

static int64_t attr_int(const tutti_cuda_call *c, const char *name)
{
    return tutti_attr_int(c->call->attrs, c->call->attr_count, name);
}

static int ints(const tutti_cuda_call *c, const char *name, const int64_t **ret)
{
    return tutti_attr_ints(c->call->attrs, c->call->attr_count, name, ret);
}

/* Everything of a view, row-major on both sides. */
static tutti_cuda_copies whole(const tutti_cuda_call *c, const tutti_view *of)
{
    tutti_cuda_copies m = {.size = (int)tutti_dtype_size(of->dtype),
                           .x = tutti__cuda_in(c, 0),
                           .y = tutti__cuda_out(c, 0),
                           .rank = of->rank};
    tutti_cuda_places dense = tutti__cuda_dense(of->rank, of->dims);
    for (int i = 0; i < of->rank; i++) {
        m.dim[i] = of->dims[i];
        m.from[i] = m.to[i] = dense.stride[i];
    }
    return m;
}

static tutti_status transpose(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cuda_copies m = whole(c, y);
    tutti_cuda_places from = tutti__cuda_dense(x->rank, x->dims);
    const int64_t *order;
    int count = ints(c, "order", &order);
    for (int i = 0; i < y->rank; i++) {
        int64_t axis = count == 0 ? y->rank - 1 - i : order[i];
        m.from[i] = from.stride[axis < 0 ? axis + x->rank : axis];
    }
    return tutti__cuda_copies(c, &m);
}

/* Where a slice of `dims` begins, as in NumPy. */
static int64_t slice_start(const tutti_cuda_call *c, int axis, int64_t dim, int64_t *ret_step)
{
    const int64_t *begins, *steps;
    int begin_count = ints(c, "begin", &begins), step_count = ints(c, "step", &steps);
    int64_t step = axis < step_count ? steps[axis] : 1;
    *ret_step = step;
    if (axis >= begin_count)
        return step > 0 ? 0 : dim - 1;
    int64_t begin = begins[axis];
    if (begin < 0)
        begin = begin < -dim ? -1 : begin + dim;
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    return begin < low ? low : begin > high ? high : begin;
}

static tutti_status slice(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cuda_copies m = whole(c, y);
    tutti_cuda_places from = tutti__cuda_dense(x->rank, x->dims);
    int64_t start = 0, step;
    for (int i = 0; i < x->rank; i++) {
        start += slice_start(c, i, x->dims[i], &step) * from.stride[i];
        m.from[i] = from.stride[i] * step;
    }
    if (tutti__cuda_count(y) == 0)
        return TUTTI_OK;
    m.x += (tutti_cu_pointer)(start * m.size);
    return tutti__cuda_copies(c, &m);
}

static tutti_status slice_grad(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cuda_copies m = whole(c, x);
    tutti_cuda_places to = tutti__cuda_dense(y->rank, y->dims);
    int64_t start = 0, step;
    for (int i = 0; i < y->rank; i++) {
        start += slice_start(c, i, y->dims[i], &step) * to.stride[i];
        m.to[i] = to.stride[i] * step;
    }
    TUTTI_TRY(tutti__cuda_clear(c, m.y, tutti__cuda_count(y) * m.size));
    if (tutti__cuda_count(x) == 0)
        return TUTTI_OK;
    m.y += (tutti_cu_pointer)(start * m.size);
    return tutti__cuda_copies(c, &m);
}

static tutti_status reverse(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    tutti_cuda_copies m = whole(c, x);
    const int64_t *axes;
    int count = ints(c, "axes", &axes);
    unsigned mask = count == 0 ? ~0u : 0;
    int64_t start = 0;
    if (tutti__cuda_count(x) == 0)
        return TUTTI_OK;
    for (int i = 0; i < count; i++)
        mask |= 1u << (axes[i] < 0 ? axes[i] + x->rank : axes[i]);
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1) {
            start += (x->dims[i] - 1) * m.from[i];
            m.from[i] = -m.from[i];
        }
    m.x += (tutti_cu_pointer)(start * m.size);
    return tutti__cuda_copies(c, &m);
}

/* `rows` rows of `row` elements at steps. */
static tutti_status rows(const tutti_cuda_call *c, int size, int64_t count, int64_t row,
                         tutti_cu_pointer x, int64_t from_step, tutti_cu_pointer y, int64_t to_step)
{
    tutti_cuda_copies m = {.size = size,
                           .x = x,
                           .y = y,
                           .rank = 2,
                           .dim = {count, row},
                           .from = {from_step, 1},
                           .to = {to_step, 1}};
    return tutti__cuda_copies(c, &m);
}

static tutti_status roll(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t n[3], shift = attr_int(c, "shift");
    int size = (int)tutti_dtype_size(x->dtype);
    tutti_cu_pointer from = tutti__cuda_in(c, 0), to = tutti__cuda_out(c, 0);
    tutti__cuda_around(x, attr_int(c, "axis"), n);
    int64_t row = n[1] * n[2];
    if (row == 0 || n[0] == 0)
        return TUTTI_OK;
    shift %= n[1];
    int64_t head = (shift < 0 ? shift + n[1] : shift) * n[2];
    TUTTI_TRY(rows(c, size, n[0], row - head, from, row, to + (uint64_t)(head * size), row));
    return rows(c, size, n[0], head, from + (uint64_t)((row - head) * size), row, to, row);
}

static tutti_status broadcast(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cuda_copies m = whole(c, y);
    tutti_cuda_shape s = tutti__cuda_shape(y->rank, y->dims);
    tutti_cuda_places from = tutti__cuda_spread(&s, x->rank, x->dims);
    memcpy(m.from, from.stride, sizeof from.stride);
    return tutti__cuda_copies(c, &m);
}

static tutti_status tile(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0], *y = &c->call->outputs[0];
    tutti_cuda_places from = tutti__cuda_dense(x->rank, x->dims);
    tutti_cuda_places to = tutti__cuda_dense(y->rank, y->dims);
    tutti_cuda_copies m = whole(c, x);
    const int64_t *multiples;
    ints(c, "multiples", &multiples);
    m.rank = 2 * x->rank;
    for (int i = 0; i < x->rank; i++) {
        m.dim[2 * i] = multiples[i];
        m.from[2 * i] = 0;
        m.to[2 * i] = to.stride[i] * x->dims[i];
        m.dim[2 * i + 1] = x->dims[i];
        m.from[2 * i + 1] = from.stride[i];
        m.to[2 * i + 1] = to.stride[i];
    }
    return tutti__cuda_copies(c, &m);
}

/* concat, and stack, whose inputs lack the axis. */
static tutti_status concat(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0];
    int64_t n[3], start = 0;
    int size = (int)tutti_dtype_size(y->dtype);
    tutti__cuda_around(y, attr_int(c, "axis"), n);
    for (int i = 0; i < c->call->input_count && n[0] > 0; i++) {
        int64_t row = tutti__cuda_count(&c->call->inputs[i]) / n[0];
        TUTTI_TRY(rows(c, size, n[0], row, tutti__cuda_in(c, i), row,
                       tutti__cuda_out(c, 0) + (uint64_t)(start * size), n[1] * n[2]));
        start += row;
    }
    return TUTTI_OK;
}

/* split, split_like, and unstack, whose outputs lack the axis. */
static tutti_status split(const tutti_cuda_call *c)
{
    const tutti_view *x = &c->call->inputs[0];
    int64_t n[3], start = 0;
    int size = (int)tutti_dtype_size(x->dtype);
    tutti__cuda_around(x, attr_int(c, "axis"), n);
    for (int i = 0; i < c->call->output_count && n[0] > 0; i++) {
        int64_t row = tutti__cuda_count(&c->call->outputs[i]) / n[0];
        TUTTI_TRY(rows(c, size, n[0], row, tutti__cuda_in(c, 0) + (uint64_t)(start * size),
                       n[1] * n[2], tutti__cuda_out(c, i), row));
        start += row;
    }
    return TUTTI_OK;
}

static tutti_status fill(const tutti_cuda_call *c)
{
    return tutti__cuda_fill(c, &c->call->outputs[0],
                            tutti_attr_float(c->call->attrs, c->call->attr_count, "value"));
}

static tutti_status ones(const tutti_cuda_call *c)
{
    return tutti__cuda_fill(c, &c->call->outputs[0], 1);
}

static tutti_status zeros(const tutti_cuda_call *c)
{
    return tutti__cuda_fill(c, &c->call->outputs[0], 0);
}

static tutti_status same(const tutti_cuda_call *c)
{
    const tutti_view *y = &c->call->outputs[0];
    return tutti__cuda_copy(c, tutti__cuda_out(c, 0), tutti__cuda_in(c, 0),
                            tutti__cuda_count(y) * (int64_t)tutti_dtype_size(y->dtype));
}

static const struct {
    const char *op;
    tutti_status (*run)(const tutti_cuda_call *c);
} table[] = {
    {"transpose", transpose},
    {"slice", slice},
    {"slice_grad", slice_grad},
    {"reverse", reverse},
    {"roll", roll},
    {"broadcast_to", broadcast},
    {"broadcast_like", broadcast},
    {"tile", tile},
    {"concat", concat},
    {"stack", concat},
    {"split", split},
    {"split_like", split},
    {"unstack", split},
    {"fill", fill},
    {"ones_like", ones},
    {"zeros_like", zeros},
};

static bool rearrange_covers(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return true;
    return (op->flags & TUTTI_OP_VIEW) != 0;
}

static tutti_status rearrange_run(const tutti_cuda_call *c)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, c->call->op->name) == 0)
            return table[i].run(c);
    return same(c);
}

const tutti_cuda_kernel tutti_cuda_kernel_rearrange = {
    .name = "rearrange",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = rearrange_covers,
    .run = rearrange_run,
};
