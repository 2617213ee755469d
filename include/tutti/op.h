/* op.h: what an operator is. The library's operators and users' own are the same kind of thing: one
 * const descriptor. See docs/add-an-operator.md.
 * tables: tutti_op */
#ifndef TUTTI_OP_H
#define TUTTI_OP_H

#include "tutti/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an operator's rules see of a node: types, attributes, and input values that are already
 * known. A rule that needs an unknown dimension leaves TUTTI_ANY. */
typedef struct tutti_infer {
    const tutti_op *op;
    const char *name; /* of the node, for messages */
    int input_count, output_count;
    const tutti_type *inputs;
    const tutti_attr *attrs; /* complete: defaults are filled in, in the order of op->attrs */
    int attr_count;
    tutti_tensor *const *values; /* per input: its constant value or NULL; the array may be NULL */
    tutti_type *outputs;         /* to be written by the shape rule */
} tutti_infer;

/* Attributes by name. The operator's table of attributes guarantees that they are there. */
TUTTI_API const tutti_attr *tutti_attr_find(const tutti_attr *attrs, int count, const char *name);
TUTTI_API int64_t tutti_attr_int(const tutti_attr *attrs, int count, const char *name);
TUTTI_API double tutti_attr_float(const tutti_attr *attrs, int count, const char *name);
TUTTI_API const char *tutti_attr_string(const tutti_attr *attrs, int count, const char *name);
TUTTI_API int tutti_attr_ints(const tutti_attr *attrs, int count, const char *name,
                              const int64_t **ret_values);

/* Gradient rule: called once per node with the gradients of its outputs (TUTTI_NO_SYM where none
 * flows); writes the gradient of each wanted input, as new nodes in the same graph. */
typedef struct tutti_gradient_call {
    tutti_graph *graph;
    const char *name;
    int input_count, output_count;
    const tutti_sym *inputs, *outputs;
    const tutti_attr *attrs;
    int attr_count;
    const tutti_sym *output_grads;
    const bool *wanted;
    tutti_sym *input_grads;
    /* Where set, input_grads[i] holds rows and this their indices along axis 0 (a sparse gradient).
     */
    tutti_sym *input_grad_rows;
} tutti_gradient_call;

/* The same outputs by operators that can be cut where this one cannot, as new nodes in the same
 * graph. All dimensions are known. */
typedef struct tutti_expansion {
    tutti_graph *graph;
    const char *name;
    int input_count, output_count;
    const tutti_sym *inputs;
    const tutti_attr *attrs;
    int attr_count;
    tutti_sym *outputs; /* to be written */
    /* Of expand_on: an input that is split, along which dimension and into how many blocks. */
    int input, dimension, ranks;
} tutti_expansion;

/* What one run of a node costs; feeds the planner and the roofline. */
typedef struct tutti_cost {
    double flops, bytes_read, bytes_written;
} tutti_cost;

/* One legal way to cut a node: for each input the axis that is cut or TUTTI_WHOLE; for each output
 * the axis that results, or TUTTI_PARTIAL_*: the pieces are to be combined by that operation.
 * `attr`, when set, names an integer (list) attribute whose element `attr_index` is a size along
 * the cut and must be cut too. `offset`, when set, names an integer attribute that says where the
 * first element stands along the cut (of the first input that is cut, else of the first such
 * output): of a piece it is so much larger. */
enum {
    TUTTI_WHOLE = -1,
    TUTTI_PARTIAL_SUM = -2,
    TUTTI_PARTIAL_MAX = -3,
    TUTTI_PARTIAL_MIN = -4,
    TUTTI_PARTIAL_PROD = -5
};
#define TUTTI_SPLIT_SLOTS 16
typedef struct tutti_split {
    int8_t inputs[TUTTI_SPLIT_SLOTS], outputs[TUTTI_SPLIT_SLOTS];
    const char *attr;
    int attr_index;
    const char *offset;
} tutti_split;

typedef struct tutti_pool tutti_pool;

/* One run of a kernel. Inputs are contiguous unless the kernel says that it takes strides. An input
 * that is a variable's handle is a view of the variable itself: an update writes the new value
 * there, and as output 0 besides (where the device gives both one memory, that is the same). All
 * other inputs must not be changed. A queue's view holds the queue. */
typedef struct tutti_kernel_call {
    const tutti_op *op;
    const char *name; /* of the node, for messages */
    const tutti_attr *attrs;
    int attr_count;
    int input_count, output_count;
    const tutti_view *inputs;
    tutti_view *outputs;
    void *workspace;  /* as many bytes as the kernel asked for, 64-byte aligned */
    void *plan;       /* what the kernel's prepare made */
    tutti_pool *pool; /* for tutti_parallel; NULL is one thread */
    void *context;    /* the device's own */
    int64_t deadline; /* monotonic ns; blocking kernels give up then */
} tutti_kernel_call;

/* Runs piece(context, i) for i in [0, count) on the device's threads. Cut work by shape only. */
TUTTI_API void tutti_parallel(const tutti_kernel_call *call, int64_t count,
                              void (*piece)(void *context, int64_t index), void *context);

/* For operators whose output shape depends on data: gives output `index` its shape and memory. */
TUTTI_API tutti_status tutti_kernel_call_allocate(const tutti_kernel_call *call, int index,
                                                  int rank, const int64_t *dims);

typedef tutti_status tutti_kernel_fn(const tutti_kernel_call *call);

typedef struct tutti_attr_spec {
    const char *name;
    tutti_attr_kind kind;
    const char *fallback; /* as text: "0", "1.5", "true", "[1,1]", "f32"; NULL: must be given */
} tutti_attr_spec;

enum {
    TUTTI_OP_ELEMENTWISE =
        1 << 0, /* output i depends on input elements i only (after broadcasting) */
    TUTTI_OP_COMMUTATIVE = 1 << 1,
    TUTTI_OP_VIEW = 1 << 2,     /* output 0 is input 0's contiguous bytes under another shape */
    TUTTI_OP_STATEFUL = 1 << 3, /* never folded, merged or pruned by value */
    TUTTI_OP_UPDATES =
        1 << 4, /* writes the variables among its inputs; output 0 is the new value */
    TUTTI_OP_BLOCKING = 1 << 5, /* may wait for another run */
    TUTTI_OP_FALLIBLE = 1 << 6, /* its kernel may fail on bad values: an update that does is made
                                   in a copy first, so that the variable keeps its value */
    TUTTI_OP_DYNAMIC = 1 << 7,  /* output shapes may depend on data */
    TUTTI_OP_RANDOM =
        1 << 8, /* deterministic in its inputs, but splitting needs the global index */
    TUTTI_OP_COLLECTIVE = 1 << 9, /* meets its peers along a mesh axis */
    TUTTI_OP_CONTROL = 1 << 10,   /* runs sub-graphs; the runner executes it */
    TUTTI_OP_HANDLE = 1 << 11,    /* output 0 is a handle (variable, queue) */
    TUTTI_OP_TAKES_HANDLE =
        1 << 12,                    /* input 0 (and any other handle) stays a handle, is not read */
    TUTTI_OP_NO_GRADIENT = 1 << 13, /* differentiating through it is zero, not an error */
    TUTTI_OP_HOST = 1 << 14,        /* its kernel runs on the host whatever the device */
    TUTTI_OP_OVERWRITES = 1 << 15,  /* an update that does not need the old value */
    TUTTI_OP_LINEAR = 1 << 16,      /* f(a + b, c + d) = f(a, c) + f(b, d) */
    TUTTI_OP_LINEAR_EACH = 1 << 17, /* f(a + b, c) = f(a, c) + f(b, c), and so in every input */
    TUTTI_OP_LINEAR_FIRST = 1 << 18 /* in input 0 only */
};

/* An operator. Slots marked (optional) may be NULL. */
struct tutti_op {
    uint32_t struct_size;
    const char *name; /* lower_case; users put their own prefix and a dot before it */
    int version;
    const char *doc;            /* one line with the formula: "relu(x): y = max(x, 0)" */
    const char *category;       /* "element-wise", "shape", … for the manual */
    int min_inputs, max_inputs; /* max -1: any number */
    int outputs;                /* -1: as many as attribute "outputs" (INT) or "types" says */
    uint32_t flags;
    const tutti_attr_spec *attrs; /* (optional) ends with a NULL name */

    tutti_status (*infer)(tutti_infer *node);            /* the shape rule */
    tutti_status (*gradient)(tutti_gradient_call *node); /* (optional) */
    void (*cost)(const tutti_infer *node,
                 tutti_cost *ret_cost); /* (optional) bytes in and out, one FLOP an element */
    int (*split)(const tutti_infer *node, int capacity,
                 tutti_split *ret); /* (optional) how many ways; writes at most capacity */
    tutti_status (*expand)(tutti_expansion *node); /* (optional) */
    tutti_kernel_fn
        *reference; /* (optional for views and control) right for every type it accepts */

    /* Element-wise operators: one element. The generic reference kernel calls them. */
    double (*scalar)(const double *x, const tutti_attr *attrs, int attr_count); /* (optional) */
    int64_t (*scalar_int)(const int64_t *x, const tutti_attr *attrs,
                          int attr_count); /* (optional) integers and bools, exactly */

    /* Sample nodes for tests, benchmarks and fuzzing, NULL-terminated. "f32[2,3] f32[3]{0.1:2} |
     * axis=1": types with an optional range {low:high} or values {=1,2,3}, then attributes. */
    const char *const *samples;

    /* (optional) As expand, for an input that is split along one dimension, where no way to cut the
     * operator keeps it so: each rank works on its block, and what the ranks exchange is less than
     * the input. Leaves `outputs` as they are where it knows nothing better for that dimension. */
    tutti_status (*expand_on)(tutti_expansion *node);
};

/* Makes a user's operator known to this process by name; the descriptor must outlive its use.
 * TUTTI_EXISTS when the name and version are taken. Thread-safe. */
TUTTI_API tutti_status tutti_op_register(const tutti_op *op);
/* Finds by "name" (newest version) or "name@version"; NULL when unknown. */
TUTTI_API const tutti_op *tutti_op_find(const char *name);
/* All operators, in order of name; returns their number, writes at most `capacity`. */
TUTTI_API size_t tutti_op_list(size_t capacity, const tutti_op **ret_ops);

/* Ready-made rules for element-wise operators. */
TUTTI_API tutti_status tutti_infer_same(tutti_infer *node); /* output 0 has input 0's type */
TUTTI_API tutti_status
tutti_infer_broadcast(tutti_infer *node); /* all inputs broadcast, same dtype */
TUTTI_API tutti_status tutti_infer_compare(tutti_infer *node); /* as broadcast, output bool */
TUTTI_API tutti_status tutti_reference_elementwise(const tutti_kernel_call *call);
TUTTI_API int tutti_split_elementwise(const tutti_infer *node, int capacity, tutti_split *ret);

/* Checks an operator's own samples: shape rule, reference kernel, gradient against finite
 * differences, split rule by cutting into 2 and 3 pieces. For tests of users' operators too. */
TUTTI_API tutti_status tutti_op_selftest(const tutti_op *op);

/* Sum over the axes that broadcasting `like` up to `grad`'s shape repeated. */
TUTTI_API tutti_sym tutti_unbroadcast(tutti_sym grad, tutti_sym like);

#ifdef __cplusplus
}
#endif
#endif
