/* lab.h: the laboratory: each kernel on a GPU beside a reference in f64 on the CPU, and timed.
 * Needs nothing of graph, operators or program. A check that fails is reported, and the next one
 * runs. */
#ifndef TUTTI_CUDA_LAB_H
#define TUTTI_CUDA_LAB_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "device/cuda/blas/product.h"
#include "device/cuda/kernels/kernels.h"

typedef struct lab_bench {
    tutti_cuda_stream on;
    tutti_cuda_products *products;
    const char *check; /* the one that runs */
    int passed, failed;
    double copy_bandwidth;        /* bytes/s, measured first */
    tutti_cu_pointer memory[256]; /* of the check that runs */
    int memory_count;
} lab_bench;

/* One check; lab/all.c lists them. */
typedef struct lab_check {
    const char *name;
    tutti_status (*run)(lab_bench *lab);
} lab_check;
extern const lab_check lab_checks[];
extern const int lab_check_count;

/* Memory on the device, poisoned with NaN patterns, until the check ends. */
tutti_status lab_memory(lab_bench *lab, size_t bytes, tutti_cu_pointer *ret);
tutti_status lab_put(lab_bench *lab, const void *data, size_t bytes, tutti_cu_pointer *ret);
tutti_status lab_get(lab_bench *lab, tutti_cu_pointer from, void *ret_data, size_t bytes);

/* count numbers, uniform in [low, high), rounded to the type; `ret_values` [count] has them as
 * doubles, the device has them as they are. */
tutti_status lab_numbers(lab_bench *lab, tutti_cuda_type type, int64_t count, double low,
                         double high, double **ret_values, tutti_cu_pointer *ret);
tutti_status lab_read(lab_bench *lab, tutti_cuda_type type, tutti_cu_pointer from, int64_t count,
                      double **ret_values);
double lab_round(tutti_cuda_type type, double value);

/* Passes when ||a - b|| / ||b|| <= limit and no NaN is in a. */
void lab_compare(lab_bench *lab, const char *what, const double *a, const double *b, int64_t count,
                 double limit);
void lab_pass(lab_bench *lab, bool passed, const char *what, const char *format, ...)
    TUTTI_PRINTF(4, 5);
/* Two readings are equal to the bit. */
void lab_same(lab_bench *lab, const char *what, tutti_cu_pointer a, const void *before,
              size_t bytes);

/* Median microseconds of a call, by events, with copies of it between two events; prints one line:
 * what, time, share of the copy's bandwidth for `bytes`, rate for `flops`. */
typedef tutti_status lab_call(lab_bench *lab, void *context);
tutti_status lab_time(lab_bench *lab, const char *what, lab_call *call, void *context, double bytes,
                      double flops);
tutti_status lab_microseconds(lab_bench *lab, lab_call *call, void *context, double *ret);

#endif
