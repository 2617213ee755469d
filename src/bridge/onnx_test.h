/* onnx_test.h: networks to export, for the unit tests (there and back) and for
 * tests/peers/onnx.c (the same outputs in onnxruntime). Each builds a model and gives inputs for
 * it. */
#ifndef TUTTI_BRIDGE_ONNX_TEST_H
#define TUTTI_BRIDGE_ONNX_TEST_H

#include <math.h>

#include "tutti/onnx.h"
#include "tutti/tutti.h"

typedef struct onnx_case {
    tutti_model *model;
    int inputs, outputs;
    tutti_tensor *tensors[4]; /* inputs; the caller's to release */
} onnx_case;

typedef struct onnx_network {
    const char *name;
    void (*make)(tutti_job *job, onnx_case *ret);
} onnx_network;

/* Values in [-1, 1), or whole numbers in [0, below). */
static inline tutti_tensor *onnx_values(tutti_dtype dtype, int64_t below, int rank,
                                        const int64_t *dims)
{
    static uint32_t state = 7;
    tutti_tensor *tensor = NULL;
    if (tutti_tensor_create(dtype, rank, dims, &tensor) != TUTTI_OK)
        return NULL;
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        state = state * 1664525u + 1013904223u;
        if (tutti_dtype_is_float(dtype))
            tutti_tensor_set(tensor, i, (double)(state >> 8) / (1 << 23) - 1);
        else
            tutti_tensor_set_int(tensor, i, (int64_t)(state >> 8) % below);
    }
    return tensor;
}
#define ONNX_FLOATS(...)                                                                           \
    onnx_values(TUTTI_F32, 0, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                (int64_t[]){__VA_ARGS__})
#define ONNX_IDS(dtype, below, ...)                                                                \
    onnx_values(dtype, below, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                (int64_t[]){__VA_ARGS__})

/* Adds a little to every weight of a model that is built, so that none is all zeros or ones. */
static inline tutti_status onnx_vary(tutti_model *model)
{
    for (int i = 0; i < tutti_weight_count(model); i++) {
        tutti_weight_info info;
        tutti_tensor *value;
        TUTTI_TRY(tutti_weight_at(model, i, &info));
        TUTTI_TRY(tutti_get_weight(model, info.name, &value));
        tutti_tensor *noise = onnx_values(TUTTI_F32, 0, info.type.rank, info.type.dims);
        for (int64_t k = 0; noise && k < tutti_tensor_count(value); k++)
            tutti_tensor_set(value, k,
                             tutti_tensor_get(value, k) + 0.1 * tutti_tensor_get(noise, k));
        tutti_status status = tutti_set_weight(model, info.name, value);
        tutti_tensor_release(value);
        tutti_tensor_release(noise);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static inline void onnx_one(onnx_case *ret, tutti_model *model, tutti_tensor *input)
{
    *ret = (onnx_case){.model = model, .inputs = 1, .outputs = 1, .tensors = {input}};
}

/* The lecture's network. */
static inline void onnx_mnist(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_sequential(job, tutti_conv2d(32, 3, .activation = TUTTI_RELU),
                                      tutti_max_pool2d(2), tutti_flatten(),
                                      tutti_dense(64, .activation = TUTTI_RELU), tutti_dense(10));
    onnx_one(ret, m, ONNX_FLOATS(3, 28, 28, 1));
}

/* The PyTorch tutorial's. */
static inline void onnx_cifar(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_sequential(
        job, tutti_rescaling(2, .offset = -1), tutti_conv2d(6, 5, .activation = TUTTI_RELU),
        tutti_max_pool2d(2), tutti_conv2d(16, 5, .activation = TUTTI_RELU), tutti_max_pool2d(2),
        tutti_flatten(), tutti_dense(120, .activation = TUTTI_RELU),
        tutti_dense(84, .activation = TUTTI_RELU), tutti_dense(10));
    onnx_one(ret, m, ONNX_FLOATS(3, 32, 32, 3));
}

static inline void onnx_tickets(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "tickets");
    tutti_sym title = tutti_input(m, "title", TUTTI_I32, TUTTI_ANY);
    tutti_sym body = tutti_input(m, "body", TUTTI_I32, TUTTI_ANY);
    tutti_sym tags = tutti_input(m, "tags", TUTTI_F32, 12);
    tutti_sym t = tutti_call(tutti_lstm(128), tutti_call(tutti_embedding(1000, 64), title));
    tutti_sym b = tutti_call(tutti_lstm(32), tutti_call(tutti_embedding(1000, 64), body));
    tutti_sym x = tutti_call(tutti_concatenate_layer(), t, b, tags);
    tutti_output(m, "priority", tutti_call(tutti_dense(1, .activation = TUTTI_SIGMOID), x));
    tutti_output(m, "department", tutti_call(tutti_dense(4), x));
    *ret = (onnx_case){.model = m,
                       .inputs = 3,
                       .outputs = 2,
                       .tensors = {ONNX_IDS(TUTTI_I32, 1000, 5, 20),
                                   ONNX_IDS(TUTTI_I32, 1000, 5, 100), ONNX_FLOATS(5, 12)}};
}

static inline void onnx_text(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_sequential(job, tutti_embedding(256, 32), tutti_position_embedding(64));
    for (int i = 0; i < 2; i++)
        tutti_model_add(
            m, tutti_transformer_block(4, .use_causal_mask = true, .normalize_first = true));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_dense(256));
    onnx_one(ret, m, ONNX_IDS(TUTTI_I64, 256, 2, 24));
}

/* The same with a length that is free, and hidden padding. */
static inline void onnx_text_free(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "text_free");
    tutti_sym x = tutti_input(m, "characters", TUTTI_I64, TUTTI_ANY);
    x = tutti_call(tutti_embedding(256, 32, .mask_zero = true), x);
    x = tutti_call(tutti_position_embedding(64), x);
    x = tutti_call(tutti_transformer_block(4, .use_causal_mask = true), x);
    tutti_output(m, "logits", tutti_call(tutti_dense(256), x));
    onnx_one(ret, m, ONNX_IDS(TUTTI_I64, 256, 2, 24));
    for (int64_t i = 18; i < 24; i++)
        tutti_tensor_set_int(ret->tensors[0], i, 0);
}

static inline tutti_sym onnx_normalised(tutti_sym x, int64_t filters, int64_t size, int64_t stride)
{
    x = tutti_call(
        tutti_conv2d(filters, size, .strides = {stride}, .padding = "same", .no_bias = true), x);
    return tutti_call(tutti_batch_norm(.moving_mean_initializer = "normal(0,0.3)",
                                       .moving_variance_initializer = "uniform(0.5,2)"),
                      x);
}

static inline tutti_sym onnx_block(tutti_sym x, int64_t filters, int64_t stride)
{
    tutti_sym y = tutti_relu(onnx_normalised(x, filters, 3, stride));
    y = onnx_normalised(y, filters, 3, 1);
    tutti_sym way = stride == 1 ? x : onnx_normalised(x, filters, 1, stride);
    return tutti_relu(tutti_add(way, y));
}

static inline void onnx_resnet(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "resnet");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 15, 14, 1);
    x = tutti_relu(onnx_normalised(x, 8, 3, 1));
    x = onnx_block(onnx_block(x, 16, 2), 16, 1);
    x = tutti_call(tutti_global_average_pool2d(), x);
    x = tutti_call(tutti_batch_norm(), tutti_call(tutti_dense(12), x));
    tutti_output(m, "y", tutti_call(tutti_softmax_layer(), tutti_call(tutti_dense(10), x)));
    onnx_one(ret, m, ONNX_FLOATS(3, 15, 14, 1));
}

/* Every kind of recurrence, both directions, masks, states. */
static inline void onnx_recurrent(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "recurrent");
    tutti_sym words = tutti_input(m, "words", TUTTI_I64, 9);
    tutti_sym x = tutti_call(tutti_embedding(50, 8, .mask_zero = true), words);
    tutti_sym both = tutti_call(tutti_gru(6, .bidirectional = true, .return_sequences = true,
                                          .bias_initializer = "uniform(-0.5,0.5)"),
                                x);
    tutti_sym one = tutti_call(
        tutti_lstm(5, .return_sequences = true, .bias_initializer = "uniform(-0.5,0.5)"), both);
    tutti_sym plain = tutti_call(tutti_embedding(50, 8), words);
    tutti_sym back =
        tutti_call(tutti_lstm(4, .go_backwards = true, .return_sequences = true), plain);
    tutti_sym simple = tutti_call(tutti_simple_rnn(3), plain);
    tutti_output(m, "sequence", one);
    tutti_output(m, "backwards", back);
    tutti_output(m, "last",
                 tutti_call(tutti_concatenate_layer(), simple, tutti_call(tutti_gru(4), one)));
    *ret = (onnx_case){
        .model = m, .inputs = 1, .outputs = 3, .tensors = {ONNX_IDS(TUTTI_I64, 49, 3, 9)}};
    for (int64_t i = 0; i < 27; i++)
        tutti_tensor_set_int(
            ret->tensors[0], i,
            i % 9 >= 9 - 2 * (i / 9) ? 0 : tutti_tensor_get_int(ret->tensors[0], i) + 1);
}

/* Layers of images and sequences that are made of other operators. */
static inline void onnx_layers(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "layers");
    tutti_sym x = tutti_input(m, "image", TUTTI_F32, 8, 9, 4), y;
    y = tutti_call(tutti_depthwise_conv2d(3, .depth_multiplier = 2, .activation = TUTTI_SILU), x);
    y = tutti_call(tutti_group_norm(4), tutti_call(tutti_zero_padding2d(1), y));
    y = tutti_call(tutti_average_pool2d(3, .strides = {2}, .padding = "same"), y);
    y = tutti_call(tutti_up_sampling2d(2), tutti_call(tutti_activation("gelu"), y));
    y = tutti_call(tutti_cropping2d(1), tutti_call(tutti_elu_layer(), y));
    y = tutti_call(tutti_conv2d(6, 3, .groups = 2, .dilations = {2}, .padding = "same",
                                .activation = "hard_sigmoid"),
                   y);
    y = tutti_call(tutti_concatenate_layer(), y,
                   tutti_call(tutti_conv2d(2, 1, .activation = "selu"), y));
    y = tutti_call(tutti_up_sampling2d(2, .interpolation = "bilinear"), y);
    tutti_output(m, "image_out", tutti_call(tutti_permute(3, 1, 2), y));
    tutti_sym s = tutti_call(tutti_reshape_layer(72, 4), x);
    s = tutti_call(tutti_conv1d(6, 3, .padding = "causal", .activation = "softplus"), s);
    s = tutti_call(tutti_max_pool1d(2), tutti_call(tutti_rms_norm(), s));
    s = tutti_call(tutti_multi_head_attention(2, 5), s);
    s = tutti_call(tutti_leaky_relu_layer(), tutti_call(tutti_relu_layer(.max_value = 6), s));
    tutti_output(m, "sequence_out", tutti_call(tutti_global_max_pool1d(), s));
    *ret = (onnx_case){.model = m, .inputs = 1, .outputs = 2, .tensors = {ONNX_FLOATS(2, 8, 9, 4)}};
}

/* Operators used by themselves. */
static inline void onnx_operators(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "operators");
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 6, 4), b = tutti_input(m, "b", TUTTI_F32, 6, 4);
    tutti_sym parts = tutti_split_sizes(a, 1, 2, 4);
    tutti_sym y = tutti_concatenate(
        TUTTI_SYMS(tutti_sym_output(parts, 1), tutti_sym_output(parts, 0)), .axis = 1);
    y = tutti_where(tutti_less(a, b), tutti_sin(y), tutti_maximum(y, tutti_square(b)));
    y = tutti_add(y, tutti_reverse(tutti_roll(b, 2, 1), 2));
    y = tutti_div(tutti_mod(y, 0.3), tutti_add(tutti_abs(b), 1));
    tutti_output(m, "mixed", y);
    tutti_sym s = tutti_slice(a, .begin = TUTTI_INDEX(TUTTI_FIRST, 5, 1),
                              .end = TUTTI_INDEX(TUTTI_LAST, 0, -1), .step = TUTTI_INDEX(1, -2, 1));
    s = tutti_pad(s, .before = TUTTI_INDEX(0, 1), .after = TUTTI_INDEX(0, 0, 1), .value = 0.5);
    tutti_output(m, "cut", tutti_add(s, tutti_cumsum(s, 1, .reverse = true)));
    tutti_sym r = tutti_add(tutti_variance(a, .axes = TUTTI_AXES(1)),
                            tutti_logsumexp(b, .axes = TUTTI_AXES(1)));
    r = tutti_add(r, tutti_norm(tutti_einsum("bij,bij->bij", a, b), .axes = TUTTI_AXES(-2)));
    r = tutti_add(r, tutti_prod(tutti_exp(a), .axes = TUTTI_AXES(1)));
    tutti_output(m, "reduced", tutti_add(r, tutti_top_k(tutti_min(b, .axes = TUTTI_AXES(1)), 4)));
    tutti_sym best = tutti_argmax(a, 2);
    tutti_sym hot = tutti_one_hot(best, 4, .on = 2, .off = -1);
    hot = tutti_add(hot, tutti_cast(tutti_floordiv(tutti_one_hot(best, 4, .dtype = TUTTI_I64),
                                                   tutti_ints(tutti_sym_graph(a), 2)),
                                    TUTTI_F32));
    tutti_sym any = tutti_any(tutti_greater(a, b), .axes = TUTTI_AXES(2), .keepdims = true);
    tutti_sym stacked =
        tutti_cast(tutti_stack(TUTTI_SYMS(best, best, best, best), .axis = 2), TUTTI_F32);
    tutti_output(m, "picked", tutti_where(any, hot, tutti_add(stacked, tutti_erf(a))));
    *ret = (onnx_case){.model = m,
                       .inputs = 2,
                       .outputs = 4,
                       .tensors = {ONNX_FLOATS(3, 6, 4), ONNX_FLOATS(3, 6, 4)}};
}

/* Layers applied twice: their weights stand in the file once. */
static inline void onnx_shared(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "shared");
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 6, 6, 3),
              b = tutti_input(m, "b", TUTTI_F32, 6, 6, 3);
    tutti_layer *conv = tutti_conv2d(4, 3), *lstm = tutti_lstm(5),
                *line = tutti_reshape_layer(16, 4);
    tutti_sym x = tutti_call(lstm, tutti_call(line, tutti_call(conv, a)));
    tutti_sym y = tutti_call(lstm, tutti_call(line, tutti_call(conv, b)));
    tutti_output(m, "y", tutti_sub(x, y));
    *ret = (onnx_case){.model = m,
                       .inputs = 2,
                       .outputs = 1,
                       .tensors = {ONNX_FLOATS(2, 6, 6, 3), ONNX_FLOATS(2, 6, 6, 3)}};
}

/* Volumes, transposed convolution, larger images, sampling. */
static inline void onnx_volumes(tutti_job *job, onnx_case *ret)
{
    tutti_model *m = tutti_functional(job, .name = "volumes");
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 4, 6, 6, 2),
              b = tutti_input(m, "b", TUTTI_F32, 6, 5, 3),
              places = tutti_input(m, "places", TUTTI_F32, 4, 3, 2);
    tutti_sym v = tutti_call(tutti_conv3d(4, 3, .padding = "same", .activation = "relu"), a);
    v = tutti_call(tutti_batch_norm(), tutti_call(tutti_max_pool3d(2), v));
    v = tutti_call(tutti_conv3d_transpose(3, 2, .strides = {2, 2, 2}), v);
    v = tutti_call(tutti_average_pool3d(2), tutti_call(tutti_up_sampling3d(2), v));
    tutti_output(m, "volume", tutti_call(tutti_global_average_pool3d(), v));
    tutti_sym y = tutti_call(tutti_conv2d_transpose(4, 3, .strides = {2, 2}, .padding = "same"), b);
    y = tutti_call(tutti_group_norm(2), tutti_call(tutti_separable_conv2d(6, 3), y));
    y = tutti_call(tutti_instance_norm(), y);
    y = tutti_call(tutti_up_sampling2d(2, .interpolation = "bilinear"), y);
    y = tutti_call(tutti_prelu_layer(), tutti_call(tutti_depthwise_conv2d(3), y));
    tutti_output(m, "image", tutti_grid_sample(y, places, .mode = "linear", .padding = "border"));
    tutti_sym s = tutti_call(tutti_reshape_layer(30, 3), b);
    s = tutti_call(tutti_conv1d_transpose(4, 3, .strides = 2), s);
    s = tutti_call(tutti_separable_conv1d(5, 3), tutti_call(tutti_up_sampling1d(2), s));
    tutti_output(m, "line", tutti_call(tutti_average_pool1d(2), s));
    *ret = (onnx_case){
        .model = m,
        .inputs = 3,
        .outputs = 3,
        .tensors = {ONNX_FLOATS(2, 4, 6, 6, 2), ONNX_FLOATS(2, 6, 5, 3), ONNX_FLOATS(2, 4, 3, 2)}};
}

static const onnx_network onnx_networks[] = {
    {"mnist", onnx_mnist},         {"cifar", onnx_cifar},         {"tickets", onnx_tickets},
    {"text", onnx_text},           {"text_free", onnx_text_free}, {"resnet", onnx_resnet},
    {"recurrent", onnx_recurrent}, {"layers", onnx_layers},       {"operators", onnx_operators},
    {"shared", onnx_shared},       {"volumes", onnx_volumes},
};
#define ONNX_NETWORKS (sizeof onnx_networks / sizeof onnx_networks[0])

#endif
