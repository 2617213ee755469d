/* layer.h: layers from inside, and what is known while layers are built into a graph. */
#ifndef TUTTI_NN_MODEL_LAYER_H
#define TUTTI_NN_MODEL_LAYER_H

#include "base/arena.h"
#include "base/container.h"
#include "graph/graph.h"
#include "tutti/layer.h"

struct tutti_layer {
    const tutti_layer_kind *kind; /* NULL: the kind is not known, see `error` */
    char *name;                   /* what the user wished, then what the model gave */
    bool frozen, remat;
    int stage;          /* of a pipeline; 0: that of its inputs */
    const char *device; /* or NULL */
    void *settings;     /* a copy, in the arena */
    tutti_arena arena;
    const char *file; /* of the user */
    int line;
    tutti_model *owner; /* or NULL */
    tutti_error error;  /* what was wrong when it was made */
    bool dropped;       /* nobody will use it, but the user may name it again; it is kept */
    struct tutti_layer *next_dropped;
};

/* Gives up a layer whose call failed before a model took it. A shared layer is called again after
 * that, so it is kept until the process ends. */
void tutti__layer_drop(tutti_layer *layer);

/* A sym's mask: bool [batch, time]. */
typedef struct tutti_masked {
    tutti_edge edge;
    tutti_sym mask;
} tutti_masked;

typedef struct tutti_constrained {
    tutti_sym variable;
    const char *constraint;
} tutti_constrained;

/* A term of the loss, or a metric, from inside. */
typedef struct tutti_added {
    tutti_sym value;
    const char *name; /* "": it is not shown */
    bool loss;
} tutti_added;

/* A model that is built to answer step by step (decode.c): what it was given before lies in caches,
 * variables [batch, heads, capacity, size] of the graph. */
typedef struct tutti_decoding {
    tutti_sym position;               /* steps given before, an i64 scalar */
    int64_t steps, capacity;          /* of the inputs; that the caches hold */
    int64_t limit;                    /* steps that a layer takes at most; 0: any number */
    int caches;                       /* made so far, of this form of the model */
    tutti_sym masks[TUTTI_DTYPE_END]; /* by type, once one was asked for */
} tutti_decoding;
/* The cache's value with x [batch, heads, steps, size] behind what stands there. */
tutti_sym tutti__decoding_append(tutti_layer_call *call, tutti_sym x);
/* [steps, capacity]: 0 where a step sees a position, else -inf. */
tutti_sym tutti__decoding_mask(tutti_layer_call *call, tutti_dtype dtype);
/* The positions of the steps, i64 [steps]; the layer knows `most` of them. */
tutti_sym tutti__decoding_positions(tutti_layer_call *call, int64_t most);

/* What is being built into a graph; graph->building points to it. */
typedef struct tutti_building {
    tutti_model *model; /* or NULL: layers used by themselves */
    bool records;       /* a blueprint: calls are noted, not carried out */
    bool training;
    tutti_decoding *decoding; /* or NULL */
    /* Of a model inside another: what that one is built with, and its layer that stands for this
     * model. */
    const struct tutti_building *around;
    const tutti_layer *stands;
    uint64_t decided;    /* a hash of which weights were found frozen, and which not */
    const char *prefix;  /* of the names of weights: "" or "encoder/" */
    tutti_dtype compute; /* what layers compute in: f32, bf16, f16 */
    uint64_t seed;
    TUTTI_VEC(tutti_sym) updates;
    TUTTI_VEC(tutti_added) added;
    TUTTI_VEC(tutti_constrained) constraints;
    TUTTI_VEC(const tutti_node *) penalized; /* weights whose regularizer is among the losses */
    TUTTI_VEC(tutti_masked) masks;
} tutti_building;

/* ---- freeze.c ---- */

/* Whether a weight, by its whole name, is not trained, though it could be: because of what was
 * asked of it by name, of its layer (`flagged`), or of a model round it. */
bool tutti__weight_frozen(tutti_building *building, bool flagged, const char *name);
/* The same of a layer's weight: "kernel". */
bool tutti__layer_frozen(const tutti_layer_call *call, const char *weight);
/* The flag of this layer was set: what was asked before of its weights by name holds no more. */
void tutti__layer_trainable_changed(const tutti_layer *layer);

void tutti__building_free(tutti_building *building);
tutti_sym tutti__mask_of(const tutti_building *building, tutti_sym sym); /* TUTTI_NO_SYM: none */
void tutti__mask_set(tutti_building *building, tutti_sym sym, tutti_sym mask);

/* Behind tutti_add_loss and tutti_add_metric; `name` NULL: none. */
void tutti__add(tutti_sym value, const char *name, bool loss);
/* One number, f32: the mean of the value's elements, or the sum. */
tutti_sym tutti__added_value(const tutti_added *added, bool sums);
/* How many of the same name come before it; and what it is called then: "balance_1". */
int tutti__added_before(const tutti_building *building, size_t index);
const char *tutti__added_name(const char *name, int before, char ret[300]);

/* Builds the layer into the graph of its inputs under graph->building; writes its outputs, at most
 * TUTTI_LAYER_OUTPUTS, and returns their number (0 after a mistake, which is in the graph). */
int tutti__layer_build(tutti_layer *layer, tutti_graph *graph, int count, const tutti_sym *inputs,
                       tutti_sym *ret_outputs);

/* Copies settings through their fields: texts go into the arena. */
tutti_status tutti__settings_copy(const tutti_field *fields, tutti_arena *arena, void *settings);

/* ---- texts of the form name(1, 2) ---- */

typedef struct tutti_named_spec {
    char name[40];
    int count;
    double values[4];
} tutti_named_spec;
tutti_status tutti__spec_parse(const char *text, tutti_named_spec *ret);
/* No more numbers than `what` of that name takes, and all finite. */
tutti_status tutti__spec_takes(const tutti_named_spec *spec, const char *what, int most);

/* An initial value by its text. A `ret->tensor` is the caller's to release. */
tutti_status tutti__initializer(const char *text, const tutti_type *type, uint64_t seed,
                                const char *name, tutti_init *ret);
/* The term of the loss; TUTTI_NO_SYM for none. */
tutti_status tutti__regularizer(const char *text, tutti_sym weight, tutti_sym *ret);
/* The assignment that brings a weight back under its constraint after `update`. */
tutti_sym tutti__constrain(const tutti_constrained *weight, tutti_sym update);
/* The weight brought back to where it may be. */
tutti_status tutti__constraint(const char *text, tutti_sym weight, tutti_sym *ret);

#endif
