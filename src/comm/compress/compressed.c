/* compressed.c: an all-reduce of f32 in another form on its way. Rank c gets part c of all ranks'
 * values, folds them in f32 in the order of ranks, and gives the result, encoded once, to everybody
 * (itself too): numbers are rounded twice however many ranks there are, and all get the same bits.
 * Compressors that remember what they left out bring their own way (compress/). */
#include <stdlib.h>
#include <string.h>

#include "comm/coll/coll.h"
#include "comm/coll/wire.h"
#include "comm/compress/compress.h"

/* A place: how many bytes the codec made, then these. 16-bit floats always fill it and go in one
 * message; of other codecs the numbers go first and then as many bytes as there are. */
static size_t place_bytes(const tutti_comm_codec *codec, int64_t count)
{
    return (size_t)codec->bound(codec->context, count) + sizeof(int64_t);
}

static bool fills_its_place(const tutti_comm_codec *codec)
{
    return codec == tutti__wire_codec(TUTTI_BF16) || codec == tutti__wire_codec(TUTTI_F16);
}

static tutti_status encode(const tutti_comm_codec *codec, const float *numbers, int64_t count,
                           char *to, size_t place)
{
    int64_t size = codec->encode(codec->context, numbers, count, to + sizeof size);
    memcpy(to, &size, sizeof size);
    if (size < 0 || (size_t)size > place - sizeof size)
        return tutti_fail(TUTTI_INVALID,
                          "codec '%s' made %lld bytes of %lld numbers, and its bound is %zu",
                          codec->name, (long long)size, (long long)count, place - sizeof size);
    return TUTTI_OK;
}

static tutti_status decode(const tutti_comm_codec *codec, const char *from, size_t place,
                           int64_t count, float *to)
{
    int64_t size;
    memcpy(&size, from, sizeof size);
    if (size < 0 || (size_t)size > place - sizeof size)
        return tutti_fail(TUTTI_CORRUPT, "codec '%s': %lld bytes where at most %zu fit",
                          codec->name, (long long)size, place - sizeof size);
    codec->decode(codec->context, from + sizeof size, size, count, to);
    return TUTTI_OK;
}

typedef struct work {
    tutti_collective *call;
    char *out, *in;       /* places of all ranks' parts */
    float *sum, *other;   /* of this rank's part */
    struct iovec *tables; /* what goes and comes, as whole places; the same, of one step */
} work;

static int64_t low_of(const tutti_collective *c, int part)
{
    return tutti__coll_cut(c->count, c->size, part);
}

/* Places to and from all ranks, as far as they are filled. */
static tutti_status exchange(work *w)
{
    tutti_collective *c = w->call;
    struct iovec *all = w->tables, *step = all + 2 * c->size;
    const size_t head = sizeof(int64_t);
    if (fills_its_place(c->codec))
        return tutti__coll_exchange_all(c, all, all + c->size);
    for (int i = 0; i < 2 * c->size; i++)
        step[i] = (struct iovec){all[i].iov_base, head};
    TUTTI_TRY(tutti__coll_exchange_all(c, step, step + c->size));
    for (int i = 0; i < 2 * c->size; i++) {
        int64_t size;
        if (i % c->size == c->rank)
            continue;
        memcpy(&size, all[i].iov_base, head);
        if (size < 0 || (size_t)size > all[i].iov_len - head)
            return tutti_fail(TUTTI_CORRUPT, "codec '%s': %lld bytes where at most %zu fit",
                              c->codec->name, (long long)size, all[i].iov_len - head);
        step[i] = (struct iovec){(char *)all[i].iov_base + head, (size_t)size};
    }
    return tutti__coll_exchange_all(c, step, step + c->size);
}

/* The fold of all ranks' part `rank`, in `sum`. */
static tutti_status fold_part(work *w, size_t stride)
{
    tutti_collective *c = w->call;
    int64_t low = low_of(c, c->rank), count = low_of(c, c->rank + 1) - low;
    struct iovec *out = w->tables, *in = out + c->size;
    for (int r = 0; r < c->size; r++) {
        int64_t start = low_of(c, r), size = low_of(c, r + 1) - start;
        out[r] = (struct iovec){w->out + (size_t)r * stride, place_bytes(c->codec, size)};
        in[r] = (struct iovec){w->in + (size_t)r * stride, place_bytes(c->codec, count)};
        if (r != c->rank)
            TUTTI_TRY(encode(c->codec, (const float *)c->in + start, size, out[r].iov_base,
                             out[r].iov_len));
    }
    TUTTI_TRY(exchange(w));
    for (int r = 0; r < c->size; r++) {
        float *to = r == 0 ? w->sum : w->other;
        if (r == c->rank)
            memcpy(to, (const float *)c->in + low, (size_t)count * sizeof *to);
        else
            TUTTI_TRY(decode(c->codec, in[r].iov_base, in[r].iov_len, count, to));
        if (r > 0)
            tutti__coll_fold(c, w->sum, w->sum, w->other, count);
    }
    tutti__fold_finish(c->dtype, c->reduction, w->sum, count, c->size);
    return TUTTI_OK;
}

static tutti_status share(work *w, size_t stride)
{
    tutti_collective *c = w->call;
    struct iovec *out = w->tables, *in = out + c->size;
    int64_t count = low_of(c, c->rank + 1) - low_of(c, c->rank);
    char *own = w->in + (size_t)c->rank * stride;
    TUTTI_TRY(encode(c->codec, w->sum, count, own, place_bytes(c->codec, count)));
    for (int r = 0; r < c->size; r++) {
        out[r] = (struct iovec){own, place_bytes(c->codec, count)};
        in[r] = (struct iovec){w->in + (size_t)r * stride,
                               place_bytes(c->codec, low_of(c, r + 1) - low_of(c, r))};
    }
    TUTTI_TRY(exchange(w));
    for (int r = 0; r < c->size; r++)
        TUTTI_TRY(decode(c->codec, in[r].iov_base, in[r].iov_len, low_of(c, r + 1) - low_of(c, r),
                         (float *)c->out + low_of(c, r)));
    return TUTTI_OK;
}

static tutti_status compressed_all_reduce(tutti_collective *c)
{
    if (c->compressor)
        return c->compressor->by->reduce(c->compressor, c);
    int64_t part = c->count / c->size + 1;
    size_t stride = (place_bytes(c->codec, part) + 63) / 64 * 64, ranks = (size_t)c->size;
    void *scratch;
    TUTTI_TRY(tutti__coll_scratch(c, 2 * stride * ranks + 2 * (size_t)part * 4, &scratch));
    work w = {.call = c, .out = scratch, .in = (char *)scratch + stride * ranks};
    w.sum = (float *)(void *)(w.in + stride * ranks);
    w.other = w.sum + part;
    w.tables = calloc(ranks * 4, sizeof *w.tables);
    if (!w.tables)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    tutti_status status = fold_part(&w, stride);
    if (status == TUTTI_OK)
        status = share(&w, stride);
    free(w.tables);
    return status;
}

/* For 16 bits on the wire. */
static double compressed_cost_all_reduce(const tutti_cost_query *q)
{
    double part = q->bytes / q->ranks;
    return (q->ranks - 1) * (2 * tutti__cost_exchange(q, part / 2) + 2 * tutti__cost_add(q, part));
}

const tutti_coll tutti_coll_compressed = {
    .name = "compressed",
    .doc = "another form on the wire: 16-bit floats, or any codec",
    .all_cross = true,
    .special = true,
    .on = {[TUTTI_ALL_REDUCE] = {compressed_all_reduce, compressed_cost_all_reduce,
                                 "2(p-1)a + (p-1)/p Mb + 2(p-1)/p Mg (16 bits)"}},
};
