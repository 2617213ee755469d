/* move.c: see move.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

static tutti_status start(tutti_cuda_stream on, int size, const char *entry, const unsigned grid[3],
                          void **arguments)
{
    static const char *const options[] = {
        [1] = "-DTYPE=u8", [2] = "-DTYPE=u16", [4] = "-DTYPE=u32", [8] = "-DTYPE=u64"};
    if (size < 1 || size > 8 || !options[size])
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: elements of %d bytes; it moves 1, 2, 4 or 8",
                          entry, size);
    return tutti__cuda_launch_on(on.device, on.stream,
                                 &(tutti_cuda_launch){.source = &tutti_cuda_source_move,
                                                      .options = options[size],
                                                      .entry = entry,
                                                      .grid = {grid[0], grid[1], grid[2]},
                                                      .threads = 256},
                                 arguments);
}

tutti_status tutti__cuda_transpose(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                   int64_t batch, int64_t rows, int64_t columns, tutti_cu_pointer y)
{
    if (batch > 65535 || rows > INT64_C(65535) * 32)
        return tutti_fail(TUTTI_TOO_LARGE, "transpose: %lld matrices of %lld rows",
                          (long long)batch, (long long)rows);
    bool pairs = size == 2 && rows % 2 == 0 && columns % 2 == 0;
    int side = pairs ? 64 : 32;
    const unsigned grid[3] = {(unsigned)tutti__cuda_ceil(columns, side),
                              (unsigned)tutti__cuda_ceil(rows, side), (unsigned)batch};
    return start(on, size, pairs ? "transpose_pairs" : "transpose", grid,
                 (void *[]){&x, &rows, &columns, &y});
}

static tutti_status move_rows(tutti_cuda_stream on, const char *entry, int size, tutti_cu_pointer x,
                              tutti_cu_pointer ids, int64_t count, int64_t width, int rows,
                              tutti_cu_pointer y)
{
    int64_t blocks = tutti__cuda_ceil(count * width, 256);
    const unsigned grid[3] = {(unsigned)(blocks < 1 << 20 ? blocks : 1 << 20), 1, 1};
    return start(on, size, entry, grid, (void *[]){&x, &ids, &count, &width, &rows, &y});
}

tutti_status tutti__cuda_gather_rows(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                     tutti_cu_pointer ids, int64_t count, int64_t width, int rows,
                                     tutti_cu_pointer y)
{
    return move_rows(on, "gather_rows", size, x, ids, count, width, rows, y);
}

tutti_status tutti__cuda_scatter_rows(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                      tutti_cu_pointer ids, int64_t count, int64_t width, int rows,
                                      tutti_cu_pointer y)
{
    return move_rows(on, "scatter_rows", size, x, ids, count, width, rows, y);
}

static const char *const variants[] = {"-DTYPE=u8", "-DTYPE=u16", "-DTYPE=u32", "-DTYPE=u64", NULL};

const tutti_cuda_source tutti_cuda_source_move = {
    .name = "move",
    .text = &tutti__cuda_text_move_cu,
    .variants = variants,
};
