/* job.c: the strategy of a job: by flags and environment, made on first use. */
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "dist/strategy.h"

/* Workers that wait for one which failed are told. */
static void close_it(void *object)
{
    tutti_job *job = object;
    tutti_strategy *strategy = job->strategy;
    if (job->error.status != TUTTI_OK && strategy->team && strategy->team->world)
        tutti_comm_abort(strategy->team->world, job->error.message);
    if (tutti_strategy_close(strategy) != TUTTI_OK && job->error.status == TUTTI_OK)
        tutti_job_fail(job, tutti_fail(TUTTI_IO, "%s", tutti_error_message()));
    job->strategy = NULL;
}

static tutti_strategy *make(tutti_job *job)
{
    tutti_strategy_options options = {.struct_size = sizeof options};
    const char *wire = tutti_flag_text(job, "wire", NULL);
    options.devices = tutti_flag_text(job, "devices", NULL);
    options.reduction = tutti_flag_text(job, "reduction", NULL);
    options.engine = tutti_flag_text(job, "engine", NULL);
    options.deterministic = tutti_flag_on(job, "deterministic");
    options.shards = (int)tutti_flag_int(job, "shards", 0);
    options.bucket_bytes = tutti_flag_int(job, "bucket", 0);
    const char *overlap = tutti_flag_text(job, "overlap", "auto");
    options.overlap = strcmp(overlap, "off") == 0 ? -1 : strcmp(overlap, "on") == 0 ? 1 : 0;
    const char *parts = tutti_flag_text(job, "parts", "auto");
    options.parts = strcmp(parts, "off") == 0 ? -1 : strcmp(parts, "on") == 0 ? 1 : 0;
    if (wire && strchr(wire, ':'))
        options.compression = wire;
    options.wire = wire && strcmp(wire, "bf16") == 0  ? TUTTI_BF16
                   : wire && strcmp(wire, "f16") == 0 ? TUTTI_F16
                                                      : TUTTI_F32;
    options.sparse = tutti_flag_text(job, "sparse", NULL);
    const char *shard = tutti_flag_text(job, "shard", "auto");
    if (!tutti__strategy_policy(shard, &options.shard))
        tutti_job_fail(job, tutti_fail(TUTTI_INVALID,
                                       "there is no way '%s' to share data; there are: auto, "
                                       "element, file, bytes, off",
                                       shard));
    return tutti_strategy_create(tutti_flag_text(job, "strategy", "auto"), &options);
}

tutti_strategy *tutti_job_strategy(tutti_job *job)
{
    if (tutti_strategy_current())
        return tutti_strategy_current();
    tutti_strategy *strategy = job ? job->strategy : NULL;
    if (strategy)
        return strategy;
    if (!job)
        return NULL;
    strategy = make(job);
    if (!strategy) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for a strategy"));
        return NULL;
    }
    job->strategy = strategy;
    if (!tutti_job_own(job, job, close_it)) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for a strategy"));
        return NULL;
    }
    job->silent = tutti_strategy_rank(strategy) > 0;
    tutti_status status = tutti_strategy_check(strategy);
    if (status != TUTTI_OK)
        tutti_job_fail(job, status);
    if (status == TUTTI_NOT_FOUND) /* no such strategy, no such device: a wrong flag */
        job->exit_code = 2;
    return strategy;
}

int tutti_num_replicas(tutti_job *job)
{
    return tutti_strategy_replicas(tutti_job_strategy(job));
}
