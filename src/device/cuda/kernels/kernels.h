/* kernels.h: our kernels, one call each. All enqueue on a stream of the device and return at once;
 * what goes wrong on the device shows at the next call that waits. Addresses are the device's, and
 * begin on 16 bytes. None allocates: work space is the caller's. A kernel's first call in a variant
 * compiles or loads it, which must not happen inside a capture. Sums are in f32, in an order that
 * follows from shapes alone: equal bits from run to run. */
#ifndef TUTTI_CUDA_KERNELS_H
#define TUTTI_CUDA_KERNELS_H

#include "base/random.h"
#include "device/cuda/driver/device.h"

typedef enum tutti_cuda_type { TUTTI_CUDA_F32, TUTTI_CUDA_BF16, TUTTI_CUDA_F16 } tutti_cuda_type;
int tutti__cuda_type_size(tutti_cuda_type type);
const char *tutti__cuda_type_name(tutti_cuda_type type); /* in CUDA C++: "bf16" */

/* Whom a kernel is started for. */
typedef struct tutti_cuda_stream {
    tutti_cuda_device *device;
    tutti_cu_stream stream;
} tutti_cuda_stream;

/* Softmax of `rows` rows of `width`, a multiple of 16 bytes, at most 16 KiB elements. */
tutti_status tutti__cuda_softmax(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer x,
                                 tutti_cu_pointer y, int64_t rows, int width);
tutti_status tutti__cuda_softmax_gradient(tutti_cuda_stream on, tutti_cuda_type type,
                                          tutti_cu_pointer y, tutti_cu_pointer dy,
                                          tutti_cu_pointer dx, int64_t rows, int width);

enum { TUTTI_CUDA_MOST_CLASSES = 1 << 19 };
typedef struct tutti_cuda_cross_entropy {
    tutti_cuda_type type;
    tutti_cu_pointer logits, labels;
    const char *index; /* type of labels; NULL: "i32" */
    int64_t rows;
    int width, stride;               /* elements of a row that count; from row to row */
    float scale;                     /* of the gradient: 1 / rows for a mean */
    tutti_cu_pointer scales;         /* one for each row instead, f32; or 0 */
    tutti_cu_pointer loss, gradient; /* [rows] f32; may be `logits` */
    tutti_cu_pointer fault;          /* where a label that is no class is noted; or 0 */
} tutti_cuda_cross_entropy;
tutti_status tutti__cuda_softmax_cross_entropy(tutti_cuda_stream on,
                                               const tutti_cuda_cross_entropy *call);

typedef struct tutti_cuda_norm {
    tutti_cuda_type type;
    int64_t rows;
    int width; /* a multiple of 16 bytes, at most 16 Ki */
    bool rms;  /* no mean, no beta */
    float epsilon;
    tutti_cu_pointer x, residual; /* residual: or 0; x + residual is written to `sum` */
    tutti_cu_pointer gamma, beta;
    tutti_cu_pointer sum, y;
    tutti_cu_pointer mean, rstd; /* [rows] f32; backward: or 0 */
    /* Backward: x is the sum. along: what is added to dx, or 0. */
    tutti_cu_pointer dy, along, dx, dgamma, dbeta;
    tutti_cu_pointer workspace; /* tutti__cuda_norm_workspace bytes */
} tutti_cuda_norm;
tutti_status tutti__cuda_norm(tutti_cuda_stream on, const tutti_cuda_norm *call);
tutti_status tutti__cuda_norm_gradient(tutti_cuda_stream on, const tutti_cuda_norm *call);
size_t tutti__cuda_norm_workspace(const tutti_cuda_norm *call);

/* Sums (or maxima) over the last dimension of [rows, width], over the first, or over all;
 * workspace: tutti__cuda_reduce_workspace bytes. y is f32; of columns, of type `out`. */
typedef struct tutti_cuda_reduce {
    tutti_cuda_type type, out;
    tutti_cu_pointer x, y, workspace;
    int64_t rows, width;
    bool maximum;
} tutti_cuda_reduce;
tutti_status tutti__cuda_reduce_rows(tutti_cuda_stream on, const tutti_cuda_reduce *call);
tutti_status tutti__cuda_reduce_columns(tutti_cuda_stream on, const tutti_cuda_reduce *call);
tutti_status tutti__cuda_reduce_all(tutti_cuda_stream on, const tutti_cuda_reduce *call);
size_t tutti__cuda_reduce_workspace(const tutti_cuda_reduce *call);

typedef struct tutti_cuda_embedding {
    tutti_cuda_type type;
    int64_t count; /* of ids */
    int size, width;
    tutti_cu_pointer table, ids; /* i32 */
    tutti_cu_pointer extra;      /* [period][width] added to row i % period, or 0 */
    int64_t period;
    tutti_cu_pointer y;
    tutti_cu_pointer dy, gradient;
    tutti_cu_pointer workspace; /* backward: tutti__cuda_embedding_workspace bytes */
} tutti_cuda_embedding;
tutti_status tutti__cuda_embedding(tutti_cuda_stream on, const tutti_cuda_embedding *call);
/* Clears the gradient first. */
tutti_status tutti__cuda_embedding_gradient(tutti_cuda_stream on, const tutti_cuda_embedding *call);
size_t tutti__cuda_embedding_workspace(const tutti_cuda_embedding *call);

/* A stable sort of u32 keys, with the position each had (i32). Keys above `most` count as `most`,
 * which says how many bits are sorted. */
tutti_status tutti__cuda_sort(tutti_cuda_stream on, tutti_cu_pointer keys, int64_t count,
                              uint32_t most, tutti_cu_pointer ret_keys,
                              tutti_cu_pointer ret_positions, tutti_cu_pointer workspace);
size_t tutti__cuda_sort_workspace(int64_t count);

/* As the kernel reads them; see adamw.cu. first_block is filled by tutti__cuda_adamw_blocks. */
typedef struct tutti_cuda_adamw_tensor {
    tutti_cu_pointer master, m, v, weight, gradient;
    int64_t count;
    float decay;
    uint32_t first_block;
} tutti_cuda_adamw_tensor;
typedef struct tutti_cuda_adamw_state {
    float rate, beta1, beta2, epsilon, gradient_scale;
    uint32_t skip;
    int64_t step;
} tutti_cuda_adamw_state;
uint32_t tutti__cuda_adamw_blocks(tutti_cuda_adamw_tensor *tensors, int count);
/* `tensors` and `state` are on the device. Counts the step, then updates. */
tutti_status tutti__cuda_adamw(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer tensors,
                               int count, uint32_t blocks, tutti_cu_pointer state);

/* Numbers `first`, first + 1, … of a stream; first is a multiple of 4. */
tutti_status tutti__cuda_random_uniform(tutti_cuda_stream on, tutti_cuda_type type,
                                        tutti_random_key key, uint64_t first, int64_t count,
                                        float low, float scale, tutti_cu_pointer y);
tutti_status tutti__cuda_random_normal(tutti_cuda_stream on, tutti_cuda_type type,
                                       tutti_random_key key, uint64_t first, int64_t count,
                                       float mean, float deviation, tutti_cu_pointer y);

/* sums [dims[0], dims[1], dims[2]] f32 of x * y over the last of four dimensions, which is dense; x
 * and y have the same strides of the first three. */
tutti_status tutti__cuda_row_dots(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer x,
                                  tutti_cu_pointer y, const int64_t dims[4],
                                  const int64_t strides[3], tutti_cu_pointer sums);

/* The stream does nothing for so many seconds: what is enqueued meanwhile runs without gaps. */
tutti_status tutti__cuda_hold(tutti_cuda_stream on, double seconds);

/* Elements of `size` bytes (1, 2, 4, 8). */
tutti_status tutti__cuda_transpose(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                   int64_t batch, int64_t rows, int64_t columns,
                                   tutti_cu_pointer y);
tutti_status tutti__cuda_gather_rows(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                     tutti_cu_pointer ids, int64_t count, int64_t width, int rows,
                                     tutti_cu_pointer y);
tutti_status tutti__cuda_scatter_rows(tutti_cuda_stream on, int size, tutti_cu_pointer x,
                                      tutti_cu_pointer ids, int64_t count, int64_t width, int rows,
                                      tutti_cu_pointer y);

#endif
