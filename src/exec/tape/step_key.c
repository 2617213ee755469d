/* step_key.c: what a plan of a step is found by: a hash of its trace, in which numbers that change
 * from step to step do not count.
 *
 * A number is a constant of one floating-point element, as a learning rate that decays. Plans are
 * made with it, and are the faster for it, as long as it stays; one that has changed a few times
 * since the same trace was seen first is fed in its place, so that one plan serves all its values.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/tape/eager.h"

enum { CHANGES = 3, TRACES = 64 }; /* before a number is fed; most that are remembered */

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
}

static bool is_number(const tutti_node *node)
{
    return tutti__is(node, "constant") && tutti_dtype_is_float(node->types[0].dtype) &&
           tutti_type_count(&node->types[0]) == 1;
}

static uint64_t hash_attrs(uint64_t h, const tutti_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        h = tutti__attr_hash(h, &node->attrs[i]);
    return h;
}

static uint64_t hash_types(uint64_t h, const tutti_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        h = tutti__hash_type(h, &node->types[i]);
    return h;
}

static uint64_t hash_sharding(uint64_t h, const tutti_sharding *sharding)
{
    for (int i = 0; sharding && i < sharding->count; i++) {
        h = tutti__hash_string(h, sharding->shards[i].axis);
        h = tutti__hash_mix(h, (uint64_t)sharding->shards[i].kind << 8 |
                                   (uint64_t)sharding->shards[i].dimension);
    }
    return h;
}

static uint64_t hash_node(uint64_t h, const tutti_node *node, bool number)
{
    h = tutti__hash_mix(h, (uint64_t)(uintptr_t)node->op);
    for (int i = 0; i < node->input_count; i++)
        h = tutti__hash_mix(h, (uint64_t)node->inputs[i].node->id << 32 | node->inputs[i].index);
    for (int i = 0; i < node->control_count; i++)
        h = tutti__hash_mix(h, ~(uint64_t)node->controls[i]->id);
    if (!number)
        h = hash_attrs(h, node);
    /* Placeholders' shapes are in the key of the request; other types follow from them, and here
     * from numbers. */
    if (number || (node->op->flags & TUTTI_OP_DYNAMIC))
        h = hash_types(h, node);
    for (int i = 0; node->shardings && i < node->output_count; i++)
        h = hash_sharding(tutti__hash_mix(h, 1), node->shardings[i]);
    if (node->device[0])
        h = tutti__hash_string(h, node->device);
    /* Messages name the line, and another step that does the same may stand elsewhere. */
    h = tutti__hash_mix(h, (uint64_t)(uintptr_t)node->file ^ (uint64_t)(uint32_t)node->line);
    if (node->remat)
        h = tutti__hash_mix(h, ~(uint64_t)node->region);
    if (node->stage > 0)
        h = tutti__hash_mix(h, (uint64_t)node->stage << 32);
    return h;
}

static tutti_status extend(tutti_eager *eager)
{
    for (; eager->hashed < eager->graph->nodes.count; eager->hashed++) {
        tutti_node *node = eager->graph->nodes.data[eager->hashed];
        bool number = is_number(node);
        tutti_number n = {.node = node};
        if (number)
            n.hash = hash_attrs(0, node);
        if (number && !TUTTI_VEC_PUSH(&eager->numbers, n))
            return no_memory();
        eager->hash = hash_node(eager->hash, node, number);
    }
    return TUTTI_OK;
}

tutti_status tutti__step_key(tutti_eager *eager, uint64_t *ret_key)
{
    TUTTI_TRY(extend(eager));
    uint64_t h = tutti__hash_mix(eager->hash, eager->hashed);
    for (size_t i = 0; i < eager->numbers.count; i++)
        if (!eager->numbers.data[i].fed)
            h = tutti__hash_mix(h, eager->numbers.data[i].hash);
    *ret_key = h | 1;
    return TUTTI_OK;
}

static void forget(tutti_seen_trace *seen)
{
    free(seen->numbers);
    *seen = (tutti_seen_trace){0};
}

void tutti__step_key_free(tutti_eager *eager)
{
    for (size_t i = 0; i < eager->traces.count; i++)
        forget(&eager->traces.data[i]);
    TUTTI_VEC_FREE(&eager->traces);
    TUTTI_VEC_FREE(&eager->numbers);
}

/* The place of a trace that was not seen before: a new one, or that of the one not seen longest. */
static tutti_seen_trace *make_room(tutti_eager *eager)
{
    tutti_seen_trace none = {0}, *oldest = eager->traces.data;
    if (eager->traces.count < TRACES)
        return TUTTI_VEC_PUSH(&eager->traces, none) ? &eager->traces.data[eager->traces.count - 1]
                                                    : NULL;
    for (size_t i = 1; i < eager->traces.count; i++)
        if (eager->traces.data[i].used < oldest->used)
            oldest = &eager->traces.data[i];
    forget(oldest);
    return oldest;
}

static tutti_seen_trace *step_key_find(tutti_eager *eager)
{
    size_t count = eager->numbers.count;
    uint64_t hash = tutti__hash_mix(eager->hash, eager->hashed);
    tutti_seen_trace *seen = NULL;
    for (size_t i = 0; i < eager->traces.count && !seen; i++)
        if (eager->traces.data[i].hash == hash && eager->traces.data[i].count == count)
            seen = &eager->traces.data[i];
    if (!seen && (seen = make_room(eager)) != NULL) {
        seen->numbers = calloc(count, sizeof *seen->numbers);
        for (size_t i = 0; seen->numbers && i < count; i++)
            seen->numbers[i].hash = eager->numbers.data[i].hash;
        seen->hash = hash;
        seen->count = seen->numbers ? count : 0;
    }
    if (seen)
        seen->used = ++eager->looks;
    return seen;
}

/* Whether it takes values as they come, also while a plan is made. */
static bool takes_any(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_ELEMENTWISE) || tutti__is(node, "assign_add") ||
           tutti__is(node, "assign_sub") ||
           (tutti__is(node, "assign") && !tutti__int(node, "initializer"));
}

/* `seen`, by node: 1 where something uses it that may look at its value before it runs. */
static tutti_status note_users(tutti_eager *eager)
{
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    for (size_t n = 0; n < eager->graph->nodes.count; n++) {
        const tutti_node *node = eager->graph->nodes.data[n];
        for (int i = 0; i < node->input_count && !takes_any(node); i++)
            eager->seen.data[node->inputs[i].node->id] = 1;
    }
    return TUTTI_OK;
}

static tutti_status feed(tutti_eager *eager, tutti_number *number)
{
    tutti_edge edge = {number->node, 0};
    tutti_tensor *value =
        tutti_attr_find(number->node->attrs, number->node->attr_count, "value")->value.tensor;
    if (eager->seen.data[number->node->id] || tutti__eager_known(eager, edge))
        return TUTTI_OK;
    number->fed = true;
    return tutti__eager_remember(eager, edge, tutti_tensor_retain(value));
}

tutti_status tutti__step_numbers(tutti_eager *eager)
{
    bool noted = false;
    TUTTI_TRY(extend(eager));
    tutti_seen_trace *trace = eager->numbers.count > 0 ? step_key_find(eager) : NULL;
    for (size_t i = 0; trace && i < trace->count; i++) {
        tutti_number *now = &eager->numbers.data[i];
        tutti_seen_number *before = &trace->numbers[i];
        if (before->changes < CHANGES && before->hash != now->hash) {
            before->hash = now->hash;
            before->changes++;
        }
        if (before->changes < CHANGES || now->fed)
            continue;
        if (!noted)
            TUTTI_TRY(note_users(eager));
        noted = true;
        TUTTI_TRY(feed(eager, now));
    }
    return TUTTI_OK;
}
