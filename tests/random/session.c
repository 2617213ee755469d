/* session.c: a recipe run by a session: on some device, under some strategy, in some type. */
#include <stdlib.h>

#include "ways.h"

typedef struct job {
    const run_way *way;
    builder b;
    tutti_session *session;
    tutti_strategy *strategy;
    results *results;
} job;

/* The graph as it is after a journey as bytes: the same symbols by name. */
static tutti_sym moved_to(tutti_graph *graph, tutti_sym sym)
{
    if (!tutti_sym_ok(sym))
        return sym;
    sym.node = tutti_graph_find(graph, tutti_node_name(sym.node));
    return sym;
}

static tutti_status through_bytes(builder *b, tutti_sym *start)
{
    void *data;
    size_t size;
    tutti_graph *read;
    TUTTI_TRY(tutti_graph_serialize(b->graph, &data, &size));
    tutti_status status = tutti_graph_deserialize(data, size, &read);
    free(data);
    TUTTI_TRY(status);
    for (int i = 0; i < b->fed_count; i++)
        b->fed[i].sym = moved_to(read, b->fed[i].sym);
    for (int i = 0; i < b->output_count; i++)
        b->outputs[i] = moved_to(read, b->outputs[i]);
    for (int i = 0; i < b->starts + b->steps; i++)
        b->values[i] = moved_to(read, b->values[i]);
    for (int i = 0; i < b->weight_count; i++) {
        b->weights[i] = moved_to(read, b->weights[i]);
        b->gradients[i] = moved_to(read, b->gradients[i]);
    }
    b->loss = moved_to(read, b->loss);
    b->train = moved_to(read, b->train);
    *start = moved_to(read, *start);
    tutti_graph_destroy(b->graph);
    b->graph = read;
    return TUTTI_OK;
}

static tutti_status one_round(job *j, int round)
{
    builder *b = &j->b;
    tutti_feed feeds[MOST_FEEDS];
    tutti_fetch fetches[MOST_WISHES];
    tutti_tensor *values[MOST_WISHES] = {0};
    wishes w = {0};
    wish_all(&w, b, round);
    for (int i = 0; i < b->fed_count; i++)
        feeds[i] = (tutti_feed){b->fed[i].sym,
                                feed_value(b, i, round, recipe_rows(b->recipe.seed, round))};
    for (int i = 0; i < w.count; i++)
        fetches[i] = (tutti_fetch){w.syms[i], &values[i]};
    tutti_status status =
        tutti_run(j->session, .feed = {b->fed_count, feeds}, .fetch = {w.count, fetches},
                  .target = round > 0 ? b->train : TUTTI_NO_SYM,
                  .constants = round == 0 && j->way->constants);
    for (int i = 0; i < b->fed_count; i++)
        tutti_tensor_release(feeds[i].value);
    for (int i = 0; status == TUTTI_OK && i < w.count; i++) {
        results_add(j->results, values[i], "%s", w.names[i]);
        tutti_tensor_release(values[i]);
    }
    return status;
}

static tutti_status go(job *j)
{
    builder *b = &j->b;
    build(b);
    if (b->weight_count > 0 && tutti_graph_check(b->graph) == TUTTI_OK) {
        build_gradients(b, NULL);
        build_train(b);
    }
    tutti_sym start = tutti_initialize_variables(b->graph);
    TUTTI_TRY(tutti_graph_check(b->graph));
    TUTTI_TRY(tutti_graph_verify(b->graph));
    if (j->way->serialized)
        TUTTI_TRY(through_bytes(b, &start));
    TUTTI_TRY(tutti_session_open(&j->session, b->graph, .device = j->way->device,
                                 .strategy = j->strategy, .deadline_seconds = 5,
                                 .deterministic = j->way->deterministic && !j->strategy,
                                 .memory_limit = j->way->memory_limit));
    TUTTI_TRY(tutti_run(j->session, .target = start));
    for (int round = 0; round < ROUNDS; round++)
        TUTTI_TRY(one_round(j, round));
    for (int i = 0; i < b->weight_count; i++) {
        tutti_tensor *value;
        TUTTI_TRY(tutti_session_get(j->session, b->weights[i], &value));
        results_add(j->results, value, "weight %d", i);
        tutti_tensor_release(value);
    }
    return TUTTI_OK;
}

void run_session(const run_way *way, random_recipe recipe, results *ret)
{
    job *j = calloc(1, sizeof *j);
    if (j == NULL)
        abort();
    j->way = way;
    j->results = ret;
    j->b.recipe = recipe;
    j->b.dtype = way->dtype;
    j->b.scattered = way->scattered;
    j->b.sharded = way->layout != NULL;
    if (way->strategy)
        j->strategy = tutti_strategy_create(
            way->strategy,
            TUTTI_OPTIONS(tutti_strategy_options, .devices = way->devices, .mesh = way->mesh,
                          .layout = way->layout, .deterministic = way->deterministic));
    tutti_status status = tutti_graph_create(&j->b.graph);
    if (status == TUTTI_OK)
        status = go(j);
    if (status != TUTTI_OK)
        results_fail(ret, status, tutti_error_message());
    tutti_session_close(j->session);
    tutti_graph_destroy(j->b.graph);
    tutti_strategy_close(j->strategy);
    free(j);
}
