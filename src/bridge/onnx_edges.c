/* onnx_edges.c: the edges of the graph that is written: their names in either order of dimensions,
 * and the values of those that are constant. */
#include "bridge/onnx.h"

static tutti_onnx_edge *edge_of(const tutti_onnx_export *x, tutti_edge edge)
{
    return &x->edges[x->start[edge.node->id] + edge.index];
}

const tutti_type *tutti__onnx_type_in(const tutti_onnx_export *x, int i)
{
    return tutti__edge_type(x->node->inputs[i]);
}

/* Weights and constants are written where they are first used, in the form that is wanted there. */
static bool check_there(tutti_onnx_export *x, tutti_edge edge, tutti_onnx_edge *e)
{
    tutti_tensor *value;
    const tutti_node *node;
    if (e->plain || e->first)
        return true;
    if ((tutti__is(edge.node, "read") || tutti__is(edge.node, "constant")) &&
        tutti__onnx_value_of(x, edge, &value, &node)) {
        e->plain = tutti__onnx_weight(x, node, "", value);
        return true;
    }
    tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "output %u of %s '%s' has no form in ONNX",
                           edge.index, edge.node->op->name, edge.node->name);
    return false;
}

const char *tutti__onnx_in(tutti_onnx_export *x, int i)
{
    tutti_edge edge = x->node->inputs[i];
    tutti_onnx_edge *e = edge_of(x, edge);
    int64_t order[TUTTI_MAX_RANK];
    if (!check_there(x, edge, e))
        return "";
    if (!e->plain) {
        int rank = tutti__edge_type(edge)->rank;
        tutti__onnx_last_order(rank, order);
        e->plain = tutti__onnx_turned(x, e->first, rank, order);
    }
    return e->plain;
}

const char *tutti__onnx_in_first(tutti_onnx_export *x, int i)
{
    tutti_edge edge = x->node->inputs[i];
    tutti_onnx_edge *e = edge_of(x, edge);
    int64_t order[TUTTI_MAX_RANK];
    if (!check_there(x, edge, e))
        return "";
    if (!e->first) {
        int rank = tutti__edge_type(edge)->rank;
        tutti__onnx_first_order(rank, order);
        e->first = rank < 3 ? e->plain : tutti__onnx_turned(x, e->plain, rank, order);
    }
    return e->first;
}

/* A vector along the channels stands as [channels, 1, …] beside channels first. */
const char *tutti__onnx_in_as(tutti_onnx_export *x, int i, bool first)
{
    const tutti_type *type = tutti__onnx_type_in(x, i);
    int rank = x->node->types[0].rank;
    int64_t dims[TUTTI_MAX_RANK] = {-1};
    if (!first || type->rank == 0)
        return tutti__onnx_in(x, i);
    if (type->rank > 1)
        return tutti__onnx_in_first(x, i);
    for (int axis = 1; axis < rank - 1; axis++)
        dims[axis] = 1;
    return ONNX(x, "Reshape", tutti__onnx_in(x, i), tutti__onnx_ints(x, rank - 1, dims));
}

bool tutti__onnx_pick(const tutti_onnx_export *x)
{
    int rank = x->node->types[0].rank;
    bool any = false;
    if (rank < 3)
        return false;
    for (int i = 0; i < x->node->input_count; i++) {
        const tutti_type *type = tutti__onnx_type_in(x, i);
        const tutti_onnx_edge *e = edge_of(x, x->node->inputs[i]);
        if (type->rank > 1 && type->rank != rank)
            return false;
        any = any || (type->rank == rank && e->first && !e->plain);
    }
    return any;
}

void tutti__onnx_out_as(tutti_onnx_export *x, int i, const char *name, bool first)
{
    tutti_onnx_edge *e = &x->edges[x->start[x->node->id] + (size_t)i];
    if (x->status != TUTTI_OK)
        return;
    if (first)
        e->first = name;
    else
        e->plain = name;
}

void tutti__onnx_out(tutti_onnx_export *x, int i, const char *name)
{
    tutti__onnx_out_as(x, i, name, false);
}

bool tutti__onnx_wants(const tutti_onnx_export *x, int i)
{
    return x->edges[x->start[x->node->id] + (size_t)i].uses > 0;
}

void tutti__onnx_write_plain(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *inputs[16];
    int count = x->node->input_count;
    if (count > 16) {
        tutti__onnx_write_fail(x, TUTTI_TOO_LARGE, "has more than 16 inputs");
        return;
    }
    for (int i = 0; i < count; i++)
        inputs[i] = tutti__onnx_in_as(x, i, first);
    tutti__onnx_out_as(x, 0, tutti__onnx_node(x, x->rule->type, (size_t)count, inputs), first);
}

/* ---- values ---- */

static bool moves_only(const tutti_node *node)
{
    return tutti__is(node, "reshape") || tutti__is(node, "expand_dims") ||
           tutti__is(node, "squeeze") || tutti__is(node, "flatten");
}

static tutti_status turn(const tutti_node *node, tutti_tensor *value, tutti_tensor **ret)
{
    const int64_t *order;
    int axes[TUTTI_MAX_RANK], rank = node->types[0].rank;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "order", &order);
    tutti_tensor *view;
    for (int i = 0; i < rank; i++)
        axes[i] = count == 0 ? rank - 1 - i : (int)(order[i] < 0 ? order[i] + rank : order[i]);
    TUTTI_TRY(tutti_tensor_permute(value, axes, &view));
    tutti_status status = tutti_tensor_contiguous(view, ret);
    tutti_tensor_release(view);
    return status;
}

/* The value of a node that changes the form of its input only. */
static tutti_status formed(const tutti_node *node, tutti_tensor *value, tutti_tensor **ret)
{
    const tutti_type *type = &node->types[0];
    if (moves_only(node))
        return tutti_tensor_reshape(value, type->rank, type->dims, ret);
    if (tutti__is(node, "cast"))
        return tutti_tensor_cast(value, type->dtype, ret);
    return turn(node, value, ret);
}

static tutti_status filled(const tutti_node *node, tutti_tensor **ret)
{
    const tutti_type *type = &node->types[0];
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, tutti__float(node, "value"));
    *ret = tensor;
    return TUTTI_OK;
}

/* NULL in *ret when the edge is not constant. */
static tutti_status value_of(const tutti_onnx_export *x, tutti_edge edge, int depth,
                             tutti_tensor **ret, const tutti_node **ret_node)
{
    const tutti_node *node = edge.node;
    if (!x->needed[node->id] || depth > 16)
        return TUTTI_OK;
    if (tutti__is(node, "read")) {
        *ret_node = node->inputs[0].node;
        return tutti_session_get(x->session, tutti__sym(node->inputs[0].node, 0), ret);
    }
    if (tutti__is(node, "constant")) {
        const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, "value");
        *ret_node = node;
        *ret = tutti_tensor_retain(attr->value.tensor);
        return TUTTI_OK;
    }
    if (tutti__is(node, "fill")) {
        *ret_node = node;
        return filled(node, ret);
    }
    if (!moves_only(node) && !tutti__is(node, "cast") && !tutti__is(node, "transpose"))
        return TUTTI_OK;
    tutti_tensor *inner = NULL;
    TUTTI_TRY(value_of(x, node->inputs[0], depth + 1, &inner, ret_node));
    if (!inner)
        return TUTTI_OK;
    tutti_status status = formed(node, inner, ret);
    tutti_tensor_release(inner);
    return status;
}

bool tutti__onnx_value_of(tutti_onnx_export *x, tutti_edge edge, tutti_tensor **ret_value,
                          const tutti_node **ret_node)
{
    tutti_tensor *value = NULL;
    const tutti_node *node = NULL;
    tutti_status status = value_of(x, edge, 0, &value, &node);
    if (status != TUTTI_OK)
        tutti__onnx_write_fail(x, status, "%s", tutti_error_message());
    if (!value)
        return false;
    *ret_value = value;
    *ret_node = node;
    return true;
}
