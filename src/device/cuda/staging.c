/* staging.c: see staging.h. A copy goes chunk by chunk into pinned memory and from there into a
 * landing on the GPU, at once; the last way, inside the GPU, has its place in the stream's order.
 * So the host runs ahead by as many copies as there are landings. */
#include "device/cuda/staging.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 2 << 20,
    CHUNKS = 4,
    LANDINGS = 4,
    SMALL = 64 << 10, /* the driver takes these with the call */
    LARGEST = 256 << 20,
    GRANULE = 256 << 10
};

typedef struct chunk {
    void *host; /* pinned */
    tutti_cu_event done;
    bool used;
} chunk;

typedef struct landing {
    tutti_cu_pointer at;
    size_t size;
    tutti_cu_event taken;
    bool used;
} landing;

struct tutti_cuda_staging {
    tutti_cuda_stream on;
    tutti_cu_stream copies;
    pthread_mutex_t lock;
    chunk chunks[CHUNKS];
    landing landings[LANDINGS];
    int next_chunk, next_landing;
    size_t largest; /* of a landing: larger ones wait for their turn on the host */
};

#define GPU(staging_, call_) TUTTI_CU((staging_)->on.device, call_)

tutti_status tutti__cuda_staging_open(tutti_cuda_stream on, tutti_cuda_staging **ret)
{
    tutti_cuda_staging *s = calloc(1, sizeof *s);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a device");
    s->on = on;
    s->largest = LARGEST;
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return TUTTI_OK;
}

void tutti__cuda_staging_close(tutti_cuda_staging *s)
{
    if (!s)
        return;
    const tutti_cu_driver *cu = s->on.device->cu;
    tutti__cuda_staging_shrink(s);
    for (int i = 0; i < CHUNKS; i++) {
        if (s->chunks[i].host)
            (void)cu->cuMemFreeHost(s->chunks[i].host);
        if (s->chunks[i].done)
            (void)cu->cuEventDestroy(s->chunks[i].done);
    }
    for (int i = 0; i < LANDINGS; i++)
        if (s->landings[i].taken)
            (void)cu->cuEventDestroy(s->landings[i].taken);
    if (s->copies)
        (void)cu->cuStreamDestroy(s->copies);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static tutti_status make_chunk(tutti_cuda_staging *s, chunk *c)
{
    if (!c->host)
        TUTTI_TRY(GPU(s, cuMemHostAlloc(&c->host, CHUNK, 0)));
    if (!c->done)
        TUTTI_TRY(GPU(s, cuEventCreate(&c->done, TUTTI_CU_EVENT_NO_TIME)));
    return TUTTI_OK;
}

/* The next one, when the copy that last used it is done. */
static tutti_status take_chunk(tutti_cuda_staging *s, chunk **ret)
{
    chunk *c = &s->chunks[s->next_chunk];
    TUTTI_TRY(make_chunk(s, c));
    if (c->used)
        TUTTI_TRY(GPU(s, cuEventSynchronize(c->done)));
    s->next_chunk = (s->next_chunk + 1) % CHUNKS;
    c->used = false;
    *ret = c;
    return TUTTI_OK;
}

/* Room for `size` bytes; NO_MEMORY where there is none. */
static tutti_status take_landing(tutti_cuda_staging *s, size_t size, landing **ret)
{
    landing *l = &s->landings[s->next_landing];
    if (!l->taken)
        TUTTI_TRY(GPU(s, cuEventCreate(&l->taken, TUTTI_CU_EVENT_NO_TIME)));
    if (l->used)
        TUTTI_TRY(GPU(s, cuEventSynchronize(l->taken)));
    l->used = false;
    if (l->size < size) {
        if (l->size > 0)
            TUTTI_TRY(GPU(s, cuMemFree(l->at)));
        l->size = 0;
        TUTTI_TRY(GPU(s, cuMemAlloc(&l->at, (size + GRANULE - 1) / GRANULE * GRANULE)));
        l->size = (size + GRANULE - 1) / GRANULE * GRANULE;
    }
    s->next_landing = (s->next_landing + 1) % LANDINGS;
    *ret = l;
    return TUTTI_OK;
}

/* In chunks, on a stream; *ret_last: the last of them. */
static tutti_status chunks_in(tutti_cuda_staging *s, tutti_cu_pointer to, const char *host,
                              size_t size, tutti_cu_stream stream, chunk **ret_last)
{
    for (size_t at = 0; at < size; at += CHUNK) {
        size_t part = size - at < CHUNK ? size - at : CHUNK;
        chunk *c;
        TUTTI_TRY(take_chunk(s, &c));
        memcpy(c->host, host + at, part);
        TUTTI_TRY(GPU(s, cuMemcpyHtoDAsync(to + at, c->host, part, stream)));
        TUTTI_TRY(GPU(s, cuEventRecord(c->done, stream)));
        c->used = true;
        *ret_last = c;
    }
    return TUTTI_OK;
}

static tutti_status through_landing(tutti_cuda_staging *s, landing *l, tutti_cu_pointer to,
                                    const void *host, size_t size)
{
    chunk *last = NULL;
    TUTTI_TRY(chunks_in(s, l->at, host, size, s->copies, &last));
    TUTTI_TRY(GPU(s, cuStreamWaitEvent(s->on.stream, last->done, 0)));
    TUTTI_TRY(GPU(s, cuMemcpyDtoDAsync(to, l->at, size, s->on.stream)));
    TUTTI_TRY(GPU(s, cuEventRecord(l->taken, s->on.stream)));
    l->used = true;
    return TUTTI_OK;
}

/* Without a landing, in the stream's order, for want of memory too. */
static tutti_status stage_in(tutti_cuda_staging *s, tutti_cu_pointer to, const void *host,
                             size_t size)
{
    landing *l = NULL;
    chunk *last;
    tutti_error before;
    if (!s->copies)
        TUTTI_TRY(GPU(s, cuStreamCreate(&s->copies, TUTTI_CU_NON_BLOCKING)));
    tutti__error_capture(TUTTI_OK, &before);
    if (size <= s->largest && take_landing(s, size, &l) == TUTTI_OK)
        return through_landing(s, l, to, host, size);
    tutti__error_restore(&before);
    return chunks_in(s, to, host, size, s->on.stream, &last);
}

tutti_status tutti__cuda_stage_in(tutti_cuda_staging *s, tutti_cu_pointer to, const void *host,
                                  size_t size)
{
    if (size <= SMALL)
        return GPU(s, cuMemcpyHtoDAsync(to, host, size, s->on.stream));
    pthread_mutex_lock(&s->lock);
    tutti_status status = stage_in(s, to, host, size);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* One chunk crosses while the one before is taken out. */
static tutti_status stage_out(tutti_cuda_staging *s, char *host, tutti_cu_pointer from, size_t size)
{
    chunk *before = NULL, *c = NULL;
    for (size_t at = 0; at < size + CHUNK; at += CHUNK) {
        size_t part = at >= size ? 0 : size - at < CHUNK ? size - at : CHUNK;
        if (part > 0) {
            TUTTI_TRY(take_chunk(s, &c));
            TUTTI_TRY(GPU(s, cuMemcpyDtoHAsync(c->host, from + at, part, s->on.stream)));
            TUTTI_TRY(GPU(s, cuEventRecord(c->done, s->on.stream)));
        }
        if (before) {
            size_t was = size - (at - CHUNK) < CHUNK ? size - (at - CHUNK) : CHUNK;
            TUTTI_TRY(GPU(s, cuEventSynchronize(before->done)));
            memcpy(host + at - CHUNK, before->host, was);
        }
        before = c;
    }
    return TUTTI_OK;
}

tutti_status tutti__cuda_stage_out(tutti_cuda_staging *s, void *host, tutti_cu_pointer from,
                                   size_t size)
{
    if (size <= SMALL) {
        TUTTI_TRY(GPU(s, cuMemcpyDtoHAsync(host, from, size, s->on.stream)));
        return GPU(s, cuStreamSynchronize(s->on.stream));
    }
    pthread_mutex_lock(&s->lock);
    tutti_status status = stage_out(s, host, from, size);
    pthread_mutex_unlock(&s->lock);
    return status;
}

size_t tutti__cuda_staging_bytes(tutti_cuda_staging *s)
{
    size_t bytes = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < LANDINGS; i++)
        bytes += s->landings[i].size;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

void tutti__cuda_staging_limit(tutti_cuda_staging *s, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->largest = bytes / LANDINGS < LARGEST ? bytes / LANDINGS : LARGEST;
    pthread_mutex_unlock(&s->lock);
}

void tutti__cuda_staging_shrink(tutti_cuda_staging *s)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < LANDINGS; i++) {
        landing *l = &s->landings[i];
        if (l->size == 0 || (l->used && GPU(s, cuEventSynchronize(l->taken)) != TUTTI_OK))
            continue;
        (void)s->on.device->cu->cuMemFree(l->at);
        *l = (landing){.taken = l->taken};
    }
    pthread_mutex_unlock(&s->lock);
}
