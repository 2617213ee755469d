/* cse.c: common sub-expressions. Of nodes that compute the same, the first stands for all: equal
 * operators, attributes, inputs (in any order where the operator commutes), control edges and
 * device wishes. Reads of a variable are equal when they wait for the same updates. A loop that
 * keeps its history, as its gradient needs it, stands for the same loop without. */
#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

/* Larger constants are equal only when they are one tensor: comparing them costs more than it
 * saves. */
enum { MAX_CONSTANT_BYTES = 1 << 16 };

static bool is_history(const tutti_node *node)
{
    return tutti__is(node, "while_history");
}

static bool runs_pure_graphs(const tutti_node *node);

/* Whether a sub-graph is a function of its inputs: what variables hold they are given by value. */
static bool is_pure_graph(const tutti_graph *graph)
{
    const uint32_t impure = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                            TUTTI_OP_COLLECTIVE | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!tutti__is(node, "parameter") &&
            ((node->op->flags & impure) || !runs_pure_graphs(node)))
            return false;
    }
    return true;
}

static bool runs_pure_graphs(const tutti_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH && !is_pure_graph(node->attrs[i].value.graph))
            return false;
    return true;
}

/* Variables are known by their name in the state; without one, the node is the name. */
static bool is_mergeable(const tutti_node *node)
{
    const uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                           TUTTI_OP_COLLECTIVE | TUTTI_OP_HANDLE;
    if (tutti__is(node, "variable"))
        return tutti__str(node, "shared_name")[0] != '\0';
    for (int i = 0; node->shardings != NULL && i < node->output_count; i++)
        if (node->shardings[i] != NULL)
            return false;
    return node->output_count > 0 && !(node->op->flags & never) && runs_pure_graphs(node);
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

/* Attributes that say what is computed: of a history all but the last, the number of outputs. */
static int attrs_that_count(const tutti_node *node)
{
    return node->attr_count - is_history(node);
}

/* Order counts only where it changes the result; a sum is the same in any order. */
static uint64_t hash_node(const tutti_node *node)
{
    bool commutes = (node->op->flags & TUTTI_OP_COMMUTATIVE) != 0;
    uint64_t hash = tutti__hash_string(0, is_history(node) ? "while" : node->op->name), sum = 0;
    for (int i = 0; i < node->input_count; i++)
        sum = (commutes ? sum : tutti__hash_mix(sum, 1)) + hash_edge(node->inputs[i]);
    hash = tutti__hash_mix(hash, sum);
    for (int i = 0; i < attrs_that_count(node); i++)
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

/* The first outputs of a history are those of the loop. */
static bool equal_operators(const tutti_node *a, const tutti_node *b)
{
    if (a->op == b->op)
        return a->output_count == b->output_count;
    return (is_history(a) && tutti__is(b, "while")) || (is_history(b) && tutti__is(a, "while"));
}

static bool equal_nodes(const tutti_node *a, const tutti_node *b)
{
    if (!equal_operators(a, b) || attrs_that_count(a) != attrs_that_count(b) ||
        a->colocate != b->colocate || strcmp(a->device, b->device) != 0 || !equal_inputs(a, b) ||
        !equal_controls(a, b))
        return false;
    for (int i = 0; i < attrs_that_count(a); i++)
        if (!equal_attrs(&a->attrs[i], &b->attrs[i]))
            return false;
    for (int i = 0; i < a->output_count && i < b->output_count; i++)
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

/* An equal node that was there before, or NULL. This one is there from now on if none was, or if
 * it gives more. */
static tutti_node *find_or_add(table *seen, tutti_node *node)
{
    uint64_t hash = hash_node(node);
    size_t at = (size_t)hash & (seen->size - 1);
    while (seen->slots[at] != NULL) {
        if (seen->hashes[at] == hash && equal_nodes(seen->slots[at], node)) {
            tutti_node *twin = seen->slots[at];
            if (node->output_count > twin->output_count)
                seen->slots[at] = node;
            return twin;
        }
        at = (at + 1) & (seen->size - 1);
    }
    seen->slots[at] = node;
    seen->hashes[at] = hash;
    return NULL;
}

/* What a node did its twin does from now on: a loop need not run for its own sake. */
static tutti_status merge(tutti_rewrite *rewrite, tutti_node *node, tutti_node *twin)
{
    rewrite->marks[node->id].needed = false;
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
            TUTTI_TRY(node->output_count > twin->output_count ? merge(rewrite, twin, node)
                                                              : merge(rewrite, node, twin));
    }
    return TUTTI_OK;
}

static tutti_status cse_run(tutti_graph *graph, const tutti_pass_context *context, int *ret_changes)
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
    .run = cse_run,
};
