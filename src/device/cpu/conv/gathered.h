/* gathered.h: convolutions of several groups, and over volumes, as plain ones over images.
 *
 * The taps of a window along depth become channels: y[n, d] = conv2d of an image whose channels are
 * those of x[n, d*stride - pad + l*dilation] for every l. One set of groups at a time is gathered,
 * and as few images as keep the copies small. Small groups are joined into sets whose kernel is
 * zero between groups: registers are filled, at the price of multiplying zeros, and of looking for
 * NaN that came of them. */
#ifndef TUTTI_DEVICE_CPU_CONV_GATHERED_H
#define TUTTI_DEVICE_CPU_CONV_GATHERED_H

#include "device/cpu/conv/windows.h"

typedef struct tutti_gathering {
    tutti_convolution whole; /* its windows are over three axes; channels are those of one set */
    tutti_convolution part;  /* what is run: one set, `images` images */
    int64_t joined;          /* groups in a set; whole.groups counts sets */
    int64_t images, rounds;  /* images * rounds is the batch */
    int64_t x, kernel, y;    /* floats of the gathered operands, multiples of 16; y 0: in place */
    /* Of the kernel's instruction set (has_nan.h), for tutti__scatter_y and _x. */
    bool (*has_nan)(const float *x, int64_t count);
} tutti_gathering;

/* x, kernel, y: which input each is, -1 for the output. `backward`: the gradient of x is computed,
 * else x is gathered with its padding. False where these kernels do not apply. */
bool tutti__gathering(const tutti_kernel_query *query, int x, int kernel, int y, bool backward,
                      tutti_gathering *ret);

/* Operands of a set and a round, gathered into `to`; y may be used where it is. */
void tutti__gather_x(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                     int64_t round, const float *x, float *to);
void tutti__gather_kernel(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                          const float *kernel, float *to);
const float *tutti__gather_y(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                             int64_t round, const float *y, float *to);

/* Where y of a round is to be written: in its place, or into `to`, from where it is scattered. */
float *tutti__gathered_y(const tutti_gathering *g, int64_t round, float *y, float *to);
/* Results back to their places, from the operands that they were made of: y; x summed over depth;
 * the kernel added to what is there. */
void tutti__scatter_y(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                      int64_t round, const float *x, const float *kernel, float *from, float *y);
void tutti__scatter_x(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                      int64_t round, const float *grad, const float *kernel, float *from, float *x);
void tutti__scatter_kernel(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                           bool add, const float *from, float *kernel);

/* ---- gathered_groups.c ---- */
/* Of joined groups: what is NaN in a line of y's part, or at tap `tap` of depth in one of x's part,
 * is computed again by its own group alone. All are as gathered. */
void tutti__gathered_mend_y(const tutti_gathering *g, const float *x, const float *kernel,
                            int64_t line, float *y);
void tutti__gathered_mend_x(const tutti_gathering *g, const float *grad, const float *kernel,
                            int64_t line, int64_t tap, float *x);

#endif
