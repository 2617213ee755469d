/* peaks.h: what a GPU can do at best, measured: what shares of a roofline are told against. */
#ifndef TUTTI_CUDA_PEAKS_H
#define TUTTI_CUDA_PEAKS_H

#include "device/cuda/blas/product.h"

/* Bytes a second of a copy of 1 GiB, read and written; FLOPs a second of a product of f32 and of
 * one of bf16, on random numbers. 0: there is no cuBLASLt. Waits. */
tutti_status tutti__cuda_peaks(tutti_cuda_stream on, tutti_cuda_products *products, double ret[3]);

#endif
