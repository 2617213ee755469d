/* loss.c: one number of all values that nobody uses, its gradients, and the step of an optimizer.
 */
#include <stdlib.h>

#include "builder.h"

enum { OF_LOSS = 9, OF_TRAIN };

/* A mean over what there is; an empty value counts as its sum, which is 0. */
static tutti_sym mean(tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    return tutti_type_count(&type) == 0 ? tutti_sum(x) : tutti_mean(x);
}

static tutti_sym classes(builder *b, tutti_sym x)
{
    x = with_rank(b, x, 2);
    int64_t dims[1] = {b->batched ? TUTTI_ANY : dim_of(x, 0)};
    tutti_sym labels = feed(b, TUTTI_I32, 1, dims, 0, (double)dim_of(x, 1));
    return mean(tutti_nn_sparse_cross_entropy(labels, x));
}

static tutti_sym part_of_loss(builder *b, tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    bool empty = tutti_type_count(&type) == 0;
    switch (below(b, 6)) {
    case 0:
        return empty || b->fed_count >= MOST_FEEDS - 4 || rank_of(x) < 1 + b->batched
                   ? mean(x)
                   : classes(b, x);
    case 1:
        return mean(tutti_square(x));
    case 2:
        return mean(tutti_nn_sigmoid_cross_entropy(
            tutti_scalar(tutti_sym_graph(x), tutti_sym_type(x).dtype, 0.3), x));
    case 3:
        return tutti_mul(tutti_sum(x), 0.01);
    case 4:
        return any_axis(b, x) < 0 || empty
                   ? mean(x)
                   : mean(tutti_nn_softmax_cross_entropy(
                         tutti_stop_gradient(tutti_softmax(tutti_neg(x))), x));
    default:
        return mean(tutti_mul(x, tutti_tanh(x)));
    }
}

void build_loss(builder *b)
{
    tutti_sym loss = TUTTI_NO_SYM;
    for (int i = 0; i < b->starts + b->steps; i++) {
        if (b->used[i])
            continue;
        b->draw = draws_of(b->recipe.seed, OF_LOSS, (uint64_t)i);
        b->step = b->steps;
        tutti_sym part = part_of_loss(b, b->values[i]);
        b->outputs[b->output_count++] = b->values[i];
        loss = tutti_sym_ok(loss) ? tutti_add(loss, part) : part;
    }
    b->loss = loss;
}

static tutti_optimizer draw_optimizer(builder *b)
{
    double clip = one_in(b, 4) ? 0.05 : 0, whole = !clip && one_in(b, 4) ? 0.2 : 0,
           each = !clip && !whole && one_in(b, 4) ? 0.1 : 0, decay = one_in(b, 4) ? 0.01 : 0;
#define COMMON                                                                                     \
    .clip_value = clip, .clip_norm = each, .global_clip_norm = whole, .weight_decay = decay
    switch (below(b, 8)) {
    case 0:
        return tutti_adam(.learning_rate = 0.01, .epsilon = 1e-2, COMMON);
    case 1:
        return tutti_sgd(0.1, .momentum = 0.9, .nesterov = one_in(b, 2), COMMON);
    case 2:
        return tutti_rmsprop(.learning_rate = 0.01, .epsilon = 1e-2,
                             .momentum = one_in(b, 2) ? 0.5 : 0, COMMON);
    case 3:
        return tutti_adagrad(.learning_rate = 0.01, COMMON);
    case 4:
        return tutti_adamw(.learning_rate = 0.01, .epsilon = 1e-2, COMMON);
    case 5:
        return tutti_adamax(.learning_rate = 0.01, .epsilon = 1e-2, COMMON);
    case 6:
        return tutti_nadam(.learning_rate = 0.01, .epsilon = 1e-2, COMMON);
    default:
        return tutti_sgd(0.1, COMMON);
    }
#undef COMMON
}

void build_gradients(builder *b, tutti_tape *tape)
{
    if (tape)
        tutti_tape_gradients(tape, b->loss, b->weight_count, b->weights, b->grads);
    else
        tutti_gradients(b->loss, b->weight_count, b->weights, b->grads);
    for (int i = 0; i < b->weight_count; i++)
        b->gradients[i] = !tutti_grad_ok(b->grads[i]) ? TUTTI_NO_SYM
                          : tutti_sym_ok(b->grads[i].rows)
                              ? tutti_grad_dense(b->grads[i], b->weights[i])
                              : b->grads[i].value;
}

void build_train(builder *b)
{
    b->draw = draws_of(b->recipe.seed, OF_TRAIN, 0);
    bool any = false;
    for (int i = 0; i < b->weight_count; i++)
        any = any || tutti_sym_ok(b->gradients[i]);
    tutti_optimizer optimizer = draw_optimizer(b);
    b->train = TUTTI_NO_SYM;
    if (any)
        b->train = tutti_apply_gradients(optimizer, b->weight_count, b->weights, b->grads);
    if (any && b->update_count > 0) {
        b->updates[b->update_count++] = b->train;
        b->train = (tutti_group)(b->graph, NULL, b->update_count, b->updates);
    }
}
