/* layers.h: the ready-made layers. Settings are given by name, zero means the default:
 *
 *     tutti_conv2d(32, 3, .strides = {2}, .activation = TUTTI_RELU)
 *
 * Images are [batch, height, width, channels], sequences [batch, time, features]. Initializers,
 * regularizers and constraints are texts: see tutti_weight_options in layer.h. */
#ifndef TUTTI_LAYERS_H
#define TUTTI_LAYERS_H

#include "tutti/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pair of sizes: {3} means {3, 3}. */

/* The shape of one example, as the first layer of a sequential model: tutti_input_shape(28, 28, 1).
 */
typedef struct tutti_input_settings {
    TUTTI_LAYER_SETTINGS
    int64_t dtype; /* TUTTI_F32 */
    int64_t rank;
    int64_t dims[TUTTI_MAX_RANK];
} tutti_input_settings;
#define tutti_input_shape(...)                                                                     \
    tutti_layer_make("input", TUTTI_OPTIONS(tutti_input_settings,                                  \
                                            .rank = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) /   \
                                                              sizeof(int64_t)),                    \
                                            .dims = {__VA_ARGS__}))

/* y = activation(x kernel + bias) over the last axis; kernel [features, units]. */
typedef struct tutti_dense_settings {
    TUTTI_LAYER_SETTINGS
    int64_t units;
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer; /* "glorot_uniform", "zeros" */
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_dense_settings;
#define tutti_dense(units_, ...)                                                                   \
    tutti_layer_make("dense", TUTTI_OPTIONS(tutti_dense_settings, .units = (units_), __VA_ARGS__))

/* y = activation(conv2d(x, kernel) + bias); kernel [height, width, channels / groups, filters]. */
typedef struct tutti_conv2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size[2], strides[2], dilations[2];
    const char *padding; /* "valid" or "same" */
    int64_t groups;      /* 1 */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv2d_settings;
#define tutti_conv2d(filters_, size_, ...)                                                         \
    tutti_layer_make("conv2d", TUTTI_OPTIONS(tutti_conv2d_settings, .filters = (filters_),         \
                                             .kernel_size = {(size_)}, __VA_ARGS__))

/* The maximum of each window. */
typedef struct tutti_pool2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t pool_size[2]; /* {2, 2} */
    int64_t strides[2];   /* the window */
    const char *padding;  /* "valid" or "same" */
} tutti_pool2d_settings;
#define tutti_max_pool2d(size_, ...)                                                               \
    tutti_layer_make("max_pool2d",                                                                 \
                     TUTTI_OPTIONS(tutti_pool2d_settings, .pool_size = {(size_)}, __VA_ARGS__))

/* [batch, …] as [batch, everything]. */
#define tutti_flatten(...)                                                                         \
    tutti_layer_make("flatten", TUTTI_OPTIONS(tutti_layer_settings, __VA_ARGS__))

/* In training each element is kept with probability 1 - rate and divided by it; else y = x. */
typedef struct tutti_dropout_settings {
    TUTTI_LAYER_SETTINGS
    double rate;
    int64_t seed;
} tutti_dropout_settings;
#define tutti_dropout(rate_, ...)                                                                  \
    tutti_layer_make("dropout", TUTTI_OPTIONS(tutti_dropout_settings, .rate = (rate_), __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
