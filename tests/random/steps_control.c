/* steps_control.c: branches, loops, scopes of recomputation. */
#include "builder.h"

static void gentle(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                   void *context)
{
    ret[0] = tutti_tanh(tutti_add(args[0], tutti_mul(args[1], 0.5)));
}
static void steep(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                  void *context)
{
    ret[0] = tutti_mul(tutti_relu(args[0]), tutti_sigmoid(tutti_sub(args[1], args[0])));
}

static tutti_sym branch(builder *b, tutti_sym x)
{
    tutti_sym y = like_shaped(b, x);
    tutti_sym asked = tutti_greater(tutti_sum(x), 0.05);
    return tutti_cond(asked, gentle, steep, NULL, TUTTI_SYMS(x, y), 1, NULL);
}

static void more(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_less(args[0], args[2]);
}
static void once(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret, void *context)
{
    ret[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I32, 1));
    ret[1] = tutti_tanh(tutti_add(tutti_mul(args[1], 0.9), args[3]));
}

static tutti_sym loop(builder *b, tutti_sym x)
{
    tutti_sym results[2], w = weight_against(b, x);
    tutti_while(more, once, NULL, TUTTI_SYMS(tutti_scalar(b->graph, TUTTI_I32, 0), x),
                TUTTI_SYMS(tutti_scalar(b->graph, TUTTI_I32, below(b, 4)), w), results);
    return results[1];
}

static tutti_sym computed_again(builder *b, tutti_sym x)
{
    tutti_remat_push(b->graph);
    for (int i = 0; i < 3; i++)
        x = tutti_tanh(tutti_add(activation(b, x), weight_against(b, x)));
    tutti_remat_pop(b->graph);
    return x;
}

/* A running mean, as batch norm keeps one: the step sees the value of before. */
static tutti_sym running_mean(builder *b, tutti_sym x)
{
    if (!recipe_stateful(b->recipe.seed) || rank_of(x) < 1 + b->batched || dim_of(x, -1) < 1)
        return tutti_neg(x);
    int64_t channels = dim_of(x, -1);
    tutti_axes axes = {rank_of(x) - 1};
    for (int i = 0; i < axes.count; i++)
        axes.values[i] = i;
    tutti_dtype kept = b->dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
    tutti_sym v = tutti_variable(b->graph, tutti_full(0.3, channels), .not_trainable = true,
                                 .dtype = kept, .name = "running");
    tutti_sym old = tutti_read(v);
    tutti_sym mean = axes.count ? tutti_mean(x, .axes = axes) : x;
    mean = tutti_cast(tutti_stop_gradient(mean), kept);
    tutti_sym update = one_in(b, 2)
                           ? tutti_assign(v, tutti_add(tutti_mul(old, 0.9), tutti_mul(mean, 0.1)))
                           : tutti_assign_add(v, tutti_mul(mean, 0.1));
    b->updates[b->update_count++] = update;
    return tutti_sub(x, tutti_cast(old, b->dtype));
}

/* As many elements as the data says, in between. */
static tutti_sym picked(builder *b, tutti_sym x)
{
    if (b->recipe.seed % 2 == 0) /* see tape.c */
        return tutti_tanh(x);
    tutti_sym flat = tutti_reshape(x, -1);
    tutti_sym where = tutti_nonzero(tutti_greater(flat, 0.1));
    tutti_sym some = tutti_gather(flat, tutti_reshape(where, -1), 0);
    return tutti_add(x, tutti_mul(tutti_sum(tutti_tanh(some)), 0.02));
}

const step_kind control_steps[] = {
    {"running_mean", running_mean, 3},
    {"picked", picked, 1, true},
    {"branch", branch, 2},
    {"loop", loop, 2},
    {"computed_again", computed_again, 2},
    {0},
};
