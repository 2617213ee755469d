/* matmul_product.h: products of matrices of floats: y[.., m, n] = a[.., m, k] b[.., k, n], each
 * optionally stored transposed. Leading axes broadcast. bf16 is packed as it stands, and rounded
 * once; f16 is converted, multiplied as floats and rounded once. What the kernels of matmul, alone
 * and with a bias, share. */
#ifndef TUTTI_DEVICE_CPU_MATMUL_PRODUCT_H
#define TUTTI_DEVICE_CPU_MATMUL_PRODUCT_H

#include "device/cpu/gemm/gemm.h"
#include "program/kernel.h"

typedef struct tutti_matmul_plan tutti_matmul_plan;

/* y = f(a b + bias), f the identity or relu; not for f16. */
typedef struct tutti_matmul_finish {
    const void *bias; /* a row of y's type; may be NULL */
    bool relu;
} tutti_matmul_finish;

/* query->node is the product. flags: TUTTI_GEMM_BF16 takes the CPU's instructions for bf16,
 * TUTTI_GEMM_PLAIN no library. A matrix b of f32 that is a constant is packed once, with the plan.
 */
size_t tutti__matmul_workspace(const tutti_kernel_query *query, uint32_t flags);
tutti_status tutti__matmul_prepare(const tutti_kernel_query *query, uint32_t flags,
                                   tutti_matmul_plan **ret_plan);
bool tutti__matmul_reads(const void *plan, int input); /* as tutti_kernel.reads */
void tutti__matmul_discard(void *plan);                /* NULL is fine */
/* Whether a library would run it. */
bool tutti__matmul_by_library(const tutti_kernel_query *query);
void tutti__matmul_run(const tutti_kernel_call *call, const tutti_matmul_plan *plan,
                       const tutti_view *a, const tutti_view *b, tutti_matmul_finish finish);

#endif
