/* session.c: the public face of the engine: checks what the user asks for. */
#include "tutti/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/pointers.h"
#include "base/require.h"
#include "base/world.h"
#include "exec/plan/share.h"
#include "exec/run/server_run.h"
#include "graph/inspect.h"
#include "program/program.h"
#include "program/trace.h"

#define MOST_COUNT ((1 << 20) - 1) /* feeds, fetches, targets: so many fit into a plan's key */

enum { MANY_FEEDS = 32 };

struct tutti_session {
    tutti_graph *graph;
    tutti_engine *engine;
    bool shared; /* the engine is somebody else's */
};

/* 0 is the default; no time is negative. */
static tutti_status check_deadline(double seconds)
{
    return seconds >= 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_INVALID,
                            "a deadline of %g seconds; give 0 for the default, or more", seconds);
}

tutti_status tutti__engine_options_of(const tutti_session_options *options,
                                      tutti_engine_options *ret)
{
    static const tutti_session_options none = {.struct_size = sizeof none};
    options = options ? options : &none;
    tutti_engine_options engine = {.device = options->device,
                                   .strategy = options->strategy,
                                   .deterministic = options->deterministic,
                                   .cache_limit = options->cache_limit,
                                   .memory_limit = (size_t)options->memory_limit,
                                   .deadline_ns = tutti__engine_ns(options->deadline_seconds)};
    if (options->strategy)
        TUTTI_TRY(tutti_strategy_check(options->strategy));
    TUTTI_TRY(check_deadline(options->deadline_seconds));
    if (options->cache_limit < 0)
        return tutti_fail(TUTTI_INVALID, "a cache of %d programs; give 0 for the default, or more",
                          options->cache_limit);
    if (options->memory_limit < 0)
        return tutti_fail(TUTTI_INVALID, "a memory limit of %lld bytes; give 0 for none, or more",
                          (long long)options->memory_limit);
    if (options->mesh)
        TUTTI_TRY(tutti__mesh_create(options->mesh, options->mesh_devices, &engine.mesh));
    *ret = engine;
    return TUTTI_OK;
}

tutti_status tutti_session_open_with(tutti_graph *graph, const tutti_session_options *options,
                                     tutti_session **ret_session)
{
    TUTTI_REQUIRE(ret_session);
    tutti_engine_options engine;
    if (!graph)
        return tutti_fail(TUTTI_INVALID, "a session needs a graph");
    TUTTI_TRY(tutti__engine_options_of(options, &engine));
    tutti_session *session = calloc(1, sizeof *session);
    if (!session) {
        tutti__mesh_destroy(engine.mesh);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    }
    session->graph = graph;
    tutti_status status = tutti__engine_create(&engine, &session->engine);
    if (status != TUTTI_OK)
        free(session);
    else
        *ret_session = session;
    return status;
}

tutti_status tutti__session_share(tutti_graph *graph, tutti_engine *engine,
                                  tutti_session **ret_session)
{
    tutti_session *session = calloc(1, sizeof *session);
    if (!session)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    *session = (tutti_session){.graph = graph, .engine = engine, .shared = true};
    *ret_session = session;
    return TUTTI_OK;
}

tutti_engine *tutti__session_engine(tutti_session *session)
{
    return session->engine;
}

void tutti_session_close(tutti_session *session)
{
    if (!session)
        return;
    tutti__trace_flush();
    if (!session->shared)
        tutti__engine_destroy(session->engine);
    free(session);
}

int64_t tutti_session_version(tutti_session *session)
{
    return session ? (int64_t)tutti__state_version(tutti__engine_state(session->engine)) : 0;
}

static tutti_status check_sym(const tutti_session *session, tutti_sym sym, const char *what,
                              int position)
{
    if (!sym.node)
        return tutti_fail(TUTTI_INVALID,
                          "%s %d is no symbol; the call that should have made it failed", what,
                          position);
    char place[TUTTI_PLACE_TEXT];
    if (sym.node->graph != session->graph)
        return tutti_fail(
            TUTTI_INVALID,
            "%s %d ('%s') belongs to another graph than the session's; open a session of its own "
            "for that%s",
            what, position, sym.node->name, tutti__node_place(sym.node, place));
    return TUTTI_OK;
}

static tutti_status no_output(tutti_sym sym, int position)
{
    const tutti_node *node = sym.node;
    char text[TUTTI_PLACE_TEXT];
    const char *place = tutti__node_place(node, text);
    if (node->output_count == 0)
        return tutti_fail(TUTTI_INVALID, "fetch %d: %s '%s' has no output; name it as a target%s",
                          position, node->op->name, node->name, place);
    return tutti_fail(TUTTI_INVALID, "fetch %d: %s '%s' has no output %u; the last is %d%s",
                      position, node->op->name, node->name, sym.index, node->output_count - 1,
                      place);
}

static tutti_status check_feed(const tutti_session *session, const tutti_feed *feed, int position)
{
    TUTTI_TRY(check_sym(session, feed->sym, "feed", position));
    const tutti_node *node = feed->sym.node;
    char text[TUTTI_PLACE_TEXT];
    const char *place = tutti__node_place(node, text);
    if (!feed->value)
        return tutti_fail(TUTTI_INVALID, "feed %d: the value of '%s' is NULL%s", position,
                          node->name, place);
    if (tutti__is(node, "variable"))
        return tutti_fail(
            TUTTI_INVALID,
            "feed %d: '%s' is a variable; set it with tutti_session_set, or build with "
            "what tutti_read gives of it, and feed that%s",
            position, node->name, place);
    if ((int)feed->sym.index >= node->output_count || node->types[feed->sym.index].handle)
        return tutti_fail(TUTTI_INVALID, "feed %d: %s '%s' has no value %u that could be fed%s",
                          position, node->op->name, node->name, feed->sym.index, place);
    const tutti_type *want = &node->types[feed->sym.index], *have = tutti_tensor_type(feed->value);
    bool fits = want->dtype == have->dtype && want->rank == have->rank;
    for (int i = 0; fits && i < want->rank; i++)
        fits = want->dims[i] == TUTTI_ANY || want->dims[i] == have->dims[i];
    char wanted[TUTTI_TYPE_TEXT], given[TUTTI_TYPE_TEXT];
    if (!fits)
        return tutti_fail(TUTTI_INVALID, "feed %d: '%s'%s takes %s, the value is %s", position,
                          node->name, place, tutti_type_text(want, wanted),
                          tutti_type_text(have, given));
    return TUTTI_OK;
}

/* Lists in the engine's terms; on the stack when they are short. */
typedef struct lists {
    tutti_edge edges[32];
    tutti_tensor *values[16];
    tutti_node *targets[17];
    void *block; /* when they are long */
    tutti_edge *feeds, *fetches;
    tutti_tensor **feed_values;
    tutti_node **nodes;
} lists;

static tutti_status make_room(lists *l, int feeds, int fetches, int targets)
{
    l->feeds = l->edges;
    l->fetches = l->edges + 16;
    l->feed_values = l->values;
    l->nodes = l->targets;
    l->block = NULL;
    if (feeds <= 16 && fetches <= 16 && targets <= 17)
        return TUTTI_OK;
    size_t edge_count = (size_t)feeds + (size_t)fetches;
    l->block = calloc(1, edge_count * sizeof *l->feeds +
                             ((size_t)feeds + (size_t)targets) * sizeof(void *));
    if (!l->block)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    l->feeds = l->block;
    l->fetches = l->feeds + feeds;
    l->feed_values = (tutti_tensor **)(l->fetches + fetches);
    l->nodes = (tutti_node **)(l->feed_values + feeds);
    return TUTTI_OK;
}

static tutti_status check_fetch(const tutti_session *session, const tutti_fetch *fetch,
                                int position)
{
    TUTTI_TRY(check_sym(session, fetch->sym, "fetch", position));
    const tutti_node *node = fetch->sym.node;
    char place[TUTTI_PLACE_TEXT];
    if (!fetch->ret_value)
        return tutti_fail(TUTTI_INVALID, "fetch %d ('%s') has no place for its value%s", position,
                          node->name, tutti__node_place(node, place));
    if ((int)fetch->sym.index >= node->output_count)
        return no_output(fetch->sym, position);
    if (node->types[fetch->sym.index].handle && !tutti__is(node, "variable"))
        return tutti_fail(TUTTI_INVALID, "fetch %d: %s '%s' has no value that could be fetched%s",
                          position, node->op->name, node->name, tutti__node_place(node, place));
    return TUTTI_OK;
}

/* The earlier feed of what feed i gives, or -1. `known`: the types of what was fed before by their
 * feeds, since an output has one of its own; asked where there are many. */
static int64_t same_feed(const lists *l, int i, const tutti_pointers *known)
{
    const tutti_type *type = tutti__edge_type(l->feeds[i]);
    if (i > MANY_FEEDS)
        return tutti__pointers_get(known, type);
    for (int k = 0; k < i; k++)
        if (tutti__edge_type(l->feeds[k]) == type)
            return k;
    return -1;
}

static tutti_status fill_feeds(const tutti_session *session, const tutti_run_options *options,
                               lists *l, tutti_pointers *known)
{
    char place[TUTTI_PLACE_TEXT];
    for (int i = 0; i < options->feed.count; i++) {
        const tutti_feed *feed = &options->feed.list[i];
        TUTTI_TRY(check_feed(session, feed, i));
        l->feeds[i] = tutti__edge(feed->sym);
        l->feed_values[i] = feed->value;
        int64_t same = same_feed(l, i, known);
        if (same >= 0)
            return tutti_fail(TUTTI_INVALID, "feeds %d and %d both give '%s'; leave one out%s",
                              (int)same, i, feed->sym.node->name,
                              tutti__node_place(feed->sym.node, place));
        if (options->feed.count > MANY_FEEDS &&
            !tutti__pointers_add(known, tutti__edge_type(l->feeds[i]), i))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    }
    return TUTTI_OK;
}

static tutti_status session_fill(const tutti_session *session, const tutti_run_options *options,
                                 lists *l, tutti_run_request *ret)
{
    tutti_pointers known = {0};
    tutti_status status = fill_feeds(session, options, l, &known);
    tutti__pointers_free(&known);
    TUTTI_TRY(status);
    for (int i = 0; i < options->fetch.count; i++) {
        TUTTI_TRY(check_fetch(session, &options->fetch.list[i], i));
        l->fetches[i] = tutti__edge(options->fetch.list[i].sym);
    }
    int targets = 0;
    for (int i = 0; i < options->targets.count; i++) {
        TUTTI_TRY(check_sym(session, options->targets.list[i], "target", i));
        l->nodes[targets++] = options->targets.list[i].node;
    }
    if (options->target.node || options->target.index) { /* poison has an index and no node */
        TUTTI_TRY(check_sym(session, options->target, "target", targets));
        l->nodes[targets++] = options->target.node;
    }
    *ret = (tutti_run_request){.feed_count = options->feed.count,
                               .feeds = l->feeds,
                               .values = l->feed_values,
                               .fetch_count = options->fetch.count,
                               .fetches = l->fetches,
                               .target_count = targets,
                               .batch = options->batch,
                               .targets = l->nodes};
    if (options->constants)
        ret->constants = tutti__engine_constants(session->engine);
    if (options->own_rows)
        tutti__engine_own_rows(session->engine, ret);
    return TUTTI_OK;
}

/* With the values that are looked at as fetches behind the others. */
static tutti_status run_looking(tutti_session *session, tutti_run_request *request,
                                const tutti_wanted_marks *wanted, tutti_tensor **values)
{
    size_t own = (size_t)request->fetch_count, all = own + wanted->count;
    tutti_edge *fetches = calloc(all, sizeof *fetches);
    tutti_tensor **got = calloc(all, sizeof *got);
    tutti_strategy *strategy = tutti__engine_strategy(session->engine);
    bool prints = !strategy || tutti_strategy_rank(strategy) == 0;
    tutti_status status =
        fetches && got ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    for (size_t i = 0; status == TUTTI_OK && i < all; i++)
        fetches[i] = i < own ? request->fetches[i] : wanted->data[i - own].edge;
    request->fetches = fetches;
    request->fetch_count = (int)all;
    if (status == TUTTI_OK)
        status = tutti__engine_run(session->engine, session->graph, request, got);
    for (size_t i = 0; status == TUTTI_OK && i < own; i++)
        values[i] = got[i];
    tutti_status seen = status;
    for (size_t i = own; status == TUTTI_OK && i < all; i++) {
        if (seen == TUTTI_OK)
            seen = tutti__inspect_seen(session->graph, &wanted->data[i - own], got[i], prints);
        tutti_tensor_release(got[i]);
    }
    free(fetches);
    free(got);
    return status;
}

static tutti_status run_request(tutti_session *session, tutti_run_request *request,
                                tutti_tensor **values)
{
    tutti_wanted_marks wanted = {0};
    tutti_extract asked = {.feed_count = request->feed_count,
                           .fetch_count = request->fetch_count,
                           .target_count = request->target_count,
                           .feeds = request->feeds,
                           .fetches = request->fetches,
                           .targets = request->targets};
    tutti_status status = tutti__inspect_wanted(session->graph, &asked, &wanted);
    if (status == TUTTI_OK)
        status = wanted.count > 0
                     ? run_looking(session, request, &wanted, values)
                     : tutti__engine_run(session->engine, session->graph, request, values);
    tutti__inspect_free(&wanted);
    return status;
}

static tutti_status session_run(tutti_session *session, const tutti_run_options *options, lists *l)
{
    tutti_run_request request;
    tutti_tensor *few[16] = {0}, **values = few;
    int count = options->fetch.count;
    TUTTI_TRY(session_fill(session, options, l, &request));
    if (options->deadline_seconds > 0)
        request.deadline = tutti__now_ns() + tutti__engine_ns(options->deadline_seconds);
    if (count > 16 && !(values = calloc((size_t)count, sizeof *values)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_status status = run_request(session, &request, values);
    for (int i = 0; status == TUTTI_OK && i < count; i++)
        *options->fetch.list[i].ret_value = values[i];
    if (values != few)
        free(values);
    return status;
}

tutti_status tutti_run_with(tutti_session *session, const tutti_run_options *options)
{
    TUTTI_REQUIRE(session);
    TUTTI_REQUIRE(options);
    TUTTI_TRY(tutti_graph_check(session->graph));
    int counts[] = {options->feed.count, options->fetch.count, options->targets.count};
    for (size_t i = 0; i < TUTTI_COUNT(counts); i++)
        if (counts[i] < 0 || counts[i] >= MOST_COUNT)
            return tutti_fail(
                TUTTI_INVALID,
                "tutti_run: %d feeds, %d fetches and %d targets; none may be negative "
                "or %d and more",
                counts[0], counts[1], counts[2], MOST_COUNT);
    if ((counts[0] && !options->feed.list) || (counts[1] && !options->fetch.list) ||
        (counts[2] && !options->targets.list))
        return tutti_fail(TUTTI_INVALID, "tutti_run: a list of feeds, fetches or targets is NULL");
    if (options->batch < 0)
        return tutti_fail(TUTTI_INVALID, "tutti_run: a batch of %lld rows",
                          (long long)options->batch);
    TUTTI_TRY(check_deadline(options->deadline_seconds));
    lists l;
    TUTTI_TRY(make_room(&l, options->feed.count, options->fetch.count, options->targets.count + 1));
    tutti_status status = session_run(session, options, &l);
    free(l.block);
    return status;
}

static tutti_status check_variable(const tutti_session *session, tutti_sym sym)
{
    char place[TUTTI_PLACE_TEXT];
    TUTTI_TRY(check_sym(session, sym, "variable", 0));
    if (!tutti__is(sym.node, "variable"))
        return tutti_fail(TUTTI_INVALID, "%s '%s' is no variable%s", sym.node->op->name,
                          sym.node->name, tutti__node_place(sym.node, place));
    return TUTTI_OK;
}

/* Found in the session's state, or made there: without a piece, since the program that comes first
 * says on which device it lies. */
static tutti_status make_variable(tutti_session *session, const tutti_node *node,
                                  tutti_state_variable **ret)
{
    return tutti__node_variable(tutti__engine_state(session->engine), node, ret);
}

tutti_status tutti__session_variable(tutti_session *session, tutti_sym sym,
                                     tutti_state_variable **ret)
{
    TUTTI_REQUIRE(session);
    TUTTI_TRY(check_variable(session, sym));
    const char *name = tutti__state_name(sym.node);
    tutti_state *state = tutti__engine_state(session->engine);
    *ret = tutti__state_find(state, name);
    if (!*ret && tutti__state_expected(state, name))
        TUTTI_TRY(make_variable(session, sym.node, ret));
    char place[TUTTI_PLACE_TEXT];
    if (!*ret)
        return tutti_fail(
            TUTTI_UNINITIALIZED,
            "variable '%s' has no value yet; run tutti_initialize_variables(graph) first%s", name,
            tutti__node_place(sym.node, place));
    return TUTTI_OK;
}

tutti_status tutti_session_get(tutti_session *session, tutti_sym sym, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(session);
    TUTTI_REQUIRE(ret_value);
    tutti_state_variable *variable;
    TUTTI_TRY(tutti__session_variable(session, sym, &variable));
    TUTTI_TRY(tutti__spmd_check_variable(
        sym.node, tutti__strategy_meeting_replicas(tutti__engine_strategy(session->engine))));
    return tutti__engine_get(session->engine, variable, ret_value);
}

tutti_status tutti_session_set(tutti_session *session, tutti_sym sym, tutti_tensor *value)
{
    TUTTI_REQUIRE(session);
    tutti_state_variable *variable;
    if (!value)
        return tutti_fail(TUTTI_INVALID, "tutti_session_set: the value is NULL");
    TUTTI_TRY(check_variable(session, sym));
    TUTTI_TRY(make_variable(session, sym.node, &variable));
    tutti_status status =
        tutti__variable_set(tutti__engine_state(session->engine), variable, value);
    if (status == TUTTI_OK)
        status = tutti__server_written(session->engine, variable->name, value);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(sym.node, status);
}

tutti_status tutti_session_finish(tutti_session *session)
{
    TUTTI_REQUIRE(session);
    return tutti__devices_finish();
}

void tutti_session_describe(tutti_session *session, tutti_session_info *ret_info)
{
    tutti_engine_stats stats = {0};
    if (!ret_info)
        return;
    if (session)
        tutti__engine_stats(session->engine, &stats);
    *ret_info = (tutti_session_info){.runs = stats.runs,
                                     .compiles = stats.compiles,
                                     .cached_programs = stats.cached,
                                     .last_compile_seconds = stats.compile_seconds,
                                     .arena_bytes = stats.arena_bytes,
                                     .arena_bound = stats.arena_bound};
}

tutti_status tutti_session_print(tutti_session *session, char **ret_text)
{
    TUTTI_REQUIRE(session);
    TUTTI_REQUIRE(ret_text);
    tutti_text text = {0};
    tutti__engine_print(session->engine, &text);
    if (text.failed || !text.data) {
        bool failed = text.failed;
        tutti__text_free(&text);
        return failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to print a program")
                      : tutti_fail(TUTTI_NOT_FOUND, "no program has been compiled yet");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}

tutti_sym(tutti_split_batch)(tutti_sym placeholder)
{
    static const tutti_axis_shard rows = {TUTTI_BATCH_AXIS, TUTTI_SPLIT, 0};
    static const tutti_sharding batch = {1, &rows};
    if (!placeholder.node)
        return placeholder;
    if (tutti_sym_type(placeholder).rank == 0)
        return tutti__poison(placeholder.node->graph, TUTTI_INVALID,
                             "'%s' is a scalar: it has no batch to cut", placeholder.node->name);
    return tutti__sharding_mark(placeholder, &batch);
}
