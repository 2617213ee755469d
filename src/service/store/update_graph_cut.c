/* update_graph_cut.c: the update rule of a shard, from the one of the whole variable: what has the
 * variable's dimensions (the value, slots, gradients, their first values) gets the shard's. What
 * stands in slots already is cut at the shard's place. */
#include <stdlib.h>

#include "graph/attr.h"
#include "service/store/update_graph.h"

typedef struct graph_cut {
    const tutti_type *whole, *part;
    int axis;
    int64_t begin;
    tutti_graph *from, *to;
    tutti_node **map;              /* by the old id */
    TUTTI_VEC(tutti_tensor *) cut; /* tensors that were made, until the graph has them */
} graph_cut;

/* Dimensions of the whole variable, or of rows of it. */
static bool cut_dims(const graph_cut *c, int rank, int64_t *dims)
{
    bool rows = rank > 0 && dims[0] == TUTTI_ANY;
    if (rank != c->whole->rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (dims[d] != c->whole->dims[d] && !(d == 0 && rows))
            return false;
    if (!(rows && c->axis == 0))
        dims[c->axis] = c->part->dims[c->axis];
    return true;
}

static tutti_status cut_tensor(graph_cut *c, tutti_attr *attr)
{
    tutti_tensor *view = NULL, *part = NULL;
    if (!tutti_type_equal(tutti_tensor_type(attr->value.tensor), c->whole))
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_slice(attr->value.tensor, c->axis, c->begin, c->part->dims[c->axis], 1,
                                 &view));
    tutti_status status = tutti_tensor_contiguous(view, &part);
    tutti_tensor_release(view);
    TUTTI_TRY(status);
    if (!TUTTI_VEC_PUSH(&c->cut, part)) {
        tutti_tensor_release(part);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the update rule of a shard");
    }
    attr->value.tensor = part;
    return TUTTI_OK;
}

static tutti_status cut_attr(graph_cut *c, int64_t room[TUTTI_MAX_RANK], tutti_attr *attr)
{
    if (attr->kind == TUTTI_ATTR_TENSOR && attr->value.tensor)
        return cut_tensor(c, attr);
    if (attr->kind != TUTTI_ATTR_INTS || attr->count > TUTTI_MAX_RANK)
        return TUTTI_OK;
    for (int d = 0; d < attr->count; d++)
        room[d] = attr->value.ints[d];
    if (cut_dims(c, attr->count, room))
        attr->value.ints = room;
    return TUTTI_OK;
}

static tutti_status cut_node(graph_cut *c, const tutti_node *node)
{
    enum { MOST = 64 };
    tutti_edge inputs[MOST];
    tutti_attr attrs[MOST];
    int64_t room[MOST][TUTTI_MAX_RANK];
    tutti_node *made;
    if (node->input_count > MOST || node->attr_count > MOST)
        return tutti_fail(TUTTI_UNSUPPORTED, "an update rule with %d inputs of '%s' cannot be cut",
                          node->input_count, node->name);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = (tutti_edge){c->map[node->inputs[i].node->id], node->inputs[i].index};
    for (int i = 0; i < node->attr_count; i++) {
        attrs[i] = node->attrs[i];
        TUTTI_TRY(cut_attr(c, room[i], &attrs[i]));
    }
    TUTTI_TRY(tutti__node_add(c->to, node->op, node->name, node->input_count, inputs,
                              node->attr_count, attrs, &made));
    for (int i = 0; i < node->control_count; i++)
        TUTTI_TRY(tutti__node_after(made, c->map[node->controls[i]->id]));
    c->map[node->id] = made;
    return TUTTI_OK;
}

static tutti_status cut_graph(graph_cut *c, void **ret_data, size_t *ret_size)
{
    TUTTI_TRY(tutti_graph_create(&c->to));
    c->map = calloc(c->from->nodes.count + 1, sizeof(tutti_node *));
    if (!c->map)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the update rule of a shard");
    for (size_t i = 0; i < c->from->nodes.count; i++)
        if (!c->from->nodes.data[i]->dead)
            TUTTI_TRY(cut_node(c, c->from->nodes.data[i]));
    for (size_t i = 0; i < c->from->targets.count; i++)
        if (!TUTTI_VEC_PUSH(&c->to->targets, c->map[c->from->targets.data[i]->id]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the update rule of a shard");
    return tutti_graph_serialize(c->to, ret_data, ret_size);
}

tutti_status tutti__store_update_graph_cut(tutti_packed_data bytes, const tutti_type *whole,
                                           const tutti_type *part, int axis, int64_t begin,
                                           void **ret_data, size_t *ret_size)
{
    graph_cut c = {.whole = whole, .part = part, .axis = axis, .begin = begin};
    TUTTI_TRY(tutti_graph_deserialize(bytes.bytes, bytes.size, &c.from));
    tutti_status status = cut_graph(&c, ret_data, ret_size);
    for (size_t i = 0; i < c.cut.count; i++)
        tutti_tensor_release(c.cut.data[i]);
    TUTTI_VEC_FREE(&c.cut);
    free(c.map);
    tutti_graph_destroy(c.to);
    tutti_graph_destroy(c.from);
    return status == TUTTI_OK ? status : tutti__error_prefix(status, "the update rule of a shard");
}
