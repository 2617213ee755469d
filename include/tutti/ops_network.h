/* ops_network.h: the operators of neural networks.
 *
 * Images are [batch, height, width, channels]; convolution kernels [height, width, channels /
 * groups, filters]; sequences [batch, time, features]. Floating inputs of one call share one
 * element type: f32, f64, f16 or bf16. Options are given by name, and zero means the default:
 *
 *     y = tutti_nn_conv2d(x, kernel, .strides = {2, 2}, .padding = "same");
 *
 * Every function adds nodes and returns the first output; a mistake gives a poison symbol, see
 * graph.h. Names that a layer has too begin with nn: tutti_conv2d(32, 3) is a layer that makes its
 * weights, tutti_nn_conv2d(x, kernel) the operator. */
#ifndef TUTTI_OPS_NETWORK_H
#define TUTTI_OPS_NETWORK_H

#include "tutti/op.h"
#include "tutti/ops_shape.h"

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
 * kernel[i,j,c,f]. Kernels [height, width, channels / groups, filters]. Kernels of 3 by 3 with
 * stride 1 may be computed by Winograd's tiles of 4 by 4 outputs, as in other libraries: errors are
 * then relative to the largest of the 6 by 6 inputs of a tile, not of a window, and an input that
 * is not finite makes the whole tile NaN. TUTTI_WINOGRAD=0 computes term by term. */
TUTTI_API tutti_sym tutti_nn_conv2d_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv2d_options *options);
#define tutti_nn_conv2d(x, kernel, ...)                                                            \
    TUTTI_AT(tutti_nn_conv2d_with((x), (kernel), TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

/* Each channel by itself. Kernels [height, width, channels, multiplier], whose dimensions are
 * known; channel c gives outputs c * multiplier and on. `groups` is not used. */
TUTTI_API tutti_sym tutti_nn_depthwise_conv2d_with(tutti_sym x, tutti_sym kernel,
                                                   const tutti_conv2d_options *options);
#define tutti_nn_depthwise_conv2d(x, kernel, ...)                                                  \
    TUTTI_AT(tutti_nn_depthwise_conv2d_with((x), (kernel),                                         \
                                            TUTTI_OPTIONS(tutti_conv2d_options, __VA_ARGS__)))

typedef struct tutti_conv1d_options {
    size_t struct_size;
    int64_t strides;     /* 1 */
    int64_t dilations;   /* 1 */
    const char *padding; /* "valid", "same", "explicit", "causal": y[t] sees x[<= t] only */
    int64_t pads[2];     /* before, after */
    int64_t groups;      /* 1 */
} tutti_conv1d_options;

/* Over [batch, time, channels] with kernels [time, channels / groups, filters]. */
TUTTI_API tutti_sym tutti_nn_conv1d_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv1d_options *options);
#define tutti_nn_conv1d(x, kernel, ...)                                                            \
    TUTTI_AT(tutti_nn_conv1d_with((x), (kernel), TUTTI_OPTIONS(tutti_conv1d_options, __VA_ARGS__)))

/* Volumes [batch, depth, height, width, channels]. */
typedef struct tutti_conv3d_options {
    size_t struct_size;
    int64_t strides[3];   /* {1, 1, 1} */
    int64_t dilations[3]; /* {1, 1, 1} */
    const char *padding;  /* "valid", "same", "explicit" */
    int64_t pads[6];      /* front, back, top, bottom, left, right */
    int64_t groups;       /* 1 */
} tutti_conv3d_options;

/* The same over depth too. Kernels [depth, height, width, channels / groups, filters]. */
TUTTI_API tutti_sym tutti_nn_conv3d_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv3d_options *options);
#define tutti_nn_conv3d(x, kernel, ...)                                                            \
    TUTTI_AT(tutti_nn_conv3d_with((x), (kernel), TUTTI_OPTIONS(tutti_conv3d_options, __VA_ARGS__)))

/* Transposed convolution, the gradient of a convolution's input as a layer of its own: every
 * element of x adds itself times the kernel to a window of y. Kernels [height, width,
 * filters / groups, channels]. y has  (x - 1) * stride + (kernel - 1) * dilation + 1 - pads + more
 * rows, where `more` is output_padding; with padding "same"  x * stride;  or those of `size`. */
typedef struct tutti_conv2d_transpose_options {
    size_t struct_size;
    int64_t strides[2];        /* {1, 1} */
    int64_t dilations[2];      /* {1, 1} */
    const char *padding;       /* "valid"; "same"; "explicit" when pads are given */
    int64_t pads[4];           /* taken off y: top, bottom, left, right */
    int64_t groups;            /* 1 */
    int64_t output_padding[2]; /* rows and columns more below and right, less than the stride */
    int64_t size[2];           /* of y, where given */
} tutti_conv2d_transpose_options;

TUTTI_API tutti_sym tutti_nn_conv2d_transpose_with(tutti_sym x, tutti_sym kernel,
                                                   const tutti_conv2d_transpose_options *options);
#define tutti_nn_conv2d_transpose(x, kernel, ...)                                                  \
    TUTTI_AT(tutti_nn_conv2d_transpose_with(                                                       \
        (x), (kernel), TUTTI_OPTIONS(tutti_conv2d_transpose_options, __VA_ARGS__)))

typedef struct tutti_conv1d_transpose_options {
    size_t struct_size;
    int64_t strides;        /* 1 */
    int64_t dilations;      /* 1 */
    const char *padding;    /* "valid", "same", "explicit" */
    int64_t pads[2];        /* before, after */
    int64_t groups;         /* 1 */
    int64_t output_padding; /* more at the end */
    int64_t size;           /* of y, where given */
} tutti_conv1d_transpose_options;

/* Over [batch, time, channels] with kernels [time, filters / groups, channels]. */
TUTTI_API tutti_sym tutti_nn_conv1d_transpose_with(tutti_sym x, tutti_sym kernel,
                                                   const tutti_conv1d_transpose_options *options);
#define tutti_nn_conv1d_transpose(x, kernel, ...)                                                  \
    TUTTI_AT(tutti_nn_conv1d_transpose_with(                                                       \
        (x), (kernel), TUTTI_OPTIONS(tutti_conv1d_transpose_options, __VA_ARGS__)))

typedef struct tutti_conv3d_transpose_options {
    size_t struct_size;
    int64_t strides[3];        /* {1, 1, 1} */
    int64_t dilations[3];      /* {1, 1, 1} */
    const char *padding;       /* "valid", "same", "explicit" */
    int64_t pads[6];           /* front, back, top, bottom, left, right */
    int64_t groups;            /* 1 */
    int64_t output_padding[3]; /* more behind, below and right */
    int64_t size[3];           /* of y, where given */
} tutti_conv3d_transpose_options;

/* Over [batch, depth, height, width, channels] with kernels [depth, height, width,
 * filters / groups, channels]. */
TUTTI_API tutti_sym tutti_nn_conv3d_transpose_with(tutti_sym x, tutti_sym kernel,
                                                   const tutti_conv3d_transpose_options *options);
#define tutti_nn_conv3d_transpose(x, kernel, ...)                                                  \
    TUTTI_AT(tutti_nn_conv3d_transpose_with(                                                       \
        (x), (kernel), TUTTI_OPTIONS(tutti_conv3d_transpose_options, __VA_ARGS__)))

/* ---- pooling ---- */

/* Padding never counts: not as a maximum, not in a mean. */
typedef struct tutti_pool2d_options {
    size_t struct_size;
    int64_t pool_size[2]; /* {2, 2} */
    int64_t strides[2];   /* the window */
    const char *padding;  /* "valid", "same", "explicit" */
    int64_t pads[4];      /* top, bottom, left, right; each less than the window */
} tutti_pool2d_options;

/* The maximum of each window; of equal ones the first gets the gradient. */
TUTTI_API tutti_sym tutti_nn_max_pool2d_with(tutti_sym x, const tutti_pool2d_options *options);
#define tutti_nn_max_pool2d(x, ...)                                                                \
    TUTTI_AT(tutti_nn_max_pool2d_with((x), TUTTI_OPTIONS(tutti_pool2d_options, __VA_ARGS__)))
/* The mean of each window. */
TUTTI_API tutti_sym tutti_nn_average_pool2d_with(tutti_sym x, const tutti_pool2d_options *options);
#define tutti_nn_average_pool2d(x, ...)                                                            \
    TUTTI_AT(tutti_nn_average_pool2d_with((x), TUTTI_OPTIONS(tutti_pool2d_options, __VA_ARGS__)))

typedef struct tutti_pool1d_options {
    size_t struct_size;
    int64_t pool_size;   /* 2 */
    int64_t strides;     /* the window */
    const char *padding; /* "valid", "same", "explicit" */
    int64_t pads[2];     /* before, after */
} tutti_pool1d_options;

/* The same over [batch, time, channels]. */
TUTTI_API tutti_sym tutti_nn_max_pool1d_with(tutti_sym x, const tutti_pool1d_options *options);
#define tutti_nn_max_pool1d(x, ...)                                                                \
    TUTTI_AT(tutti_nn_max_pool1d_with((x), TUTTI_OPTIONS(tutti_pool1d_options, __VA_ARGS__)))
TUTTI_API tutti_sym tutti_nn_average_pool1d_with(tutti_sym x, const tutti_pool1d_options *options);
#define tutti_nn_average_pool1d(x, ...)                                                            \
    TUTTI_AT(tutti_nn_average_pool1d_with((x), TUTTI_OPTIONS(tutti_pool1d_options, __VA_ARGS__)))

/* Over all of height and width (or time): [batch, channels]. */
TUTTI_API tutti_sym tutti_nn_global_max_pool2d(tutti_sym x);
#define tutti_nn_global_max_pool2d(...) TUTTI_AT(tutti_nn_global_max_pool2d(__VA_ARGS__))
TUTTI_API tutti_sym tutti_nn_global_average_pool2d(tutti_sym x);
#define tutti_nn_global_average_pool2d(...) TUTTI_AT(tutti_nn_global_average_pool2d(__VA_ARGS__))
TUTTI_API tutti_sym tutti_nn_global_max_pool1d(tutti_sym x);
#define tutti_nn_global_max_pool1d(...) TUTTI_AT(tutti_nn_global_max_pool1d(__VA_ARGS__))
TUTTI_API tutti_sym tutti_nn_global_average_pool1d(tutti_sym x);
#define tutti_nn_global_average_pool1d(...) TUTTI_AT(tutti_nn_global_average_pool1d(__VA_ARGS__))

/* The same over volumes [batch, depth, height, width, channels], of which only the batch may be
 * unknown. */
typedef struct tutti_pool3d_options {
    size_t struct_size;
    int64_t pool_size[3]; /* {2, 2, 2} */
    int64_t strides[3];   /* the window */
    const char *padding;  /* "valid", "same", "explicit" */
    int64_t pads[6];      /* front, back, top, bottom, left, right; each less than the window */
} tutti_pool3d_options;

TUTTI_API tutti_sym tutti_nn_max_pool3d_with(tutti_sym x, const tutti_pool3d_options *options);
#define tutti_nn_max_pool3d(x, ...)                                                                \
    TUTTI_AT(tutti_nn_max_pool3d_with((x), TUTTI_OPTIONS(tutti_pool3d_options, __VA_ARGS__)))
TUTTI_API tutti_sym tutti_nn_average_pool3d_with(tutti_sym x, const tutti_pool3d_options *options);
#define tutti_nn_average_pool3d(x, ...)                                                            \
    TUTTI_AT(tutti_nn_average_pool3d_with((x), TUTTI_OPTIONS(tutti_pool3d_options, __VA_ARGS__)))
/* The whole volume as one window. */
TUTTI_API tutti_sym tutti_nn_global_max_pool3d(tutti_sym x);
#define tutti_nn_global_max_pool3d(...) TUTTI_AT(tutti_nn_global_max_pool3d(__VA_ARGS__))
TUTTI_API tutti_sym tutti_nn_global_average_pool3d(tutti_sym x);
#define tutti_nn_global_average_pool3d(...) TUTTI_AT(tutti_nn_global_average_pool3d(__VA_ARGS__))

/* ---- resizing ---- */

/* Interpolation axis by axis, as ONNX's Resize does it. Numbers stand one for each axis, and sizes
 * or scales must be given:
 *
 *     y = tutti_resize(x, .sizes = {224, 224}, .mode = "linear");
 *     y = tutti_resize(x, .scales = {2, 2}, .coordinates = "asymmetric", .nearest_mode = "floor");
 */
typedef struct tutti_resize_options {
    size_t struct_size;
    tutti_axes axes;               /* by default all between batch and channels */
    int64_t sizes[TUTTI_MAX_RANK]; /* of the output */
    double scales[TUTTI_MAX_RANK]; /* output = floor(input * scale); with sizes: for coordinates */
    const char *mode;              /* "nearest" (any element type), "linear", "cubic" */
    /* Where an output stands in the input: "half_pixel" (centres of pixels), "align_corners",
     * "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize" */
    const char *coordinates;
    const char *nearest_mode;       /* "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" */
    double cubic_coefficient;       /* -0.75 */
    bool exclude_outside;           /* beyond the ends there is nothing; else the end repeats */
    bool antialias;                 /* smaller: all inputs count */
    const char *aspect;             /* "stretch"; "not_larger" or "not_smaller" than sizes */
    double roi[2 * TUTTI_MAX_RANK]; /* of tf_crop_and_resize: starts, then ends, as parts of 1 */
    double extrapolation_value;     /* of tf_crop_and_resize, beyond the input */
} tutti_resize_options;

TUTTI_API tutti_sym tutti_resize_with(tutti_sym x, const tutti_resize_options *options);
#define tutti_resize(x, ...)                                                                       \
    TUTTI_AT(tutti_resize_with((x), TUTTI_OPTIONS(tutti_resize_options, __VA_ARGS__)))

typedef struct tutti_grid_sample_options {
    size_t struct_size;
    const char *mode;    /* "linear", "nearest", "cubic" */
    const char *padding; /* beyond the image: "zeros", "border" (its edge), "reflection" */
    bool align_corners;  /* -1 and 1 are the centres of the outermost pixels, not their edges */
} tutti_grid_sample_options;

/* x [batch, height, width, channels] at the places grid [batch, rows, columns, 2], whose pairs are
 * (x, y), each from -1 to 1: [batch, rows, columns, channels]. Also along one axis, with places
 * (x), and over volumes, with places (x, y, z). */
TUTTI_API tutti_sym tutti_grid_sample_with(tutti_sym x, tutti_sym grid,
                                           const tutti_grid_sample_options *options);
#define tutti_grid_sample(x, grid, ...)                                                            \
    TUTTI_AT(tutti_grid_sample_with((x), (grid),                                                   \
                                    TUTTI_OPTIONS(tutti_grid_sample_options, __VA_ARGS__)))

/* ---- detection ---- */

typedef struct tutti_non_max_suppression_options {
    size_t struct_size;
    int64_t max_output;       /* boxes of a class at most; 0: none */
    double iou_threshold;     /* overlap (intersection / union) above which a box goes; 0 */
    double score_threshold;   /* what scores must exceed, */
    bool has_score_threshold; /* where this is set */
    bool center_point_box;    /* boxes are [x, y, width, height] round their centre */
} tutti_non_max_suppression_options;

/* Of boxes [batch, boxes, 4], by any two opposite corners [y, x, y, x], with scores [batch,
 * classes, boxes]: for each class those that do not overlap one of a higher score. The result, i64
 * [selected, 3], has a row [image, class, box] for each, as many as the data says. */
TUTTI_API tutti_sym tutti_non_max_suppression_with(
    tutti_sym boxes, tutti_sym scores, const tutti_non_max_suppression_options *options);
#define tutti_non_max_suppression(boxes, scores, ...)                                              \
    TUTTI_AT(tutti_non_max_suppression_with(                                                       \
        (boxes), (scores), TUTTI_OPTIONS(tutti_non_max_suppression_options, __VA_ARGS__)))

typedef struct tutti_roi_align_options {
    size_t struct_size;
    int64_t size[2];        /* {1, 1}: rows and columns of bins */
    int64_t sampling_ratio; /* places along each side of a bin; 0: as many as it has pixels */
    double spatial_scale;   /* 1: of regions to x's pixels */
    const char *mode;       /* "mean", or "max" of pixels times their weights, as ONNX has it */
    bool output_half_pixel; /* regions are not moved by half a pixel, and are at least one long */
} tutti_roi_align_options;

/* Regions [regions, 4], corners (x1, y1, x2, y2), of x [batch, height, width, channels], each in
 * the image that images [regions] (i32 or i64) names: [regions, rows, columns, channels]. A region
 * of no image fails the run. */
TUTTI_API tutti_sym tutti_roi_align_with(tutti_sym x, tutti_sym regions, tutti_sym images,
                                         const tutti_roi_align_options *options);
#define tutti_roi_align(x, regions, images, ...)                                                   \
    TUTTI_AT(tutti_roi_align_with((x), (regions), (images),                                        \
                                  TUTTI_OPTIONS(tutti_roi_align_options, __VA_ARGS__)))

/* ---- normalisation ---- */

typedef struct tutti_normalize_options {
    size_t struct_size;
    double epsilon; /* 1e-3; of rms_norm 1e-6; never negative */
} tutti_normalize_options;

/* Training form: y = (x - mean) / sqrt(variance + epsilon) * scale + offset with mean and
 * (population) variance over all axes but the last. scale, offset: [channels]. Outputs y, mean,
 * variance: tutti_sym_output(y, 1), tutti_sym_output(y, 2). */
TUTTI_API tutti_sym tutti_nn_batch_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                             const tutti_normalize_options *options);
#define tutti_nn_batch_norm(x, scale, offset, ...)                                                 \
    TUTTI_AT(tutti_nn_batch_norm_with((x), (scale), (offset),                                      \
                                      TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same with a given mean and variance, as inference does. */
TUTTI_API tutti_sym tutti_nn_batch_norm_inference_with(tutti_sym x, tutti_sym scale,
                                                       tutti_sym offset, tutti_sym mean,
                                                       tutti_sym variance,
                                                       const tutti_normalize_options *options);
#define tutti_nn_batch_norm_inference(x, scale, offset, mean, variance, ...)                       \
    TUTTI_AT(                                                                                      \
        tutti_nn_batch_norm_inference_with((x), (scale), (offset), (mean), (variance),             \
                                           TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same formula with mean and variance over the last axis, row by row. */
TUTTI_API tutti_sym tutti_nn_layer_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                             const tutti_normalize_options *options);
#define tutti_nn_layer_norm(x, scale, offset, ...)                                                 \
    TUTTI_AT(tutti_nn_layer_norm_with((x), (scale), (offset),                                      \
                                      TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* The same with mean and variance over each of `groups` parts of the channels and all of height and
 * width (or whatever stands between batch and channels), image by image. The number of channels
 * must be known. */
TUTTI_API tutti_sym tutti_nn_group_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                             int64_t groups,
                                             const tutti_normalize_options *options);
#define tutti_nn_group_norm(x, scale, offset, groups, ...)                                         \
    TUTTI_AT(tutti_nn_group_norm_with((x), (scale), (offset), (groups),                            \
                                      TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))
/* y = x / sqrt(mean(x^2) + epsilon) * scale, the mean over the last axis. */
TUTTI_API tutti_sym tutti_nn_rms_norm_with(tutti_sym x, tutti_sym scale,
                                           const tutti_normalize_options *options);
#define tutti_nn_rms_norm(x, scale, ...)                                                           \
    TUTTI_AT(                                                                                      \
        tutti_nn_rms_norm_with((x), (scale), TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))

/* The same with mean and variance over each channel of each example by itself; x has at least one
 * axis between batch and channels. Epsilon is 1e-5. */
TUTTI_API tutti_sym tutti_nn_instance_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                                const tutti_normalize_options *options);
#define tutti_nn_instance_norm(x, scale, offset, ...)                                              \
    TUTTI_AT(tutti_nn_instance_norm_with((x), (scale), (offset),                                   \
                                         TUTTI_OPTIONS(tutti_normalize_options, __VA_ARGS__)))

typedef struct tutti_lrn_options {
    size_t struct_size;
    double alpha; /* 1e-4 */
    double beta;  /* 0.75 */
    double bias;  /* 1 */
} tutti_lrn_options;

/* Local response normalisation, y[c] = x[c] / (bias + alpha / size * s[c])^beta, where s[c] is the
 * sum of x^2 over the channels c - floor((size - 1) / 2) to c + ceil((size - 1) / 2). The number of
 * channels must be known. */
TUTTI_API tutti_sym tutti_lrn_with(tutti_sym x, int64_t size, const tutti_lrn_options *options);
#define tutti_lrn(x, size, ...)                                                                    \
    TUTTI_AT(tutti_lrn_with((x), (size), TUTTI_OPTIONS(tutti_lrn_options, __VA_ARGS__)))

/* ---- dropout, embedding ---- */

typedef struct tutti_dropout_options {
    size_t struct_size;
    int64_t seed;
    int64_t salt; /* which of a model's dropouts this is; by default a hash of the node's name */
    tutti_sym counter; /* the step, an i64 scalar; by default the graph's own counter */
} tutti_dropout_options;

/* y = x * keep / (1 - rate); each element is kept with probability 1 - rate. The mask is a function
 * of (seed, salt, counter, index of the element). */
TUTTI_API tutti_sym tutti_nn_dropout_with(tutti_sym x, double rate,
                                          const tutti_dropout_options *options);
#define tutti_nn_dropout(x, ...)                                                                   \
    TUTTI_AT(tutti_nn_dropout_with((x), TUTTI_ONE_(tutti_dropout_options, __VA_ARGS__, )))

/* Rows of `table` [words, features] at integer `ids` of any shape: [ids…, features]. The gradient
 * of the table is sparse. An id that is no row fails the run. */
TUTTI_API tutti_sym tutti_embedding_lookup(tutti_sym table, tutti_sym ids);
#define tutti_embedding_lookup(...) TUTTI_AT(tutti_embedding_lookup(__VA_ARGS__))

/* ---- sequences ---- */

/* Recurrent networks over x [batch, time, features]; kernel [features, gates * units], recurrent
 * [units, gates * units]. Outputs stand at the time of their input, also in reverse (Keras's
 * go_backwards gives them in the order of processing). From a row's length on the state is copied
 * through and the output repeats it, and what x holds there, NaN too, touches no output and no
 * gradient; lengths beyond the time mean all. */
typedef struct tutti_rnn_options {
    size_t struct_size;
    tutti_sym lengths; /* i32 or i64 [batch]; none: all rows are full */
    bool reverse;      /* from the last step to the first */
} tutti_rnn_options;

/* h = tanh(x kernel + h recurrent + bias); bias [units]. Outputs: 0 the sequence [batch, time,
 * units], 1 the final h [batch, units]. */
TUTTI_API tutti_sym tutti_nn_simple_rnn_with(tutti_sym x, tutti_sym h, tutti_sym kernel,
                                             tutti_sym recurrent, tutti_sym bias,
                                             const tutti_rnn_options *options);
#define tutti_nn_simple_rnn(x, h, kernel, recurrent, bias, ...)                                    \
    TUTTI_AT(tutti_nn_simple_rnn_with((x), (h), (kernel), (recurrent), (bias),                     \
                                      TUTTI_OPTIONS(tutti_rnn_options, __VA_ARGS__)))
/* Gates z r h; with a = x kernel + bias[0], b = h recurrent + bias[1]:
 * z = sigmoid(az + bz), r = sigmoid(ar + br), n = tanh(ah + r * bh), h = z * h + (1 - z) * n
 * (Keras's reset_after). bias [2, 3 * units]. Outputs as above, and 2: what the gradient reuses. */
TUTTI_API tutti_sym tutti_nn_gru_with(tutti_sym x, tutti_sym h, tutti_sym kernel,
                                      tutti_sym recurrent, tutti_sym bias,
                                      const tutti_rnn_options *options);
#define tutti_nn_gru(x, h, kernel, recurrent, bias, ...)                                           \
    TUTTI_AT(tutti_nn_gru_with((x), (h), (kernel), (recurrent), (bias),                            \
                               TUTTI_OPTIONS(tutti_rnn_options, __VA_ARGS__)))
/* Gates i f c o of a = x kernel + h recurrent + bias: c = sigmoid(af) * c + sigmoid(ai) * tanh(ac),
 * h = sigmoid(ao) * tanh(c). bias [4 * units]. Outputs: 0 the sequence, 1 the final h, 2 the final
 * c, 3 what the gradient reuses. */
TUTTI_API tutti_sym tutti_nn_lstm_with(tutti_sym x, tutti_sym h, tutti_sym c, tutti_sym kernel,
                                       tutti_sym recurrent, tutti_sym bias,
                                       const tutti_rnn_options *options);
#define tutti_nn_lstm(x, h, c, kernel, recurrent, bias, ...)                                       \
    TUTTI_AT(tutti_nn_lstm_with((x), (h), (c), (kernel), (recurrent), (bias),                      \
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
 * memory. A query that sees no key (all -inf) gives zeros. Mask with -inf: where a number like -1e9
 * stands at all keys of a query, nothing is left of the scores beside it, and the query takes the
 * mean of all values. Keys that a causal query does not see, and values that have no weight, do not
 * touch it, infinite or NaN though they be. Output 1: the logarithm of each query's sum of
 * exponentials. Second derivatives do hold the whole matrix. */
TUTTI_API tutti_sym tutti_nn_attention_with(tutti_sym q, tutti_sym k, tutti_sym v,
                                            const tutti_attention_options *options);
#define tutti_nn_attention(q, k, v, ...)                                                           \
    TUTTI_AT(tutti_nn_attention_with((q), (k), (v),                                                \
                                     TUTTI_OPTIONS(tutti_attention_options, __VA_ARGS__)))

/* ---- softmax and losses ---- */

/* exp(x) / sum(exp(x)) along the last axis, or another: tutti_softmax(x, .axes = TUTTI_AXES(1)). */
typedef struct tutti_softmax_options {
    size_t struct_size;
    tutti_axes axes; /* none or one */
} tutti_softmax_options;
TUTTI_API tutti_sym tutti_softmax_with(tutti_sym x, const tutti_softmax_options *options);
#define tutti_softmax(...)                                                                         \
    TUTTI_AT(tutti_softmax_with(TUTTI_ONE_(tutti_softmax_options, __VA_ARGS__, )))
/* x - log(sum(exp(x))). */
TUTTI_API tutti_sym tutti_log_softmax_with(tutti_sym x, const tutti_softmax_options *options);
#define tutti_log_softmax(...)                                                                     \
    TUTTI_AT(tutti_log_softmax_with(TUTTI_ONE_(tutti_softmax_options, __VA_ARGS__, )))

/* One loss a row: -sum(labels * log_softmax(logits)) over the last axis; labels are probabilities
 * of logits' shape. */
TUTTI_API tutti_sym tutti_nn_softmax_cross_entropy(tutti_sym labels, tutti_sym logits);
#define tutti_nn_softmax_cross_entropy(...) TUTTI_AT(tutti_nn_softmax_cross_entropy(__VA_ARGS__))
/* One loss a row: -log_softmax(logits)[label]; labels are integers of logits' shape without its
 * last axis. A label that is no class fails the run. */
TUTTI_API tutti_sym tutti_nn_sparse_cross_entropy(tutti_sym labels, tutti_sym logits);
#define tutti_nn_sparse_cross_entropy(...) TUTTI_AT(tutti_nn_sparse_cross_entropy(__VA_ARGS__))
/* One loss an element: -(z log(sigmoid(x)) + (1 - z) log(1 - sigmoid(x))), stable for any x. */
TUTTI_API tutti_sym tutti_nn_sigmoid_cross_entropy(tutti_sym labels, tutti_sym logits);
#define tutti_nn_sigmoid_cross_entropy(...) TUTTI_AT(tutti_nn_sigmoid_cross_entropy(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
