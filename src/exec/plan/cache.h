/* cache.h: plans by everything they depend on. */
#ifndef TUTTI_EXEC_PLAN_CACHE_H
#define TUTTI_EXEC_PLAN_CACHE_H

#include "exec/plan/plan.h"

/* Everything a plan depends on, as words; compared whole. Not to be copied. */
#define TUTTI_KEY_WORDS 128
typedef struct tutti_key {
    uint64_t hash;
    uint64_t *words;
    size_t count, capacity;
    uint64_t inlined[TUTTI_KEY_WORDS]; /* words point here while they fit */
    bool failed;
} tutti_key;

/* types: of the request's feeds. */
tutti_status tutti__key_write(tutti_key *key, const tutti_graph *graph,
                              const tutti_run_request *request, const tutti_type *types);
void tutti__key_free(tutti_key *key);

typedef struct tutti_plan_entry {
    uint64_t hash;
    size_t count;
    uint64_t *words;
    tutti_plan *plan;
    uint64_t used; /* when last */
} tutti_plan_entry;

/* Zero is an empty one. Its owner's lock guards it. */
typedef struct tutti_plan_cache {
    TUTTI_VEC(tutti_plan_entry) entries;
} tutti_plan_cache;

/* A plan, retained, or NULL. now: counts the calls. */
tutti_plan *tutti__cache_find(tutti_plan_cache *cache, const tutti_key *key, uint64_t now);
/* Retains the plan, unless another thread has kept one for the same key meanwhile. When there are
 * `limit` entries the least recently used one goes. */
void tutti__cache_keep(tutti_plan_cache *cache, size_t limit, const tutti_key *key,
                       tutti_plan *plan, uint64_t now);
/* Drops plans that hold the values of variables as of fewer changes. */
void tutti__cache_forget(tutti_plan_cache *cache, uint64_t constants);
void tutti__cache_free(tutti_plan_cache *cache);

/* ---- plans of sub-graphs ---- */

#define TUTTI_BODY_SHAPES 4

/* A parameter that its results need, and which of the call's inputs it is. Shapes of the others
 * make no new plan. */
typedef struct tutti_body_feed {
    tutti_edge edge;
    int64_t input;
} tutti_body_feed;

/* Where the plans of this sub-graph are kept; NULL: no memory. Valid until the next call. */
tutti_plan_cache *tutti__bodies_cache(tutti_plan *plan, const tutti_graph *body);
/* What a call of this sub-graph feeds; valid as long as the plan. */
tutti_status tutti__bodies_feeds(tutti_plan *plan, const tutti_graph *body, int *ret_count,
                                 const tutti_body_feed **ret_feeds);
void tutti__bodies_free(tutti_bodies *bodies); /* NULL is fine */

#endif
