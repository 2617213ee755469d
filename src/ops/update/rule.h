/* rule.h: an optimizer's rule: what one element of a variable, and of its slots, becomes under a
 * gradient. One rule serves two operators, "<name>_update" and "<name>_update_rows", and their
 * kernels.
 *
 * Inputs of both: variable, slots..., gradient (or indices, rows), lr f32 [], step i64 [] where the
 * rule counts steps, scale f32 [] where the attribute "scaled" says so, and perhaps apply bool []:
 * when it is false nothing changes. The rule sees the gradient times `scale`, then within [-clip,
 * clip] where the attribute "clip" is above 0. With "parts" above 1 only elements of part "part"
 * are read and written: others do the rest, in the same memory. With "bucket" above 0 the
 * gradient lies "offset" elements from the beginning of so many, of which part "part" of "parts" is
 * here (tutti__owned_bounds): other processes do the rest, in memory of theirs, and the new values
 * are written over the gradient as well, to be sent from there; where nothing changes, the present
 * ones are.
 *
 * tables: tutti_update_rule
 */
#ifndef TUTTI_OPS_UPDATE_RULE_H
#define TUTTI_OPS_UPDATE_RULE_H

#include "ops/update/update.h"

enum {
    TUTTI_UPDATE_SLOTS = 3,    /* at most */
    TUTTI_UPDATE_NUMBERS = 12, /* at most */
    /* numbers[0] of every rule: what is left of the variable before the rule moves it, 1 - lr
     * weight_decay (decoupled decay). A rule that decays in its own way writes 1 here. */
    TUTTI_UPDATE_KEEP = 0
};

typedef struct tutti_update_rule {
    const char *name;
    int slots;
    int (*slot_count)(const tutti_attr *attrs, int count); /* (optional) where attributes decide */
    bool counts_steps;
    bool no_rate;                 /* there is no input lr */
    int flops;                    /* per element */
    const char *const *fractions; /* attributes that must lie in [0, 1), then NULL; all other floats
                                     must not be negative */
    /* What `element` needs, from the attributes, the rate and the step (1 in the first), into
     * numbers[1...]. */
    void (*numbers)(const tutti_attr *attrs, int count, double lr, double step, double *numbers);
    /* x: the variable's element, already multiplied by numbers[0], then the slots'. */
    void (*element)(const double *numbers, double g, double *x);

    /* (optional, both) Rules that go by norms: the quantity whose norm over the whole variable
     * counts, and what the norms make of the numbers. */
    double (*measure)(const double *numbers, double g, const double *x);
    void (*trust)(double *numbers, double variable_norm, double measured_norm);
} tutti_update_rule;

/* Where an update finds its inputs; -1: there is none. */
typedef struct tutti_update_layout {
    const tutti_update_rule *rule;
    int slots; /* inputs 1 to slots */
    int indices, gradient, lr, step, scale, apply;
    int inputs; /* of all; with `apply` where the node has that many */
} tutti_update_layout;
tutti_update_layout tutti__update_layout(const tutti_op *op, const tutti_attr *attrs,
                                         int attr_count, int input_count);

/* Whether this run is to change nothing: the last input is a bool and false. Kernels then only give
 * the variable's value. */
bool tutti__update_skipped(const tutti_kernel_call *call);
/* What a gradient is multiplied by, and the largest size that is left of it; INFINITY: any. */
double tutti__update_scale(const tutti_kernel_call *call, const tutti_update_layout *layout);
double tutti__update_clip(const tutti_kernel_call *call);
/* The elements [*ret_first, *ret_end) of `count` that the node updates: all, with the attributes
 * "part" and "parts" those of its part. Every element is in one part; bounds are at multiples of
 * 64, and of 16 where it is a part of a bucket.
 */
void tutti__update_part(const tutti_attr *attrs, int attr_count, int64_t count, int64_t *ret_first,
                        int64_t *ret_end);
/* Whether they are parts of a bucket. */
bool tutti__update_owned(const tutti_attr *attrs, int attr_count);
/* The parts by numbers. */
void tutti__update_bounds(int64_t count, int64_t part, int64_t parts, int64_t *ret_first,
                          int64_t *ret_end);
/* The rule's numbers for this run. */
void tutti__update_numbers(const tutti_kernel_call *call, const tutti_update_layout *layout,
                           double ret_numbers[TUTTI_UPDATE_NUMBERS]);

/* What the descriptors of all update operators name. */
tutti_status tutti__update_infer(tutti_infer *node);
tutti_status tutti__update_reference(const tutti_kernel_call *call);
void tutti__update_cost(const tutti_infer *node, tutti_cost *ret);
/* Rules without norms only. */
int tutti__update_split(const tutti_infer *node, int capacity, tutti_split *ret);

#define TUTTI_UPDATE_FLAGS (TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL)
/* What all rules have: devices that share a variable's memory each update their part of it, and so
 * do processes, each in its own memory. */
#define TUTTI_UPDATE_PARTS                                                                         \
    {"part", TUTTI_ATTR_INT, "0"}, {"parts", TUTTI_ATTR_INT, "0"},                                 \
        {"bucket", TUTTI_ATTR_INT, "0"},                                                           \
    {                                                                                              \
        "offset", TUTTI_ATTR_INT, "0"                                                              \
    }
/* What all rules that take a rate have; "scaled" and "clip" are for a pass, which folds clipping
 * in. */
#define TUTTI_UPDATE_ATTRS                                                                         \
    {"weight_decay", TUTTI_ATTR_FLOAT, "0"}, {"scaled", TUTTI_ATTR_INT, "false"},                  \
        {"clip", TUTTI_ATTR_FLOAT, "0"}, TUTTI_UPDATE_PARTS

/* Attributes, short, inside rules. */
#define ATTR_FLOAT(name) tutti_attr_float(attrs, count, name)
#define ATTR_FLAG(name) (tutti_attr_int(attrs, count, name) != 0)

/* The numbers of each rule, by name: its reference and its kernels use them. */
enum {
    SGD_RATE = 1,
    SGD_MOMENTUM,
    SGD_INNER,   /* factor of g in the momentum: -lr, in torch's form 1 */
    SGD_OUTER,   /* factor of the whole move: 1, in torch's form -lr */
    SGD_OF_SLOT, /* the move is SGD_OF_SLOT m + SGD_OF_GRADIENT g */
    SGD_OF_GRADIENT
};
enum {
    ADAM_BETA1 = 1,
    ADAM_REST1, /* 1 - beta1 */
    ADAM_BETA2,
    ADAM_REST2,
    ADAM_EPSILON,
    ADAM_RATE,    /* Keras' form: lr sqrt(1 - b2^t) / (1 - b1^t); torch's: lr / (1 - b1^t) */
    ADAM_INVERSE, /* what the second moment is multiplied by: 1; torch's form 1 / (1 - b2^t) */
    ADAM_AMSGRAD  /* 1 or 0 */
};
enum { ADAGRAD_RATE = 1, ADAGRAD_INSIDE, ADAGRAD_OUTSIDE };
enum { ADADELTA_RATE = 1, ADADELTA_RHO, ADADELTA_REST, ADADELTA_EPSILON };
enum {
    RMSPROP_RHO = 1,
    RMSPROP_REST,
    RMSPROP_INSIDE,  /* epsilon under the root: Keras' form */
    RMSPROP_OUTSIDE, /* epsilon beside the root: torch's */
    RMSPROP_MOMENTUM,
    RMSPROP_CENTERED,
    RMSPROP_INNER, /* factor of what enters the momentum: lr, in torch's form 1 */
    RMSPROP_OUTER  /* factor of the momentum in the move: 1, in torch's form lr */
};
enum {
    ADAMAX_BETA1 = 1,
    ADAMAX_REST1,
    ADAMAX_BETA2,
    ADAMAX_INSIDE,  /* epsilon beside |g|: torch's form */
    ADAMAX_OUTSIDE, /* epsilon beside u: Keras' */
    ADAMAX_RATE
};
enum {
    NADAM_BETA1 = 1,
    NADAM_REST1,
    NADAM_BETA2,
    NADAM_REST2,
    NADAM_EPSILON,
    NADAM_OF_MEAN,     /* lr u' / (1 - U u') */
    NADAM_OF_GRADIENT, /* lr (1 - u) / (1 - U) */
    NADAM_INVERSE      /* 1 / (1 - b2^t) */
};
enum {
    LAMB_BETA1 = 1,
    LAMB_REST1,
    LAMB_BETA2,
    LAMB_REST2,
    LAMB_EPSILON,
    LAMB_RATE, /* lr, after `trust` times the ratio of the norms */
    LAMB_INVERSE1,
    LAMB_INVERSE2
};
enum { EMA_DECAY = 1, EMA_REST };
enum { LARS_RATE = 1, LARS_MOMENTUM, LARS_NESTEROV, LARS_DECAY, LARS_TRUST, LARS_EPSILON };
enum { LION_BETA1 = 1, LION_REST1, LION_BETA2, LION_REST2, LION_RATE };

#endif
