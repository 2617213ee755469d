/* accumulate.c: see accumulate.h. */
#include "nn/training/accumulate.h"

#include <stdio.h>
#include <stdlib.h>

#include "ops/build.h"
#include "ops/state/state.h"

static tutti_sym slot_of(tutti_sym variable)
{
    tutti_graph *graph = tutti_sym_graph(variable);
    tutti_type type = tutti_sym_type(variable);
    char full[700];
    tutti_sym slot = TUTTI_NO_SYM;
    snprintf(full, sizeof full, "%s/accumulated", variable.node->name);
    tutti_init zeros = tutti_init_make(TUTTI_INIT_FULL, 0, 0, type.rank, type.dims);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    TUTTI_WITH_COLOCATION(graph, variable) {
        slot = tutti_get_variable(graph, full, zeros, .not_trainable = true,
                                  .dtype = type.dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32,
                                  .on_read = true, .slot_of = variable.node->name);
    }
    tutti__scopes_show(graph, hidden);
    return slot;
}

static tutti_sym as(tutti_sym x, tutti_dtype dtype)
{
    return tutti_sym_type(x).dtype == dtype ? x : tutti_cast(x, dtype);
}

/* The gradient as the slot has it: dense, in its type. */
static tutti_sym dense(tutti_sym slot, tutti_sym variable, tutti_grad grad)
{
    return as(tutti_grad_dense(grad, variable), tutti_sym_type(slot).dtype);
}

/* Makes a node for each gradient and groups them. */
typedef struct gathering {
    const tutti_sym *variables;
    double factor;
    tutti_grad *taken; /* NULL: add */
} gathering;

static tutti_sym accumulate_gather(const gathering *g, int i, tutti_grad grad)
{
    tutti_sym variable = g->variables[i], slot = slot_of(variable);
    tutti_sym value = dense(slot, variable, grad);
    if (!g->taken)
        return tutti_assign_add(slot, value);
    tutti_sym sum = tutti_add(tutti_read(slot), value);
    sum = g->factor == 1 ? sum : tutti_mul(sum, g->factor);
    g->taken[i] = (tutti_grad){.value = as(sum, tutti_sym_type(variable).dtype)};
    return tutti_assign(slot, tutti_zeros_like(value));
}

static tutti_sym gather_all(const gathering *g, int count, const tutti_grad *grads)
{
    tutti_graph *graph = count > 0 ? tutti_sym_graph(g->variables[0]) : NULL;
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    tutti_sym *nodes = calloc((size_t)count, sizeof *nodes);
    if (!nodes)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d gradients", count);
    int made = 0;
    for (int i = 0; i < count; i++) {
        if (tutti_grad_ok(grads[i]))
            nodes[made++] = accumulate_gather(g, i, grads[i]);
        else if (g->taken)
            g->taken[i] = grads[i];
    }
    tutti_sym group = (tutti_group)(graph, NULL, made, nodes);
    free(nodes);
    return group;
}

tutti_sym tutti__accumulate_add(int count, const tutti_sym *variables, const tutti_grad *grads)
{
    return gather_all(&(gathering){.variables = variables}, count, grads);
}

tutti_sym tutti__accumulate_take(int count, const tutti_sym *variables, const tutti_grad *grads,
                                 double factor, tutti_grad *ret_grads)
{
    return gather_all(&(gathering){.variables = variables, .factor = factor, .taken = ret_grads},
                      count, grads);
}
