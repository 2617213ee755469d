/* common.h: what several layers share. */
#ifndef TUTTI_NN_LAYERS_COMMON_H
#define TUTTI_NN_LAYERS_COMMON_H

#include <string.h>

#include "nn/model/layer.h"
#include "ops/build.h"
#include "tutti/layers.h"

/* Element i of a pair or triple of sizes: {3} means {3, 3}, nothing means the fallback. */
static inline int64_t tutti__pair(const int64_t *pair, int i, int64_t fallback)
{
    if (pair[i] > 0)
        return pair[i];
    return pair[0] > 0 ? pair[0] : fallback;
}

static inline const char *tutti__text_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

static inline double tutti__number_or(double number, double fallback)
{
    return number != 0 ? number : fallback;
}

/* True when input 0 is floats of that rank; else the mistake is noted: "takes images [batch, …] of
 * floats, the input is …". */
bool tutti__layer_takes(tutti_layer_call *call, int rank, const char *what);
#define TUTTI_IMAGES "images [batch, height, width, channels]"
#define TUTTI_SEQUENCES "sequences [batch, time, features]"
#define TUTTI_VOLUMES "volumes [batch, depth, height, width, channels]"

/* True when dimensions `first` and on of input 0 are known; else the mistake is noted. */
bool tutti__layer_knows(tutti_layer_call *call, int first);

/* [size] of one value. */
tutti_sym tutti__layer_full(tutti_layer_call *call, tutti_dtype dtype, double value, int64_t size);

/* [batch, size] of zeros, with the batch of x. */
tutti_sym tutti__layer_zeros(tutti_sym x, int64_t size);

/* In training x with elements dropped; what is dropped follows from the layer's name and `which`,
 * not from the graph it stands in. A setting `seed` of 0 takes the model's. */
tutti_sym tutti__layer_dropout(tutti_layer_call *call, tutti_sym x, double rate, int64_t seed,
                               const char *which);
/* The same for all positions along the axes from `first` to before `end`. */
tutti_sym tutti__layer_dropout_shared(tutti_layer_call *call, tutti_sym x, double rate,
                                      int64_t seed, int first, int end);

/* Mask of input i; TUTTI_NO_SYM: none. All masks of the inputs joined by "and". */
tutti_sym tutti__layer_mask(const tutti_layer_call *call, int i);
tutti_sym tutti__layer_masks_and(const tutti_layer_call *call);

/* y = activation(x kernel + bias) with the layer's weights "<name>/kernel" and "<name>/bias"
 * (without a name "kernel", "bias"); kernel [in, out]. */
typedef struct tutti_affine {
    const char *name;
    int64_t units;
    bool no_bias;
    const char *activation;
    const char *kernel_initializer, *bias_initializer;
    const char *dims, *bias_dims; /* names of the dimensions of the kernel and of the bias */
} tutti_affine;
tutti_sym tutti__layer_affine(tutti_layer_call *call, tutti_sym x, const tutti_affine *affine);

/* Attention with the layer's weights under `prefix` ("" or "attention/"). */
typedef struct tutti_heads {
    const char *prefix;
    tutti_sym query, value, key;
    tutti_sym hidden[3]; /* bool masks [batch, keys], [batch, keys], [batch, queries, keys] */
    int64_t output_dim;
} tutti_heads;
tutti_sym tutti__layer_attention(tutti_layer_call *call, const tutti_heads *heads,
                                 const tutti_multi_head_attention_settings *s);

/* Applies a merging kind to symbols, masks aside. */
tutti_sym tutti__merge_fold(int count, const tutti_sym *inputs,
                            tutti_sym (*of_two)(tutti_sym a, tutti_sym b));

/* A list of numbers in a text, "0.1,0.2", as f32 [count]. */
tutti_status tutti__numbers_parse(const char *text, tutti_tensor **ret);

/* A setting of a layer that no model has been built with yet; `what` for the message. */
tutti_status tutti__layer_open(const tutti_layer *layer, const char *kind, const char *what);

/* ---- recurrent networks ---- */

/* What makes a kind of them; `run` gives output 0 and the number of states behind it. */
typedef struct tutti_recurrence {
    int gates, states;
    bool two_biases; /* [2, gates units] */
    tutti_sym (*run)(tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                     const tutti_rnn_options *options);
} tutti_recurrence;
tutti_sym tutti__layer_recurrent(tutti_layer_call *call, const tutti_recurrence *kind);
extern const tutti_field tutti__rnn_fields[];

/* ---- fields that kinds share ---- */

extern const tutti_field tutti__pool3d_fields[], tutti__pool2d_fields[], tutti__pool1d_fields[],
    tutti__global_pool_fields[], tutti__dims_fields[], tutti__border1d_fields[],
    tutti__border2d_fields[], tutti__dropout_fields[], tutti__norm_fields[];

#endif
