/* layer.h: what a layer is. The library's layers and users' own are the same kind of thing: one
 * const table of functions. Ready-made ones are in layers.h.
 *
 *     typedef struct scale_settings {
 *         TUTTI_LAYER_SETTINGS
 *         double start;
 *     } scale_settings;
 *
 *     static tutti_sym scale_call(tutti_layer_call *call)
 *     {
 *         const scale_settings *s = call->settings;
 *         tutti_sym factor = tutti_weight(call, "factor", TUTTI_TYPE(TUTTI_F32, 1), .initializer =
 *                                         s->start > 0 ? "ones" : "zeros");
 *         return tutti_mul(call->inputs[0], factor);
 *     }
 *
 *     static const tutti_field scale_fields[] = {TUTTI_NUMBER_FIELD(scale_settings, start), {0}};
 *     const tutti_layer_kind scale = {.struct_size = sizeof(tutti_layer_kind), .name = "my.scale",
 *                                     .settings_size = sizeof(scale_settings),
 *                                     .fields = scale_fields, .call = scale_call};
 *
 *     tutti_layer *layer = tutti_layer_custom(&scale, TUTTI_OPTIONS(scale_settings, .start = 1));
 *
 * tables: tutti_layer_kind
 */
#ifndef TUTTI_LAYER_H
#define TUTTI_LAYER_H

#include "tutti/job.h"
#include "tutti/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_layer tutti_layer;
typedef struct tutti_layer_kind tutti_layer_kind;
typedef struct tutti_model tutti_model;

/* A member of a settings struct, so that settings can be copied, saved and loaded. */
typedef enum tutti_field_kind {
    TUTTI_FIELD_INT = 1, /* int64_t */
    TUTTI_FIELD_NUMBER,  /* double */
    TUTTI_FIELD_FLAG,    /* bool */
    TUTTI_FIELD_TEXT,    /* const char *; copied */
    TUTTI_FIELD_INTS,    /* int64_t[count] */
    TUTTI_FIELD_CODE     /* a function or its context: cannot be saved */
} tutti_field_kind;
typedef struct tutti_field {
    const char *key;
    tutti_field_kind kind;
    size_t offset;
    int count;
} tutti_field;
#define TUTTI_FIELD_OF(kind_, type_, member_)                                                      \
    {                                                                                              \
        .key = #member_, .kind = (kind_), .offset = offsetof(type_, member_), .count = 1           \
    }
#define TUTTI_INT_FIELD(type, member) TUTTI_FIELD_OF(TUTTI_FIELD_INT, type, member)
#define TUTTI_NUMBER_FIELD(type, member) TUTTI_FIELD_OF(TUTTI_FIELD_NUMBER, type, member)
#define TUTTI_FLAG_FIELD(type, member) TUTTI_FIELD_OF(TUTTI_FIELD_FLAG, type, member)
#define TUTTI_TEXT_FIELD(type, member) TUTTI_FIELD_OF(TUTTI_FIELD_TEXT, type, member)
#define TUTTI_CODE_FIELD(type, member) TUTTI_FIELD_OF(TUTTI_FIELD_CODE, type, member)
#define TUTTI_INTS_FIELD(type_, member_)                                                           \
    {                                                                                              \
        .key = #member_, .kind = TUTTI_FIELD_INTS, .offset = offsetof(type_, member_),             \
        .count = (int)(sizeof(((type_ *)0)->member_) / sizeof(int64_t))                            \
    }

/* What every settings struct begins with. Zero means the default. */
#define TUTTI_LAYER_SETTINGS                                                                       \
    size_t struct_size;                                                                            \
    const char *name;   /* by default the kind's, made unique in the model */                      \
    bool frozen;        /* its weights are not trained */                                          \
    bool remat;         /* what it makes inside is computed again for the gradients, not kept */   \
    int stage;          /* of a pipeline; 0: that of what it is called with */                     \
    const char *device; /* where it is computed and its weights live; NULL: anywhere */
typedef struct tutti_layer_settings {
    TUTTI_LAYER_SETTINGS
} tutti_layer_settings;

#define TUTTI_LAYER_OUTPUTS 5

/* What a layer's call sees. */
typedef struct tutti_layer_call {
    tutti_layer *layer;
    const void *settings;
    tutti_graph *graph;
    int input_count;
    const tutti_sym *inputs;
    tutti_sym mask; /* of input 0: bool [batch, time], true where it counts; TUTTI_NO_SYM: all */
    bool training;
    /* To be set by the call, where it has more than one output, or makes or changes the mask. */
    int extra_count;
    tutti_sym extra[TUTTI_LAYER_OUTPUTS - 1];
    tutti_sym ret_mask;
} tutti_layer_call;

enum {
    TUTTI_LAYER_KEEPS_MASK = 1 << 0, /* the output's steps in time are the input's */
    TUTTI_LAYER_EACH_STEP =
        1 << 1 /* each of them follows from that step of the inputs alone, in inference: the layer
                  may stand in a model that answers step by step (tutti_decoder_open) */
};

struct tutti_layer_kind {
    uint32_t struct_size;
    const char *name; /* lower_case; users put their own prefix and a dot before it */
    const char *doc;  /* one line with the formula */
    size_t settings_size;
    const tutti_field *fields; /* (optional) without name, frozen and remat; ends with a NULL key */
    int min_inputs, max_inputs; /* 0, 0: one input; max -1: any number */
    uint32_t flags;
    /* Adds the layer to call->graph and returns its (first) output. Called once for each place
     * where the layer stands and for each form (training or not): a function of what it is given.
     */
    tutti_sym (*call)(tutti_layer_call *call);
};

/* A layer of a kind by name, with settings that begin with TUTTI_LAYER_SETTINGS; they are copied.
 * What is wrong with it is said where it is used. A layer belongs to the model it is first used in;
 * one that never was used is released by tutti_layer_release. */
TUTTI_API tutti_layer *tutti_layer_make(const char *kind, const void *settings);
#define tutti_layer_make(...) TUTTI_AT(tutti_layer_make(__VA_ARGS__))
/* A layer of your own kind, which must outlive it. */
TUTTI_API tutti_layer *tutti_layer_custom(const tutti_layer_kind *kind, const void *settings);
#define tutti_layer_custom(...) TUTTI_AT(tutti_layer_custom(__VA_ARGS__))
TUTTI_API void tutti_layer_release(tutti_layer *layer); /* NULL is fine; owned ones are left */
/* Makes a kind of your own known by name, so that saved models that use it can be loaded. */
TUTTI_API tutti_status tutti_layer_register(const tutti_layer_kind *kind);
TUTTI_API const tutti_layer_kind *tutti_layer_find(const char *name); /* or NULL */
TUTTI_API const char *tutti_layer_name(const tutti_layer *layer);
TUTTI_API const char *tutti_layer_kind_name(const tutti_layer *layer);

/* Applies a layer: tutti_call(tutti_dense(10), x). The same layer may be applied again: its weights
 * are shared. In a functional model the call is noted and carried out when the model is used. */
TUTTI_API tutti_sym tutti_layer_apply(tutti_layer *layer, int count, const tutti_sym *inputs);
#define tutti_call(layer, ...) TUTTI_AT(tutti_layer_apply((layer), TUTTI_SYMS(__VA_ARGS__)))

/* ---- for calls of layers ---- */

typedef struct tutti_weight_options {
    size_t struct_size;
    const char *initializer; /* "zeros" "ones" "constant(0.1)" "uniform(-0.1,0.1)" "normal(0,0.02)"
                                "truncated_normal(0,0.02)" "glorot_uniform" "glorot_normal"
                                "he_uniform" "he_normal" "lecun_uniform" "lecun_normal"
                                "orthogonal" "identity" "unit_forget" (0, but 1 in the second
                                quarter: of an lstm's bias); default "glorot_uniform" */
    const char *regularizer; /* "l1(0.01)" "l2(0.01)" "l1_l2(0.01,0.01)" "orthogonal(0.01)"; none */
    const char *constraint; /* "max_norm(2)" "unit_norm" "non_negative" "min_max_norm(0,1)"; none */
    const char *sharding; /* names of its dimensions or mesh axes, "embed,hidden": tutti_sharded */
    bool not_trainable;
    bool full_precision; /* stays f32 where the model computes in less */
} tutti_weight_options;
/* A weight of the layer: "<layer>/<name>". Made on first use, found afterwards. A handle, or its
 * value in the precision the model computes in. */
TUTTI_API tutti_sym tutti_weight_with(tutti_layer_call *call, const char *name, tutti_type type,
                                      const tutti_weight_options *options);
#define tutti_weight(call, name, ...)                                                              \
    tutti_weight_with((call), (name), TUTTI_ONE_(tutti_weight_options, __VA_ARGS__, ))
/* The weight as a variable to assign to (moving averages); never trained. */
TUTTI_API tutti_sym tutti_layer_state_with(tutti_layer_call *call, const char *name,
                                           tutti_type type, const tutti_weight_options *options);
#define tutti_layer_state(call, name, ...)                                                         \
    tutti_layer_state_with((call), (name), TUTTI_ONE_(tutti_weight_options, __VA_ARGS__, ))
/* `update` (an assignment) is part of a training step. */
TUTTI_API void tutti_layer_update(tutti_layer_call *call, tutti_sym update);
/* A loss or a metric of the layer's, or the model's, own: called where a layer, a subclassed model
 * or a functional one is made, with a symbol of it. The value is a float: a scalar, or a number an
 * example, of which the mean is taken (of a loss the sum, where the model's are sums). A loss is
 * added to the model's in training and evaluation; scale it to weigh it. With a name (NULL: none)
 * it is shown beside the loss, as metrics are: by the bar, in the history, by callbacks and
 * tutti_evaluate. A name that is added again has a number: "balance", "balance_1". Loops by hand:
 * tutti_model_losses, tutti_added_value.
 *     tutti_add_loss(tutti_mul(divergence, 0.1), "divergence"); */
TUTTI_API void tutti_add_loss(tutti_sym value, const char *name);
#define tutti_add_loss(...) TUTTI_AT(tutti_add_loss(__VA_ARGS__))
TUTTI_API void tutti_add_metric(tutti_sym value, const char *name);
#define tutti_add_metric(...) TUTTI_AT(tutti_add_metric(__VA_ARGS__))
/* Applies an activation by name: any unary operator ("relu", "gelu", a user's own), "softmax", or
 * NULL, "" and "linear" for none. */
TUTTI_API tutti_sym tutti_nn_activation(tutti_sym x, const char *activation);
/* Poison with a message: "dense 'd1' (mnist.c:14): …". */
TUTTI_API tutti_sym tutti_layer_fail(tutti_layer_call *call, const char *format, ...)
    TUTTI_PRINTF(2, 3);

/* Activations by name. */
#define TUTTI_LINEAR "linear"
#define TUTTI_RELU "relu"
#define TUTTI_RELU6 "relu6"
#define TUTTI_LEAKY_RELU "leaky_relu"
#define TUTTI_ELU "elu"
#define TUTTI_SELU "selu"
#define TUTTI_GELU "gelu"
#define TUTTI_GELU_TANH "gelu_tanh" /* by tanh, as GPT-2 has it */
#define TUTTI_SILU "silu"
#define TUTTI_SIGMOID "sigmoid"
#define TUTTI_HARD_SIGMOID "hard_sigmoid"
#define TUTTI_HARD_SWISH "hard_swish"
#define TUTTI_MISH "mish"
#define TUTTI_TANH "tanh"
#define TUTTI_SOFTPLUS "softplus"
#define TUTTI_SOFTSIGN "softsign"
#define TUTTI_SOFTMAX "softmax"

#ifdef __cplusplus
}
#endif
#endif
