/* optimizer_ema.c: running means of the weights. */
#include <stdio.h>
#include <stdlib.h>

#include "nn/optimizers/optimizer.h"
#include "ops/build.h"
#include "state/state.h"

tutti_sym tutti__optimizer_ema(const tutti_update *update, tutti_sym moved)
{
    tutti_sym inputs[] = {tutti__optimizer_slot(update, "ema", 0), moved, update->step,
                          update->apply};
    tutti_attr decay = TUTTI_FLOAT("decay", update->optimizer->ema_decay);
    return (tutti_apply_op)(tutti_sym_graph(moved), "ema_update", update->apply.node ? 4 : 3,
                            inputs, 1, &decay);
}

static void name_mean(char ret_name[700], const tutti_optimizer *optimizer, tutti_sym variable)
{
    snprintf(ret_name, 700, "%s/%s/ema", variable.node->name, optimizer->name);
}

void tutti__optimizer_expect_ema(tutti_graph *graph, const tutti_optimizer *optimizer,
                                 tutti_state *state)
{
    int count = tutti_trainable_variables(graph, 0, NULL);
    tutti_sym *variables = calloc((size_t)count + 1, sizeof *variables);
    if (!variables)
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d running means", count);
    else
        tutti_trainable_variables(graph, count, variables);
    for (int i = 0; variables && i < count; i++) {
        char name[700];
        name_mean(name, optimizer, variables[i]);
        tutti_update update = {.variable = variables[i], .optimizer = optimizer};
        if (!tutti_graph_find(graph, name) && tutti__state_expected(state, name))
            tutti__optimizer_slot(&update, "ema", 0);
    }
    free(variables);
}

static tutti_sym mean_of(tutti_graph *graph, const tutti_optimizer *optimizer, tutti_sym variable)
{
    char full[700];
    name_mean(full, optimizer, variable);
    tutti_node *node = tutti_graph_find(graph, full);
    return node ? (tutti_sym){.node = node, .generation = variable.generation} : TUTTI_NO_SYM;
}

/* Both values are read before either is written: a step has one commit. */
tutti_sym tutti__optimizer_swap_ema(tutti_graph *graph, const tutti_optimizer *optimizer)
{
    int count = tutti_trainable_variables(graph, 0, NULL), made = 0;
    tutti_sym *variables = calloc((size_t)count + 1, sizeof *variables);
    tutti_sym *writes = calloc(2 * (size_t)count + 1, sizeof *writes);
    tutti_sym group = TUTTI_NO_SYM;
    if (!variables || !writes)
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory to swap %d variables", count);
    else
        tutti_trainable_variables(graph, count, variables);
    for (int i = 0; variables && writes && i < count; i++) {
        tutti_sym mean = mean_of(graph, optimizer, variables[i]);
        if (!mean.node)
            continue;
        tutti_sym average = tutti_read(mean), value = tutti_read(variables[i]);
        writes[made++] = tutti_assign(variables[i], average);
        writes[made++] = tutti_assign(mean, value);
    }
    if (made > 0)
        group = (tutti_group)(graph, NULL, made, writes);
    free(variables);
    free(writes);
    return group;
}
