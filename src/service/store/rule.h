/* rule.h: the value of a shard and how a gradient moves it. One kind of storage a file, ending in
 * one descriptor.
 * tables: tutti_store_rule_kind
 *
 * A rule owns the value, the optimizer's slots beside it and its counters. The same updates in the
 * same order give the same bits on every replica. */
#ifndef TUTTI_SERVICE_STORE_RULE_H
#define TUTTI_SERVICE_STORE_RULE_H

#include "service/store/gradient.h"

enum { TUTTI_STORE_BLOCK_ROWS = 16 }; /* rows that "hashed" updates at once: its graph's */

/* Who pushed it: equal on every retry. */
typedef struct tutti_store_key {
    uint64_t step; /* or a closure */
    uint32_t contribution;
} tutti_store_key;

typedef struct tutti_store_update {
    const tutti_store_gradient *gradient; /* never NOTHING */
    double factor;                        /* of the learning rate */
    double staleness;                     /* in versions; of a mean the mean */
    uint64_t version;                     /* before the update */
    size_t count;
    const tutti_store_key *keys; /* of the contributions in it */
} tutti_store_update;

typedef struct tutti_store_rule {
    const struct tutti_store_rule_kind *kind;
} tutti_store_rule;

typedef struct tutti_store_rule_kind {
    const char *name, *doc;
    bool sparse; /* rows exist where they were touched; the first dimension may be TUTTI_ANY */
    /* `create` says name, type (dtype, rows: dims), first value (data, or `initial`) and graph. It
     * is kept by the caller as long as the rule lives, but for its data. */
    tutti_status (*open)(const tutti_store_message *create, const tutti_type *type,
                         tutti_store_rule **ret);
    /* On failure nothing has changed. */
    tutti_status (*apply)(tutti_store_rule *rule, const tutti_store_update *update);
    /* The value, or `rows` of it. Its contents do not change any more; one new reference. */
    tutti_status (*read)(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                         tutti_tensor **ret);
    /* Value, slots and counters. */
    tutti_status (*save)(tutti_store_rule *rule, tutti_text *out);
    tutti_status (*load)(tutti_store_rule *rule, saved_reader *in);
    /* (optional, both) Value, slots and counters by name (tutti__store_named_put); `put` of some of
     * them, of which all fit or nothing has changed. */
    tutti_status (*get)(tutti_store_rule *rule, tutti_text *out);
    tutti_status (*put)(tutti_store_rule *rule, saved_reader *in);
    int64_t (*bytes)(const tutti_store_rule *rule); /* of memory */
    void (*close)(tutti_store_rule *rule);
} tutti_store_rule_kind;

/* A named tensor, written and read. *ret_tensor is new; NAME is room for its name. */
enum { TUTTI_STORE_NAME = 1200 };
void tutti__store_named_put(tutti_text *out, const char *name, const tutti_tensor *tensor);
tutti_status tutti__store_named_get(saved_reader *in, char ret_name[TUTTI_STORE_NAME],
                                    tutti_tensor **ret_tensor);

typedef const tutti_store_rule_kind *tutti_store_find_rule(const char *name);
/* By name out of the table; NULL: there is none. */
tutti_store_find_rule tutti__store_rule_find;

#endif
