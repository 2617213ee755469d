/* product.h: matrix products by cuBLASLt. Matrices are row-major:
 *
 *     d[m, n] = epilogue(a[m, k] b[k, n] + d * accumulate)
 *
 * with a stored as [k, m] where transpose_a says so, b as [n, k] where transpose_b does.
 *
 * A plan is made once for a product's shape: the library is asked for algorithms, the candidates
 * are measured where that is allowed, and the choice is remembered by key. f32 is f32: TF32 only
 * where it is asked for. Which epilogues exist depends on shape and type; a plan that cannot be
 * made fails with TUTTI_UNSUPPORTED, and the caller takes the product and the epilogue one by one.
 */
#ifndef TUTTI_CUDA_PRODUCT_H
#define TUTTI_CUDA_PRODUCT_H

#include "device/cuda/kernels/kernels.h"

typedef enum tutti_cuda_epilogue {
    TUTTI_CUDA_PLAIN,
    TUTTI_CUDA_BIAS,          /* + bias[n] */
    TUTTI_CUDA_BIAS_RELU,     /* relu(+ bias) */
    TUTTI_CUDA_BIAS_RELU_AUX, /* the same; aux: a bit for each positive one, rows of aux_stride */
    TUTTI_CUDA_BIAS_GELU_AUX, /* gelu(+ bias), by tanh; aux: what went into it, type of d */
    TUTTI_CUDA_DRELU_BIAS_GRADIENT, /* d * (aux bit); bias: sums of its columns, f32 or d's type */
    TUTTI_CUDA_DGELU_BIAS_GRADIENT, /* d * gelu'(aux); bias: the sums of its columns */
    TUTTI_CUDA_BIAS_GRADIENT_B,     /* bias[n]: sums of b over k */
} tutti_cuda_epilogue;

typedef struct tutti_cuda_product {
    tutti_cuda_type type; /* of a and b */
    tutti_cuda_type out;  /* of d; f32 or `type` */
    bool transpose_a, transpose_b;
    bool tf32;
    bool accumulate;
    bool any_rows;          /* how many there are (m) changes no bit of one; never measured */
    int64_t m, n, k, batch; /* batch: 0 counts as 1; matrices follow each other */
    tutti_cuda_epilogue epilogue;
} tutti_cuda_product;

typedef struct tutti_cuda_products tutti_cuda_products;
typedef struct tutti_cuda_product_plan tutti_cuda_product_plan;

/* The library's handle and work space for one device, whose context is the caller's. */
tutti_status tutti__cuda_products_open(tutti_cuda_device *device, tutti_cuda_products **ret);
/* Takes the plans with it. NULL is accepted. */
void tutti__cuda_products_close(tutti_cuda_products *products);

/* The plan of a product, made or remembered. measure: candidates are run on memory of their own,
 * which waits for the stream; without, the library's first choice is taken (which depends on
 * nothing but the shape). Belongs to `products`. */
tutti_status tutti__cuda_product_plan(tutti_cuda_products *products, tutti_cu_stream stream,
                                      const tutti_cuda_product *product, bool measure,
                                      const tutti_cuda_product_plan **ret);

/* Enqueues it. bias and aux: 0 where the epilogue has none. */
tutti_status tutti__cuda_product_run(const tutti_cuda_product_plan *plan, tutti_cu_stream stream,
                                     tutti_cu_pointer a, tutti_cu_pointer b, tutti_cu_pointer d,
                                     tutti_cu_pointer bias, tutti_cu_pointer aux);

/* Elements (bits, for relu) from row to row of aux. */
int64_t tutti__cuda_product_aux_stride(const tutti_cuda_product *product);
/* "candidate 3 of 8, 12.3 us (first: 14.0 us)" */
void tutti__cuda_product_describe(const tutti_cuda_product_plan *plan, char *text, size_t size);

#endif
