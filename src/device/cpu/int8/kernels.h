/* kernels.h: what the kernels of products and convolutions of bytes share. */
#ifndef TUTTI_DEVICE_CPU_INT8_KERNELS_H
#define TUTTI_DEVICE_CPU_INT8_KERNELS_H

#include "device/cpu/int8/product.h"
#include "ops/quantized/quantized.h"

int tutti__int8_matmul_score(const tutti_kernel_query *query, const tutti_int_matmul *m);
size_t tutti__int8_matmul_workspace(const tutti_kernel_query *query, const tutti_int_matmul *m);
tutti_status tutti__int8_matmul_prepare(const tutti_kernel_query *query, const tutti_int_matmul *m,
                                        void **ret_plan);
tutti_status tutti__int8_matmul_run(const tutti_kernel_call *call, const tutti_int_matmul *m);

int tutti__int8_conv_score(const tutti_kernel_query *query, const tutti_int_conv *c);
size_t tutti__int8_conv_workspace(const tutti_kernel_query *query, const tutti_int_conv *c);
tutti_status tutti__int8_conv_prepare(const tutti_kernel_query *query, const tutti_int_conv *c,
                                      void **ret_plan);
tutti_status tutti__int8_conv_run(const tutti_kernel_call *call, const tutti_int_conv *c);
void tutti__int8_discard(void *plan);

/* A plan: how many threads, and the right side packed where it is a constant. */
typedef struct tutti_int8_plan {
    int threads;
    void *right; /* NULL: to be packed at every run */
} tutti_int8_plan;
/* `values`, when there, holds the right side at input `index`. */
tutti_status tutti__int8_plan(const tutti_kernel_query *query, const tutti_int8_shape *shape,
                              int index, void **ret_plan);
/* The plan's right side, or the input packed into the workspace behind the scratch. */
const void *tutti__int8_right(const tutti_kernel_call *call, const tutti_int8_shape *shape,
                              const tutti_view *right);

#endif
