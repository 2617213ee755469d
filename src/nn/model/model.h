/* model.h: models from inside.
 *
 * A sequential or functional model is a blueprint: a graph whose nodes are inputs, operators and
 * calls of layers. Using the model builds the blueprint into another graph, in training or
 * inference form. A subclassed model has no blueprint: its own function builds it.
 *
 * The work graph holds the forms that fit, evaluate and predict run; its variables are the weights.
 * The engine keeps their values; the model's eager context shares it.
 */
#ifndef TUTTI_NN_MODEL_MODEL_H
#define TUTTI_NN_MODEL_MODEL_H

#include "base/job.h"
#include "exec/engine.h"
#include "nn/model/layer.h"
#include "tutti/model.h"

/* An input or output. */
typedef struct tutti_port {
    char *name;
    tutti_type type; /* batch first */
    tutti_sym sym;   /* in the blueprint */
} tutti_port;
typedef TUTTI_VEC(tutti_port) tutti_ports;

/* A value of an imported model by its name in the file. */
typedef struct tutti_named_value {
    char *name;
    tutti_sym sym; /* in the blueprint */
    bool turned;   /* it is channels last, the file has it channels first */
    uint32_t part; /* that makes it */
} tutti_named_value;

typedef struct tutti_trainer tutti_trainer;

struct tutti_model {
    tutti_job *job;
    tutti_arena arena; /* names */
    char *name;
    TUTTI_VEC(tutti_layer *) layers; /* owned, in the order of first use */
    tutti_map layer_names;           /* name → layer */
    tutti_map taken;                 /* kind's name → last number put behind it */
    /* Of an imported model: the file's nodes, as layers that are not called (part.c). */
    TUTTI_VEC(tutti_layer *) parts; /* owned; among layer_names */
    TUTTI_VEC(uint32_t) part_of;    /* per node of the blueprint: 1 + its part; 0: none */
    TUTTI_VEC(tutti_named_value) values;
    tutti_map frozen;             /* weights by name: what was asked of them (freeze.c) */
    unsigned trainable_seen;      /* changes of what is trained that the work graph knows of */
    const tutti_model_kind *kind; /* of a subclass, or NULL */
    void *self;
    bool sequential;
    bool closed;            /* the blueprint has all its nodes */
    tutti_graph *blueprint; /* NULL for a subclass */
    tutti_building plan;    /* the blueprint's */
    tutti_ports inputs, outputs;
    tutti_dtype compute;
    int *stage_of; /* by node of the blueprint, where a pipeline cut it by itself; or NULL */
    size_t stage_nodes;
    bool stages_found;
    /* the work graph */
    tutti_graph *graph;
    tutti_strategy *strategy; /* that it met before it had an engine, retained; or NULL */
    tutti_engine *engine;
    tutti_session *session;
    size_t initialized; /* nodes of the work graph that have their first values */
    tutti_eager *eager;
    bool built, deterministic;
    int64_t memory_limit; /* of a run's values, bytes; 0: none */
    size_t weight_end;    /* variables among the graph's first so many nodes are weights */
    TUTTI_VEC(tutti_node *) weights; /* these variables, in that order */
    tutti_building inference;        /* what the inference form noted */
    tutti_building applied;  /* what the last tutti_apply noted in the graph `applied_to`, */
    tutti_graph *applied_to; /* of a tape as long as the step with this generation lasts */
    uint32_t applied_generation;
    TUTTI_VEC(tutti_sym) fed; /* placeholders, as inputs */
    TUTTI_VEC(tutti_sym) answers;
    tutti_trainer *trainer;    /* from compile; NULL before */
    struct tutti_saver *saver; /* from the first saving in the background */
    /* Of a model that came with its weights: changes of the state at the last answer, and one more;
     * while they are the same, and nobody has compiled it, weights are constants. 0: they never
     * are. */
    _Atomic uint64_t settled;
};

/* ---- model.c ---- */

/* True when the model may be used: its job and its blueprint are well. */
bool tutti__model_able(const tutti_model *model);
/* Makes a failure the job's, with the model's name; returns it. */
tutti_status tutti__model_fail(tutti_model *model, tutti_status status);
/* Takes a layer: gives it a name. Nothing when it is the model's already. */
tutti_status tutti__model_adopt(tutti_model *model, tutti_layer *layer);
tutti_status tutti__port_add(tutti_model *model, tutti_ports *ports, const char *name,
                             tutti_type type, tutti_sym sym);
int tutti__port_find(const tutti_ports *ports, const char *name); /* -1: none */

/* ---- blueprint.c ---- */

/* The blueprint's nodes that are calls of layers have this operator; attribute "layer" is the index
 * in model->layers. */
extern const tutti_op *const tutti__layer_op;
/* Builds the model into `graph` under graph->building; writes an output for each port. A mistake is
 * in the graph. */
tutti_status tutti__model_instantiate(tutti_model *model, tutti_graph *graph,
                                      const tutti_sym *inputs, tutti_sym *ret_outputs);

/* ---- added.c ---- */

/* The blueprint's nodes that stand for tutti_add_loss and tutti_add_metric have this operator; and
 * what they come to where the blueprint is built. */
extern const tutti_op *const tutti__added_op;
void tutti__added_copy(const tutti_node *node, tutti_sym value);

/* ---- apply.c ---- */

/* Makes the weights of a built model variables of its tape, trainable or not as they are now;
 * during a step that is left to tutti_apply. */
tutti_status tutti__model_declare(tutti_model *model);
/* Weights of models that have a tape are trainable on it, or not, from now on. */
void tutti__models_declare_again(const tutti_job *job);
/* What the model noted when it was applied last, if the step that it was applied in still lasts;
 * else NULL. */
const tutti_building *tutti__last_applied(const tutti_model *model, const tutti_graph *graph);

/* The model that a layer stands for, or NULL; a layer for a model under another name. */
tutti_model *tutti__layer_model(const tutti_layer *layer);
tutti_layer *tutti__model_layer_named(tutti_model *model, const char *name);

/* ---- freeze.c ---- */

/* How often what is trained of any model has changed. */
unsigned tutti__trainable_changes(void);
/* Sets a variable's attribute. */
void tutti__set_trainable(tutti_node *variable, bool trainable);
/* Weights of the work graph are marked as they are trained now; where that has changed, the
 * training step is built again when it is needed. */
tutti_status tutti__trainable_refresh(tutti_model *model);
/* Calls say(context, name) for each weight that was frozen, or unfrozen, by its name. */
void tutti__frozen_by_name(const tutti_model *model, bool frozen,
                           void (*say)(void *context, const char *name), void *context);
tutti_status tutti__freeze_by_name(tutti_model *model, const char *name, bool frozen);

/* ---- part.c ---- */

/* One more part, under this name or, where that is taken, with a number behind it; *ret is its
 * index. `kind` is what the file calls it: "Conv". */
tutti_status tutti__part_add(tutti_model *model, const char *name, const char *kind, uint32_t *ret);
/* Nodes of the blueprint from this one on are the part's. */
tutti_status tutti__part_take(tutti_model *model, uint32_t part, size_t first_node);
/* Which variables of the blueprint the chosen parts use; arrays by part and by node. */
tutti_status tutti__part_weights(const tutti_model *model, const bool *chosen, bool *ret_nodes);
/* The same of the parts whose layer is frozen. *ret is NULL where there is none; else freed by the
 * caller. */
tutti_status tutti__part_frozen(const tutti_model *model, bool **ret_nodes);
bool tutti__is_part(const tutti_layer *layer);
tutti_status tutti__value_add(tutti_model *model, const char *name, tutti_sym sym, bool turned,
                              uint32_t part);
void tutti__parts_free(tutti_model *model);
/* Parts with their outputs and weights, for the summary; nothing where there are none. */
void tutti__summary_parts(const tutti_model *model, tutti_text *text);

/* ---- weights.c ---- */

/* Runs the initial values of variables that have none yet. */
tutti_status tutti__model_initialize(tutti_model *model);
/* Completes the blueprint for inputs of these types (batch first). */
tutti_status tutti__model_describe(tutti_model *model, int count, const tutti_type *types);
/* A zeroed building of this model. */
tutti_building tutti__model_building(tutti_model *model, bool training);
/* Builds with the shapes the model knows itself; TUTTI_UNINITIALIZED when it knows none. */
tutti_status tutti__model_need_built(tutti_model *model);
/* Builds with the types of a dataset or tensors (batch first), if it is not built yet. */
tutti_status tutti__model_build_batched(tutti_model *model, int count, const tutti_type *types);

/* The inference form in the work graph, in place of the one there was; its variables are the
 * weights. */
tutti_status tutti__model_build_inference(tutti_model *model);

/* ---- widen.c ---- */

/* Dimensions behind the batch in which `seen` differs become unknown; true when there are any. */
bool tutti__type_widen(tutti_type *type, const tutti_type *seen);
/* Makes a built model take inputs of these shapes too; a failure says which input does not fit, and
 * changes nothing. */
tutti_status tutti__model_widen(tutti_model *model, int count, tutti_tensor *const *tensors);

/* ---- trainer ---- */
void tutti__trainer_destroy(tutti_trainer *trainer);
/* The training forms are forgotten; NULL is fine. */
void tutti__trainer_drop_step(tutti_trainer *trainer);

#endif
