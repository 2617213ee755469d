/* input.c: what the processes of a job read, and how many rows they have. */
#include <stdlib.h>
#include <string.h>

#include "dist/strategy.h"

static void own_rows(const void *context, int64_t batch, int64_t *ret_first, int64_t *ret_rows)
{
    tutti_strategy_own_rows(context, batch, ret_first, ret_rows);
}

tutti_status tutti_strategy_agree(tutti_strategy *strategy, int64_t rows, int64_t *ret_batch)
{
    int workers = tutti_strategy_workers(strategy);
    if (!strategy || rows < 0)
        return tutti_fail(TUTTI_INVALID, "tutti_strategy_agree: needs a strategy and a number of "
                                         "rows that is not negative");
    if (workers > 1 && strategy->options.deterministic)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "deterministic mode cuts batches itself, and processes with rows of "
                          "their own do not have its shards; leave --deterministic out, or give "
                          "all processes the same dataset");
    if (!strategy->counts &&
        !(strategy->counts = calloc((size_t)workers, sizeof *strategy->counts)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the rows of %d processes", workers);
    strategy->counts[0] = rows;
    if (workers > 1)
        TUTTI_TRY(tutti_comm_all_gather(strategy->team->world, &rows, strategy->counts, 1,
                                        TUTTI_I64, NULL));
    strategy->counted = 0;
    for (int i = 0; i < workers; i++)
        strategy->counted += strategy->counts[i];
    *ret_batch = strategy->counted;
    return TUTTI_OK;
}

static tutti_status agree(const void *context, int64_t rows, int64_t *ret_batch)
{
    return tutti_strategy_agree((tutti_strategy *)(uintptr_t)context, rows, ret_batch);
}

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
                           .agree = agree};
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
    if (strategy->options.deterministic || (evaluates && wanted == TUTTI_SHARD_OFF))
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

int64_t tutti_input_batch(const tutti_input_context *context, int64_t batch)
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
