/* optimizer.c: from a loss or gradients to a group of update nodes. */
#include "nn/optimizers/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/tape/eager.h"
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
static int fill_attrs(const tutti_update *update, const tutti_op *op, tutti_attr *ret)
{
    const tutti_optimizer *optimizer = update->optimizer;
    int count = 0;
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name && count < MOST_ATTRS;
         spec++) {
        double number = strcmp(spec->name, "weight_decay") == 0
                            ? update->weight_decay
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
    if (!update->grad.rows.node || update->weight_decay != 0)
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
    int attr_count = fill_attrs(update, op, attrs);
    return (tutti_apply_op)(tutti_sym_graph(update->variable), op->name, count, inputs, attr_count,
                            attrs);
}

/* One more than the steps done, or as many when this one is not applied. */
static tutti_sym count_step(tutti_graph *graph, const tutti_optimizer *optimizer, const char *name,
                            tutti_sym apply)
{
    tutti_sym steps = state(graph, optimizer->name, name, tutti_zeros(), TUTTI_I64);
    return tutti_assign_add(steps, apply.node ? tutti_cast(apply, TUTTI_I64)
                                              : tutti_scalar(graph, TUTTI_I64, 1));
}

/* What becomes one target. */
typedef struct building {
    const tutti_updates *updates;
    tutti_graph *graph;
    tutti_grad *grads;                             /* by variable; clipped */
    int *groups;                                   /* by variable; -1: none */
    bool *tables;                                  /* see tutti__optimizer_tables */
    tutti_sym *nodes;                              /* 3 for each variable, 1 for the rate */
    int made, moved;                               /* nodes; variables among them */
    tutti_sym rate, rates[TUTTI_OPTIMIZER_GROUPS]; /* of groups; made when they are needed */
} building;

/* With a schedule the step computes its rate, and writes it where the rate is looked for. A counter
 * of its own: compiling a model anew begins the schedule anew, but not the optimizer's slots. */
static void build_rate(building *b)
{
    const tutti_optimizer *optimizer = b->updates->optimizer;
    b->rate = tutti_learning_rate(b->graph, *optimizer);
    if (!optimizer->schedule.def)
        return;
    tutti_sym variable = b->rate;
    tutti_sym updates = count_step(b->graph, optimizer, "schedule_step", b->updates->apply);
    b->rate = tutti__schedule_rate(&optimizer->schedule, updates);
    b->nodes[b->made++] = tutti_assign(variable, b->rate);
}

static tutti_sym rate_of(building *b, int group)
{
    double factor =
        group >= 0 ? tutti__param_group_factor(&b->updates->optimizer->groups[group]) : 1;
    if (factor == 1)
        return b->rate;
    if (!b->rates[group].node)
        b->rates[group] = tutti_mul(tutti__value_of(b->rate), factor);
    return b->rates[group];
}

static void build_all(building *b)
{
    const tutti_optimizer *optimizer = b->updates->optimizer;
    tutti_update update = {.optimizer = optimizer, .apply = b->updates->apply};
    bool keeps = tutti__optimizer_keeps_gradients(b->graph);
    build_rate(b);
    if (optimizer->def->counts_steps || optimizer->ema_decay != 0)
        update.step = count_step(b->graph, optimizer, "step", b->updates->apply);
    for (int i = 0; i < b->updates->count; i++) {
        if (!tutti_grad_ok(b->grads[i]))
            continue;
        update.variable = b->updates->variables[i];
        update.grad = b->grads[i];
        update.learning_rate = rate_of(b, b->groups[i]);
        update.weight_decay =
            tutti__optimizer_decay(optimizer, b->groups[i], update.variable.node, b->tables);
        b->nodes[b->made++] = optimizer_build(&update);
        b->moved++;
        if (optimizer->ema_decay != 0) {
            b->nodes[b->made] = tutti__optimizer_ema(&update, b->nodes[b->made - 1]);
            b->made++;
        }
        if (keeps)
            b->nodes[b->made++] = tutti__optimizer_keep(&update);
    }
}

/* The group of every variable; gradients of frozen ones are forgotten. */
static int find_groups(building *b)
{
    const tutti_optimizer *optimizer = b->updates->optimizer;
    int frozen = 0;
    for (int i = 0; i < b->updates->count; i++) {
        b->groups[i] = -1;
        if (!tutti_sym_ok(b->updates->variables[i]))
            continue;
        b->groups[i] = tutti__param_group_of(optimizer, b->updates->variables[i].node);
        if (b->groups[i] < 0 || !optimizer->groups[b->groups[i]].frozen)
            continue;
        b->grads[i] = (tutti_grad){0};
        frozen++;
    }
    return frozen;
}

/* The gradients that are clipped together: of one group that clips by itself, or of all others. */
static void clip_some(building *b, int group)
{
    const tutti_updates *updates = b->updates;
    tutti_grad *some = calloc((size_t)updates->count, sizeof *some);
    if (!some) {
        tutti__poison(b->graph, TUTTI_NO_MEMORY, "no memory to clip %d gradients", updates->count);
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < updates->count; i++) {
            int own = b->groups[i];
            if (own >= 0 && !tutti__param_group_clips(&updates->optimizer->groups[own]))
                own = -1;
            if (own == group)
                *(pass ? &b->grads[i] : &some[i]) = pass ? some[i] : b->grads[i];
        }
        if (pass == 0)
            tutti__optimizer_clip(updates->optimizer->name,
                                  tutti__optimizer_clipping(updates->optimizer, group), b->graph,
                                  updates->count, some);
    }
    free(some);
}

static void clip(building *b)
{
    const tutti_optimizer *optimizer = b->updates->optimizer;
    if (optimizer->group_count == 0) {
        tutti__optimizer_clip(optimizer->name, tutti__optimizer_clipping(optimizer, -1), b->graph,
                              b->updates->count, b->grads);
        return;
    }
    clip_some(b, -1);
    for (int i = 0; i < optimizer->group_count; i++)
        if (tutti__param_group_clips(&optimizer->groups[i]))
            clip_some(b, i);
}

static void nothing_moves(const building *b, int frozen)
{
    const tutti_updates *updates = b->updates;
    if (frozen == updates->count)
        tutti__poison(b->graph, TUTTI_INVALID,
                      "%s: there is nothing to move: frozen parameter groups hold all %d variables",
                      updates->optimizer->name, updates->count);
    else
        tutti__poison(
            b->graph, TUTTI_INVALID,
            "%s: there is no gradient to apply: the loss depends on none of the %d variables",
            updates->optimizer->name, updates->count - frozen);
}

static tutti_sym build_target(building *b)
{
    int count = b->updates->count;
    memcpy(b->grads, b->updates->grads, (size_t)count * sizeof *b->grads);
    int frozen = find_groups(b);
    clip(b);
    build_all(b);
    if (b->moved == 0)
        nothing_moves(b, frozen);
    return (tutti_group)(b->graph, NULL, b->made, b->nodes);
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
    if (!updates->checked && tutti__param_groups_check(updates->optimizer, graph) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
    building b = {.updates = updates,
                  .graph = graph,
                  .grads = calloc((size_t)count, sizeof *b.grads),
                  .groups = calloc((size_t)count, sizeof *b.groups),
                  .tables = tutti__optimizer_tables(updates->optimizer, graph),
                  .nodes = calloc(3 * (size_t)count + 1, sizeof *b.nodes)};
    tutti_sym target = TUTTI_NO_SYM;
    if (b.grads && b.groups && b.tables && b.nodes)
        target = build_target(&b);
    else
        tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for %d updates", count);
    free(b.grads);
    free(b.groups);
    free(b.tables);
    free(b.nodes);
    return target;
}

tutti_sym(tutti_apply_gradients)(tutti_optimizer optimizer, int count, const tutti_sym *variables,
                                 const tutti_grad *grads)
{
    if (count <= 0 || !variables)
        return tutti__poison(
            tutti__eager_recording(), TUTTI_INVALID, "apply_gradients: %s of %d variables %s",
            variables ? "a list" : "the list", count, variables ? "has none to move" : "is NULL");
    tutti_graph *graph = graph_of(count, variables);
    bool named = graph && optimizer.def && optimizer.name;
    if (named && tutti_graph_check(graph) == TUTTI_OK &&
        tutti__optimizer_check_applied(graph, &optimizer) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
    tutti_sym step = tutti__optimizer_apply(
        &(tutti_updates){.optimizer = &optimizer,
                         .count = count,
                         .variables = variables,
                         .grads = grads,
                         .checked = named && tutti__optimizer_applied(graph, optimizer.name)});
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
        int moving = tutti__optimizer_leave_frozen(&optimizer, count, variables);
        if (moving == 0) /* to be told so */
            moving = tutti_trainable_variables(graph, count, variables);
        (tutti_gradients)(loss, moving, variables, grads);
        step = (tutti_apply_gradients)(optimizer, moving, variables, grads);
    }
    free(variables);
    free(grads);
    return step;
}
