/* tape_minimize.c: one update of a model's weights from a loss on its tape, and what follows it. */
#include "nn/model/model.h"
#include "nn/optimizers/optimizer.h"
#include "ops/build.h"

/* Without those that the optimizer freezes; NULL: of all. */
static tutti_sym constrain(tutti_model *model, const tutti_optimizer *optimizer, tutti_sym update)
{
    tutti_graph *graph = tutti_sym_graph(update);
    tutti_sym all[1024];
    int count = 0;
    if (!model || !graph)
        return update;
    const tutti_building *noted = tutti__last_applied(model, graph);
    if (noted && noted->constraints.count >= TUTTI_COUNT(all))
        return tutti__poison(graph, TUTTI_TOO_LARGE, "more than 1023 weights with a constraint");
    all[count++] = update;
    for (size_t i = 0; noted && i < noted->constraints.count; i++) {
        const tutti_constrained *weight = &noted->constraints.data[i];
        if (!optimizer || !tutti__optimizer_freezes(optimizer, weight->variable.node))
            all[count++] = tutti__constrain(weight, update);
    }
    return count > 1 ? (tutti_group)(graph, NULL, count, all) : update;
}

tutti_sym(tutti_apply_constraints)(tutti_model *model, tutti_sym update)
{
    return constrain(model, NULL, update);
}

/* Why a step of tutti_tape_minimize would train nothing, or NULL. */
static const char *nothing_to_train(const tutti_model *model, const tutti_graph *graph)
{
    if (!model->eager || tutti_eager_graph(model->eager) != graph)
        return "the loss is not of the model's own tape; begin it with "
               "TUTTI_TAPE(tape, tutti_model_eager(model))";
    if (!model->built)
        return "it has no weights yet; call it with tutti_apply, or tutti_build before";
    if (tutti_trainable_variables(graph, 0, NULL) == 0)
        return "all of its weights are frozen, or it has none";
    return NULL;
}

void tutti_tape_minimize(tutti_tape *tape, tutti_optimizer optimizer, tutti_sym loss,
                         tutti_model *model)
{
    tutti_sym variables[1024];
    tutti_grad grads[1024];
    tutti_graph *graph = tutti_sym_graph(loss);
    if (!model || !graph) {
        tutti__poison(graph  ? graph
                      : tape ? tape->graph
                             : NULL,
                      TUTTI_INVALID, "tutti_tape_minimize: the %s; a call before has failed",
                      model ? "loss is no symbol" : "model is NULL");
        return;
    }
    const char *nothing = nothing_to_train(model, graph);
    if (nothing) {
        tutti__poison(graph, TUTTI_INVALID, "tutti_tape_minimize: model '%s' trains nothing: %s",
                      model->name, nothing);
        return;
    }
    int count = tutti_trainable_variables(graph, 1024, variables);
    if (count > 1024) {
        tutti__poison(graph, TUTTI_TOO_LARGE, "more than 1024 weights on a tape");
        return;
    }
    int moving = tutti__optimizer_leave_frozen(&optimizer, count, variables);
    if (moving == 0) /* the optimizer says so */
        moving = tutti_trainable_variables(graph, 1024, variables);
    (tutti_tape_gradients)(tape, loss, moving, variables, grads);
    constrain(model, &optimizer, (tutti_apply_gradients)(optimizer, moving, variables, grads));
}
