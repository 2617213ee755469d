/* serialize.c: a graph as bytes; serialize.h describes them. What the reader would refuse for its
 * size is refused here. */
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "graph/serialize.h"
#include "tensor/tensor.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors travel as they lie in memory");

typedef struct writer {
    tutti_text body;    /* the graph */
    tutti_text strings; /* the table, without its count */
    tutti_map known;    /* string to its index, in `arena` */
    tutti_arena arena;
    size_t nodes, graphs;
    int depth;
} writer;

static void put_word(tutti_text *out, uint64_t value)
{
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    tutti__text_bytes(out, bytes, sizeof bytes);
}

static void put_long(tutti_text *out, uint64_t value)
{
    put_word(out, value & UINT32_MAX);
    put_word(out, value >> 32);
}

/* Writes the index of a string, which joins the table when it is new. */
static tutti_status put_string(writer *w, const char *text)
{
    uint32_t *index = tutti__map_get(&w->known, text);
    if (!index) {
        size_t size = strlen(text);
        if (size > TUTTI_GRAPH_MAX_STRING)
            return tutti_fail(
                TUTTI_TOO_LARGE,
                "serialisation: the name '%.64s…' has %zu bytes, at most %d may travel", text, size,
                TUTTI_GRAPH_MAX_STRING);
        index = tutti__arena_take(&w->arena, sizeof *index);
        if (!index)
            return tutti_fail(TUTTI_NO_MEMORY, "serialisation: no memory for a string");
        *index = (uint32_t)w->known.count;
        TUTTI_TRY(tutti__map_set(&w->known, text, index));
        put_word(&w->strings, size);
        tutti__text_bytes(&w->strings, text, size);
    }
    put_word(&w->body, *index);
    return TUTTI_OK;
}

static void put_type(tutti_text *out, const tutti_type *type)
{
    put_word(out, (uint64_t)type->dtype | (uint64_t)type->rank << 8 | (uint64_t)type->handle << 16);
    for (int i = 0; i < type->rank; i++)
        put_long(out, (uint64_t)type->dims[i]);
}

static tutti_status put_elements(tutti_text *out, const tutti_tensor *tensor)
{
    int64_t count = tutti_tensor_count(tensor);
    if (tutti_tensor_dtype(tensor) != TUTTI_STRING) {
        tutti__text_bytes(out, tutti_tensor_data(tensor),
                          (size_t)count * tutti_dtype_size(tutti_tensor_dtype(tensor)));
        return TUTTI_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        tutti_string s = tutti_tensor_get_string(tensor, i);
        if (s.size > UINT32_MAX)
            return tutti_fail(
                TUTTI_TOO_LARGE,
                "serialisation: a string element has %lld bytes, at most %lld may travel",
                (long long)s.size, (long long)UINT32_MAX);
        put_word(out, (uint64_t)s.size);
        tutti__text_bytes(out, s.data, (size_t)s.size);
    }
    return TUTTI_OK;
}

static tutti_status put_tensor(tutti_text *out, tutti_tensor *tensor)
{
    tutti_tensor *host = NULL, *flat = NULL;
    tutti_status status = tutti__tensor_to_host(tensor, &host);
    if (status == TUTTI_OK)
        status = tutti_tensor_contiguous(host, &flat);
    if (status == TUTTI_OK) {
        put_type(out, tutti_tensor_type(flat));
        status = put_elements(out, flat);
    }
    tutti_tensor_release(flat);
    tutti_tensor_release(host);
    return status;
}

static tutti_status put_graph(writer *w, const tutti_graph *graph);

static tutti_status put_attr(writer *w, const tutti_attr *attr)
{
    uint32_t count = attr->count > 0 ? (uint32_t)attr->count : 0;
    uint64_t bits;
    TUTTI_TRY(put_string(w, attr->name));
    put_word(&w->body, attr->kind);
    switch (attr->kind) {
    case TUTTI_ATTR_INT:
    case TUTTI_ATTR_FLOAT:
        memcpy(&bits, &attr->value, sizeof bits);
        put_long(&w->body, bits);
        return TUTTI_OK;
    case TUTTI_ATTR_TENSOR:
        return put_tensor(&w->body, attr->value.tensor);
    case TUTTI_ATTR_GRAPH:
        return put_graph(w, attr->value.graph);
    default:
        break;
    }
    put_word(&w->body, count);
    if (attr->kind == TUTTI_ATTR_STRING)
        tutti__text_bytes(&w->body, attr->value.s, count);
    if (attr->kind == TUTTI_ATTR_INTS || attr->kind == TUTTI_ATTR_FLOATS)
        tutti__text_bytes(&w->body, attr->value.ints, count * sizeof(int64_t));
    for (uint32_t i = 0; attr->kind == TUTTI_ATTR_TYPES && i < count; i++)
        put_type(&w->body, &attr->value.types[i]);
    return TUTTI_OK;
}

static tutti_status put_sharding(writer *w, const tutti_sharding *sharding)
{
    if (sharding && sharding->count > TUTTI_GRAPH_MAX_AXES)
        return tutti_fail(TUTTI_TOO_LARGE, "serialisation: a sharding has more than %d mesh axes",
                          TUTTI_GRAPH_MAX_AXES);
    put_word(&w->body, sharding ? (uint64_t)sharding->count + 1 : 0);
    for (int i = 0; sharding && i < sharding->count; i++) {
        if (strlen(sharding->shards[i].axis) > TUTTI_GRAPH_MAX_AXIS)
            return tutti_fail(TUTTI_TOO_LARGE,
                              "serialisation: the name of a mesh axis has more than %d bytes",
                              TUTTI_GRAPH_MAX_AXIS);
        TUTTI_TRY(put_string(w, sharding->shards[i].axis));
        put_word(&w->body, sharding->shards[i].kind);
        put_word(&w->body, sharding->shards[i].kind == TUTTI_SPLIT
                               ? (uint64_t)sharding->shards[i].dimension
                               : (uint64_t)sharding->shards[i].reduction);
    }
    return TUTTI_OK;
}

/* Dead nodes do not travel: the position among the living. */
static uint32_t id_of(const tutti_node *node, const uint32_t *ids)
{
    return node->dead ? UINT32_MAX : ids[node->id];
}

static tutti_status put_edges(writer *w, const tutti_node *node, const uint32_t *ids)
{
    put_word(&w->body, (uint64_t)node->input_count);
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i].node->dead)
            return tutti_fail(TUTTI_INTERNAL, "serialisation: %s '%s' uses a node that is gone",
                              node->op->name, node->name);
        put_word(&w->body, id_of(node->inputs[i].node, ids));
        put_word(&w->body, node->inputs[i].index);
    }
    uint32_t controls = 0;
    for (int i = 0; i < node->control_count; i++)
        controls += !node->controls[i]->dead;
    put_word(&w->body, controls);
    for (int i = 0; i < node->control_count; i++)
        if (!node->controls[i]->dead)
            put_word(&w->body, id_of(node->controls[i], ids));
    return TUTTI_OK;
}

static tutti_status put_node(writer *w, const tutti_node *node, const uint32_t *ids)
{
    if (++w->nodes > TUTTI_GRAPH_MAX_NODES)
        return tutti_fail(TUTTI_TOO_LARGE, "serialisation: the graph has more than %d nodes",
                          TUTTI_GRAPH_MAX_NODES);
    if (node->attr_count > TUTTI_GRAPH_MAX_ATTRS)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "serialisation: %s '%s' has %d attributes, at most %d may travel",
                          node->op->name, node->name, node->attr_count, TUTTI_GRAPH_MAX_ATTRS);
    TUTTI_TRY(put_string(w, node->op->name));
    put_word(&w->body, (uint64_t)node->op->version);
    TUTTI_TRY(put_string(w, node->name));
    TUTTI_TRY(put_string(w, node->origin));
    TUTTI_TRY(put_string(w, node->device));
    put_word(&w->body, node->colocate ? id_of(node->colocate, ids) + UINT64_C(1) : 0);
    put_word(&w->body, (uint64_t)node->output_count);
    for (int i = 0; i < node->output_count; i++)
        put_type(&w->body, &node->types[i]);
    TUTTI_TRY(put_edges(w, node, ids));
    put_word(&w->body, (uint64_t)node->attr_count);
    for (int i = 0; i < node->attr_count; i++)
        TUTTI_TRY(put_attr(w, &node->attrs[i]));
    put_word(&w->body, node->shardings ? (uint64_t)node->output_count : 0);
    for (int i = 0; node->shardings && i < node->output_count; i++)
        TUTTI_TRY(put_sharding(w, node->shardings[i]));
    return TUTTI_OK;
}

/* Results and targets. */
static tutti_status put_ends(writer *w, const tutti_graph *graph, const uint32_t *ids)
{
    bool gone = false;
    put_word(&w->body, graph->results.count);
    for (size_t i = 0; i < graph->results.count; i++) {
        gone |= graph->results.data[i].node->dead;
        put_word(&w->body, id_of(graph->results.data[i].node, ids));
        put_word(&w->body, graph->results.data[i].index);
    }
    put_word(&w->body, graph->targets.count);
    for (size_t i = 0; i < graph->targets.count; i++) {
        gone |= graph->targets.data[i]->dead;
        put_word(&w->body, id_of(graph->targets.data[i], ids));
    }
    return gone ? tutti_fail(TUTTI_INTERNAL,
                             "serialisation: a result or target is a node that is gone")
                : TUTTI_OK;
}

static tutti_status put_nodes(writer *w, const tutti_graph *graph, uint32_t *ids)
{
    uint32_t living = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        ids[i] = graph->nodes.data[i]->dead ? UINT32_MAX : living++;
    put_word(&w->body, graph->trace ? TUTTI_GRAPH_TRACE : 0);
    put_word(&w->body, living);
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.data[i]->dead)
            TUTTI_TRY(put_node(w, graph->nodes.data[i], ids));
    return put_ends(w, graph, ids);
}

static tutti_status put_graph(writer *w, const tutti_graph *graph)
{
    TUTTI_TRY(tutti_graph_check(graph));
    if (w->depth == TUTTI_GRAPH_MAX_DEPTH || ++w->graphs > TUTTI_GRAPH_MAX_GRAPHS)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "serialisation: at most %d sub-graphs, nested %d deep, may travel",
                          TUTTI_GRAPH_MAX_GRAPHS, TUTTI_GRAPH_MAX_DEPTH);
    uint32_t *ids = malloc((graph->nodes.count + 1) * sizeof *ids);
    if (!ids)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to serialise %zu nodes", graph->nodes.count);
    w->depth++;
    tutti_status status = put_nodes(w, graph, ids);
    w->depth--;
    free(ids);
    return status;
}

uint64_t tutti__graph_checksum(const void *data, size_t size)
{
    const char *bytes = data;
    uint64_t head = tutti__hash_bytes(0, bytes, TUTTI_GRAPH_CHECKSUM);
    return tutti__hash_bytes(head, bytes + TUTTI_GRAPH_HEADER, size - TUTTI_GRAPH_HEADER);
}

/* Header, table and graph in one piece. */
static tutti_status serialize_join(writer *w, void **ret_data, size_t *ret_size)
{
    tutti_text out = {0};
    tutti__text_bytes(&out, TUTTI_GRAPH_MAGIC, 8);
    put_word(&out, TUTTI_GRAPH_VERSION);
    put_word(&out, 0);
    put_long(&out, 4 + w->strings.size + w->body.size);
    put_long(&out, 0);
    put_word(&out, w->known.count);
    tutti__text_bytes(&out, w->strings.data, w->strings.size);
    tutti__text_bytes(&out, w->body.data, w->body.size);
    if (out.failed || w->strings.failed || w->body.failed) {
        tutti__text_free(&out);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a serialised graph of %zu nodes",
                          w->nodes);
    }
    uint64_t checksum = tutti__graph_checksum(out.data, out.size);
    for (int i = 0; i < 8; i++)
        out.data[TUTTI_GRAPH_CHECKSUM + i] = (char)(checksum >> (8 * i));
    *ret_data = out.data;
    *ret_size = out.size;
    return TUTTI_OK;
}

tutti_status tutti_graph_serialize(const tutti_graph *graph, void **ret_data, size_t *ret_size)
{
    TUTTI_REQUIRE(ret_data);
    TUTTI_REQUIRE(ret_size);
    writer w = {0};
    tutti_status status = put_graph(&w, graph);
    if (status == TUTTI_OK)
        status = serialize_join(&w, ret_data, ret_size);
    tutti__text_free(&w.body);
    tutti__text_free(&w.strings);
    tutti__map_free(&w.known);
    tutti__arena_free(&w.arena);
    return status;
}
