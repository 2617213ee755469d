/* cache.c: see cache.h. */
#include "exec/plan/cache.h"

#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

static void cache_put(tutti_key *w, uint64_t word)
{
    if (w->count == w->capacity) {
        uint64_t *words = malloc(2 * w->capacity * sizeof *words);
        if (!words) {
            w->failed = true;
            return;
        }
        memcpy(words, w->words, w->count * sizeof *words);
        if (w->words != w->inlined)
            free(w->words);
        w->words = words;
        w->capacity *= 2;
    }
    w->words[w->count++] = word;
}

static void put_edge(tutti_key *w, tutti_edge edge)
{
    cache_put(w, (uint64_t)edge.node->id << 16 | edge.index);
}

tutti_status tutti__key_write(tutti_key *w, const tutti_graph *graph,
                              const tutti_run_request *request, const tutti_type *types)
{
    w->words = w->inlined;
    w->count = 0;
    w->capacity = TUTTI_KEY_WORDS;
    w->failed = false;
    cache_put(w, request->key ? request->key : graph->serial);
    cache_put(w, request->key ? 0 : graph->version);
    cache_put(w, request->device ? tutti__hash_string(0, request->device) : 0);
    cache_put(w, (uint64_t)request->batch << 1 | request->rewritten_already);
    cache_put(w, request->constants);
    for (int i = 0; request->counts && i < request->count_count; i++)
        cache_put(w, (uint64_t)request->counts[i]);
    cache_put(w, (uint64_t)request->feed_count << 40 | (uint64_t)request->fetch_count << 20 |
                     (uint64_t)request->target_count);
    for (int i = 0; i < request->feed_count; i++) {
        put_edge(w, request->feeds[i]);
        cache_put(w, (uint64_t)types[i].dtype << 8 | (uint64_t)types[i].rank);
        for (int d = 0; d < types[i].rank; d++)
            cache_put(w, (uint64_t)types[i].dims[d]);
    }
    for (int i = 0; i < request->fetch_count; i++)
        put_edge(w, request->fetches[i]);
    for (int i = 0; i < request->target_count; i++)
        cache_put(w, request->targets[i]->id);
    if (w->failed) {
        tutti__key_free(w);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    }
    w->hash = tutti__hash_bytes(0, w->words, w->count * sizeof *w->words);
    return TUTTI_OK;
}

void tutti__key_free(tutti_key *key)
{
    if (key->words != key->inlined)
        free(key->words);
}

tutti_plan *tutti__cache_find(tutti_plan_cache *cache, const tutti_key *key, uint64_t now)
{
    for (size_t i = 0; i < cache->entries.count; i++) {
        tutti_plan_entry *e = &cache->entries.data[i];
        if (e->hash == key->hash && e->count == key->count &&
            memcmp(e->words, key->words, key->count * sizeof *key->words) == 0) {
            e->used = now;
            return tutti__plan_retain(e->plan);
        }
    }
    return NULL;
}

static void drop(tutti_plan_entry *e)
{
    tutti__plan_release(e->plan);
    free(e->words);
}

static void drop_oldest(tutti_plan_cache *cache)
{
    size_t oldest = 0;
    for (size_t i = 1; i < cache->entries.count; i++)
        if (cache->entries.data[i].used < cache->entries.data[oldest].used)
            oldest = i;
    drop(&cache->entries.data[oldest]);
    cache->entries.data[oldest] = cache->entries.data[--cache->entries.count];
}

void tutti__cache_keep(tutti_plan_cache *cache, size_t limit, const tutti_key *key,
                       tutti_plan *plan, uint64_t now)
{
    tutti_plan *other = tutti__cache_find(cache, key, now);
    if (other) {
        tutti__plan_release(other);
        return;
    }
    size_t size = key->count * sizeof *key->words;
    tutti_plan_entry e = {
        .hash = key->hash, .count = key->count, .words = malloc(size), .plan = plan, .used = now};
    if (!e.words)
        return;
    memcpy(e.words, key->words, size);
    if (cache->entries.count >= limit)
        drop_oldest(cache);
    if (TUTTI_VEC_PUSH(&cache->entries, e))
        tutti__plan_retain(plan);
    else
        free(e.words);
}

void tutti__cache_forget(tutti_plan_cache *cache, uint64_t constants)
{
    for (size_t i = cache->entries.count; i-- > 0;) {
        uint64_t own = cache->entries.data[i].plan->constants;
        if (own == 0 || own >= constants)
            continue;
        drop(&cache->entries.data[i]);
        cache->entries.data[i] = cache->entries.data[--cache->entries.count];
    }
}

void tutti__cache_free(tutti_plan_cache *cache)
{
    for (size_t i = 0; i < cache->entries.count; i++)
        drop(&cache->entries.data[i]);
    TUTTI_VEC_FREE(&cache->entries);
}

/* ---- plans of sub-graphs ---- */

typedef struct body {
    const tutti_graph *graph;
    tutti_plan_cache cache;
    tutti_body_feed *feeds; /* NULL: not looked at yet */
    int feed_count;
} body;

/* Each time one is found it comes half the way to the front: a loop calls the same two again and
 * again. */
struct tutti_bodies {
    TUTTI_VEC(body) list;
};

static body *bodies_find(tutti_plan *plan, const tutti_graph *graph)
{
    if (!plan->bodies && !(plan->bodies = calloc(1, sizeof *plan->bodies)))
        return NULL;
    tutti_bodies *bodies = plan->bodies;
    size_t at = 0;
    while (at < bodies->list.count && bodies->list.data[at].graph != graph)
        at++;
    if (at == bodies->list.count && !TUTTI_VEC_PUSH(&bodies->list, (body){.graph = graph}))
        return NULL;
    size_t front = at < 2 ? at : at / 2;
    body found = bodies->list.data[at];
    bodies->list.data[at] = bodies->list.data[front];
    bodies->list.data[front] = found;
    return &bodies->list.data[front];
}

tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *graph)
{
    body *found = bodies_find(plan, graph);
    return found ? &found->cache : NULL;
}

static tutti_status check_node(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_UPDATES)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s '%s' writes a variable inside cond or while; return the value and assign it outside",
            node->op->name, node->name);
    if (node->op->flags & TUTTI_OP_COLLECTIVE)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s '%s' meets other devices inside cond or while, where they cannot; put it outside",
            node->op->name, node->name);
    return TUTTI_OK;
}

static tutti_status look(body *b, const bool *needed)
{
    int count = 0;
    for (size_t i = 0; i < b->graph->nodes.count; i++) {
        tutti_node *node = b->graph->nodes.data[i];
        TUTTI_TRY(check_node(node));
        if (needed[i] && tutti__is(node, "parameter"))
            b->feeds[count++] = (tutti_body_feed){{node, 0}, tutti__int(node, "index")};
    }
    b->feed_count = count;
    return TUTTI_OK;
}

tutti_status tutti__bodies_feeds(tutti_plan *plan, const tutti_graph *graph, int *ret_count,
                                 const tutti_body_feed **ret_feeds)
{
    body *b = bodies_find(plan, graph);
    if (b && !b->feeds) {
        bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
        b->feeds = calloc(graph->nodes.count + 1, sizeof *b->feeds);
        tutti_status status = TUTTI_OK;
        if (needed && b->feeds) {
            tutti__mark_needed(graph, needed);
            status = look(b, needed);
        }
        if (!needed || status != TUTTI_OK) {
            free(b->feeds);
            b->feeds = NULL;
        }
        free(needed);
        TUTTI_TRY(status);
    }
    if (!b || !b->feeds)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    *ret_count = b->feed_count;
    *ret_feeds = b->feeds;
    return TUTTI_OK;
}

void tutti__bodies_free(tutti_bodies *bodies)
{
    for (size_t i = 0; bodies && i < bodies->list.count; i++) {
        tutti__cache_free(&bodies->list.data[i].cache);
        free(bodies->list.data[i].feeds);
    }
    if (bodies)
        TUTTI_VEC_FREE(&bodies->list);
    free(bodies);
}
