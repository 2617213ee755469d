/* copies.c: see copies.h: dimensions are joined as far as both sides run through them, elements are
 * taken together as far as they lie together, and a transposition goes square by square. */
#include "device/cuda/operators/copies.h"

#include <string.h>

#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

static const char *type_of(int size)
{
    static const char *const types[] = {
        [1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64", [16] = "sixteen -DWIDE"};
    return types[size];
}

/* Axes of size 1 out, axes that both sides run through as one joined. */
static void join(tutti_cuda_copies *m)
{
    int rank = 0;
    for (int i = 0; i < m->rank; i++) {
        if (m->dim[i] == 1)
            continue;
        bool joins = rank > 0 && m->from[rank - 1] == m->from[i] * m->dim[i] &&
                     m->to[rank - 1] == m->to[i] * m->dim[i];
        if (!joins)
            rank++;
        m->dim[rank - 1] = joins ? m->dim[rank - 1] * m->dim[i] : m->dim[i];
        m->from[rank - 1] = m->from[i];
        m->to[rank - 1] = m->to[i];
    }
    m->rank = rank;
}

/* Pairs of elements that lie side by side on both sides become one of twice the size. */
static void widen(tutti_cuda_copies *m)
{
    int last = m->rank - 1;
    if (m->rank == 0 || m->from[last] != 1 || m->to[last] != 1)
        return;
    while (m->size < 16) {
        uint64_t twice = 2 * (uint64_t)m->size;
        bool even = m->dim[last] % 2 == 0 && m->x % twice == 0 && m->y % twice == 0;
        for (int i = 0; i < last; i++)
            even &= m->from[i] % 2 == 0 && m->to[i] % 2 == 0;
        if (!even)
            return;
        m->size *= 2;
        m->dim[last] /= 2;
        for (int i = 0; i < last; i++) {
            m->from[i] /= 2;
            m->to[i] /= 2;
        }
    }
}

static int64_t count_of(const tutti_cuda_copies *m)
{
    int64_t count = 1;
    for (int i = 0; i < m->rank; i++)
        count *= m->dim[i];
    return count;
}

/* Elements of a vector along an axis that is dense on one side: others must keep to it. */
static int vector_of(const tutti_cuda_copies *m, const int64_t *strides, int axis,
                     tutti_cu_pointer base)
{
    int vector = 16 / m->size;
    if (m->size == 1)
        vector = 8;
    for (; vector > 1; vector /= 2) {
        bool fits = m->dim[axis] % vector == 0 && base % (uint64_t)(vector * m->size) == 0;
        for (int i = 0; i < m->rank; i++)
            fits &= i == axis || strides[i] % vector == 0;
        if (fits)
            break;
    }
    return vector;
}

/* a: the axis along which x is dense; the last one is y's. */
static tutti_status transposed(const tutti_cuda_call *c, const tutti_cuda_copies *m, int a)
{
    int last = m->rank - 1, at = 0, side = m->size == 8 ? 32 : 64;
    int vx = vector_of(m, m->from, a, m->x), vy = vector_of(m, m->to, last, m->y);
    int64_t rows = m->dim[last], columns = m->dim[a], px = m->from[last], py = m->to[a];
    int64_t down = tutti__cuda_ceil(rows, side), across = tutti__cuda_ceil(columns, side);
    tutti_cuda_shape s = {0};
    tutti_cuda_places from = {{0}}, to = {{0}};
    tutti_cu_pointer x = m->x, y = m->y;
    int64_t batch = 1;
    for (int i = 0; i < m->rank; i++) {
        if (i == a || i == last)
            continue;
        s.dim[at] = m->dim[i];
        from.stride[at] = m->from[i];
        to.stride[at++] = m->to[i];
        batch *= m->dim[i];
    }
    s.rank = at;
    return tutti__cuda_start(
        c, &tutti_cuda_source_copies, "transposed", batch * down * across, 256,
        (void *[]){&x, &y, &rows, &columns, &px, &py, &down, &across, &s, &from, &to},
        "-DTYPE=%s -DVX=%d -DVY=%d", type_of(m->size), vx, vy);
}

static bool is_dense(const tutti_cuda_copies *m, const int64_t *strides)
{
    int64_t stride = 1;
    for (int i = m->rank - 1; i >= 0; i--) {
        if (strides[i] != stride)
            return false;
        stride *= m->dim[i];
    }
    return true;
}

/* As the kernel has it: axes right-aligned among four. */
typedef struct quick {
    uint32_t dim[4], factor[4], shift[4];
    int64_t from[4], to[4];
} quick;

static bool is_quick(const tutti_cuda_copies *m)
{
    bool fits = m->rank <= 4 && count_of(m) < INT32_MAX;
    for (int i = 0; i < m->rank; i++)
        fits &= m->to[i] >= 0;
    return fits;
}

static tutti_status start_quick(const tutti_cuda_call *c, const tutti_cuda_copies *m)
{
    enum { EACH = 4 * 256 };
    quick q = {.dim = {1, 1, 1, 1}};
    uint32_t count = (uint32_t)count_of(m);
    tutti_cu_pointer x = m->x, y = m->y;
    for (int d = 0; d < 4; d++) {
        int i = d - (4 - m->rank);
        if (i >= 0) {
            q.dim[d] = (uint32_t)m->dim[i];
            q.from[d] = m->from[i];
            q.to[d] = m->to[i];
        }
        while (((uint64_t)1 << q.shift[d]) < q.dim[d])
            q.shift[d]++;
        q.factor[d] =
            (uint32_t)(((uint64_t)1 << 32) * (((uint64_t)1 << q.shift[d]) - q.dim[d]) / q.dim[d] +
                       1);
    }
    return tutti__cuda_start(c, &tutti_cuda_source_copies, "copies_quick",
                             tutti__cuda_ceil(count, EACH), 256, (void *[]){&x, &y, &count, &q},
                             "-DTYPE=%s", type_of(m->size));
}

tutti_status tutti__cuda_copies(const tutti_cuda_call *c, const tutti_cuda_copies *copies)
{
    tutti_cuda_copies m = *copies;
    tutti_cuda_places from = {{0}}, to = {{0}};
    join(&m);
    if (count_of(&m) == 0)
        return TUTTI_OK;
    if (is_dense(&m, m.from) && is_dense(&m, m.to))
        return tutti__cuda_copy(c, m.y, m.x, count_of(&m) * m.size);
    int last = m.rank - 1;
    for (int a = 0; a < last && m.to[last] == 1 && m.from[last] != 0; a++)
        if (m.from[a] == 1 && m.dim[a] >= 16 && m.dim[last] >= 16 && m.rank - 2 <= TUTTI_MAX_RANK)
            return transposed(c, &m, a);
    widen(&m);
    if (is_quick(&m))
        return start_quick(c, &m);
    if (m.rank > TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s '%s': it moves along %d axes, a GPU along %d",
                          c->call->op->name, c->call->name, m.rank, TUTTI_MAX_RANK);
    tutti_cuda_shape s = tutti__cuda_shape(m.rank, m.dim);
    memcpy(from.stride, m.from, (size_t)m.rank * sizeof *m.from);
    memcpy(to.stride, m.to, (size_t)m.rank * sizeof *m.to);
    int64_t count = count_of(&m), blocks = tutti__cuda_blocks(count);
    const char *type = type_of(m.size);
    if (is_dense(&m, m.to))
        return tutti__cuda_start(c, &tutti_cuda_source_copies, "copies_from", blocks, 256,
                                 (void *[]){&m.x, &m.y, &count, &s, &from}, "-DTYPE=%s", type);
    if (is_dense(&m, m.from))
        return tutti__cuda_start(c, &tutti_cuda_source_copies, "copies_to", blocks, 256,
                                 (void *[]){&m.x, &m.y, &count, &s, &to}, "-DTYPE=%s", type);
    return tutti__cuda_start(c, &tutti_cuda_source_copies, "copies", blocks, 256,
                             (void *[]){&m.x, &m.y, &count, &s, &from, &to}, "-DTYPE=%s", type);
}

tutti_status tutti__cuda_fill(const tutti_cuda_call *c, const tutti_view *y, double value)
{
    uint64_t bits = 0;
    tutti_view one = {&bits, y->dtype, 0, NULL, NULL};
    int64_t count = tutti__cuda_count(y);
    int size = (int)tutti_dtype_size(y->dtype);
    tutti_cu_pointer at = (tutti_cu_pointer)(uintptr_t)y->data;
    tutti_view_set(&one, 0, value);
    if (bits == 0)
        return tutti__cuda_clear(c, at, count * size);
    return tutti__cuda_start(c, &tutti_cuda_source_copies, "fill", tutti__cuda_blocks(count), 256,
                             (void *[]){&at, &bits, &count}, "-DTYPE=%s", type_of(size));
}

static const char *const variants[] = {"-DTYPE=u32 -DVX=4 -DVY=4", "-DTYPE=u16 -DVX=8 -DVY=1",
                                       "-DTYPE=sixteen -DWIDE", "-DTYPE=u8", NULL};

const tutti_cuda_source tutti_cuda_source_copies = {
    .name = "copies",
    .text = &tutti__cuda_text_copies_cu,
    .variants = variants,
};
