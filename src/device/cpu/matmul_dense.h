/* matmul_dense.h: y = f(a b + bias), bias a row, f the identity or relu, of a fused node: what its
 * kernels share. Bias and f are applied while the sums are in the cache. */
#ifndef TUTTI_DEVICE_CPU_MATMUL_DENSE_H
#define TUTTI_DEVICE_CPU_MATMUL_DENSE_H

#include "device/cpu/matmul_product.h"

/* A fused body of the pattern, taken apart. */
typedef struct tutti_dense {
    const tutti_node *product;
    int a, b, bias; /* which inputs of the fused node they are */
    bool relu;
} tutti_dense;

typedef struct tutti_dense_plan {
    tutti_dense layer;
    tutti_matmul_plan *product;
} tutti_dense_plan;

/* Takes a fused node of f32 or bf16 apart; false when it is something else. */
bool tutti__dense_take(const tutti_infer *fused, tutti_dense *ret);
/* What a kernel for the product alone is asked; `types` and `values` receive the types of its
 * inputs and the constants among them. */
tutti_kernel_query tutti__dense_query(const tutti_kernel_query *query, const tutti_dense *layer,
                                      tutti_type types[2], tutti_tensor *values[2]);

size_t tutti__dense_workspace(const tutti_kernel_query *query, bool bf16_tile);
tutti_status tutti__dense_prepare(const tutti_kernel_query *query, bool bf16_tile, void **ret_plan);
bool tutti__dense_reads(const void *plan, int input);
void tutti__dense_discard(void *plan);
tutti_status tutti__dense_run(const tutti_kernel_call *call);

#endif
