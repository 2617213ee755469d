/* input.c: what the processes of a job read, and how many rows they have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/recycle.h"
#include "graph/graph.h"
#include "parallel/strategies/strategy.h"

static void own_rows(const void *context, int64_t batch, int64_t *ret_first, int64_t *ret_rows)
{
    tutti_strategy_own_rows(context, batch, ret_first, ret_rows);
}

/* ---- how many rows each process has in the step at hand, and of what shape ---- */

typedef struct said {
    int64_t rows, likeness; /* a hash of it; 0 where there are no rows, or it was not asked */
} said;

static int64_t hash_likeness(const tutti_likeness *like)
{
    uint64_t hash = tutti__hash_mix(0, (uint64_t)like->count);
    for (int c = 0; c < like->count; c++) {
        tutti_type type = like->types[c];
        type.dims[0] = 0;
        hash = tutti__hash_type(hash, &type);
    }
    return (int64_t)(hash | 1);
}

/* "i32[?, 7], f32[?, 1]" */
static void input_describe(const tutti_likeness *like, size_t size, char *ret)
{
    size_t used = 0;
    ret[0] = 0;
    for (int c = 0; c < like->count && used < size; c++) {
        char text[TUTTI_TYPE_TEXT];
        tutti_type type = like->types[c];
        type.dims[0] = TUTTI_ANY;
        used += (size_t)snprintf(ret + used, size - used, "%s%s", c ? ", " : "",
                                 tutti_type_text(&type, text));
    }
}

/* Everybody says the same: whose rows are unlike whose. */
static tutti_status refuse_unlike(const tutti_strategy *strategy, const tutti_likeness *like,
                                  int first, int other)
{
    char texts[2][512];
    for (int i = 0; i < 2; i++) {
        input_describe(like, sizeof texts[i], texts[i]);
        TUTTI_TRY(tutti_comm_broadcast(strategy->axis_group->world, texts[i], sizeof texts[i],
                                       TUTTI_U8, i == 0 ? first : other, NULL));
    }
    return tutti_fail(TUTTI_INVALID,
                      "in one step process %d has elements of %.*s and process %d of %.*s: they "
                      "are parts of one batch, which may differ in their rows only; pad them to "
                      "the same length (tutti_padded_batch, .lengths)",
                      first, 511, texts[0], other, 511, texts[1]);
}

/* The likeness of those that have rows, which must have one, becomes everybody's. */
static tutti_status share_likeness(const tutti_strategy *strategy, const said *all,
                                   tutti_likeness *like)
{
    int first = -1;
    bool some_have_none = false;
    for (int i = 0; i < tutti__strategy_processes(strategy); i++) {
        some_have_none = some_have_none || all[i].rows == 0;
        if (all[i].rows == 0)
            continue;
        first = first < 0 ? i : first;
        if (all[i].likeness != all[first].likeness)
            return refuse_unlike(strategy, like, first, i);
    }
    return first >= 0 && some_have_none ? tutti_comm_broadcast(strategy->axis_group->world, like,
                                                               sizeof *like, TUTTI_U8, first, NULL)
                                        : TUTTI_OK;
}

static tutti_status check_rows(const tutti_strategy *strategy, int64_t rows)
{
    if (!strategy || rows < 0)
        return tutti_fail(TUTTI_INVALID, "tutti_strategy_agree: needs a strategy and a number of "
                                         "rows that is not negative");
    return tutti_strategy_workers(strategy) > 1 && strategy->options.deterministic
               ? tutti_fail(TUTTI_UNSUPPORTED,
                            "deterministic mode cuts batches itself, and processes with rows of "
                            "their own do not have its shards; leave --deterministic out, or give "
                            "all processes the same dataset")
               : TUTTI_OK;
}

/* `like`: of this process's rows, or NULL where nobody asks. */
static tutti_status agree(tutti_strategy *strategy, int64_t rows, tutti_likeness *like,
                          int64_t *ret_batch)
{
    TUTTI_TRY(check_rows(strategy, rows));
    int workers = tutti__strategy_processes(strategy);
    if (!strategy->counts &&
        !(strategy->counts = calloc((size_t)workers, sizeof *strategy->counts)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the rows of %d processes", workers);
    said *all = tutti__recycle_zeros((size_t)workers, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the rows of %d processes", workers);
    said own = {.rows = rows, .likeness = like && rows > 0 ? hash_likeness(like) : 0};
    all[0] = own;
    tutti_status status = workers > 1 ? tutti_comm_all_gather(strategy->axis_group->world, &own,
                                                              all, 2, TUTTI_I64, NULL)
                                      : TUTTI_OK;
    strategy->counted = 0;
    for (int i = 0; i < workers && status == TUTTI_OK; i++) {
        strategy->counts[i] = all[i].rows;
        strategy->counted += all[i].rows;
    }
    if (status == TUTTI_OK && like && workers > 1)
        status = share_likeness(strategy, all, like);
    tutti__recycle_free(all);
    if (status != TUTTI_OK && workers > 1)
        status = tutti__axis_groups_survive(strategy->groups, status);
    *ret_batch = strategy->counted;
    return status;
}

tutti_status tutti_strategy_agree(tutti_strategy *strategy, int64_t rows, int64_t *ret_batch)
{
    return agree(strategy, rows, NULL, ret_batch);
}

static tutti_status agree_as_share(const void *context, int64_t rows, tutti_likeness *like,
                                   int64_t *ret_batch)
{
    return agree((tutti_strategy *)(uintptr_t)context, rows, like, ret_batch);
}

/* ---- by policy ---- */

const tutti_share *tutti__strategy_share(tutti_strategy *strategy, tutti_shard_policy policy)
{
    if (tutti_strategy_workers(strategy) == 1)
        return NULL;
    tutti_share *share = &strategy->shares[policy];
    *share = (tutti_share){.rows = own_rows,
                           .context = strategy,
                           .policy = policy,
                           .index = tutti_strategy_rank(strategy),
                           .count = tutti_strategy_workers(strategy),
                           .agree = agree_as_share};
    return share;
}

tutti_status tutti__strategy_shard(const tutti_strategy *strategy, const tutti_dataset *dataset,
                                   bool evaluates, tutti_shard_policy *ret)
{
    tutti_shard_policy wanted = strategy->options.shard;
    int workers = tutti_strategy_workers(strategy);
    if (tutti__dataset_is_own(dataset)) {
        *ret = TUTTI_SHARD_OFF;
        return TUTTI_OK;
    }
    if (strategy->options.deterministic || (evaluates && wanted == TUTTI_SHARD_OFF) ||
        tutti__strategy_spans(strategy)) /* all of which have all rows */
        wanted = TUTTI_SHARD_ELEMENT;
    tutti_status status = tutti__share_choose(dataset, wanted, workers, ret);
    if (status != TUTTI_OK && evaluates) {
        *ret = TUTTI_SHARD_ELEMENT;
        return TUTTI_OK;
    }
    return status;
}

bool tutti__strategy_policy(const char *name, tutti_shard_policy *ret)
{
    for (int i = TUTTI_SHARD_AUTO; i <= TUTTI_SHARD_OFF; i++)
        if (strcmp(tutti__share_name((tutti_shard_policy)i), name) == 0) {
            *ret = (tutti_shard_policy)i;
            return true;
        }
    return false;
}

/* ---- by function ---- */

int64_t tutti_input_batch_size(const tutti_input_context *context, int64_t batch)
{
    int64_t first, rows;
    tutti_strategy_own_rows(context ? context->strategy : NULL, batch, &first, &rows);
    return rows;
}

tutti_dataset *tutti_distribute_from_function(tutti_strategy *strategy, tutti_input_fn *fn,
                                              void *user)
{
    if (tutti_strategy_check(strategy) != TUTTI_OK || !fn)
        return NULL;
    tutti_input_context context = {.strategy = strategy,
                                   .pipelines = tutti_strategy_workers(strategy),
                                   .index = tutti_strategy_rank(strategy),
                                   .replicas = tutti_strategy_replicas(strategy),
                                   .local = tutti_strategy_local(strategy)};
    tutti_dataset *made = fn(&context, user);
    return made ? tutti__dataset_own(made, tutti__strategy_share(strategy, TUTTI_SHARD_OFF)) : NULL;
}
