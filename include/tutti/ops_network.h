/* ops_network.h: the operators of neural networks.
 *
 * Images are [batch, height, width, channels]; convolution kernels [height, width, channels /
 * groups, filters]; sequences [batch, time, features]. Floating inputs of one call share one
 * element type: f32, f64, f16 or bf16. Options are given by name, and zero means the default:
 *
 *     y = tutti_conv2d_of(x, kernel, .strides = {2, 2}, .padding = "same");
 *
 * Every function adds nodes and returns the first output; a mistake gives a poison symbol, see
 * graph.h. Functions that end in _of take all their operands; layers of the same name make and keep
 * the weights themselves. */
#ifndef TUTTI_OPS_NETWORK_H
#define TUTTI_OPS_NETWORK_H

#include "tutti/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution ---- */

/* Padding: "valid" (none), "same" (output = ceil(input / stride); the odd one goes below and
 * right), or "explicit" with pads. */
typedef struct tutti_conv2d_options {
    size_t struct_size;
    int64_t strides[2];   /* {1, 1} */
    int64_t dilations[2]; /* {1, 1} */
    const char *padding;  /* "valid"; "explicit" when pads are given */
    int64_t pads[4];      /* top, bottom, left, right */
    int64_t groups;       /* 1: channels and filters in so many parts that do not mix */
} tutti_conv2d_options;

/* y[n,h,w,f] = sum over i,j,c of x[n, h*stride - pad + i*dilation, w*… + j*dilation, c] *
 * kernel[i,j,c,f]. Kernels [height, width, channels / groups, filters]. */
TUTTI_API tutti_sym tutti_conv2d_of(tutti_sym x, tutti_sym kernel,
                                    const tutti_conv2d_options *options);
#define tutti_conv2d_of(x, kernel, ...)                                                            \
    TUTTI_AT(tutti_conv2d_of((x), (kernel), TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

/* Each channel by itself. Kernels [height, width, channels, multiplier], whose dimensions are
 * known; channel c gives outputs c * multiplier and on. `groups` is not used. */
TUTTI_API tutti_sym tutti_depthwise_conv2d_of(tutti_sym x, tutti_sym kernel,
                                              const tutti_conv2d_options *options);
#define tutti_depthwise_conv2d_of(x, kernel, ...)                                                  \
    TUTTI_AT(tutti_depthwise_conv2d_of((x), (kernel),                                              \
                                       TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

typedef struct tutti_conv1d_options {
    size_t struct_size;
    int64_t stride;      /* 1 */
    int64_t dilation;    /* 1 */
    const char *padding; /* "valid", "same", "explicit", "causal": y[t] sees x[<= t] only */
    int64_t pads[2];     /* before, after */
    int64_t groups;      /* 1 */
} tutti_conv1d_options;

/* Over [batch, time, channels] with kernels [time, channels / groups, filters]. */
TUTTI_API tutti_sym tutti_conv1d_of(tutti_sym x, tutti_sym kernel,
                                    const tutti_conv1d_options *options);
#define tutti_conv1d_of(x, kernel, ...)                                                            \
    TUTTI_AT(tutti_conv1d_of((x), (kernel), TUTTI_OPTIONS(tutti_conv1d_options, __VA_ARGS__)))

/* ---- pooling ---- */

/* Padding never counts: not as a maximum, not in a mean. */
typedef struct tutti_pool2d_options {
    size_t struct_size;
    int64_t window[2];   /* {2, 2} */
    int64_t strides[2];  /* the window */
    const char *padding; /* "valid", "same", "explicit" */
    int64_t pads[4];     /* top, bottom, left, right; each less than the window */
} tutti_pool2d_options;

/* The maximum of each window; of equal ones the first gets the gradient. */
TUTTI_API tutti_sym tutti_max_pool2d_of(tutti_sym x, const tutti_pool2d_options *options);
#define tutti_max_pool2d_of(x, ...)                                                                \
    TUTTI_AT(tutti_max_pool2d_of((x), TUTTI_OPTIONS(tutti_pool2d_options, __VA_ARGS__)))
/* The mean of each window. */
TUTTI_API tutti_sym tutti_average_pool2d_of(tutti_sym x, const tutti_pool2d_options *options);
#define tutti_average_pool2d_of(x, ...)                                                            \
    TUTTI_AT(tutti_average_pool2d_of((x), TUTTI_OPTIONS(tutti_pool2d_options, __VA_ARGS__)))

typedef struct tutti_pool1d_options {
    size_t struct_size;
    int64_t window;      /* 2 */
    int64_t stride;      /* the window */
    const char *padding; /* "valid", "same", "explicit" */
    int64_t pads[2];     /* before, after */
} tutti_pool1d_options;

/* The same over [batch, time, channels]. */
TUTTI_API tutti_sym tutti_max_pool1d_of(tutti_sym x, const tutti_pool1d_options *options);
#define tutti_max_pool1d_of(x, ...)                                                                \
    TUTTI_AT(tutti_max_pool1d_of((x), TUTTI_OPTIONS(tutti_pool1d_options, __VA_ARGS__)))
TUTTI_API tutti_sym tutti_average_pool1d_of(tutti_sym x, const tutti_pool1d_options *options);
#define tutti_average_pool1d_of(x, ...)                                                            \
    TUTTI_AT(tutti_average_pool1d_of((x), TUTTI_OPTIONS(tutti_pool1d_options, __VA_ARGS__)))

/* Over all of height and width (or time): [batch, channels]. */
TUTTI_API tutti_sym tutti_global_max_pool2d_of(tutti_sym x);
#define tutti_global_max_pool2d_of(...) TUTTI_AT(tutti_global_max_pool2d_of(__VA_ARGS__))
TUTTI_API tutti_sym tutti_global_average_pool2d_of(tutti_sym x);
#define tutti_global_average_pool2d_of(...) TUTTI_AT(tutti_global_average_pool2d_of(__VA_ARGS__))
TUTTI_API tutti_sym tutti_global_max_pool1d_of(tutti_sym x);
#define tutti_global_max_pool1d_of(...) TUTTI_AT(tutti_global_max_pool1d_of(__VA_ARGS__))
TUTTI_API tutti_sym tutti_global_average_pool1d_of(tutti_sym x);
#define tutti_global_average_pool1d_of(...) TUTTI_AT(tutti_global_average_pool1d_of(__VA_ARGS__))

/* ---- normalisation ---- */

typedef struct tutti_normalize_options {
    size_t struct_size;
    double epsilon; /* 1e-3; of rms_norm 1e-6 */
} tutti_normalize_options;

/* Training form: y = (x - mean) / sqrt(variance + epsilon) * scale + offset with mean and
 * (population) variance over all axes but the last. scale, offset: [channels]. Outputs y, mean,
 * variance: tutti_output_of(y, 1), tutti_output_of(y, 2). */
TUTTI_API tutti_sym tutti_batch_norm_of(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                        const tutti_normalize_options *options);
#define tutti_batch_norm_of(x, scale, offset, ...)                                                 \
    TUTTI_AT(tutti_batch_norm_of((x), (scale), (offset),                                           \
                                 TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same with a given mean and variance, as inference does. */
TUTTI_API tutti_sym tutti_batch_norm_inference_of(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                                  tutti_sym mean, tutti_sym variance,
                                                  const tutti_normalize_options *options);
#define tutti_batch_norm_inference_of(x, scale, offset, mean, variance, ...)                       \
    TUTTI_AT(tutti_batch_norm_inference_of((x), (scale), (offset), (mean), (variance),             \
                                           TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same formula with mean and variance over the last axis, row by row. */
TUTTI_API tutti_sym tutti_layer_norm_of(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                        const tutti_normalize_options *options);
#define tutti_layer_norm_of(x, scale, offset, ...)                                                 \
    TUTTI_AT(tutti_layer_norm_of((x), (scale), (offset),                                           \
                                 TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same with mean and variance over each of `groups` parts of the channels and all of height and
 * width (or whatever stands between batch and channels), image by image. The number of channels
 * must be known. */
TUTTI_API tutti_sym tutti_group_norm_of(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                        int64_t groups, const tutti_normalize_options *options);
#define tutti_group_norm_of(x, scale, offset, groups, ...)                                         \
    TUTTI_AT(tutti_group_norm_of((x), (scale), (offset), (groups),                                 \
                                 TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* y = x / sqrt(mean(x^2) + epsilon) * scale, the mean over the last axis. */
TUTTI_API tutti_sym tutti_rms_norm_of(tutti_sym x, tutti_sym scale,
                                      const tutti_normalize_options *options);
#define tutti_rms_norm_of(x, scale, ...)                                                           \
    TUTTI_AT(tutti_rms_norm_of((x), (scale), TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))

/* ---- dropout, embedding ---- */

typedef struct tutti_dropout_options {
    size_t struct_size;
    int64_t seed;
    int64_t salt; /* which of a model's dropouts this is; by default a hash of the node's name */
} tutti_dropout_options;

/* y = x * keep / (1 - rate); each element is kept with probability 1 - rate. The mask is a function
 * of (seed, salt, counter, index of the element): `counter`, an i64 scalar, is the step;
 * TUTTI_NO_SYM takes the graph's own counter. */
TUTTI_API tutti_sym tutti_dropout_of(tutti_sym x, tutti_sym counter, double rate,
                                     const tutti_dropout_options *options);
#define tutti_dropout_of(x, counter, rate, ...)                                                    \
    TUTTI_AT(tutti_dropout_of((x), (counter), (rate),                                              \
                              TUTTI_OPTIONS(tutti_dropout_options, __VA_ARGS__)))

/* Rows of `table` [words, features] at integer `ids` of any shape: [ids…, features]. The gradient
 * of the table is sparse. An id that is no row fails the run. */
TUTTI_API tutti_sym tutti_embedding_lookup(tutti_sym table, tutti_sym ids);
#define tutti_embedding_lookup(...) TUTTI_AT(tutti_embedding_lookup(__VA_ARGS__))

/* ---- sequences ---- */

/* Recurrent networks over x [batch, time, features]; kernel [features, gates * units], recurrent
 * [units, gates * units]. Outputs stand at the time of their input, also in reverse (Keras's
 * go_backwards gives them in the order of processing). From a row's length on the state is copied
 * through and the output repeats it; lengths beyond the time mean all of it. */
typedef struct tutti_rnn_options {
    size_t struct_size;
    tutti_sym lengths; /* i32 or i64 [batch]; none: all rows are full */
    bool reverse;      /* from the last step to the first */
} tutti_rnn_options;

/* h = tanh(x kernel + h recurrent + bias); bias [units]. Outputs: 0 the sequence [batch, time,
 * units], 1 the final h [batch, units]. */
TUTTI_API tutti_sym tutti_simple_rnn_of(tutti_sym x, tutti_sym h, tutti_sym kernel,
                                        tutti_sym recurrent, tutti_sym bias,
                                        const tutti_rnn_options *options);
#define tutti_simple_rnn_of(x, h, kernel, recurrent, bias, ...)                                    \
    TUTTI_AT(tutti_simple_rnn_of((x), (h), (kernel), (recurrent), (bias),                          \
                                 TUTTI_OPTIONS(tutti_rnn_options, __VA_ARGS__)))
/* Gates z r h; with a = x kernel + bias[0], b = h recurrent + bias[1]:
 * z = sigmoid(az + bz), r = sigmoid(ar + br), n = tanh(ah + r * bh), h = z * h + (1 - z) * n
 * (Keras's reset_after). bias [2, 3 * units]. Outputs as above, and 2: what the gradient reuses. */
TUTTI_API tutti_sym tutti_gru_of(tutti_sym x, tutti_sym h, tutti_sym kernel, tutti_sym recurrent,
                                 tutti_sym bias, const tutti_rnn_options *options);
#define tutti_gru_of(x, h, kernel, recurrent, bias, ...)                                           \
    TUTTI_AT(tutti_gru_of((x), (h), (kernel), (recurrent), (bias),                                 \
                          TUTTI_OPTIONS(tutti_rnn_options, __VA_ARGS__)))
/* Gates i f c o of a = x kernel + h recurrent + bias: c = sigmoid(af) * c + sigmoid(ai) * tanh(ac),
 * h = sigmoid(ao) * tanh(c). bias [4 * units]. Outputs: 0 the sequence, 1 the final h, 2 the final
 * c, 3 what the gradient reuses. */
TUTTI_API tutti_sym tutti_lstm_of(tutti_sym x, tutti_sym h, tutti_sym c, tutti_sym kernel,
                                  tutti_sym recurrent, tutti_sym bias,
                                  const tutti_rnn_options *options);
#define tutti_lstm_of(x, h, c, kernel, recurrent, bias, ...)                                       \
    TUTTI_AT(tutti_lstm_of((x), (h), (c), (kernel), (recurrent), (bias),                           \
                           TUTTI_OPTIONS(tutti_rnn_options, __VA_ARGS__)))

typedef struct tutti_attention_options {
    size_t struct_size;
    tutti_sym mask;      /* added to the scores; broadcasts to [batch, heads, queries, keys] */
    bool causal;         /* query i sees keys 0 to first_query + i */
    int64_t first_query; /* position of query 0 among the keys */
    double scale;        /* 1 / sqrt(features) */
} tutti_attention_options;

/* softmax(scale * q k^T + mask) v over the keys; q [batch, heads, queries, features], k [batch,
 * heads, keys, features], v [batch, heads, keys, values]. The matrix of scores is never whole in
 * memory. A query that sees no key (all -inf) gives zeros. Output 1: the logarithm of each query's
 * sum of exponentials. Second derivatives do hold the whole matrix. */
TUTTI_API tutti_sym tutti_attention_of(tutti_sym q, tutti_sym k, tutti_sym v,
                                       const tutti_attention_options *options);
#define tutti_attention_of(q, k, v, ...)                                                           \
    TUTTI_AT(tutti_attention_of((q), (k), (v), TUTTI_OPTIONS(tutti_attention_options, __VA_ARGS__)))

/* ---- softmax and losses ---- */

/* exp(x) / sum(exp(x)) along the last axis, or along `axis`. */
TUTTI_API tutti_sym tutti_softmax(tutti_sym x);
#define tutti_softmax(...) TUTTI_AT(tutti_softmax(__VA_ARGS__))
TUTTI_API tutti_sym tutti_softmax_along(tutti_sym x, int axis);
#define tutti_softmax_along(...) TUTTI_AT(tutti_softmax_along(__VA_ARGS__))
/* x - log(sum(exp(x))). */
TUTTI_API tutti_sym tutti_log_softmax(tutti_sym x);
#define tutti_log_softmax(...) TUTTI_AT(tutti_log_softmax(__VA_ARGS__))
TUTTI_API tutti_sym tutti_log_softmax_along(tutti_sym x, int axis);
#define tutti_log_softmax_along(...) TUTTI_AT(tutti_log_softmax_along(__VA_ARGS__))

/* One loss a row: -sum(labels * log_softmax(logits)) over the last axis; labels are probabilities
 * of logits' shape. */
TUTTI_API tutti_sym tutti_softmax_cross_entropy(tutti_sym logits, tutti_sym labels);
#define tutti_softmax_cross_entropy(...) TUTTI_AT(tutti_softmax_cross_entropy(__VA_ARGS__))
/* One loss a row: -log_softmax(logits)[label]; labels are integers of logits' shape without its
 * last axis. A label that is no class fails the run. Mind the order: labels first, as losses take
 * it. */
TUTTI_API tutti_sym tutti_sparse_cross_entropy_of(tutti_sym labels, tutti_sym logits);
#define tutti_sparse_cross_entropy_of(...) TUTTI_AT(tutti_sparse_cross_entropy_of(__VA_ARGS__))
/* One loss an element: -(z log(sigmoid(x)) + (1 - z) log(1 - sigmoid(x))), stable for any x. */
TUTTI_API tutti_sym tutti_sigmoid_cross_entropy(tutti_sym logits, tutti_sym labels);
#define tutti_sigmoid_cross_entropy(...) TUTTI_AT(tutti_sigmoid_cross_entropy(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
