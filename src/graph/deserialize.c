/* deserialize.c: bytes as a graph; serialize.h describes them. The bytes are hostile until proven
 * otherwise:
 *  1. No memory is taken for more than a small multiple of the bytes that are left.
 *  2. Every index is checked where it is read. Edges name earlier nodes, so there are no cycles.
 *  3. Operators are looked up by name and version; their own shape rules give the types. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/reader.h"
#include "tensor/type.h"

/* What a node's record holds until the node is made. Tensors and graphs among the
 * attributes have one reference each. */
typedef struct record {
    tutti_arena arena;
    tutti_node like;
    tutti_attr attrs[TUTTI_GRAPH_MAX_ATTRS];
    int attr_count;
} record;

static void record_clear(record *node)
{
    for (int i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind == TUTTI_ATTR_TENSOR)
            tutti_tensor_release(node->attrs[i].value.tensor);
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            tutti_graph_destroy(node->attrs[i].value.graph);
    }
    node->attr_count = 0;
    tutti__arena_reset(&node->arena);
}

static tutti_status lack_memory(const char *what)
{
    return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for %s", what);
}

static tutti_status get_list(tutti_reader *r, record *node, tutti_attr *attr)
{
    static const size_t sizes[] = {[TUTTI_ATTR_STRING] = 1,
                                   [TUTTI_ATTR_INTS] = 8,
                                   [TUTTI_ATTR_FLOATS] = 8,
                                   [TUTTI_ATTR_TYPES] = 4};
    uint32_t count;
    const unsigned char *bytes;
    TUTTI_TRY(tutti__read_count(r, sizes[attr->kind], "elements of an attribute", &count));
    attr->count = (int32_t)count;
    if (attr->kind == TUTTI_ATTR_TYPES) {
        tutti_type *types = tutti__arena_array(&node->arena, count, sizeof *types);
        if (!types)
            return lack_memory("an attribute");
        for (uint32_t i = 0; i < count; i++)
            TUTTI_TRY(tutti__read_type(r, &types[i]));
        attr->value.types = types;
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__read_bytes(r, count * sizes[attr->kind], &bytes));
    attr->value.s = tutti__arena_bytes(&node->arena, bytes, count * sizes[attr->kind]);
    return attr->value.s ? TUTTI_OK : lack_memory("an attribute");
}

static tutti_status get_graph(tutti_reader *r, tutti_graph **ret);

static tutti_status get_attr(tutti_reader *r, record *node)
{
    tutti_attr attr = {0};
    uint32_t kind;
    uint64_t bits;
    TUTTI_TRY(tutti__read_string(r, &attr.name));
    TUTTI_TRY(tutti__read_word(r, &kind));
    attr.kind = (tutti_attr_kind)kind;
    switch (attr.kind) {
    case TUTTI_ATTR_INT:
    case TUTTI_ATTR_FLOAT:
        TUTTI_TRY(tutti__read_long(r, &bits));
        memcpy(&attr.value, &bits, sizeof bits);
        break;
    case TUTTI_ATTR_STRING:
    case TUTTI_ATTR_INTS:
    case TUTTI_ATTR_FLOATS:
    case TUTTI_ATTR_TYPES:
        TUTTI_TRY(get_list(r, node, &attr));
        break;
    case TUTTI_ATTR_TENSOR:
        TUTTI_TRY(tutti__read_tensor(r, &attr.value.tensor));
        break;
    case TUTTI_ATTR_GRAPH:
        TUTTI_TRY(get_graph(r, &attr.value.graph));
        break;
    default:
        return TUTTI_READ_FAIL("attribute '%s' has kind %" PRIu32, attr.name, kind);
    }
    node->attrs[node->attr_count++] = attr;
    return TUTTI_OK;
}

/* The bytes are to blame for what a shape rule refuses. Its message may name the node already. */
static tutti_status deserialize_refuse(const tutti_node *node)
{
    char head[TUTTI_GRAPH_MAX_STRING + 256];
    int size = snprintf(head, sizeof head, "%s '%s'", node->op->name, node->name);
    if (strncmp(tutti_error_message(), head, (size_t)size) == 0)
        return tutti__error_prefix(TUTTI_CORRUPT, "serialised graph");
    return tutti__error_prefix(TUTTI_CORRUPT, "serialised graph: %s", head);
}

/* Makes the node: its attributes are checked and its types are inferred here. */
static tutti_status get_attrs_and_add(tutti_reader *r, tutti_graph *graph, record *node,
                                      tutti_node **ret)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_count(r, 8, "attributes", &count));
    if (count > TUTTI_GRAPH_MAX_ATTRS)
        return TUTTI_READ_FAIL("%s '%s' has %" PRIu32 " attributes, at most %d are allowed",
                               node->like.op->name, node->like.name, count, TUTTI_GRAPH_MAX_ATTRS);
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(get_attr(r, node));
    for (uint32_t i = 0; i < count; i++)
        if (tutti_attr_find(node->attrs, (int)i, node->attrs[i].name))
            return TUTTI_READ_FAIL("%s '%s' has attribute '%s' twice", node->like.op->name,
                                   node->like.name, node->attrs[i].name);
    tutti_status status =
        tutti__node_restore(graph, &node->like, node->attr_count, node->attrs, ret);
    return status == TUTTI_OK || status == TUTTI_NO_MEMORY ? status
                                                           : deserialize_refuse(&node->like);
}

/* A node of this graph that comes before `limit`. */
static tutti_status get_node(tutti_reader *r, const tutti_graph *graph, size_t limit,
                             tutti_node **ret)
{
    uint32_t id;
    TUTTI_TRY(tutti__read_word(r, &id));
    if (id >= limit)
        return TUTTI_READ_FAIL("an edge names node %" PRIu32 ", but must name one before node %zu",
                               id, limit);
    *ret = graph->nodes.data[id];
    return TUTTI_OK;
}

static tutti_status get_edge(tutti_reader *r, const tutti_graph *graph, tutti_edge *ret)
{
    tutti_edge edge = {0};
    TUTTI_TRY(get_node(r, graph, graph->nodes.count, &edge.node));
    TUTTI_TRY(tutti__read_word(r, &edge.index));
    if (edge.index >= (uint32_t)edge.node->output_count)
        return TUTTI_READ_FAIL("an edge names output %" PRIu32 " of %s '%s', which has %d",
                               edge.index, edge.node->op->name, edge.node->name,
                               edge.node->output_count);
    *ret = edge;
    return TUTTI_OK;
}

/* Operator, name, origin and device; the colocated node may come later, so its number is kept. */
static tutti_status get_identity(tutti_reader *r, tutti_graph *graph, tutti_node *like,
                                 uint32_t *ret_colocate)
{
    const char *name, *origin, *device;
    tutti_device_name parsed;
    TUTTI_TRY(tutti__read_operator(r, &like->op));
    TUTTI_TRY(tutti__read_string(r, &name));
    TUTTI_TRY(tutti__read_string(r, &origin));
    TUTTI_TRY(tutti__read_string(r, &device));
    TUTTI_TRY(tutti__read_word(r, ret_colocate));
    if (!name[0] || !origin[0])
        return TUTTI_READ_FAIL("node %zu has no name", graph->nodes.count);
    if (device[0] && tutti_device_parse(device, &parsed) != TUTTI_OK)
        return TUTTI_READ_FAIL("%s '%s': %s", like->op->name, name, tutti_error_message());
    like->name = tutti__arena_string(&graph->arena, name);
    like->origin = origin == name ? like->name : tutti__arena_string(&graph->arena, origin);
    like->device = device[0] ? tutti__arena_string(&graph->arena, device) : "";
    return like->name && like->origin && like->device ? TUTTI_OK : lack_memory("a node's name");
}

/* Output types and input edges, in the record's arena. */
static tutti_status get_shape(tutti_reader *r, const tutti_graph *graph, record *node)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_count(r, 4, "outputs", &count));
    node->like.output_count = (int)count;
    node->like.types = tutti__arena_array(&node->arena, count, sizeof *node->like.types);
    if (!node->like.types)
        return lack_memory("a node's types");
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(tutti__read_type(r, &node->like.types[i]));
    TUTTI_TRY(tutti__read_count(r, 8, "inputs", &count));
    node->like.input_count = (int)count;
    node->like.inputs = tutti__arena_array(&node->arena, count, sizeof *node->like.inputs);
    if (!node->like.inputs)
        return lack_memory("a node's edges");
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(get_edge(r, graph, &node->like.inputs[i]));
    return TUTTI_OK;
}

/* Control edges, in the graph's own arena. */
static tutti_status get_controls(tutti_reader *r, tutti_graph *graph, tutti_node *like)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_count(r, 4, "control edges", &count));
    like->control_count = (int)count;
    like->controls = tutti__arena_array(&graph->arena, count, sizeof *like->controls);
    if (!like->controls)
        return lack_memory("control edges");
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(get_node(r, graph, graph->nodes.count, &like->controls[i]));
    return TUTTI_OK;
}

/* A parameter's type is its word for what it will be given: it may say more than the attributes. */
static bool declares(const tutti_node *node, const tutti_type *type)
{
    int64_t bytes;
    return tutti__is(node, "parameter") && tutti__type_fits(type, &node->types[0]) &&
           (!tutti_type_is_static(type) || tutti__type_bytes(type, &bytes) == TUTTI_OK);
}

/* The types that travelled are those of the shape rule, with or without the values of constants. */
static tutti_status settle_types(tutti_node *node, const record *from)
{
    char stored[TUTTI_TYPE_TEXT], own[TUTTI_TYPE_TEXT];
    bool again = false;
    for (int i = 0; i < node->output_count; i++) {
        if (declares(node, &from->like.types[i]))
            node->types[i] = from->like.types[i];
        again = again || !tutti_type_equal(&node->types[i], &from->like.types[i]);
    }
    tutti_status status = again ? tutti__node_infer_known(node, node->types) : TUTTI_OK;
    if (status != TUTTI_OK)
        return status == TUTTI_NO_MEMORY ? status : deserialize_refuse(node);
    for (int i = 0; again && i < node->output_count; i++)
        if (!tutti_type_equal(&node->types[i], &from->like.types[i]))
            return TUTTI_READ_FAIL(
                "output %d of %s '%s' is announced as %s, but the operator's shape rule says %s", i,
                node->op->name, node->name, tutti_type_text(&from->like.types[i], stored),
                tutti_type_text(&node->types[i], own));
    return TUTTI_OK;
}

static tutti_status add_node(tutti_reader *r, tutti_graph *graph, record *from,
                             uint32_t *ret_colocate)
{
    tutti_node *node = NULL;
    from->like = (tutti_node){0};
    TUTTI_TRY(get_identity(r, graph, &from->like, ret_colocate));
    TUTTI_TRY(get_shape(r, graph, from));
    TUTTI_TRY(get_controls(r, graph, &from->like));
    TUTTI_TRY(get_attrs_and_add(r, graph, from, &node));
    node->controls = from->like.controls;
    node->control_count = from->like.control_count;
    TUTTI_TRY(settle_types(node, from));
    return tutti__read_shardings(r, node);
}

/* A promise of graphs that is broken here was broken in the bytes. */
static tutti_status blame_bytes(tutti_status status)
{
    return status == TUTTI_INVALID ? tutti__error_prefix(TUTTI_CORRUPT, "serialised graph")
                                   : status;
}

static tutti_status settle_colocation(tutti_graph *graph, const uint32_t *colocate)
{
    size_t count = graph->nodes.count;
    for (size_t i = 0; i < count; i++) {
        if (colocate[i] > count)
            return TUTTI_READ_FAIL("node %zu stands beside node %" PRIu32 " of %zu", i,
                                   colocate[i] - 1, count);
        if (colocate[i])
            graph->nodes.data[i]->colocate = graph->nodes.data[colocate[i] - 1];
    }
    return blame_bytes(tutti__graph_check_colocation(graph));
}

static tutti_status get_nodes(tutti_reader *r, tutti_graph *graph)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_count(r, 44, "nodes", &count));
    if (count > r->nodes)
        return tutti_fail(TUTTI_TOO_LARGE, "serialised graph: it has more than %d nodes",
                          TUTTI_GRAPH_MAX_NODES);
    r->nodes -= count;
    uint32_t *colocate = calloc((size_t)count + 1, sizeof *colocate);
    record *from = calloc(1, sizeof *from);
    tutti_status status = colocate && from ? TUTTI_OK : lack_memory("its nodes");
    for (uint32_t i = 0; status == TUTTI_OK && i < count; i++) {
        status = add_node(r, graph, from, &colocate[i]);
        record_clear(from);
    }
    if (status == TUTTI_OK)
        status = settle_colocation(graph, colocate);
    if (from)
        tutti__arena_free(&from->arena);
    free(from);
    free(colocate);
    return status;
}

static tutti_status get_ends(tutti_reader *r, tutti_graph *graph)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_count(r, 8, "results", &count));
    for (uint32_t i = 0; i < count; i++) {
        tutti_edge edge;
        TUTTI_TRY(get_edge(r, graph, &edge));
        TUTTI_TRY(tutti__graph_result(graph, edge));
    }
    TUTTI_TRY(tutti__read_count(r, 4, "targets", &count));
    for (uint32_t i = 0; i < count; i++) {
        tutti_node *node;
        TUTTI_TRY(get_node(r, graph, graph->nodes.count, &node));
        if (!TUTTI_VEC_PUSH(&graph->targets, node))
            return lack_memory("targets");
    }
    return TUTTI_OK;
}

/* Names are looked up when all nodes are there; those of a trace may be equal, and only its handles
 * can be found. */
static tutti_status fill_graph(tutti_reader *r, tutti_graph *graph)
{
    uint32_t flags;
    TUTTI_TRY(tutti__read_word(r, &flags));
    if (flags & ~(uint32_t)TUTTI_GRAPH_TRACE)
        return TUTTI_READ_FAIL("flags %08" PRIx32 " are not known", flags);
    graph->trace = flags & TUTTI_GRAPH_TRACE;
    TUTTI_TRY(get_nodes(r, graph));
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (graph->trace && !(node->op->flags & TUTTI_OP_HANDLE))
            continue;
        if (!graph->trace && tutti__map_get(&graph->by_name, node->name))
            return TUTTI_READ_FAIL("two nodes are named '%s'", node->name);
        TUTTI_TRY(tutti__map_set(&graph->by_name, node->name, node));
    }
    TUTTI_TRY(blame_bytes(tutti__graph_check_parameters(graph)));
    return get_ends(r, graph);
}

static tutti_status get_graph(tutti_reader *r, tutti_graph **ret)
{
    tutti_graph *graph;
    if (r->depth == 0 || r->graphs == 0)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "serialised graph: at most %d sub-graphs, nested %d deep, are read",
                          TUTTI_GRAPH_MAX_GRAPHS, TUTTI_GRAPH_MAX_DEPTH);
    r->graphs--;
    TUTTI_TRY(tutti_graph_create(&graph));
    r->depth--;
    tutti_status status = fill_graph(r, graph);
    r->depth++;
    if (status != TUTTI_OK)
        tutti_graph_destroy(graph);
    else
        *ret = graph;
    return status;
}

/* Leaves the reader at the payload. */
static tutti_status check_header(tutti_reader *r, const void *data, size_t size)
{
    const unsigned char *magic;
    uint32_t version, reserved;
    uint64_t payload, checksum;
    if (!data || size < TUTTI_GRAPH_HEADER || memcmp(data, TUTTI_GRAPH_MAGIC, 8) != 0)
        return TUTTI_READ_FAIL("%zu bytes that do not begin like one", data ? size : 0);
    TUTTI_TRY(tutti__read_bytes(r, 8, &magic));
    TUTTI_TRY(tutti__read_word(r, &version));
    TUTTI_TRY(tutti__read_word(r, &reserved));
    TUTTI_TRY(tutti__read_long(r, &payload));
    TUTTI_TRY(tutti__read_long(r, &checksum));
    if (payload != r->left)
        return TUTTI_READ_FAIL("%zu bytes follow its header, which announces %" PRIu64, r->left,
                               payload);
    if (checksum != tutti__graph_checksum(data, size))
        return TUTTI_READ_FAIL("its checksum is wrong: the bytes were damaged on their way");
    if (version != TUTTI_GRAPH_VERSION || reserved != 0)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "serialised graph: it has version %" PRIu32
                          ", this library reads version %d",
                          version, TUTTI_GRAPH_VERSION);
    return TUTTI_OK;
}

tutti_status tutti_graph_deserialize(const void *data, size_t size, tutti_graph **ret_graph)
{
    tutti_reader r = {.at = data,
                      .left = size,
                      .nodes = TUTTI_GRAPH_MAX_NODES,
                      .graphs = TUTTI_GRAPH_MAX_GRAPHS,
                      .depth = TUTTI_GRAPH_MAX_DEPTH};
    tutti_graph *graph = NULL;
    TUTTI_TRY(check_header(&r, data, size));
    tutti_status status = tutti__read_strings(&r);
    if (status == TUTTI_OK)
        status = get_graph(&r, &graph);
    if (status == TUTTI_OK && r.left > 0)
        status = TUTTI_READ_FAIL("%zu bytes are left over at its end", r.left);
    tutti__arena_free(&r.arena);
    if (status != TUTTI_OK)
        tutti_graph_destroy(graph);
    else
        *ret_graph = graph;
    return status;
}
