/* cse.c: common sub-expressions. Of nodes that compute the same, the first stands for all: equal
 * operators, attributes, inputs (in any order where the operator commutes), control edges and
 * device wishes. Reads of a variable are equal when they wait for the same updates. */
#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

/* Larger constants are equal only when they are one tensor: comparing them costs more than it
 * saves. */
enum { MAX_CONSTANT_BYTES = 1 << 16 };

/* Variables are known by their name in the state; without one, the node is the name. */
static bool is_mergeable(const tutti_node *node)
{
    const uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                           TUTTI_OP_COLLECTIVE | TUTTI_OP_CONTROL | TUTTI_OP_HANDLE;
    if (tutti__is(node, "variable"))
        return tutti__str(node, "shared_name")[0] != '\0';
    for (int i = 0; node->shardings != NULL && i < node->output_count; i++)
        if (node->shardings[i] != NULL)
            return false;
    return node->output_count > 0 && !(node->op->flags & never);
}

static bool is_large(const tutti_attr *attr)
{
    return attr->kind == TUTTI_ATTR_TENSOR &&
           tutti__known_bytes(tutti_tensor_type(attr->value.tensor)) > MAX_CONSTANT_BYTES;
}

static uint64_t hash_attr(uint64_t hash, const tutti_attr *attr)
{
    if (is_large(attr))
        return tutti__hash_mix(hash, (uint64_t)(uintptr_t)attr->value.tensor);
    return tutti__attr_hash(hash, attr);
}

static bool equal_attrs(const tutti_attr *a, const tutti_attr *b)
{
    if (is_large(a))
        return a->kind == b->kind && a->value.tensor == b->value.tensor;
    return tutti__attr_equal(a, b);
}

static uint64_t hash_edge(tutti_edge edge)
{
    return tutti__hash_mix((uint64_t)(uintptr_t)edge.node, edge.index);
}

/* Order counts only where it changes the result; a sum is the same in any order. */
static uint64_t hash_node(const tutti_node *node)
{
    bool commutes = (node->op->flags & TUTTI_OP_COMMUTATIVE) != 0;
    uint64_t hash = tutti__hash_string((uint64_t)node->op->version, node->op->name), sum = 0;
    for (int i = 0; i < node->input_count; i++)
        sum = (commutes ? sum : tutti__hash_mix(sum, 1)) + hash_edge(node->inputs[i]);
    hash = tutti__hash_mix(hash, sum);
    for (int i = 0; i < node->attr_count; i++)
        hash = hash_attr(hash, &node->attrs[i]);
    hash = tutti__hash_mix(hash, (uint64_t)(uintptr_t)node->colocate);
    sum = 0;
    for (int i = 0; i < node->control_count; i++)
        sum += tutti__hash_mix(3, (uint64_t)(uintptr_t)node->controls[i]);
    return tutti__hash_mix(hash, sum);
}

static bool equal_edges(tutti_edge a, tutti_edge b)
{
    return a.node == b.node && a.index == b.index;
}

static int count_edge(const tutti_node *node, tutti_edge edge)
{
    int count = 0;
    for (int i = 0; i < node->input_count; i++)
        count += equal_edges(node->inputs[i], edge);
    return count;
}

static bool equal_inputs(const tutti_node *a, const tutti_node *b)
{
    bool commutes = (a->op->flags & TUTTI_OP_COMMUTATIVE) != 0;
    if (a->input_count != b->input_count)
        return false;
    for (int i = 0; i < a->input_count; i++) {
        tutti_edge edge = a->inputs[i];
        if (commutes ? count_edge(a, edge) != count_edge(b, edge)
                     : !equal_edges(edge, b->inputs[i]))
            return false;
    }
    return true;
}

static bool waits_for(const tutti_node *node, const tutti_node *control)
{
    for (int i = 0; i < node->control_count; i++)
        if (node->controls[i] == control)
            return true;
    return false;
}

static bool equal_controls(const tutti_node *a, const tutti_node *b)
{
    for (int i = 0; i < a->control_count; i++)
        if (!waits_for(b, a->controls[i]))
            return false;
    for (int i = 0; i < b->control_count; i++)
        if (!waits_for(a, b->controls[i]))
            return false;
    return true;
}

static bool equal_nodes(const tutti_node *a, const tutti_node *b)
{
    if (a->op != b->op || a->attr_count != b->attr_count || a->output_count != b->output_count ||
        a->colocate != b->colocate || strcmp(a->device, b->device) != 0 || !equal_inputs(a, b) ||
        !equal_controls(a, b))
        return false;
    for (int i = 0; i < a->attr_count; i++)
        if (!equal_attrs(&a->attrs[i], &b->attrs[i]))
            return false;
    for (int i = 0; i < a->output_count; i++)
        if (!tutti_type_equal(&a->types[i], &b->types[i]))
            return false;
    return true;
}

/* Open addressing; at most half full. */
typedef struct table {
    tutti_node **slots;
    uint64_t *hashes;
    size_t size; /* a power of two */
} table;

/* An equal node that was there before, or NULL, and then this one is there from now on. */
static tutti_node *find_or_add(table *seen, tutti_node *node)
{
    uint64_t hash = hash_node(node);
    size_t at = (size_t)hash & (seen->size - 1);
    while (seen->slots[at] != NULL) {
        if (seen->hashes[at] == hash && equal_nodes(seen->slots[at], node))
            return seen->slots[at];
        at = (at + 1) & (seen->size - 1);
    }
    seen->slots[at] = node;
    seen->hashes[at] = hash;
    return NULL;
}

static tutti_status merge(tutti_rewrite *rewrite, tutti_node *node, tutti_node *twin)
{
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(
            tutti__rewrite_replace(rewrite, node, (uint32_t)i, (tutti_edge){twin, (uint32_t)i}));
    rewrite->changes -= node->output_count - 1; /* one change, however many outputs */
    return TUTTI_OK;
}

static tutti_status merge_all(tutti_rewrite *rewrite, table *seen)
{
    for (size_t n = 0; n < rewrite->node_count; n++) {
        tutti_node *node = rewrite->graph->nodes.data[n];
        tutti__rewrite_visit(node);
        if (!is_mergeable(node))
            continue;
        tutti_node *twin = find_or_add(seen, node);
        if (twin != NULL)
            TUTTI_TRY(merge(rewrite, node, twin));
    }
    return TUTTI_OK;
}

static tutti_status run(tutti_graph *graph, const tutti_pass_context *context, int *ret_changes)
{
    table seen = {.size = 16};
    while (seen.size < 2 * graph->nodes.count)
        seen.size *= 2;
    seen.slots = calloc(seen.size, sizeof(tutti_node *));
    seen.hashes = calloc(seen.size, sizeof *seen.hashes);
    tutti_rewrite rewrite;
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    if (status == TUTTI_OK && (seen.slots == NULL || seen.hashes == NULL))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a table of %zu nodes", seen.size);
    if (status == TUTTI_OK)
        status = merge_all(&rewrite, &seen);
    free(seen.slots);
    free(seen.hashes);
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

const tutti_pass tutti_pass_cse = {
    .name = "cse",
    .doc = "nodes that compute the same are computed once",
    .stage = TUTTI_PASS_JOB,
    .order = 30,
    .run = run,
};
