/* state.c: checks of types for operators on state; see state.h. */
#include "ops/state/state.h"

bool tutti__types_agree(const tutti_type *a, const tutti_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] && a->dims[i] != TUTTI_ANY && b->dims[i] != TUTTI_ANY)
            return false;
    return true;
}

tutti_status tutti__attrs_type(const tutti_infer *node, tutti_type *ret)
{
    const int64_t *dims;
    int rank = tutti_attr_ints(node->attrs, node->attr_count, "dims", &dims);
    int64_t dtype = RULE_INT(node, "dtype");
    if (dtype <= TUTTI_NO_DTYPE || dtype >= TUTTI_DTYPE_END)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "attribute 'dtype' is %lld, which is no data type; give TUTTI_F32 or another",
            (long long)dtype);
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "attribute 'dims' has %d dimensions, at most %d exist", rank,
                         TUTTI_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (dims[i] < TUTTI_ANY)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "attribute 'dims': dimension %d is %lld; give a size, or TUTTI_ANY where "
                "it is not known yet",
                i, (long long)dims[i]);
    *ret = tutti_type_make((tutti_dtype)dtype, rank, dims);
    return TUTTI_OK;
}

tutti_type tutti__queue_type(void)
{
    tutti_type type = {.dtype = TUTTI_U8, .rank = TUTTI_MAX_RANK, .handle = true};
    return type;
}

bool tutti__is_queue_type(const tutti_type *type)
{
    tutti_type queue = tutti__queue_type();
    return type->handle && tutti_type_equal(type, &queue);
}

tutti_status tutti__need_variable(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (tutti__is_queue_type(&node->inputs[i]))
        return RULE_FAIL(node, TUTTI_INVALID, "input %d is a queue, needs a variable", i);
    if (!node->inputs[i].handle)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input %d is a value %s, needs a variable; give what tutti_variable returned", i,
            tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__need_value(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[i].handle)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input %d is a handle of %s, needs a value; read it with tutti_read", i,
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__need_scalar(const tutti_infer *node, int i, tutti_dtype dtype, const char *what)
{
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_value(node, i));
    if (node->inputs[i].dtype != dtype || node->inputs[i].rank != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "input %d (%s) is %s, needs a scalar %s", i, what,
                         tutti_type_text(&node->inputs[i], text), tutti_dtype_name(dtype));
    return TUTTI_OK;
}

tutti_status tutti__need_indices(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_value(node, i));
    if (node->inputs[i].dtype != TUTTI_I32 && node->inputs[i].dtype != TUTTI_I64)
        return RULE_FAIL(node, TUTTI_INVALID, "input %d (indices) is %s, needs i32 or i64", i,
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__need_type(const tutti_infer *node, int i, const tutti_type *type,
                              const char *what)
{
    char own[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_value(node, i));
    if (!tutti__types_agree(&node->inputs[i], type)) {
        tutti_type plain = *type;
        plain.handle = false;
        return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, %s is %s; they must agree", i,
                         tutti_type_text(&node->inputs[i], own), what,
                         tutti_type_text(&plain, other));
    }
    return TUTTI_OK;
}

tutti_status tutti__need_rows(const tutti_infer *node, int whole, int indices, int rows)
{
    const tutti_type *w = &node->inputs[whole], *at = &node->inputs[indices];
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_indices(node, indices));
    if (w->rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input %d is a scalar and has no rows; it needs at least one axis", whole);
    if (at->rank + w->rank - 1 > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "rows of %s at indices %s would have more than %d dimensions",
                         tutti_type_text(w, a), tutti_type_text(at, b), TUTTI_MAX_RANK);
    tutti_type expected = {.dtype = w->dtype, .rank = at->rank + w->rank - 1};
    for (int i = 0; i < expected.rank; i++)
        expected.dims[i] = i < at->rank ? at->dims[i] : w->dims[i - at->rank + 1];
    return tutti__need_type(node, rows, &expected,
                            "what the indices and the variable's rows ask for");
}

tutti_status tutti__gradient_pass(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = node->output_grads[0];
    return TUTTI_OK;
}

int tutti__split_first(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0;
    if (node->input_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int axis = 0; axis < node->inputs[0].rank; axis++, ways++) {
        if (ways >= capacity)
            continue;
        ret[ways] = (tutti_split){.outputs = {(int8_t)axis}};
        for (int i = 0; i < node->input_count; i++)
            ret[ways].inputs[i] = (int8_t)(i == 0 ? axis : TUTTI_WHOLE);
    }
    return ways;
}

tutti_sym tutti__value_of(tutti_sym sym)
{
    return tutti_sym_type(sym).handle ? tutti_read(sym) : sym;
}

tutti_hidden_scopes tutti__scopes_hide(tutti_graph *graph)
{
    tutti_hidden_scopes hidden = {graph->scopes.data, graph->scopes.count, graph->scopes.capacity};
    graph->scopes.data = NULL;
    graph->scopes.count = graph->scopes.capacity = 0;
    return hidden;
}

void tutti__scopes_show(tutti_graph *graph, tutti_hidden_scopes hidden)
{
    TUTTI_VEC_FREE(&graph->scopes);
    graph->scopes.data = hidden.data;
    graph->scopes.count = hidden.count;
    graph->scopes.capacity = hidden.capacity;
}

/* A hidden scope of n nodes counts -1 - n: no loop over its nodes runs. */
static void controls_flip(tutti_graph *graph)
{
    for (size_t i = 0; i < graph->scopes.count; i++)
        if (graph->scopes.data[i].kind == TUTTI_SCOPE_CONTROL)
            graph->scopes.data[i].control_count = -1 - graph->scopes.data[i].control_count;
}

void tutti__controls_hide(tutti_graph *graph)
{
    controls_flip(graph);
}
void tutti__controls_show(tutti_graph *graph)
{
    controls_flip(graph);
}

static tutti_attr *attr_of(tutti_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

void tutti__attr_set_int(tutti_node *node, const char *name, int64_t value)
{
    attr_of(node, name)->value.i = value;
}

void tutti__attr_set_string(tutti_node *node, const char *name, const char *arena_text)
{
    tutti_attr *attr = attr_of(node, name);
    attr->value.s = arena_text;
    attr->count = (int32_t)strlen(arena_text);
}
