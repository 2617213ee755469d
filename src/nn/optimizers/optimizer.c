/* optimizer.c: from a loss or gradients to a group of update nodes. */
#include "nn/optimizers/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"
#include "ops/state/state.h"

enum { NAME = 700 };

/* The largest learning rate: its products with gradients are to stay within f32. */
#define MOST_RATE 1e30

/* The parts with slashes between them, cut off where there is no room. A trace names every slot in
 * every step: no formatting. */
static void name_of(char full[NAME], int count, const char *const *parts)
{
    char *at = full, *end = full + NAME - 1;
    for (int i = 0; i < count; i++) {
        if (i > 0 && at < end)
            *at++ = '/';
        for (const char *from = parts[i]; *from && at < end;)
            *at++ = *from++;
    }
    *at = '\0';
}

/* Full names already: no scope in force may come before them. */
static tutti_sym state(tutti_graph *graph, const char *scope, const char *name, tutti_init init,
                       tutti_dtype dtype)
{
    char full[NAME];
    name_of(full, 2, (const char *[]){scope, name});
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_sym variable =
        tutti_get_variable(graph, full, init, .not_trainable = true, .dtype = dtype);
    tutti__scopes_show(graph, hidden);
    return variable;
}

tutti_sym(tutti_learning_rate)(tutti_graph *graph, tutti_optimizer optimizer)
{
    if (!graph || !optimizer.def)
        return TUTTI_NO_SYM;
    return state(graph, optimizer.name, "learning_rate",
                 tutti_full(tutti__optimizer_rate(&optimizer, 0)), TUTTI_F32);
}

tutti_sym tutti__optimizer_slot(const tutti_update *update, const char *name, double initial)
{
    tutti_graph *graph = tutti_sym_graph(update->variable);
    tutti_type type = tutti_sym_type(update->variable);
    char full[NAME];
    tutti_sym slot = TUTTI_NO_SYM;
    name_of(full, 3, (const char *[]){update->variable.node->name, update->optimizer->name, name});
    tutti_init init = tutti_init_make(TUTTI_INIT_FULL, initial, 0, type.rank, type.dims);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    TUTTI_WITH_COLOCATION(graph, update->variable) {
        slot = tutti_get_variable(graph, full, init, .not_trainable = true, .dtype = type.dtype,
                                  .slot_of = update->variable.node->name);
    }
    tutti__scopes_show(graph, hidden);
    return slot;
}

enum { MOST_ATTRS = TUTTI_OPTIMIZER_NUMBERS + 5, MOST_SLOTS = 3, MOST_INPUTS = MOST_SLOTS + 6 };

/* The operator's attributes that the optimizer has numbers for. */
static int fill_attrs(const tutti_optimizer *optimizer, const tutti_op *op, tutti_attr *ret)
{
    int count = 0;
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name && count < MOST_ATTRS;
         spec++) {
        double number = strcmp(spec->name, "weight_decay") == 0
                            ? optimizer->weight_decay
                            : tutti__optimizer_number(optimizer, spec->name);
        ret[count++] = spec->kind == TUTTI_ATTR_INT ? TUTTI_INT(spec->name, number != 0)
                                                    : TUTTI_FLOAT(spec->name, number);
    }
    return count;
}

/* The operator for rows, where there is one and only rows move: decay moves all. */
static const tutti_op *rows_op(const tutti_update *update)
{
    char name[64];
    if (!update->grad.rows.node || update->optimizer->weight_decay != 0)
        return NULL;
    snprintf(name, sizeof name, "%s_rows", update->optimizer->def->op);
    return tutti_op_find(name);
}

/* The update node: variable, slots, gradient or indices and rows, rate, step, apply. */
static tutti_sym optimizer_build(const tutti_update *update)
{
    const tutti_optimizer_def *def = update->optimizer->def;
    const tutti_op *rows = rows_op(update), *op = rows ? rows : tutti_op_find(def->op);
    tutti_optimizer_slot slots[MOST_SLOTS];
    tutti_sym inputs[MOST_INPUTS] = {update->variable};
    tutti_attr attrs[MOST_ATTRS];
    int count = 1, slot_count = def->slots ? def->slots(update->optimizer, slots) : 0;
    for (int i = 0; i < slot_count; i++)
        inputs[count++] = tutti__optimizer_slot(update, slots[i].name, slots[i].initial);
    if (rows) {
        inputs[count++] = tutti__value_of(update->grad.rows);
        inputs[count++] = tutti__value_of(update->grad.value);
    } else {
        inputs[count++] = tutti__value_of(tutti_grad_dense(update->grad, update->variable));
    }
    inputs[count++] = tutti__value_of(update->learning_rate);
    if (def->counts_steps)
        inputs[count++] = update->step;
    if (update->apply.node)
        inputs[count++] = update->apply;
    int attr_count = fill_attrs(update->optimizer, op, attrs);
    return (tutti_apply_op)(tutti_sym_graph(update->variable), op->name, count, inputs, attr_count,
                            attrs);
}

/* One more than the steps done, or as many when this one is not applied. */
static tutti_sym count_step(tutti_graph *graph, const tutti_optimizer *optimizer, tutti_sym apply)
{
    tutti_sym steps = state(graph, optimizer->name, "step", tutti_zeros(), TUTTI_I64);
    return tutti_assign_add(steps, apply.node ? tutti_cast(apply, TUTTI_I64)
                                              : tutti_scalar(graph, TUTTI_I64, 1));
}

/* All updates into `ret`; how many. */
static int build_all(const tutti_updates *updates, tutti_graph *graph, const tutti_grad *grads,
                     tutti_sym *ret)
{
    const tutti_optimizer *optimizer = updates->optimizer;
    tutti_update update = {.optimizer = optimizer,
                           .learning_rate = tutti_learning_rate(graph, *optimizer),
                           .apply = updates->apply};
    if (optimizer->def->counts_steps || optimizer->ema_decay != 0)
        update.step = count_step(graph, optimizer, updates->apply);
    bool keeps = tutti__optimizer_keeps_gradients(graph);
    int made = 0;
    for (int i = 0; i < updates->count; i++) {
        if (!tutti_grad_ok(grads[i]))
            continue;
        update.variable = updates->variables[i];
        update.grad = grads[i];
        ret[made++] = optimizer_build(&update);
        if (optimizer->ema_decay != 0) {
            ret[made] = tutti__optimizer_ema(&update, ret[made - 1]);
            made++;
        }
        if (keeps)
            ret[made++] = tutti__optimizer_keep(&update);
    }
    if (made == 0)
        tutti__poison(
            graph, TUTTI_INVALID,
            "%s: there is no gradient to apply: the loss depends on none of the %d variables",
            optimizer->name, updates->count);
    return made;
}

static tutti_graph *graph_of(int count, const tutti_sym *variables)
{
    for (int i = 0; variables && i < count; i++)
        if (tutti_sym_ok(variables[i]))
            return variables[i].node->graph;
    return NULL;
}

tutti_sym tutti__optimizer_apply(const tutti_updates *updates)
{
    int count = updates->count;
    tutti_graph *graph = graph_of(count, updates->variables);
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    if (!updates->grads)
        return tutti__poison(graph, TUTTI_INVALID, "the list of %d gradients is NULL", count);
    if (!updates->optimizer->def)
        return tutti__poison(graph, TUTTI_INVALID,
                             "the optimizer is empty; make one, with tutti_adam() for example");
    if (tutti_schedule_check(&updates->optimizer->schedule) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_INVALID, "%s: %s", updates->optimizer->name,
                             tutti_error_message());
    double rate = tutti__optimizer_rate(updates->optimizer, 0);
    if (!(rate >= 0 && rate <= MOST_RATE))
        return tutti__poison(graph, TUTTI_INVALID, "%s: %g is no learning rate; it is from 0 to %g",
                             updates->optimizer->name, rate, MOST_RATE);
    tutti_sym *nodes = calloc(3 * (size_t)count, sizeof *nodes), group = TUTTI_NO_SYM;
    tutti_grad *grads = calloc((size_t)count, sizeof *grads);
    if (!nodes || !grads) {
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d updates", count);
    } else {
        memcpy(grads, updates->grads, (size_t)count * sizeof *grads);
        tutti__optimizer_clip(updates->optimizer, graph, count, grads);
        int made = build_all(updates, graph, grads, nodes);
        group = (tutti_group)(graph, NULL, made, nodes);
    }
    free(nodes);
    free(grads);
    return group;
}

tutti_sym(tutti_apply_gradients)(tutti_optimizer optimizer, int count, const tutti_sym *variables,
                                 const tutti_grad *grads)
{
    if (count <= 0 || !variables)
        return tutti__poison(NULL, TUTTI_INVALID, "apply_gradients: %s of %d variables %s",
                             variables ? "a list" : "the list", count,
                             variables ? "has none to move" : "is NULL");
    tutti_graph *graph = graph_of(count, variables);
    bool named = graph && optimizer.def && optimizer.name;
    if (named && tutti_graph_check(graph) == TUTTI_OK &&
        tutti__optimizer_check_applied(graph, &optimizer) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
    tutti_sym step = tutti__optimizer_apply(&(tutti_updates){
        .optimizer = &optimizer, .count = count, .variables = variables, .grads = grads});
    if (named && step.node)
        tutti__optimizer_note_applied(graph, &optimizer);
    return step;
}

tutti_sym(tutti_minimize)(tutti_optimizer optimizer, tutti_sym loss)
{
    tutti_graph *graph = tutti_sym_graph(loss);
    if (!graph)
        return tutti__poison_of("minimize", 1, &loss);
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    int count = tutti_trainable_variables(graph, 0, NULL);
    if (count == 0)
        return tutti__poison(graph, TUTTI_INVALID,
                             "%s: the graph has no trainable variable to move",
                             optimizer.name ? optimizer.name : "minimize");
    tutti_sym *variables = calloc((size_t)count, sizeof *variables);
    tutti_grad *grads = calloc((size_t)count, sizeof *grads);
    tutti_sym step = TUTTI_POISON;
    if (!variables || !grads) {
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d gradients", count);
    } else {
        tutti_trainable_variables(graph, count, variables);
        (tutti_gradients)(loss, count, variables, grads);
        step = (tutti_apply_gradients)(optimizer, count, variables, grads);
    }
    free(variables);
    free(grads);
    return step;
}
