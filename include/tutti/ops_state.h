/* ops_state.h: what enters a graph and what outlives a step: placeholders, constants, variables and
 * queues. Like every builder these never need checking: a mistake is recorded in the graph. */
#ifndef TUTTI_OPS_STATE_H
#define TUTTI_OPS_STATE_H

#include "tutti/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A type as a value: TUTTI_TYPE(TUTTI_F32, 28, 28). */
#define TUTTI_TYPE(...)                                                                            \
    tutti_type_from_list((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),          \
                         (const int64_t[]){__VA_ARGS__})
/* From a list: the data type, then the dimensions. More than TUTTI_MAX_RANK dimensions give a type
 * that every builder refuses. */
TUTTI_API tutti_type tutti_type_from_list(int count, const int64_t *dtype_and_dims);

/* ---- what enters ---- */

/* A value given at every run: tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 784); a scalar has no
 * dimensions. The name is "placeholder", made unique. */
TUTTI_API tutti_sym tutti_placeholder(tutti_graph *graph, tutti_type type);
#define tutti_placeholder(graph, ...) TUTTI_AT(tutti_placeholder((graph), TUTTI_TYPE(__VA_ARGS__)))
/* The same under a name of yours: tutti_placeholder_named(g, "images", TUTTI_F32, TUTTI_ANY, 784).
 */
TUTTI_API tutti_sym tutti_placeholder_named(tutti_graph *graph, const char *name, tutti_type type);
#define tutti_placeholder_named(graph, name, ...)                                                  \
    TUTTI_AT(tutti_placeholder_named((graph), (name), TUTTI_TYPE(__VA_ARGS__)))

/* The tensor's value. The graph keeps a reference; the contents must not change afterwards,
 * and memory that it borrows (tutti_tensor_wrap) must stay as long as the graph. */
TUTTI_API tutti_sym tutti_constant(tutti_graph *graph, tutti_tensor *tensor);
#define tutti_constant(...) TUTTI_AT(tutti_constant(__VA_ARGS__))
/* One number: tutti_scalar(g, TUTTI_F32, 0.5). An integer type must have it. */
TUTTI_API tutti_sym tutti_scalar(tutti_graph *graph, tutti_dtype dtype, double value);
#define tutti_scalar(...) TUTTI_AT(tutti_scalar(__VA_ARGS__))
/* A vector of 64-bit integers: tutti_ints(g, 3, 4, 5). */
TUTTI_API tutti_sym tutti_ints(tutti_graph *graph, int count, const int64_t *values);
#define tutti_ints(...) TUTTI_AT(tutti_ints(TUTTI_ONE_DIMS_(__VA_ARGS__, )))

/* Argument `index` of a sub-graph (the body of a cond, while or fused node). */
TUTTI_API tutti_sym tutti_parameter(tutti_graph *graph, int index, tutti_type type);
#define tutti_parameter(...) TUTTI_AT(tutti_parameter(__VA_ARGS__))

/* y = x. */
TUTTI_API tutti_sym tutti_identity(tutti_sym x);
#define tutti_identity(...) TUTTI_AT(tutti_identity(__VA_ARGS__))
/* y = x, through which no gradient flows. */
TUTTI_API tutti_sym tutti_stop_gradient(tutti_sym x);
#define tutti_stop_gradient(...) TUTTI_AT(tutti_stop_gradient(__VA_ARGS__))

/* How x is to lie over the mesh of the strategy that the graph is run under: for each dimension "-"
 * or what cuts it, "batch,-,model" or "host*data,-". Names are those of mesh axes (--mesh) or of
 * dimensions for which the layout has a rule (--layout): batch, sequence, embed, hidden, heads,
 * vocab, channels, expert; one without a rule, or without a mesh, asks for nothing. Of a variable
 * it is asked of its value, wherever that is read. The result is the same without it, but for
 * rounding; it changes who computes it. Returns x. */
TUTTI_API tutti_sym tutti_sharded(tutti_sym x, const char *sharding);
#define tutti_sharded(...) TUTTI_AT(tutti_sharded(__VA_ARGS__))

/* ---- initial values ---- */

typedef enum tutti_init_kind {
    TUTTI_INIT_FULL,             /* every element a */
    TUTTI_INIT_UNIFORM,          /* in [a, b) */
    TUTTI_INIT_NORMAL,           /* mean a, standard deviation b */
    TUTTI_INIT_TRUNCATED_NORMAL, /* the same, within two standard deviations */
    TUTTI_INIT_SCALED_UNIFORM,   /* in [-l, l), l = sqrt(3 a / fan); b picks the fan */
    TUTTI_INIT_SCALED_NORMAL, /* truncated, of standard deviation sqrt(a / fan); b picks the fan */
    TUTTI_INIT_TENSOR,        /* a tensor's values */
    TUTTI_INIT_SYM            /* a node's value */
} tutti_init_kind;

/* What a variable starts with: a plain value, made by the functions below. Fans are counted as
 * Keras does: of [in, out]; of convolution kernels [kh, kw, in, out] times kh kw; of [n] both are
 * n. A `tensor` is kept as tutti_constant keeps it: its contents must not change afterwards, and
 * memory that it borrows (tutti_tensor_wrap) must stay as long as the graph. */
typedef struct tutti_init {
    tutti_init_kind kind;
    double a, b;
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
    tutti_tensor *tensor;
    tutti_sym sym;
} tutti_init;

TUTTI_API tutti_init tutti_init_make(tutti_init_kind kind, double a, double b, int rank,
                                     const int64_t *dims);
/* Fans for the scaled kinds. */
#define TUTTI_FAN_IN 0.0
#define TUTTI_FAN_OUT 1.0
#define TUTTI_FAN_AVERAGE 2.0

/* The first values of a variable by shape: tutti_zeros(3, 4), tutti_uniform_init(-1, 1, 3, 4). */
#define tutti_zeros(...) tutti_init_make(TUTTI_INIT_FULL, 0, 0, TUTTI_DIMS(__VA_ARGS__))
#define tutti_ones(...) tutti_init_make(TUTTI_INIT_FULL, 1, 0, TUTTI_DIMS(__VA_ARGS__))
#define tutti_full(...) TUTTI_FULL_(__VA_ARGS__, )
#define TUTTI_FULL_(value, ...)                                                                    \
    tutti_init_make(TUTTI_INIT_FULL, (value), 0, TUTTI_DIMS(__VA_ARGS__))
#define tutti_uniform_init(low, ...)                                                               \
    tutti_init_make(TUTTI_INIT_UNIFORM, (low), TUTTI_ONE_DIMS_(__VA_ARGS__, ))
#define tutti_normal_init(mean, ...)                                                               \
    tutti_init_make(TUTTI_INIT_NORMAL, (mean), TUTTI_ONE_DIMS_(__VA_ARGS__, ))
#define tutti_truncated_normal_init(mean, ...)                                                     \
    tutti_init_make(TUTTI_INIT_TRUNCATED_NORMAL, (mean), TUTTI_ONE_DIMS_(__VA_ARGS__, ))
/* Uniform in [-l, l), l = sqrt(6 / (fan_in + fan_out)). */
#define tutti_glorot_uniform(...)                                                                  \
    tutti_init_make(TUTTI_INIT_SCALED_UNIFORM, 1, TUTTI_FAN_AVERAGE, TUTTI_DIMS(__VA_ARGS__))
#define tutti_glorot_normal(...)                                                                   \
    tutti_init_make(TUTTI_INIT_SCALED_NORMAL, 1, TUTTI_FAN_AVERAGE, TUTTI_DIMS(__VA_ARGS__))
#define tutti_he_uniform(...)                                                                      \
    tutti_init_make(TUTTI_INIT_SCALED_UNIFORM, 2, TUTTI_FAN_IN, TUTTI_DIMS(__VA_ARGS__))
/* Truncated normal of standard deviation sqrt(2 / fan_in). */
#define tutti_he_normal(...)                                                                       \
    tutti_init_make(TUTTI_INIT_SCALED_NORMAL, 2, TUTTI_FAN_IN, TUTTI_DIMS(__VA_ARGS__))
/* The values of a tensor; the variable has its type and shape. */
TUTTI_API tutti_init tutti_tensor_init(tutti_tensor *tensor);
/* The value of a node of known shape, computed when the variable is initialised. */
TUTTI_API tutti_init tutti_sym_init(tutti_sym sym);

/* ---- variables ---- */

/* How a variable is to be cut into pieces over devices: writes the number of pieces along each
 * axis. Stored with the variable; strategies that cut variables ask it. */
typedef void tutti_partitioner(const tutti_type *type, int64_t ret_pieces[TUTTI_MAX_RANK]);

/* What a variable is where the replicas of a strategy have different values for it. */
typedef enum tutti_aggregation {
    TUTTI_AGGREGATE_AUTO, /* the sum with on_read, else none */
    TUTTI_AGGREGATE_NONE, /* nothing: reading it, or assigning to it from code of each replica,
                             fails */
    TUTTI_AGGREGATE_SUM,
    TUTTI_AGGREGATE_MEAN,  /* of floating variables */
    TUTTI_AGGREGATE_FIRST, /* the first replica's */
} tutti_aggregation;

typedef struct tutti_variable_options {
    size_t struct_size;
    const char *name;        /* "variable" */
    bool not_trainable;      /* optimizers leave it alone */
    tutti_dtype dtype;       /* TUTTI_F32, or the tensor's or node's */
    int64_t seed;            /* of random initial values, mixed with the variable's name */
    const char *shared_name; /* its name in the state; by default the node's full name. Variables of
                                one name are one, on one device */
    /* Under a strategy replicas have copies that are kept equal on every write; or, on_read, each
     * has a value of its own, and whoever reads the variable gets them put together:
     *  - sum: what replicas add stays with them; of what all have alike, the first one adds it.
     *  - mean: a replica's share of a sum over the batch counts as many times as there are
     *    replicas, so that each has an estimate of its own and the mean is what one device has.
     *  - first, none: values of the graph, which are those of the whole batch, are written to all.
     * Assignments by tutti_replica_assign are put together so, too. */
    bool on_read;
    tutti_aggregation aggregation;
    const char *slot_of; /* full name of the variable whose slot (momentum, …) this is */
    tutti_partitioner *partitioner;
    /* The same by name, in place of .partitioner: "fixed_size(4)", "min_size(262144, 4)",
     * "max_size(1048576)", "variable_axis_size(1, 1048576, 8)" (bytes and the most pieces). Read
     * where a strategy cuts variables: parameter_server. */
    const char *partition;
} tutti_variable_options;

/* A variable: state that lives in the session. Makes the variable, its initial value and the
 * assignment of it, the latter two in the name scope of the variable and on its device, outside any
 * control scope.
 *     tutti_sym w = tutti_variable(g, tutti_glorot_uniform(784, 10), .name = "w");
 * The symbol is a handle: where an operator wants a value, it is read. Inside bodies of cond and
 * while there are no variables; give them to the body as arguments. */
TUTTI_API tutti_sym tutti_variable_with(tutti_graph *graph, tutti_init init,
                                        const tutti_variable_options *options);
#define tutti_variable(graph, ...)                                                                 \
    TUTTI_AT(tutti_variable_with((graph), TUTTI_ONE_(tutti_variable_options, __VA_ARGS__, )))
/* The variable of that name in the present scope, made when there is none yet. One that is there
 * must have the type and shape that `init` and the options ask for. */
TUTTI_API tutti_sym tutti_get_variable_with(tutti_graph *graph, const char *name, tutti_init init,
                                            const tutti_variable_options *options);
#define tutti_get_variable(graph, name, ...)                                                       \
    TUTTI_AT(tutti_get_variable_with((graph), (name),                                              \
                                     TUTTI_ONE_(tutti_variable_options, __VA_ARGS__, )))

/* Initialises every variable that the graph has now: run it once as a target. */
TUTTI_API tutti_sym tutti_initialize_variables(tutti_graph *graph);
#define tutti_initialize_variables(...) TUTTI_AT(tutti_initialize_variables(__VA_ARGS__))
/* Trainable variables in the order they were made; returns their number, writes at most `capacity`.
 */
TUTTI_API int tutti_trainable_variables(const tutti_graph *graph, int capacity,
                                        tutti_sym *ret_variables);

/* The variable's value. Reading before initialisation is an error that names the variable. */
TUTTI_API tutti_sym tutti_read(tutti_sym variable);
#define tutti_read(...) TUTTI_AT(tutti_read(__VA_ARGS__))
/* v = x, v = v + x, v = v - x; the new value. */
TUTTI_API tutti_sym tutti_assign(tutti_sym variable, tutti_sym value);
#define tutti_assign(...) TUTTI_AT(tutti_assign(__VA_ARGS__))
TUTTI_API tutti_sym tutti_assign_add(tutti_sym variable, tutti_sym value);
#define tutti_assign_add(...) TUTTI_AT(tutti_assign_add(__VA_ARGS__))
TUTTI_API tutti_sym tutti_assign_sub(tutti_sym variable, tutti_sym value);
#define tutti_assign_sub(...) TUTTI_AT(tutti_assign_sub(__VA_ARGS__))
/* v[indices[i]] = rows[i] (the last of equal indices wins), += and -= (equal indices add up); the
 * new value. An index out of range fails before anything is written. */
TUTTI_API tutti_sym tutti_scatter_update(tutti_sym variable, tutti_sym indices, tutti_sym rows);
#define tutti_scatter_update(...) TUTTI_AT(tutti_scatter_update(__VA_ARGS__))
TUTTI_API tutti_sym tutti_scatter_add(tutti_sym variable, tutti_sym indices, tutti_sym rows);
#define tutti_scatter_add(...) TUTTI_AT(tutti_scatter_add(__VA_ARGS__))
TUTTI_API tutti_sym tutti_scatter_sub(tutti_sym variable, tutti_sym indices, tutti_sym rows);
#define tutti_scatter_sub(...) TUTTI_AT(tutti_scatter_sub(__VA_ARGS__))
/* v[…, start : start + n, …] = x along an axis, n as many as x has there; the new value. `start`,
 * an integer scalar, is moved to where x fits (XLA's dynamic_update_slice). Written in place: a
 * cache of keys and values takes its new rows so. */
TUTTI_API tutti_sym tutti_assign_slice(tutti_sym variable, tutti_sym value, tutti_sym start,
                                       int axis);
#define tutti_assign_slice(...) TUTTI_AT(tutti_assign_slice(__VA_ARGS__))
/* Whether the variable has a value yet: a bool scalar. */
TUTTI_API tutti_sym tutti_is_initialized(tutti_sym variable);
#define tutti_is_initialized(...) TUTTI_AT(tutti_is_initialized(__VA_ARGS__))

/* ---- updates by optimizers; the new value of `variable` ---- */

/* v = v - lr g. lr: an f32 scalar. */
TUTTI_API tutti_sym tutti_sgd_update(tutti_sym variable, tutti_sym gradient, tutti_sym lr);
#define tutti_sgd_update(...) TUTTI_AT(tutti_sgd_update(__VA_ARGS__))
/* The same for a gradient that is rows at indices of axis 0; equal indices add up first. */
TUTTI_API tutti_sym tutti_sgd_update_rows(tutti_sym variable, tutti_sym indices, tutti_sym rows,
                                          tutti_sym lr);
#define tutti_sgd_update_rows(...) TUTTI_AT(tutti_sgd_update_rows(__VA_ARGS__))

typedef struct tutti_adam_options {
    size_t struct_size;
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7 (1e-8 in torch's form) */
    bool torch_form;
} tutti_adam_options;
/* m = b1 m + (1 - b1) g;  s = b2 s + (1 - b2) g^2;
 * Keras' form: v = v - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(s) + epsilon);
 * torch's:     v = v - lr m' / (sqrt(s') + epsilon), m' = m / (1 - b1^t), s' = s / (1 - b2^t).
 * `step` is t, an i64 scalar that is 1 in the first step (less counts as 1). m and s are variables
 * like v. */
TUTTI_API tutti_sym tutti_adam_update_with(tutti_sym variable, tutti_sym m, tutti_sym s,
                                           tutti_sym gradient, tutti_sym lr, tutti_sym step,
                                           const tutti_adam_options *options);
#define tutti_adam_update(variable, m, s, gradient, lr, ...)                                       \
    TUTTI_AT(tutti_adam_update_with((variable), (m), (s), (gradient), (lr),                        \
                                    TUTTI_ONE_(tutti_adam_options, __VA_ARGS__, )))
/* Lazy: only the rows named by `indices` move, and their moments. */
TUTTI_API tutti_sym tutti_adam_update_rows_with(tutti_sym variable, tutti_sym m, tutti_sym s,
                                                tutti_sym indices, tutti_sym rows, tutti_sym lr,
                                                tutti_sym step, const tutti_adam_options *options);
#define tutti_adam_update_rows(variable, m, s, indices, rows, lr, ...)                             \
    TUTTI_AT(tutti_adam_update_rows_with((variable), (m), (s), (indices), (rows), (lr),            \
                                         TUTTI_ONE_(tutti_adam_options, __VA_ARGS__, )))

/* ---- queues, shared between runs ---- */

/* A queue of tuples, first in, first out: tutti_fifo_queue(g, 32, TUTTI_TYPE(TUTTI_F32, 28, 28),
 * TUTTI_TYPE(TUTTI_I64)). Dimensions may be TUTTI_ANY. A full queue blocks enqueue, an empty one
 * dequeue, until the run's deadline. Its name in the state is the node's. */
TUTTI_API tutti_sym tutti_fifo_queue(tutti_graph *graph, const char *name, int64_t capacity,
                                     int count, const tutti_type *types);
#define tutti_fifo_queue(graph, capacity, ...)                                                     \
    tutti_fifo_queue_named(graph, NULL, capacity, __VA_ARGS__)
#define tutti_fifo_queue_named(graph, name, capacity, ...)                                         \
    TUTTI_AT(                                                                                      \
        (tutti_fifo_queue)((graph), (name), (capacity),                                            \
                           (int)(sizeof((const tutti_type[]){__VA_ARGS__}) / sizeof(tutti_type)),  \
                           (const tutti_type[]){__VA_ARGS__}))
#define TUTTI_QUEUE_TYPES_(...)                                                                    \
    (int)(sizeof((const tutti_type[]){__VA_ARGS__}) / sizeof(tutti_type)), (const tutti_type[])    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* A queue out of which any of its tuples comes, drawn by the seed. `min_after_dequeue` tuples stay
 * in it to mix with, until it is closed; the capacity must be larger, or 0. */
TUTTI_API tutti_sym tutti_shuffle_queue(tutti_graph *graph, const char *name, int64_t capacity,
                                        int64_t min_after_dequeue, int64_t seed, int count,
                                        const tutti_type *types);
#define tutti_shuffle_queue(graph, capacity, min_after_dequeue, seed, ...)                         \
    tutti_shuffle_queue_named(graph, NULL, capacity, min_after_dequeue, seed, __VA_ARGS__)
#define tutti_shuffle_queue_named(graph, name, capacity, min_after_dequeue, seed, ...)             \
    TUTTI_AT((tutti_shuffle_queue)((graph), (name), (capacity), (min_after_dequeue), (seed),       \
                                   TUTTI_QUEUE_TYPES_(__VA_ARGS__)))
/* A queue out of which the tuple with the lowest priority comes first, of equal ones the first that
 * came. The priority is one more component, an i64 scalar before the others: tutti_enqueue(q,
 * priority, x), and dequeues give it as output 0. */
TUTTI_API tutti_sym tutti_priority_queue(tutti_graph *graph, const char *name, int64_t capacity,
                                         int count, const tutti_type *types);
#define tutti_priority_queue(graph, capacity, ...)                                                 \
    tutti_priority_queue_named(graph, NULL, capacity, __VA_ARGS__)
#define tutti_priority_queue_named(graph, name, capacity, ...)                                     \
    TUTTI_AT((tutti_priority_queue)((graph), (name), (capacity), TUTTI_QUEUE_TYPES_(__VA_ARGS__)))
/* First in, first out; dequeue_many and dequeue_up_to fill tuples up with zeros (false, "") behind,
 * to the largest of the batch along each dimension that is TUTTI_ANY. */
TUTTI_API tutti_sym tutti_padding_queue(tutti_graph *graph, const char *name, int64_t capacity,
                                        int count, const tutti_type *types);
#define tutti_padding_queue(graph, capacity, ...)                                                  \
    tutti_padding_queue_named(graph, NULL, capacity, __VA_ARGS__)
#define tutti_padding_queue_named(graph, name, capacity, ...)                                      \
    TUTTI_AT((tutti_padding_queue)((graph), (name), (capacity), TUTTI_QUEUE_TYPES_(__VA_ARGS__)))
/* One tuple in; a node to be run as a target. */
TUTTI_API tutti_sym tutti_enqueue(tutti_sym queue, int count, const tutti_sym *components);
#define tutti_enqueue(queue, ...) TUTTI_AT(tutti_enqueue((queue), TUTTI_SYMS(__VA_ARGS__)))
/* As many tuples as the components have rows along axis 0; no other run's tuples come between them.
 */
TUTTI_API tutti_sym tutti_enqueue_many(tutti_sym queue, int count, const tutti_sym *components);
#define tutti_enqueue_many(queue, ...)                                                             \
    TUTTI_AT(tutti_enqueue_many((queue), TUTTI_SYMS(__VA_ARGS__)))
/* One tuple out. Returns component 0; tutti_sym_output gives the others. A queue that is closed and
 * empty gives TUTTI_CLOSED. */
TUTTI_API tutti_sym tutti_dequeue(tutti_sym queue);
#define tutti_dequeue(...) TUTTI_AT(tutti_dequeue(__VA_ARGS__))
/* n tuples, stacked along a new axis 0. When the queue is closed with fewer left, these stay and
 * the run fails with TUTTI_OUT_OF_RANGE. */
TUTTI_API tutti_sym tutti_dequeue_many(tutti_sym queue, int64_t n);
#define tutti_dequeue_many(...) TUTTI_AT(tutti_dequeue_many(__VA_ARGS__))
/* The same, but a closed queue gives the 1 to n that are left. */
TUTTI_API tutti_sym tutti_dequeue_up_to(tutti_sym queue, int64_t n);
#define tutti_dequeue_up_to(...) TUTTI_AT(tutti_dequeue_up_to(__VA_ARGS__))
/* Tuples inside now: an i64 scalar. */
TUTTI_API tutti_sym tutti_queue_size(tutti_sym queue);
#define tutti_queue_size(...) TUTTI_AT(tutti_queue_size(__VA_ARGS__))
/* Tuples that have come in since the queue was made, those before a checkpoint among them: an i64
 * scalar. Where whoever fills the queue goes on after --resume; in a job of several processes,
 * where checkpoints hold no queues, that follows from the steps done. */
TUTTI_API tutti_sym tutti_queue_arrived(tutti_sym queue);
#define tutti_queue_arrived(...) TUTTI_AT(tutti_queue_arrived(__VA_ARGS__))
/* No more tuples come in, also after --resume. `cancel`: waiting enqueues fail too, otherwise they
 * finish. */
TUTTI_API tutti_sym tutti_queue_close(tutti_sym queue, bool cancel);
#define tutti_queue_close(...) TUTTI_AT(tutti_queue_close(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
