/* layers.h: the ready-made layers. Settings are given by name, zero means the default:
 *
 *     tutti_conv2d(32, 3, .strides = {2}, .activation = TUTTI_RELU)
 *
 * Images are [batch, height, width, channels], sequences [batch, time, features]. Initializers,
 * regularizers and constraints are texts: see tutti_weight_options in layer.h. */
#ifndef TUTTI_LAYERS_H
#define TUTTI_LAYERS_H

#include "tutti/dataset.h"
#include "tutti/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pair of sizes: {3} means {3, 3}. Where a macro takes the size, the second may be set apart:
 * tutti_conv2d(32, 3, .kernel_size[1] = 5). */

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
    const char *sharding; /* of the kernel, "embed,hidden" or mesh axes: see tutti_sharded */
} tutti_dense_settings;
#define tutti_dense(...)                                                                           \
    tutti_layer_make("dense", TUTTI_OPTIONS(tutti_dense_settings, .units = __VA_ARGS__))

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
#define tutti_conv2d(filters_, ...)                                                                \
    tutti_layer_make("conv2d", TUTTI_OPTIONS(tutti_conv2d_settings, .filters = (filters_),         \
                                             TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))

/* The same over sequences [batch, time, channels]; kernel [size, channels / groups, filters]. */
typedef struct tutti_conv1d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size, strides, dilations;
    const char *padding; /* "valid", "same" or "causal": y[t] sees x[<= t] only */
    int64_t groups;      /* 1 */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv1d_settings;
#define tutti_conv1d(filters_, ...)                                                                \
    tutti_layer_make("conv1d", TUTTI_OPTIONS(tutti_conv1d_settings, .filters = (filters_),         \
                                             .kernel_size = __VA_ARGS__))

/* Each channel by itself; kernel [height, width, channels, depth_multiplier], the output has
 * channels * depth_multiplier channels. */
typedef struct tutti_depthwise_conv2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t kernel_size[2], strides[2], dilations[2];
    int64_t depth_multiplier; /* 1 */
    const char *padding;      /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *depthwise_initializer, *bias_initializer;
    const char *depthwise_regularizer, *bias_regularizer;
    const char *depthwise_constraint, *bias_constraint;
} tutti_depthwise_conv2d_settings;
#define tutti_depthwise_conv2d(...)                                                                \
    tutti_layer_make("depthwise_conv2d", TUTTI_OPTIONS(tutti_depthwise_conv2d_settings,            \
                                                       TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))

/* Over volumes [batch, depth, height, width, channels]; kernel [depth, height, width,
 * channels / groups, filters]. A triple of sizes {3} means {3, 3, 3}. */
typedef struct tutti_conv3d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size[3], strides[3], dilations[3];
    const char *padding; /* "valid" or "same" */
    int64_t groups;      /* 1 */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv3d_settings;
#define tutti_conv3d(filters_, ...)                                                                \
    tutti_layer_make("conv3d", TUTTI_OPTIONS(tutti_conv3d_settings, .filters = (filters_),         \
                                             TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))

/* Transposed convolutions, which make images larger: `strides` times as large with padding "same",
 * and by as much as the kernel is larger than the stride with "valid". Kernel [height, width,
 * filters, channels]. Where output_padding is given, the output has  (input - 1) * stride + kernel
 * + output_padding  rows, with "same"  2 * (kernel / 2)  less. */
typedef struct tutti_conv2d_transpose_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size[2], strides[2], dilations[2], output_padding[2];
    const char *padding; /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv2d_transpose_settings;
#define tutti_conv2d_transpose(filters_, ...)                                                      \
    tutti_layer_make("conv2d_transpose",                                                           \
                     TUTTI_OPTIONS(tutti_conv2d_transpose_settings, .filters = (filters_),         \
                                   TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))
/* Along time; kernel [size, filters, channels]. */
typedef struct tutti_conv1d_transpose_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size, strides, dilations, output_padding;
    const char *padding; /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv1d_transpose_settings;
#define tutti_conv1d_transpose(filters_, ...)                                                      \
    tutti_layer_make("conv1d_transpose",                                                           \
                     TUTTI_OPTIONS(tutti_conv1d_transpose_settings, .filters = (filters_),         \
                                   .kernel_size = __VA_ARGS__))
/* Over volumes; kernel [depth, height, width, filters, channels]. */
typedef struct tutti_conv3d_transpose_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size[3], strides[3], dilations[3], output_padding[3];
    const char *padding; /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
} tutti_conv3d_transpose_settings;
#define tutti_conv3d_transpose(filters_, ...)                                                      \
    tutti_layer_make("conv3d_transpose",                                                           \
                     TUTTI_OPTIONS(tutti_conv3d_transpose_settings, .filters = (filters_),         \
                                   TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))

/* Each channel by itself, then all channels of each pixel: y =
 * activation(conv2d(depthwise_conv2d(x, depthwise_kernel), pointwise_kernel) + bias); kernels
 * [height, width, channels, depth_multiplier] and [1, 1, channels * depth_multiplier, filters]. */
typedef struct tutti_separable_conv2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size[2], strides[2], dilations[2];
    int64_t depth_multiplier; /* 1 */
    const char *padding;      /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *depthwise_initializer, *pointwise_initializer, *bias_initializer;
    const char *depthwise_regularizer, *pointwise_regularizer, *bias_regularizer;
    const char *depthwise_constraint, *pointwise_constraint, *bias_constraint;
} tutti_separable_conv2d_settings;
#define tutti_separable_conv2d(filters_, ...)                                                      \
    tutti_layer_make("separable_conv2d",                                                           \
                     TUTTI_OPTIONS(tutti_separable_conv2d_settings, .filters = (filters_),         \
                                   TUTTI_SIZE_(kernel_size, __VA_ARGS__, )))
/* Along time; kernels [size, channels, depth_multiplier] and [1, channels * depth_multiplier,
 * filters]. */
typedef struct tutti_separable_conv1d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t filters;
    int64_t kernel_size, strides, dilations;
    int64_t depth_multiplier; /* 1 */
    const char *padding;      /* "valid" or "same" */
    const char *activation;
    bool no_bias;
    const char *depthwise_initializer, *pointwise_initializer, *bias_initializer;
    const char *depthwise_regularizer, *pointwise_regularizer, *bias_regularizer;
    const char *depthwise_constraint, *pointwise_constraint, *bias_constraint;
} tutti_separable_conv1d_settings;
#define tutti_separable_conv1d(filters_, ...)                                                      \
    tutti_layer_make("separable_conv1d",                                                           \
                     TUTTI_OPTIONS(tutti_separable_conv1d_settings, .filters = (filters_),         \
                                   .kernel_size = __VA_ARGS__))

/* ---- pooling ---- */

/* The maximum or the mean of each window; padding counts in neither. */
typedef struct tutti_pool2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t pool_size[2]; /* {2, 2} */
    int64_t strides[2];   /* the window */
    const char *padding;  /* "valid" or "same" */
} tutti_pool2d_settings;
#define tutti_max_pool2d(...)                                                                      \
    tutti_layer_make("max_pool2d",                                                                 \
                     TUTTI_OPTIONS(tutti_pool2d_settings, TUTTI_SIZE_(pool_size, __VA_ARGS__, )))
#define tutti_average_pool2d(...)                                                                  \
    tutti_layer_make("average_pool2d",                                                             \
                     TUTTI_OPTIONS(tutti_pool2d_settings, TUTTI_SIZE_(pool_size, __VA_ARGS__, )))
typedef struct tutti_pool1d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t pool_size;   /* 2 */
    int64_t strides;     /* the window */
    const char *padding; /* "valid" or "same" */
} tutti_pool1d_settings;
#define tutti_max_pool1d(...)                                                                      \
    tutti_layer_make("max_pool1d", TUTTI_OPTIONS(tutti_pool1d_settings, .pool_size = __VA_ARGS__))
#define tutti_average_pool1d(...)                                                                  \
    tutti_layer_make("average_pool1d",                                                             \
                     TUTTI_OPTIONS(tutti_pool1d_settings, .pool_size = __VA_ARGS__))

/* Over volumes, whose dimensions but the batch are known. */
typedef struct tutti_pool3d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t pool_size[3]; /* {2, 2, 2} */
    int64_t strides[3];   /* the window */
    const char *padding;  /* "valid" or "same" */
} tutti_pool3d_settings;
#define tutti_max_pool3d(...)                                                                      \
    tutti_layer_make("max_pool3d",                                                                 \
                     TUTTI_OPTIONS(tutti_pool3d_settings, TUTTI_SIZE_(pool_size, __VA_ARGS__, )))
#define tutti_average_pool3d(...)                                                                  \
    tutti_layer_make("average_pool3d",                                                             \
                     TUTTI_OPTIONS(tutti_pool3d_settings, TUTTI_SIZE_(pool_size, __VA_ARGS__, )))

/* Over all of depth, height and width, or of time: [batch, channels]. Over time only steps that the
 * mask lets through count. */
typedef struct tutti_global_pool_settings {
    TUTTI_LAYER_SETTINGS
    bool keepdims; /* the axes stay, with size 1 */
} tutti_global_pool_settings;
#define TUTTI_GLOBAL_POOL_(kind, ...)                                                              \
    tutti_layer_make(kind, TUTTI_OPTIONS(tutti_global_pool_settings, __VA_ARGS__))
#define tutti_global_max_pool1d(...) TUTTI_GLOBAL_POOL_("global_max_pool1d", __VA_ARGS__)
#define tutti_global_max_pool2d(...) TUTTI_GLOBAL_POOL_("global_max_pool2d", __VA_ARGS__)
#define tutti_global_average_pool1d(...) TUTTI_GLOBAL_POOL_("global_average_pool1d", __VA_ARGS__)
#define tutti_global_average_pool2d(...) TUTTI_GLOBAL_POOL_("global_average_pool2d", __VA_ARGS__)
#define tutti_global_max_pool3d(...) TUTTI_GLOBAL_POOL_("global_max_pool3d", __VA_ARGS__)
#define tutti_global_average_pool3d(...) TUTTI_GLOBAL_POOL_("global_average_pool3d", __VA_ARGS__)

/* ---- shapes ---- */

/* [batch, …] as [batch, everything]. */
#define tutti_flatten(...)                                                                         \
    tutti_layer_make("flatten", TUTTI_OPTIONS(tutti_layer_settings, __VA_ARGS__))

/* Lists of dimensions without the batch: tutti_reshape_layer(7, 7, -1), of which one may be -1;
 * tutti_permute(2, 1) swaps the two axes behind the batch, which are numbered from 1. */
typedef struct tutti_dims_settings {
    TUTTI_LAYER_SETTINGS
    int64_t rank;
    int64_t dims[TUTTI_MAX_RANK];
} tutti_dims_settings;
#define TUTTI_DIMS_LAYER_(kind, ...)                                                               \
    tutti_layer_make(                                                                              \
        kind, TUTTI_OPTIONS(tutti_dims_settings,                                                   \
                            .rank = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                            .dims = {__VA_ARGS__}))
#define tutti_reshape_layer(...) TUTTI_DIMS_LAYER_("reshape", __VA_ARGS__)
#define tutti_permute(...) TUTTI_DIMS_LAYER_("permute", __VA_ARGS__)

/* [batch, features] to [batch, n, features]. */
typedef struct tutti_repeat_vector_settings {
    TUTTI_LAYER_SETTINGS
    int64_t n;
} tutti_repeat_vector_settings;
#define tutti_repeat_vector(...)                                                                   \
    tutti_layer_make("repeat_vector", TUTTI_OPTIONS(tutti_repeat_vector_settings, .n = __VA_ARGS__))

/* Zeros round, or rows and columns off, each side: `amount` on all, or {height, width}; different
 * ones on two sides are given by `pads`, which then counts alone:
 *     tutti_zero_padding2d(1)    tutti_cropping2d(0, .pads = {1, 0, 2, 0}) */
typedef struct tutti_border2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t amount[2];
    int64_t pads[4]; /* top, bottom, left, right */
} tutti_border2d_settings;
#define tutti_zero_padding2d(...)                                                                  \
    tutti_layer_make("zero_padding2d",                                                             \
                     TUTTI_OPTIONS(tutti_border2d_settings, TUTTI_SIZE_(amount, __VA_ARGS__, )))
#define tutti_cropping2d(...)                                                                      \
    tutti_layer_make("cropping2d",                                                                 \
                     TUTTI_OPTIONS(tutti_border2d_settings, TUTTI_SIZE_(amount, __VA_ARGS__, )))
/* The same along time. */
typedef struct tutti_border1d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t amount;
    int64_t pads[2]; /* before, after */
} tutti_border1d_settings;
#define tutti_zero_padding1d(...)                                                                  \
    tutti_layer_make("zero_padding1d",                                                             \
                     TUTTI_OPTIONS(tutti_border1d_settings, .amount = __VA_ARGS__))
#define tutti_cropping1d(...)                                                                      \
    tutti_layer_make("cropping1d", TUTTI_OPTIONS(tutti_border1d_settings, .amount = __VA_ARGS__))

/* Each step of time, or each pixel, `size` times over: tutti_up_sampling2d(2); or interpolated
 * between the centres of steps or pixels. */
typedef struct tutti_up_sampling1d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t size;              /* 2 */
    const char *interpolation; /* "nearest", "linear" or "cubic" */
} tutti_up_sampling1d_settings;
#define tutti_up_sampling1d(...)                                                                   \
    tutti_layer_make("up_sampling1d",                                                              \
                     TUTTI_OPTIONS(tutti_up_sampling1d_settings, .size = __VA_ARGS__))
typedef struct tutti_up_sampling2d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t size[2];           /* {2, 2} */
    const char *interpolation; /* "nearest", "bilinear" or "bicubic" */
} tutti_up_sampling2d_settings;
#define tutti_up_sampling2d(...)                                                                   \
    tutti_layer_make("up_sampling2d", TUTTI_OPTIONS(tutti_up_sampling2d_settings,                  \
                                                    TUTTI_SIZE_(size, __VA_ARGS__, )))
typedef struct tutti_up_sampling3d_settings {
    TUTTI_LAYER_SETTINGS
    int64_t size[3];           /* {2, 2, 2} */
    const char *interpolation; /* "nearest", "trilinear" or "tricubic" */
} tutti_up_sampling3d_settings;
#define tutti_up_sampling3d(...)                                                                   \
    tutti_layer_make("up_sampling3d", TUTTI_OPTIONS(tutti_up_sampling3d_settings,                  \
                                                    TUTTI_SIZE_(size, __VA_ARGS__, )))

/* ---- activations ---- */

/* y = activation(x), any unary operator by its name: tutti_activation(TUTTI_RELU). */
typedef struct tutti_activation_settings {
    TUTTI_LAYER_SETTINGS
    const char *activation;
} tutti_activation_settings;
#define tutti_activation(...)                                                                      \
    tutti_layer_make("activation",                                                                 \
                     TUTTI_OPTIONS(tutti_activation_settings, .activation = __VA_ARGS__))

/* y = x >= max_value ? max_value : x >= threshold ? x : negative_slope (x - threshold). */
typedef struct tutti_relu_settings {
    TUTTI_LAYER_SETTINGS
    double max_value; /* none */
    double negative_slope, threshold;
} tutti_relu_settings;
#define tutti_relu_layer(...)                                                                      \
    tutti_layer_make("relu", TUTTI_OPTIONS(tutti_relu_settings, __VA_ARGS__))

/* y = x > 0 ? x : negative_slope x. */
typedef struct tutti_leaky_relu_settings {
    TUTTI_LAYER_SETTINGS
    double negative_slope; /* 0.3 */
} tutti_leaky_relu_settings;
#define tutti_leaky_relu_layer(...)                                                                \
    tutti_layer_make("leaky_relu", TUTTI_OPTIONS(tutti_leaky_relu_settings, __VA_ARGS__))

/* y = x > 0 ? x : alpha x; alpha is a weight, one for each feature of the last axis. */
typedef struct tutti_prelu_settings {
    TUTTI_LAYER_SETTINGS
    bool shared;                   /* one alpha for all */
    const char *alpha_initializer; /* "constant(0.25)" */
    const char *alpha_regularizer, *alpha_constraint;
} tutti_prelu_settings;
#define tutti_prelu_layer(...)                                                                     \
    tutti_layer_make("prelu", TUTTI_OPTIONS(tutti_prelu_settings, __VA_ARGS__))

/* y = x > 0 ? x : alpha (e^x - 1). */
typedef struct tutti_elu_settings {
    TUTTI_LAYER_SETTINGS
    double alpha; /* 1 */
} tutti_elu_settings;
#define tutti_elu_layer(...) tutti_layer_make("elu", TUTTI_OPTIONS(tutti_elu_settings, __VA_ARGS__))

/* e^x / sum(e^x) along an axis. */
typedef struct tutti_softmax_settings {
    TUTTI_LAYER_SETTINGS
    int64_t axis; /* -1 */
} tutti_softmax_settings;
#define tutti_softmax_layer(...)                                                                   \
    tutti_layer_make("softmax", TUTTI_OPTIONS(tutti_softmax_settings, __VA_ARGS__))

/* ---- noise in training; else y = x ---- */

/* Each element is kept with probability 1 - rate and divided by it. The spatial ones keep or drop
 * whole channels of an example. */
typedef struct tutti_dropout_settings {
    TUTTI_LAYER_SETTINGS
    double rate;
    int64_t seed;
} tutti_dropout_settings;
#define tutti_dropout(...)                                                                         \
    tutti_layer_make("dropout", TUTTI_OPTIONS(tutti_dropout_settings, .rate = __VA_ARGS__))
#define tutti_spatial_dropout1d(...)                                                               \
    tutti_layer_make("spatial_dropout1d",                                                          \
                     TUTTI_OPTIONS(tutti_dropout_settings, .rate = __VA_ARGS__))
#define tutti_spatial_dropout2d(...)                                                               \
    tutti_layer_make("spatial_dropout2d",                                                          \
                     TUTTI_OPTIONS(tutti_dropout_settings, .rate = __VA_ARGS__))

/* y = x + normal(0, stddev). */
typedef struct tutti_gaussian_noise_settings {
    TUTTI_LAYER_SETTINGS
    double stddev;
    int64_t seed;
} tutti_gaussian_noise_settings;
#define tutti_gaussian_noise(...)                                                                  \
    tutti_layer_make("gaussian_noise",                                                             \
                     TUTTI_OPTIONS(tutti_gaussian_noise_settings, .stddev = __VA_ARGS__))

/* ---- normalisation ---- */

/* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over all axes but the last. In training
 * mean and variance are the batch's and move the averages: m = momentum m + (1 - momentum) mean;
 * else, and in a frozen layer, they are the averages. */
typedef struct tutti_batch_norm_settings {
    TUTTI_LAYER_SETTINGS
    double momentum;                                  /* 0.99 */
    double epsilon;                                   /* 1e-3 */
    bool no_center;                                   /* no beta */
    bool no_scale;                                    /* no gamma */
    const char *beta_initializer, *gamma_initializer; /* "zeros", "ones" */
    const char *moving_mean_initializer, *moving_variance_initializer;
    const char *beta_regularizer, *gamma_regularizer;
    const char *beta_constraint, *gamma_constraint;
} tutti_batch_norm_settings;
#define tutti_batch_norm(...)                                                                      \
    tutti_layer_make("batch_norm", TUTTI_OPTIONS(tutti_batch_norm_settings, __VA_ARGS__))

/* The same formula with mean and variance over the last axis, row by row; or over each of `groups`
 * parts of the channels and all between batch and channels. RMS: y = x / sqrt(mean(x^2) + epsilon)
 * * scale over the last axis. */
typedef struct tutti_norm_settings {
    TUTTI_LAYER_SETTINGS
    double epsilon; /* 1e-3; of rms_norm 1e-6 */
    int64_t groups; /* of group_norm: 32; -1: a group for each channel */
    bool no_center, no_scale;
    const char *beta_initializer, *gamma_initializer;
    const char *beta_regularizer, *gamma_regularizer;
    const char *beta_constraint, *gamma_constraint;
} tutti_norm_settings;
#define tutti_layer_norm(...)                                                                      \
    tutti_layer_make("layer_norm", TUTTI_OPTIONS(tutti_norm_settings, __VA_ARGS__))
#define tutti_group_norm(...)                                                                      \
    tutti_layer_make("group_norm", TUTTI_OPTIONS(tutti_norm_settings, .groups = __VA_ARGS__))
/* As group_norm with a group for each channel. */
#define tutti_instance_norm(...)                                                                   \
    tutti_layer_make("instance_norm", TUTTI_OPTIONS(tutti_norm_settings, __VA_ARGS__))
#define tutti_rms_norm(...)                                                                        \
    tutti_layer_make("rms_norm", TUTTI_OPTIONS(tutti_norm_settings, __VA_ARGS__))

/* ---- sequences ---- */

/* Rows of the table "embeddings" [input_dim, output_dim] at integer ids: [batch, …, output_dim].
 * Called with floats [batch, …, output_dim] it scores all ids, x embeddings^T: called twice, a
 * language model's first layer is its last one too (tied weights). */
typedef struct tutti_embedding_settings {
    TUTTI_LAYER_SETTINGS
    int64_t input_dim, output_dim;
    bool mask_zero;                     /* id 0 is padding, which later layers pass over */
    const char *embeddings_initializer; /* "uniform" */
    const char *embeddings_regularizer, *embeddings_constraint;
} tutti_embedding_settings;
#define tutti_embedding(input_dim_, ...)                                                           \
    tutti_layer_make("embedding",                                                                  \
                     TUTTI_OPTIONS(tutti_embedding_settings, .input_dim = (input_dim_),            \
                                   .output_dim = __VA_ARGS__))

/* Adds a learned vector for each step of time: y[b, t] = x[b, t] + positions[t], t < max_length. */
typedef struct tutti_position_embedding_settings {
    TUTTI_LAYER_SETTINGS
    int64_t max_length;
    const char *initializer; /* "glorot_uniform" */
} tutti_position_embedding_settings;
#define tutti_position_embedding(...)                                                              \
    tutti_layer_make("position_embedding",                                                         \
                     TUTTI_OPTIONS(tutti_position_embedding_settings, .max_length = __VA_ARGS__))

/* Steps of time whose features all are mask_value become zeros that later layers pass over. */
typedef struct tutti_masking_settings {
    TUTTI_LAYER_SETTINGS
    double mask_value;
} tutti_masking_settings;
#define tutti_masking(...)                                                                         \
    tutti_layer_make("masking", TUTTI_OPTIONS(tutti_masking_settings, __VA_ARGS__))

/* Recurrent networks over [batch, time, features]; formulas in ops_network.h. The output is the
 * last h [batch, units], or with return_sequences all of them [batch, time, units]; return_state
 * adds the final states as outputs 1, …: tutti_sym_output(y, 1). Inputs after the first are initial
 * states. Weights: kernel [features, gates units], recurrent_kernel [units, gates units] and bias;
 * of a bidirectional layer "forward/kernel" and "backward/kernel". Steps that the mask hides, in
 * front, between or behind, leave the state as it was; there a sequence repeats the output before
 * (0 at the beginning), that of a bidirectional layer is 0. Gates as in Keras: lstm i f c o, gru
 * z r h. */
typedef struct tutti_rnn_settings {
    TUTTI_LAYER_SETTINGS
    int64_t units;
    bool return_sequences, return_state;
    bool go_backwards;      /* last step first; the sequence comes out in that order too */
    bool bidirectional;     /* both ways, two sets of weights, joined by merge_mode */
    const char *merge_mode; /* "concat", "sum", "mul", "ave" */
    double dropout;         /* of the inputs, the same at every step */
    int64_t seed;
    bool no_bias;
    bool no_unit_forget_bias; /* lstm: the forget gate's bias starts at 0, not at 1 */
    const char *kernel_initializer, *recurrent_initializer, *bias_initializer; /* "glorot_uniform",
                                                                     "orthogonal", "zeros" */
    const char *kernel_regularizer, *recurrent_regularizer, *bias_regularizer;
    const char *kernel_constraint, *recurrent_constraint, *bias_constraint;
} tutti_rnn_settings;
#define TUTTI_RNN_(kind, ...)                                                                      \
    tutti_layer_make(kind, TUTTI_OPTIONS(tutti_rnn_settings, .units = __VA_ARGS__))
#define tutti_simple_rnn(...) TUTTI_RNN_("simple_rnn", __VA_ARGS__)
#define tutti_gru(...) TUTTI_RNN_("gru", __VA_ARGS__)
#define tutti_lstm(...) TUTTI_RNN_("lstm", __VA_ARGS__)

/* softmax(q k^T / sqrt(key_dim)) v by heads, of query [batch, queries, features], value [batch,
 * keys, …] and key (the value, unless given); one input attends to itself. A fourth input is a bool
 * mask [batch, queries, keys]; the masks of value and key count too. Weights: query, key and
 * value/kernel [features, num_heads, key_dim], attention_output/kernel [num_heads, value_dim,
 * features], and biases. */
typedef struct tutti_multi_head_attention_settings {
    TUTTI_LAYER_SETTINGS
    int64_t num_heads, key_dim;
    int64_t value_dim;    /* key_dim */
    int64_t output_dim;   /* the query's features */
    bool use_causal_mask; /* query i sees keys 0 to i */
    bool no_bias;
    const char *kernel_initializer, *bias_initializer;
    const char *kernel_regularizer, *bias_regularizer;
    const char *kernel_constraint, *bias_constraint;
    bool fused_qkv; /* of one input: one product makes query, key and value, qkv/kernel [features,
                       3 num_heads key_dim]; attention_output/kernel is [num_heads key_dim,
                       features] */
    const char *output_initializer; /* of attention_output/kernel; kernel_initializer */
} tutti_multi_head_attention_settings;
#define tutti_multi_head_attention(num_heads_, ...)                                                \
    tutti_layer_make("multi_head_attention",                                                       \
                     TUTTI_OPTIONS(tutti_multi_head_attention_settings, .num_heads = (num_heads_), \
                                   .key_dim = __VA_ARGS__))

/* Attention to itself, then a network of two dense layers, each with a residual connection:
 * a = norm(x + attention(x)), y = norm(a + mlp(a)); with normalize_first a = x +
 * attention(norm(x)), y = a + mlp(norm(a)). Dropout stands before each sum. */
typedef struct tutti_transformer_block_settings {
    TUTTI_LAYER_SETTINGS
    int64_t num_heads;
    int64_t key_dim;        /* features / num_heads */
    double mlp_ratio;       /* 4: the middle layer has mlp_ratio * features units */
    const char *activation; /* "gelu" */
    double dropout;
    int64_t seed;
    bool use_causal_mask, normalize_first;
    double epsilon; /* of the norms: 1e-5 */
    const char *kernel_initializer, *bias_initializer;
    bool fused_qkv;                 /* as in multi_head_attention */
    const char *output_initializer; /* of what is added to x, attention_output/kernel and
                                       mlp/down/kernel; kernel_initializer */
} tutti_transformer_block_settings;
#define tutti_transformer_block(...)                                                               \
    tutti_layer_make("transformer_block",                                                          \
                     TUTTI_OPTIONS(tutti_transformer_block_settings, .num_heads = __VA_ARGS__))

/* ---- several inputs to one ---- */

/* Element by element, of two or more inputs that broadcast; masks are joined by "and". */
#define TUTTI_MERGE_LAYER_(kind, ...)                                                              \
    tutti_layer_make(kind, TUTTI_OPTIONS(tutti_layer_settings, __VA_ARGS__))
#define tutti_add_layer(...) TUTTI_MERGE_LAYER_("add", __VA_ARGS__)
#define tutti_subtract_layer(...) TUTTI_MERGE_LAYER_("subtract", __VA_ARGS__)
#define tutti_multiply_layer(...) TUTTI_MERGE_LAYER_("multiply", __VA_ARGS__)
#define tutti_average_layer(...) TUTTI_MERGE_LAYER_("average", __VA_ARGS__)
#define tutti_maximum_layer(...) TUTTI_MERGE_LAYER_("maximum", __VA_ARGS__)
#define tutti_minimum_layer(...) TUTTI_MERGE_LAYER_("minimum", __VA_ARGS__)
/* Side by side along an axis. */
typedef struct tutti_concatenate_settings {
    TUTTI_LAYER_SETTINGS
    int64_t axis; /* -1 */
} tutti_concatenate_settings;
#define tutti_concatenate_layer(...)                                                               \
    tutti_layer_make("concatenate", TUTTI_OPTIONS(tutti_concatenate_settings, __VA_ARGS__))
/* Products of two inputs summed along one axis of each, example by example. */
typedef struct tutti_dot_settings {
    TUTTI_LAYER_SETTINGS
    int64_t axes[2]; /* {-1, -1}; {1} means {1, 1} */
    bool normalize;  /* to unit length first: cosine similarity */
} tutti_dot_settings;
#define tutti_dot_layer(...) tutti_layer_make("dot", TUTTI_OPTIONS(tutti_dot_settings, __VA_ARGS__))

/* ---- code of your own, and preparing data inside the model ---- */

/* y = fn(x, context). A model with one cannot be saved as a whole, only its weights. */
typedef tutti_sym tutti_lambda_fn(tutti_sym x, void *context);
typedef struct tutti_lambda_settings {
    TUTTI_LAYER_SETTINGS
    tutti_lambda_fn *fn;
    void *context;
} tutti_lambda_settings;
#define tutti_lambda(fn_, ...)                                                                     \
    tutti_layer_make("lambda",                                                                     \
                     TUTTI_OPTIONS(tutti_lambda_settings, .fn = (fn_), .context = __VA_ARGS__))

/* y = x scale + offset. */
typedef struct tutti_rescaling_settings {
    TUTTI_LAYER_SETTINGS
    double scale; /* 1 */
    double offset;
} tutti_rescaling_settings;
#define tutti_rescaling(...)                                                                       \
    tutti_layer_make("rescaling", TUTTI_OPTIONS(tutti_rescaling_settings, .scale = __VA_ARGS__))

/* y = (x - mean) / max(sqrt(variance), 1e-7). One number for all, or one for each feature of the
 * last axis, as texts: .mean = "0.1307", .variance = "0.095,0.1,0.09"; or found in data. */
typedef struct tutti_normalization_settings {
    TUTTI_LAYER_SETTINGS
    const char *mean, *variance;
} tutti_normalization_settings;
#define tutti_normalization(...)                                                                   \
    tutti_layer_make("normalization", TUTTI_OPTIONS(tutti_normalization_settings, __VA_ARGS__))
/* Mean and variance of each feature over one epoch of a component of the data. Before the model is
 * built. */
TUTTI_API tutti_status tutti_adapt_normalization(tutti_layer *layer, tutti_dataset *data,
                                                 int component);

/* Strings to numbers by a vocabulary: words in lines, the first word is 1 (0: not among them). */
typedef struct tutti_string_lookup_settings {
    TUTTI_LAYER_SETTINGS
    const char *vocabulary; /* "red\ngreen\nblue" */
    int64_t max_tokens;     /* of an adapted vocabulary, with the unknown one; 0: all */
} tutti_string_lookup_settings;
#define tutti_string_lookup(...)                                                                   \
    tutti_layer_make("string_lookup",                                                              \
                     TUTTI_OPTIONS(tutti_string_lookup_settings, .vocabulary = __VA_ARGS__))

/* Texts [batch] to numbers of words i64 [batch, output_sequence_length]: in lower case and without
 * punctuation, cut at white space; 0 is padding, 1 a word that is not in the vocabulary, whose
 * words count from 2. */
typedef struct tutti_text_vectorization_settings {
    TUTTI_LAYER_SETTINGS
    int64_t output_sequence_length;
    const char *vocabulary; /* words in lines */
    int64_t max_tokens;     /* of an adapted vocabulary, with padding and unknown; 0: all */
    bool keep_case, keep_punctuation;
    bool characters; /* cut into characters (bytes of ASCII, else whole UTF-8 sequences) */
    bool mask_zero;  /* later layers pass over padding */
} tutti_text_vectorization_settings;
#define tutti_text_vectorization(...)                                                              \
    tutti_layer_make("text_vectorization", TUTTI_OPTIONS(tutti_text_vectorization_settings,        \
                                                         .output_sequence_length = __VA_ARGS__))
/* Takes the vocabulary of one of these two layers from an epoch of strings, the frequent words
 * first, equally frequent ones in order of their bytes. Before the model is built. */
TUTTI_API tutti_status tutti_adapt_vocabulary(tutti_layer *layer, tutti_dataset *data,
                                              int component);
/* The vocabulary in force, words in lines; the layer's. NULL when there is none yet. */
TUTTI_API const char *tutti_get_vocabulary(const tutti_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
