/* sort.c: see sort.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

enum { TILE = 2048, DIGITS = 256 };

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

/* counts, then keys and positions of every other pass. */
size_t tutti__cuda_sort_workspace(int64_t count)
{
    return (size_t)(align(tutti__cuda_ceil(count, TILE) * DIGITS * 4) + 2 * align(count * 4));
}

static tutti_status sort_start(tutti_cuda_stream on, const char *entry, int64_t blocks, int threads,
                               void **arguments)
{
    return tutti__cuda_launch_on(on.device, on.stream,
                                 &(tutti_cuda_launch){.source = &tutti_cuda_source_sort,
                                                      .options = "",
                                                      .entry = entry,
                                                      .grid = {(unsigned)blocks},
                                                      .threads = (unsigned)threads},
                                 arguments);
}

tutti_status tutti__cuda_sort(tutti_cuda_stream on, tutti_cu_pointer keys, int64_t count,
                              uint32_t most, tutti_cu_pointer ret_keys,
                              tutti_cu_pointer ret_positions, tutti_cu_pointer workspace)
{
    int64_t tiles = tutti__cuda_ceil(count, TILE), total = tiles * DIGITS;
    tutti_cu_pointer other_keys = workspace + (uint64_t)align(total * 4);
    tutti_cu_pointer other_positions = other_keys + (uint64_t)align(count * 4), positions = 0;
    int passes = most >> 24 ? 4 : most >> 16 ? 3 : most >> 8 ? 2 : 1;
    for (int pass = 0; pass < passes; pass++) {
        int shift = 8 * pass;
        bool to_result = (passes - pass) % 2 == 1;
        tutti_cu_pointer next_keys = to_result ? ret_keys : other_keys;
        tutti_cu_pointer next_positions = to_result ? ret_positions : other_positions;
        TUTTI_TRY(sort_start(on, "sort_count", tiles, 256,
                             (void *[]){&keys, &count, &most, &shift, &workspace}));
        TUTTI_TRY(sort_start(on, "sort_scan", 1, 1024, (void *[]){&workspace, &total}));
        TUTTI_TRY(sort_start(on, "sort_move", tiles, 256,
                             (void *[]){&keys, &positions, &count, &most, &shift, &workspace,
                                        &next_keys, &next_positions}));
        keys = next_keys;
        positions = next_positions;
    }
    return TUTTI_OK;
}

static const char *const variants[] = {"", NULL};

const tutti_cuda_source tutti_cuda_source_sort = {
    .name = "sort",
    .text = &tutti__cuda_text_sort_cu,
    .variants = variants,
};
