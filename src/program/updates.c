/* updates.c: the values of variables around their updates: which are copied out because the memory
 * is written again, which updates go to shadows, which variables a run needs. */
#include <stdlib.h>

#include "program/order.h"

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
}

/* Linked lists, so that nothing looks at all nodes for each of them. */
typedef struct listed {
    const tutti_node *node;
    int32_t position;
    struct listed *next;
} listed;

typedef struct tutti_order_index {
    listed **views;   /* by node id: of its first value, in their order */
    listed **updates; /* by variable: in the order of the sequence */
    listed **made; /* by position and 1: reads and updates whose value is from there; 0: before */
    int32_t *made_at;  /* by node id: for them, that position */
    int32_t *last_use; /* by node id: position of the last use of its first value, also by views;
                          results are used after the end */
    /* Of searches for updates that a read follows. */
    uint32_t *seen; /* by node id: number of the last search that came by */
    uint32_t search;
    const tutti_node **stack;
    int32_t *latest;             /* by variable: the position that it found, or -1 */
    const tutti_node *waits_for; /* the only one that the last read waits for */
    bool knows_all;              /* `latest` holds for every variable */
} tutti_order_index;

/* To the front. */
static bool updates_note(tutti_order *o, listed **list, const tutti_node *node, int32_t position)
{
    listed *one = tutti__arena_take(o->arena, sizeof *one);
    if (!one)
        return false;
    *one = (listed){node, position, *list};
    *list = one;
    return true;
}

/* Of the variable that an input of an update is the handle of; or -1. */
static int32_t slot_of(const tutti_order *o, tutti_edge input)
{
    const tutti_program_value *value = &o->values.data[tutti__order_value_of(o, input)];
    return value->type->handle && value->space == TUTTI_IN_VARIABLE ? (int32_t)value->slot : -1;
}

/* Users come after what they use, so theirs is known when a node is reached from the end. */
static bool note_uses(tutti_order *o, const tutti_node *user)
{
    tutti_order_index *index = o->index;
    bool view = user->op->flags & TUTTI_OP_VIEW;
    int32_t at = view ? index->last_use[user->id] : o->position[user->id];
    for (int i = 0; i < user->input_count; i++) {
        const tutti_node *used = user->inputs[i].node;
        if (user->inputs[i].index != 0)
            continue;
        if (at > index->last_use[used->id])
            index->last_use[used->id] = at;
        if (view && i == 0 && !tutti__is(user, "read") &&
            !updates_note(o, &index->views[used->id], user, o->position[user->id]))
            return false;
    }
    return true;
}

static bool note_updates(tutti_order *o, int32_t position)
{
    const tutti_node *node = o->sequence[position];
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        int32_t slot = slot_of(o, node->inputs[i]);
        if (slot >= 0 && !updates_note(o, &o->index->updates[slot], node, position))
            return false;
    }
    return true;
}

/* The last position up to which the memory of a variable holds what was made at `from`: the next
 * update after it. */
static int32_t valid_until(const tutti_order *o, uint32_t slot, int32_t from)
{
    for (const listed *update = o->index->updates[slot]; update; update = update->next)
        if (update->position > from)
            return update->position;
    return INT32_MAX;
}

/* Notes where a node updates a variable, or all that it does (slot -1); whether it updates any. */
static bool note_latest(const tutti_order *o, const tutti_node *node, int32_t slot)
{
    bool any = false;
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        int32_t updated = slot_of(o, node->inputs[i]), position = o->position[node->id];
        if (updated < 0 || (slot >= 0 && updated != slot))
            continue;
        if (position > o->index->latest[updated])
            o->index->latest[updated] = position;
        any = true;
    }
    return any;
}

/* What a read follows, as far as it was looked at: nothing that stands before `least` counts. */
typedef struct followed {
    const tutti_order *order;
    int32_t slot, least;
    size_t depth;
} followed;

static void follow(followed *f, const tutti_node *before)
{
    const tutti_order *o = f->order;
    tutti_order_index *index = o->index;
    int32_t position = o->position[before->id];
    if (position < f->least || !o->commits[before->id] || index->seen[before->id] == index->search)
        return;
    index->seen[before->id] = index->search;
    index->stack[f->depth++] = before;
    if (note_latest(o, before, f->slot) && f->slot >= 0)
        f->least = position;
}

/* Notes the latest position where what a read follows updates a variable, or every one (slot -1).
 * What stands before the latest one found cannot follow a later one. */
static void search(const tutti_order *o, const tutti_node *read, int32_t slot)
{
    tutti_order_index *index = o->index;
    followed f = {o, slot, slot < 0 ? 0 : index->updates[slot]->position, 0};
    index->search++;
    index->stack[f.depth++] = read;
    while (f.depth > 0) {
        const tutti_node *node = index->stack[--f.depth];
        for (int i = 0; i < node->input_count; i++)
            follow(&f, node->inputs[i].node);
        for (int i = 0; i < node->control_count; i++)
            if (!tutti__keeps_order(node, node->controls[i]))
                follow(&f, node->controls[i]);
    }
}

/* Where the value a read gives was made: -1 before the step, else the position of the update it
 * follows. Of several reads that wait for one node, the second searches for all variables. */
static int32_t read_position(const tutti_order *o, const tutti_node *read, uint32_t slot)
{
    tutti_order_index *index = o->index;
    bool plain = read->control_count == 1 && !o->commits[read->inputs[0].node->id];
    const tutti_node *waits_for = plain ? read->controls[0] : NULL;
    if (!o->commits[read->id] || !index->updates[slot])
        return -1;
    bool again = waits_for && waits_for == index->waits_for;
    if (!again || !index->knows_all) {
        for (int v = 0; again && v < o->program->variable_count; v++)
            index->latest[v] = -1;
        index->latest[slot] = -1;
        search(o, read, again ? -1 : (int32_t)slot);
    }
    index->waits_for = waits_for;
    index->knows_all = again;
    return index->latest[slot];
}

/* Every read, and every update that gives a value. */
static bool note_makers(tutti_order *o, const tutti_node *node)
{
    bool update = (node->op->flags & TUTTI_OP_UPDATES) && node->output_count > 0;
    if (!update && !tutti__is(node, "read"))
        return true;
    uint32_t slot = o->values.data[o->base[node->id]].slot;
    int32_t made = update ? o->position[node->id] : read_position(o, node, slot);
    o->index->made_at[node->id] = made;
    return updates_note(o, &o->index->made[made + 1], node, made);
}

/* From the last to the first, since each goes to the front. */
static tutti_status make_index(tutti_order *o)
{
    size_t nodes = o->node_count + 1, positions = o->sequence_count + 1;
    tutti_order_index *index = o->index = tutti__arena_take(o->arena, sizeof *index);
    if (!index)
        return no_memory();
    index->views = tutti__arena_array(o->arena, nodes, sizeof(listed *));
    index->updates =
        tutti__arena_array(o->arena, (size_t)o->program->variable_count + 1, sizeof(listed *));
    index->made = tutti__arena_array(o->arena, positions, sizeof(listed *));
    index->made_at = tutti__arena_array(o->arena, nodes, sizeof *index->made_at);
    index->last_use = tutti__arena_array(o->arena, nodes, sizeof *index->last_use);
    index->latest =
        tutti__arena_array(o->arena, (size_t)o->program->variable_count + 1, sizeof *index->latest);
    index->seen = tutti__arena_array(o->arena, nodes, sizeof *index->seen);
    index->stack = tutti__arena_array(o->arena, nodes, sizeof *index->stack);
    bool ok = index->views && index->updates && index->made && index->made_at && index->last_use &&
              index->latest && index->seen && index->stack;
    for (size_t n = 0; ok && n < o->node_count; n++)
        index->last_use[n] = -1;
    for (size_t i = 0; ok && i < o->graph->results.count; i++)
        index->last_use[o->graph->results.data[i].node->id] = INT32_MAX - 1;
    for (size_t p = o->sequence_count; ok && p > 0; p--)
        ok = note_updates(o, (int32_t)p - 1);
    for (size_t n = o->node_count; ok && n > 0; n--)
        ok = note_uses(o, o->graph->nodes.data[n - 1]) &&
             note_makers(o, o->graph->nodes.data[n - 1]);
    return ok ? TUTTI_OK : no_memory();
}

tutti_status tutti__order_mark_updates(tutti_order *o)
{
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
            int32_t slot = slot_of(o, node->inputs[i]);
            if (slot < 0)
                continue;
            tutti_program_variable *variable = &o->program->variables[slot];
            if (!variable->updated) /* what the first update does not need, nobody sees */
                variable->keep = !(node->op->flags & TUTTI_OP_OVERWRITES);
            variable->updated = true;
            o->program->updates = true;
        }
    }
    return make_index(o);
}

static tutti_status move_views(tutti_order *o, const tutti_node *node)
{
    listed *moved = NULL;
    if (!updates_note(o, &moved, node, 0))
        return no_memory();
    while (moved) {
        node = moved->node;
        moved = moved->next;
        for (const listed *use = o->index->views[node->id]; use; use = use->next) {
            tutti_program_value view = o->values.data[o->moved[node->id]];
            view.type = &use->node->types[0];
            o->moved[use->node->id] = tutti__order_value(o, view);
            if (o->moved[use->node->id] < 0 || !updates_note(o, &moved, use->node, 0))
                return no_memory();
        }
    }
    return TUTTI_OK;
}

/* From here on the node's value, and views of it, are read from a copy made at this point. What was
 * emitted before has read the variable itself. */
static tutti_status materialize(tutti_order *o, const tutti_node *node)
{
    int32_t source = o->base[node->id];
    tutti_program_value copy = {.space = TUTTI_IN_ARENA, .root = -1, .type = &node->types[0]};
    int32_t index = tutti__order_value(o, copy);
    if (index < 0)
        return no_memory();
    TUTTI_TRY(tutti__order_instruction(o, node, tutti__copy_bytes, 1, &source, 1, &index));
    o->moved[node->id] = index;
    return move_views(o, node);
}

tutti_status tutti__order_save(tutti_order *o, int32_t made_at)
{
    for (const listed *made = o->index->made[made_at + 1]; made; made = made->next) {
        const tutti_node *node = made->node;
        const tutti_program_value *value = &o->values.data[o->base[node->id]];
        bool in_shadow =
            o->shadow && o->shadow[value->slot] >= 0 && value->root == o->shadow[value->slot];
        if ((value->space != TUTTI_IN_VARIABLE && !in_shadow) ||
            !o->program->variables[value->slot].updated)
            continue;
        /* An update that takes the memory which it writes as a value too may meet rows it has
         * written. */
        if (o->index->last_use[node->id] >= valid_until(o, value->slot, made_at))
            TUTTI_TRY(materialize(o, node));
    }
    return TUTTI_OK;
}

/* Whether a node's value is one of after an update of the variable in whose memory it lies. */
static bool is_new(const tutti_order *o, const tutti_node *node, uint32_t slot)
{
    if (o->shadow[slot] < 0)
        return false;
    if (node->op->flags & TUTTI_OP_UPDATES)
        return true;
    if (tutti__is(node, "read"))
        return o->index->made_at[node->id] >= 0;
    return o->values.data[o->base[node->inputs[0].node->id]].root == o->shadow[slot];
}

tutti_status tutti__order_shadows(tutti_order *o)
{
    o->shadow =
        tutti__arena_array(o->arena, (size_t)o->program->variable_count + 1, sizeof *o->shadow);
    if (!o->shadow)
        return no_memory();
    for (int v = 0; v < o->program->variable_count; v++) {
        o->shadow[v] = -1;
        tutti_program_variable *variable = &o->program->variables[v];
        if (!variable->updated)
            continue;
        tutti_program_value stand_in = {
            .space = TUTTI_IN_ARENA, .root = -1, .type = &variable->piece->type};
        tutti_program_value source = {.space = TUTTI_IN_VARIABLE,
                                      .slot = (uint32_t)v,
                                      .root = -1,
                                      .type = &variable->piece->type};
        int32_t from = tutti__order_value(o, source), to = tutti__order_value(o, stand_in);
        if (from < 0 || to < 0)
            return no_memory();
        o->shadow[v] = to;
        if (variable->keep) {
            variable->read = true;
            TUTTI_TRY(tutti__order_instruction(o, o->graph->nodes.data[0], tutti__copy_bytes, 1,
                                               &from, 1, &to));
        }
    }
    for (size_t n = 0; n < o->node_count; n++) {
        const tutti_node *node = o->graph->nodes.data[n];
        if (node->output_count == 0 || !o->commits[n])
            continue;
        tutti_program_value *value = &o->values.data[o->base[n]];
        if (value->space == TUTTI_IN_VARIABLE && !value->type->handle &&
            is_new(o, node, value->slot)) {
            value->root = o->shadow[value->slot];
            value->space = TUTTI_IN_ARENA;
        }
    }
    return TUTTI_OK;
}

tutti_status tutti__order_move_shadows(tutti_order *o)
{
    for (int v = 0; v < o->program->variable_count; v++) {
        if (o->shadow[v] < 0)
            continue;
        tutti_program_value target = {.space = TUTTI_IN_VARIABLE,
                                      .slot = (uint32_t)v,
                                      .root = -1,
                                      .type = &o->program->variables[v].piece->type};
        int32_t to = tutti__order_value(o, target);
        if (to < 0)
            return no_memory();
        TUTTI_TRY(tutti__order_instruction(o, o->graph->nodes.data[0], tutti__copy_bytes, 1,
                                           &o->shadow[v], 1, &to));
        o->program->variables[v].keep = false;
    }
    return TUTTI_OK;
}

/* Notes what an instruction of the commit writes. */
static void note_written(const tutti_order *o, const tutti_instruction *instruction, bool *written)
{
    for (int i = 0;
         (instruction->node->op->flags & TUTTI_OP_UPDATES) && i < instruction->input_count; i++) {
        const tutti_program_value *value = &o->values.data[instruction->inputs[i]];
        if (value->type->handle && value->space == TUTTI_IN_VARIABLE)
            written[value->slot] = true;
    }
}

/* `written`: by variable, whether an instruction before this one has. */
static void mark_reads(tutti_order *o, const tutti_instruction *instruction, bool committing,
                       const bool *written)
{
    if (tutti__is(instruction->node, "is_initialized"))
        return;
    for (int i = 0; i < instruction->input_count; i++) {
        const tutti_program_value *value = &o->values.data[instruction->inputs[i]];
        if (value->space != TUTTI_IN_VARIABLE)
            continue;
        tutti_program_variable *variable = &o->program->variables[value->slot];
        bool changing = committing && variable->updated;
        if (changing && (value->type->handle || written[value->slot]))
            continue;
        variable->read = true;
        variable->keep = variable->keep || changing;
    }
}

/* A variable is read when its memory is used before the first update of it; in the commit the old
 * value must then still be there. */
tutti_status tutti__order_mark_reads(tutti_order *o)
{
    bool *written =
        tutti__arena_array(o->arena, (size_t)o->program->variable_count + 1, sizeof *written);
    if (!written)
        return no_memory();
    for (size_t i = 0; i < o->instructions.count; i++) {
        const tutti_instruction *instruction = &o->instructions.data[i];
        bool committing = i >= o->program->commit_at;
        mark_reads(o, instruction, committing, written);
        if (committing)
            note_written(o, instruction, written);
    }
    return TUTTI_OK;
}
