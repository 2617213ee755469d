/* reference.c: the oracle: node by node in the order of the graph, by reference kernels, without
 * passes. */
#include "ops/reference.h"

#include <stdlib.h>
#include <string.h>

#include "ways.h"

enum { MOST_STATE = 1000 };

typedef struct oracle {
    builder b;
    int feed_count, state_count;
    tutti_reference_feed feeds[MOST_STATE + MOST_FEEDS];
    tutti_sym state[MOST_STATE]; /* of feeds 0 to state_count - 1 */
    results *results;
} oracle;

static tutti_status hold_state(oracle *o)
{
    for (size_t n = 0; n < o->b.graph->nodes.count; n++) {
        tutti_node *node = o->b.graph->nodes.data[n];
        if (node->dead || !tutti__is(node, "variable") || o->state_count == MOST_STATE)
            continue;
        tutti_sym sym = {.node = node};
        tutti_type type = tutti_sym_type(sym);
        tutti_tensor *value;
        TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &value));
        o->state[o->state_count] = sym;
        o->feeds[o->state_count++] = (tutti_reference_feed){{node, 0}, value};
    }
    return TUTTI_OK;
}

static void move(tutti_tensor *tensor, double by, uint64_t seed)
{
    draws d = draws_of(seed, 99, 0);
    for (int64_t i = 0;
         tutti_dtype_is_float(tutti_tensor_dtype(tensor)) && i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, tutti_tensor_get(tensor, i) * (1 + draw_between(&d, -by, by)));
}

/* Everything of a round in one run: the order of the graph puts updates behind what reads. */
static tutti_status ask_all(oracle *o, int round)
{
    builder *b = &o->b;
    tutti_edge edges[MOST_VALUES + MOST_WEIGHTS + 2];
    tutti_tensor *values[MOST_VALUES + MOST_WEIGHTS + 2] = {0};
    wishes w = {0};
    wish_all(&w, b, round);
    for (int i = 0; i < w.count; i++)
        edges[i] = (tutti_edge){w.syms[i].node, w.syms[i].index};
    int count = w.count;
    if (round > 0 && tutti_sym_ok(b->train))
        edges[count++] = (tutti_edge){b->train.node, 0};
    TUTTI_TRY(tutti__reference_run(b->graph, o->feed_count, o->feeds, count, edges, values));
    for (int i = 0; i < w.count; i++) {
        results_add(o->results, values[i], "%s", w.names[i]);
        tutti_tensor_release(values[i]);
    }
    return TUTTI_OK;
}

static tutti_status one_round(oracle *o, int round, double moved)
{
    o->feed_count = o->state_count;
    for (int i = 0; i < o->b.fed_count; i++) {
        tutti_tensor *value = feed_value(&o->b, i, round, recipe_rows(o->b.recipe.seed, round));
        if (moved > 0)
            move(value, moved, (uint64_t)i);
        o->feeds[o->feed_count++] = (tutti_reference_feed){{o->b.fed[i].sym.node, 0}, value};
    }
    tutti_status status = ask_all(o, round);
    for (int i = o->state_count; i < o->feed_count; i++)
        tutti_tensor_release(o->feeds[i].value);
    return status;
}

static tutti_status go(oracle *o, double moved)
{
    build(&o->b);
    if (o->b.weight_count > 0 && tutti_graph_check(o->b.graph) == TUTTI_OK) {
        build_gradients(&o->b, NULL);
        build_train(&o->b);
    }
    tutti_sym start = tutti_initialize_variables(o->b.graph);
    TUTTI_TRY(tutti_graph_check(o->b.graph));
    TUTTI_TRY(hold_state(o));
    tutti_edge edge = {start.node, 0};
    tutti_tensor *none;
    if (o->state_count > 0)
        TUTTI_TRY(tutti__reference_run(o->b.graph, o->state_count, o->feeds, 1, &edge, &none));
    for (int i = 0; moved > 0 && i < o->b.weight_count; i++)
        for (int k = 0; k < o->state_count; k++)
            if (o->state[k].node == o->b.weights[i].node)
                move(o->feeds[k].value, moved, 1000 + (uint64_t)i);
    for (int round = 0; round < ROUNDS; round++)
        TUTTI_TRY(one_round(o, round, moved));
    for (int i = 0; i < o->b.weight_count; i++)
        for (int k = 0; k < o->state_count; k++)
            if (o->state[k].node == o->b.weights[i].node)
                results_add(o->results, o->feeds[k].value, "weight %d", i);
    return TUTTI_OK;
}

void run_reference(random_recipe recipe, tutti_dtype dtype, double moved, results *ret)
{
    oracle *o = calloc(1, sizeof *o);
    if (o == NULL)
        abort();
    *ret = (results){0};
    o->b.recipe = recipe;
    o->b.dtype = dtype;
    o->results = ret;
    tutti_status status = tutti_graph_create(&o->b.graph);
    if (status == TUTTI_OK)
        status = go(o, moved);
    if (status != TUTTI_OK)
        results_fail(ret, status, tutti_error_message());
    for (int i = 0; i < o->state_count; i++)
        tutti_tensor_release(o->feeds[i].value);
    tutti_graph_destroy(o->b.graph);
    free(o);
}
