/* optimizer.c: from a loss or gradients to a group of update nodes. */
#include "nn/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"
#include "ops/state/state.h"

/* Full names already: no scope in force may come before them. */
static tutti_sym state(tutti_graph *graph, const char *scope, const char *name, tutti_init init,
                       tutti_dtype dtype)
{
    char full[700];
    snprintf(full, sizeof full, "%s/%s", scope, name);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_sym variable =
        tutti_get_variable(graph, full, init, .not_trainable = true, .dtype = dtype);
    tutti__scopes_show(graph, hidden);
    return variable;
}

tutti_sym tutti_learning_rate(tutti_graph *graph, tutti_optimizer optimizer)
{
    return state(graph, optimizer.name, "learning_rate", tutti_full(optimizer.learning_rate),
                 TUTTI_F32);
}

tutti_sym tutti__optimizer_slot(const tutti_update *update, const char *name)
{
    tutti_graph *graph = tutti_sym_graph(update->variable);
    tutti_type type = tutti_sym_type(update->variable);
    char full[700];
    tutti_sym slot = TUTTI_NO_SYM;
    snprintf(full, sizeof full, "%s/%s/%s", update->variable.node->name, update->optimizer->name,
             name);
    tutti_init zeros = tutti_init_make(TUTTI_INIT_FULL, 0, 0, type.rank, type.dims);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    TUTTI_WITH_COLOCATION(graph, update->variable)
    {
        slot = tutti_get_variable(graph, full, zeros, .not_trainable = true, .dtype = type.dtype,
                                  .slot_of = update->variable.node->name);
    }
    tutti__scopes_show(graph, hidden);
    return slot;
}

tutti_sym(tutti_apply_gradients)(tutti_optimizer optimizer, int count, const tutti_sym *variables,
                                 const tutti_grad *grads)
{
    tutti_graph *graph = count > 0 ? tutti_sym_graph(variables[0]) : NULL;
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    tutti_sym *updates = calloc((size_t)count + 1, sizeof *updates);
    if (!updates)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d updates", count);
    tutti_update update = {.optimizer = &optimizer,
                           .learning_rate = tutti_learning_rate(graph, optimizer)};
    if (optimizer.def->counts_steps) {
        tutti_sym steps = state(graph, optimizer.name, "step", tutti_zeros(), TUTTI_I64);
        update.step = tutti_assign_add(steps, tutti_scalar(graph, TUTTI_I64, 1));
    }
    int made = 0;
    for (int i = 0; i < count; i++) {
        if (!tutti_grad_ok(grads[i]))
            continue;
        update.variable = variables[i];
        update.grad = grads[i];
        updates[made++] = optimizer.def->build(&update);
    }
    if (made == 0)
        tutti__poison(
            graph, TUTTI_INVALID,
            "%s: there is no gradient to apply: the loss depends on none of the %d variables",
            optimizer.name, count);
    tutti_sym group = (tutti_group)(graph, NULL, made, updates);
    free(updates);
    return group;
}

tutti_sym(tutti_minimize)(tutti_optimizer optimizer, tutti_sym loss)
{
    tutti_graph *graph = tutti_sym_graph(loss);
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    int count = tutti_trainable_variables(graph, 0, NULL);
    if (count == 0)
        return tutti__poison(graph, TUTTI_INVALID,
                             "%s: the graph has no trainable variable to move", optimizer.name);
    tutti_sym *variables = calloc((size_t)count, sizeof *variables);
    tutti_grad *grads = calloc((size_t)count, sizeof *grads);
    tutti_sym step = TUTTI_NO_SYM;
    if (!variables || !grads) {
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d gradients", count);
    } else {
        tutti_trainable_variables(graph, count, variables);
        (tutti_differentiate)(loss, count, variables, grads);
        step = (tutti_apply_gradients)(optimizer, count, variables, grads);
    }
    free(variables);
    free(grads);
    return step;
}
