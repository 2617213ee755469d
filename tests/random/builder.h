/* builder.h: from a recipe (a seed and the steps left out) to a graph.
 *
 * A step has random numbers of its own, takes whatever value it is given and makes what else it
 * needs to fit: so any step can be left out, and those that used its value take its input instead.
 * The same recipe is built in several data types; weights and fed values are rounded to what all of
 * them hold. */
#ifndef TESTS_RANDOM_BUILDER_H
#define TESTS_RANDOM_BUILDER_H

#include "draw.h"
#include "tutti/tutti.h"

enum { MOST_STEPS = 40, MOST_STARTS = 3, MOST_FEEDS = 32, MOST_WEIGHTS = 160 };
enum { MOST_VALUES = MOST_STARTS + MOST_STEPS };

typedef struct random_recipe {
    uint64_t seed;
    uint64_t dropped; /* bit i: step i is left out */
} random_recipe;

/* A placeholder and how it is filled: numbers in [low, high), whole ones for integers. */
typedef struct fed {
    tutti_sym sym;
    tutti_type type; /* dimension 0 TUTTI_ANY: the batch */
    double low, high;
    bool counter; /* the number of the round */
} fed;

typedef struct builder {
    random_recipe recipe;
    tutti_graph *graph;
    tutti_eager *eager; /* a tape's: values are fed while the graph is built */
    tutti_dtype dtype;  /* that values are computed in */
    bool batched;       /* dimension 0 of every value is the batch, whose size is not known */
    bool scattered;     /* steps stand on devices drawn at random */
    bool sharded;       /* their values are split along dimensions drawn at random */
    bool again;         /* the variables are those of an earlier build */
    int64_t rows;       /* of the batch; a tape's */
    int round;          /* a tape's */

    draws draw; /* of the step being built */
    int step;   /* its number */
    int steps;  /* of the recipe */
    int starts; /* values that are there before step 0 */
    tutti_sym values[MOST_VALUES];
    const char *names[MOST_STEPS];
    bool used[MOST_VALUES];
    int fed_count;
    fed fed[MOST_FEEDS];
    int weight_count, made;
    tutti_sym weights[MOST_WEIGHTS];
    tutti_tensor *held[MOST_FEEDS]; /* what a tape was fed, until build_release */
    int held_count;

    int update_count; /* of state that steps keep */
    tutti_sym updates[MOST_STEPS + 1];
    int output_count; /* what the loss is made of */
    tutti_sym outputs[MOST_VALUES];
    tutti_sym loss, train;
    tutti_sym gradients[MOST_WEIGHTS]; /* of the weights; none where the loss does not depend */
    tutti_grad grads[MOST_WEIGHTS];
} builder;

/* How many steps a seed has, and whether its values have a batch. */
int recipe_steps(uint64_t seed);
bool recipe_batched(uint64_t seed);
bool recipe_large(uint64_t seed);    /* few steps on values large enough for several threads */
bool recipe_stateful(uint64_t seed); /* steps may update state of their own */
int64_t recipe_rows(uint64_t seed, int round);

/* Builds values, loss, gradients and the update into b->graph. The mistakes of a build are the
 * graph's (tutti_graph_check). */
void build(builder *b);
/* The loss of the values nobody uses; its gradients and an optimizer's step. */
void build_loss(builder *b);
void build_gradients(builder *b, tutti_tape *tape); /* NULL: of a plain graph */
void build_train(builder *b);
void build_release(builder *b);
/* The value of fed `index` in a round: a new tensor. */
tutti_tensor *feed_value(const builder *b, int index, int round, int64_t rows);

/* ---- what steps are made of ---- */

static inline int below(builder *b, int limit)
{
    return draw_below(&b->draw, limit);
}
static inline bool one_in(builder *b, int n)
{
    return below(b, n) == 0;
}
static inline int rank_of(tutti_sym x)
{
    return tutti_sym_type(x).rank;
}
static inline int64_t dim_of(tutti_sym x, int axis)
{
    tutti_type type = tutti_sym_type(x);
    return axis < 0 ? type.dims[type.rank + axis] : type.dims[axis];
}

int64_t odd_size(builder *b, int most);         /* 1, primes, beside the widths of vectors */
int first_axis(const builder *b);               /* that a step may do as it likes with */
int any_axis(builder *b, tutti_sym x);          /* one of these; -1: there is none */
tutti_sym earlier(builder *b);                  /* any value there is */
tutti_sym like_shaped(builder *b, tutti_sym x); /* another value of x's shape, or x */
tutti_sym with_rank(builder *b, tutti_sym x, int rank);
tutti_sym at_most(builder *b, tutti_sym x, int axis, int64_t size); /* sliced when longer */
/* A weight: mostly a variable, now and then a constant; numbers in [-scale, scale] round `middle`.
 */
tutti_sym weight(builder *b, double middle, double scale, int rank, const int64_t *dims);
#define WEIGHT(b, middle, scale, ...) weight((b), (middle), (scale), TUTTI_DIMS(__VA_ARGS__))
tutti_sym weight_against(builder *b, tutti_sym x); /* one that broadcasts to x's shape */
/* Something to be fed, of x's leading dimensions or with a batch. */
tutti_sym feed(builder *b, tutti_dtype dtype, int rank, const int64_t *dims, double low,
               double high);
tutti_sym round_counter(builder *b);
tutti_sym activation(builder *b, tutti_sym x); /* one of many, or none */

typedef tutti_sym step_fn(builder *b, tutti_sym x);
typedef struct step_kind {
    const char *name;
    step_fn *make;
    int often;
    bool whole_only; /* not for values whose batch is not known */
} step_kind;
/* Families of steps; each ends with a kind without a name. */
extern const step_kind element_steps[], shape_steps[], matrix_steps[], image_steps[],
    sequence_steps[], row_steps[], control_steps[];

#endif
