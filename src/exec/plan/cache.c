/* cache.c: see cache.h. */
#include "exec/plan/cache.h"

#include <stdlib.h>
#include <string.h>

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
