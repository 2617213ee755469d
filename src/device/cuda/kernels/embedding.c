/* embedding.c: see embedding.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

enum { CHUNK = 32 };

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

/* Sorted ids, their positions, edges, and what the sort needs. */
size_t tutti__cuda_embedding_workspace(const tutti_cuda_embedding *call)
{
    int64_t edges = tutti__cuda_ceil(call->count, CHUNK) * 2 * call->width * 4;
    return (size_t)(2 * align(call->count * 4) + align(edges)) +
           tutti__cuda_sort_workspace(call->count);
}

static tutti_status embedding_start(tutti_cuda_stream on, const tutti_cuda_embedding *call,
                                    const char *entry, int64_t blocks, int threads,
                                    void **arguments)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    TUTTI_TRY(tutti__cuda_row_check(entry, call->type, call->width, TUTTI_CUDA_MOST_WIDTH));
    snprintf(options, sizeof options, "-DTYPE=%s -DWIDTH=%d", tutti__cuda_type_name(call->type),
             call->width);
    return tutti__cuda_launch_on(on.device, on.stream,
                                 &(tutti_cuda_launch){.source = &tutti_cuda_source_embedding,
                                                      .options = options,
                                                      .entry = entry,
                                                      .grid = {(unsigned)blocks},
                                                      .threads = (unsigned)threads},
                                 arguments);
}

static int vectors_of(const tutti_cuda_embedding *call)
{
    return call->width * tutti__cuda_type_size(call->type) / 16;
}

tutti_status tutti__cuda_embedding(tutti_cuda_stream on, const tutti_cuda_embedding *call)
{
    tutti_cuda_embedding c = *call;
    int64_t blocks = tutti__cuda_ceil(c.count * vectors_of(call), 256);
    if (blocks > 1 << 20)
        blocks = 1 << 20;
    return embedding_start(
        on, call, "embedding", blocks, 256,
        (void *[]){&c.table, &c.ids, &c.count, &c.size, &c.extra, &c.period, &c.y});
}

tutti_status tutti__cuda_embedding_gradient(tutti_cuda_stream on, const tutti_cuda_embedding *call)
{
    tutti_cuda_embedding c = *call;
    tutti_cu_pointer ids = c.workspace, positions = ids + (uint64_t)align(c.count * 4);
    tutti_cu_pointer edges = positions + (uint64_t)align(c.count * 4);
    int64_t chunks = tutti__cuda_ceil(c.count, CHUNK);
    tutti_cu_pointer rest = edges + (uint64_t)align(chunks * 2 * c.width * 4);
    int threads = (int)tutti__cuda_ceil(vectors_of(call), 32) * 32;
    if (threads > 256)
        threads = 256;
    TUTTI_TRY(TUTTI_CU(on.device, cuMemsetD8Async(c.gradient, 0,
                                                  (size_t)c.size * (size_t)c.width *
                                                      (size_t)tutti__cuda_type_size(c.type),
                                                  on.stream)));
    TUTTI_TRY(tutti__cuda_sort(on, c.ids, c.count, (uint32_t)c.size, ids, positions, rest));
    TUTTI_TRY(embedding_start(
        on, call, "embedding_gradient", chunks, threads,
        (void *[]){&c.dy, &ids, &positions, &c.count, &c.size, &c.gradient, &edges}));
    return embedding_start(on, call, "embedding_edges", chunks, threads,
                           (void *[]){&ids, &c.count, &c.size, &edges, &c.gradient});
}

static const char *const variants[] = {"-DTYPE=bf16 -DWIDTH=768", "-DTYPE=float -DWIDTH=64", NULL};

const tutti_cuda_source tutti_cuda_source_embedding = {
    .name = "embedding",
    .text = &tutti__cuda_text_embedding_cu,
    .variants = variants,
};
