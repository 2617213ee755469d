/* update_graph.c: see update_graph.h. */
#include "service/store/update_graph.h"

#include "tutti/ops_state.h"

static tutti_sym node_sym(tutti_graph *graph, const char *name)
{
    tutti_node *node = tutti_graph_find(graph, name);
    return node ? tutti__sym(node, 0) : TUTTI_NO_SYM;
}

static bool ends_in(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static tutti_status find_parts(const char *name, const tutti_type *type, tutti_update_graph *g)
{
    char wanted[TUTTI_TYPE_TEXT], is[TUTTI_TYPE_TEXT];
    g->value = node_sym(g->graph, "value");
    g->gradient = node_sym(g->graph, "gradient");
    g->indices = node_sym(g->graph, "indices");
    g->rows = node_sym(g->graph, "rows");
    g->staleness = node_sym(g->graph, "staleness");
    for (size_t i = 0; i < g->graph->nodes.count; i++) {
        tutti_node *node = g->graph->nodes.data[i];
        if (strcmp(node->op->name, "variable") != 0)
            continue;
        if (!TUTTI_VEC_PUSH(&g->variables, tutti__sym(node, 0)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for an update rule");
        if (ends_in(node->name, "learning_rate"))
            g->rate = tutti__sym(node, 0);
    }
    bool sparse = tutti_sym_ok(g->indices) && tutti_sym_ok(g->rows);
    if (!tutti_sym_ok(g->value) || !(tutti_sym_ok(g->gradient) || sparse) ||
        g->graph->targets.count == 0)
        return tutti_fail(
            TUTTI_INVALID,
            "shard '%s': an update rule has a variable 'value', a placeholder "
            "'gradient' (or 'indices' and 'rows') and a target that updates; this one "
            "misses one of them",
            name);
    g->target = tutti__sym(g->graph->targets.data[0], 0);
    tutti_type has = tutti_sym_type(g->value);
    has.handle = false;
    if (!tutti_type_equal(&has, type))
        return tutti_fail(TUTTI_INVALID, "shard '%s' is %s, its update rule is for %s", name,
                          tutti_type_text(type, wanted), tutti_type_text(&has, is));
    return TUTTI_OK;
}

static tutti_status read_rate(tutti_update_graph *g)
{
    tutti_tensor *rate = NULL;
    g->factor = 1;
    if (!tutti_sym_ok(g->rate))
        return TUTTI_OK;
    TUTTI_TRY(tutti_session_get(g->session, g->rate, &rate));
    g->base = tutti_tensor_get(rate, 0);
    tutti_tensor_release(rate);
    return TUTTI_OK;
}

static tutti_status update_graph_begin(const char *name, const tutti_type *type,
                                       tutti_update_graph *g)
{
    TUTTI_TRY(find_parts(name, type, g));
    tutti_sym initial = tutti_initialize_variables(g->graph);
    TUTTI_TRY(tutti_graph_check(g->graph));
    TUTTI_TRY(tutti_session_open(&g->session, g->graph, .deterministic = true));
    TUTTI_TRY(tutti_run(g->session, .target = initial));
    return read_rate(g);
}

tutti_status tutti__store_update_graph_open(const char *name, tutti_packed_data bytes,
                                            const tutti_type *type, tutti_update_graph *ret)
{
    tutti_update_graph g = {0};
    TUTTI_TRY(tutti_graph_deserialize(bytes.bytes, bytes.size, &g.graph));
    tutti_status status = update_graph_begin(name, type, &g);
    if (status == TUTTI_OK)
        *ret = g;
    else
        tutti__store_update_graph_close(&g);
    return status;
}

void tutti__store_update_graph_close(tutti_update_graph *g)
{
    tutti_session_close(g->session);
    tutti_graph_destroy(g->graph);
    TUTTI_VEC_FREE(&g->variables);
    *g = (tutti_update_graph){0};
}

static tutti_status set_factor(tutti_update_graph *g, double factor)
{
    tutti_tensor *rate = NULL;
    if (!tutti_sym_ok(g->rate) || factor == g->factor)
        return TUTTI_OK;
    tutti_type type = tutti_sym_type(g->rate);
    TUTTI_TRY(tutti_tensor_create(type.dtype, 0, NULL, &rate));
    tutti_tensor_set(rate, 0, g->base * factor);
    tutti_status status = tutti_session_set(g->session, g->rate, rate);
    tutti_tensor_release(rate);
    g->factor = status == TUTTI_OK ? factor : g->factor;
    return status;
}

tutti_status tutti__store_update_graph_run(tutti_update_graph *g, const tutti_store_update *update,
                                           tutti_tensor *gradient, tutti_tensor *indices)
{
    tutti_feed feeds[3];
    tutti_tensor *staleness = NULL;
    int count = 0;
    TUTTI_TRY(set_factor(g, update->factor));
    if (indices)
        feeds[count++] = (tutti_feed){g->indices, indices};
    feeds[count++] = (tutti_feed){indices ? g->rows : g->gradient, gradient};
    if (tutti_sym_ok(g->staleness)) {
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 0, NULL, &staleness));
        tutti_tensor_set(staleness, 0, update->staleness);
        feeds[count++] = (tutti_feed){g->staleness, staleness};
    }
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {count, feeds}, .target = g->target};
    tutti_status status = tutti_run_with(g->session, &options);
    tutti_tensor_release(staleness);
    return status;
}

tutti_status tutti__store_gradient_tensor(const tutti_type *type,
                                          const tutti_store_gradient *gradient, tutti_tensor **ret)
{
    tutti_type like = *type;
    if (gradient->form == TUTTI_STORE_ROWS)
        like.dims[0] = (int64_t)gradient->row_count;
    return tutti_tensor_wrap(like.dtype, like.rank, like.dims, gradient->data, NULL, NULL, ret);
}
