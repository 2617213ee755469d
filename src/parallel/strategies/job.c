/* job.c: the strategy of a job: by flags and environment, made on first use. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "parallel/strategies/strategy.h"

/* Workers that wait for one which failed are told. */
static void close_it(void *object)
{
    tutti_job *job = object;
    tutti_strategy *strategy = job->strategy;
    if (job->error.status != TUTTI_OK && strategy->axis_group && strategy->axis_group->world)
        tutti_comm_abort(strategy->axis_group->world, job->error.message);
    if (tutti_strategy_close(strategy) != TUTTI_OK && job->error.status == TUTTI_OK)
        tutti_job_fail(job, tutti_fail(TUTTI_IO, "%s", tutti_error_message()));
    job->strategy = NULL;
}

/* A wrong word is wrong usage. */
static void job_refuse(tutti_job *job, tutti_status status)
{
    if (job->error.status == TUTTI_OK)
        job->exit_code = 2;
    tutti_job_fail(job, status);
}

/* A setting that is on (1), off (-1), or left to the cost model (0). */
static int read_switch(tutti_job *job, const char *name)
{
    const char *text = tutti_flag_text(job, name, "auto");
    if (strcmp(text, "on") == 0)
        return 1;
    if (strcmp(text, "off") == 0)
        return -1;
    if (strcmp(text, "auto") != 0)
        job_refuse(
            job, tutti_fail(TUTTI_INVALID, "--set %s takes auto, on or off, not '%s'", name, text));
    return 0;
}

/* 16 bits between replicas, or a compressor's name, which the strategy checks. */
static void read_wire(tutti_job *job, tutti_strategy_options *options)
{
    const char *wire = tutti_flag_text(job, "wire", "f32");
    options->wire = strcmp(wire, "bf16") == 0  ? TUTTI_BF16
                    : strcmp(wire, "f16") == 0 ? TUTTI_F16
                                               : TUTTI_F32;
    if (strchr(wire, ':'))
        options->compression = wire;
    else if (options->wire == TUTTI_F32 && strcmp(wire, "f32") != 0)
        job_refuse(job,
                   tutti_fail(TUTTI_INVALID,
                              "--set wire takes f32, bf16, f16, topk:SHARE or powersgd:RANK, not "
                              "'%s'",
                              wire));
}

/* What is far too large stays so: the strategy refuses it. */
static int few(int64_t number)
{
    return number < INT_MAX ? (int)number : INT_MAX;
}

tutti_strategy_options tutti__job_strategy_options(tutti_job *job)
{
    tutti_strategy_options options = {.struct_size = sizeof options};
    options.devices = tutti_flag_text(job, "devices", NULL);
    options.reduction = tutti_flag_text(job, "reduction", NULL);
    options.engine = tutti_flag_text(job, "engine", NULL);
    options.mesh = tutti_flag_text(job, "mesh", NULL);
    options.layout = tutti_flag_text(job, "layout", NULL);
    options.deterministic = tutti_flag_on(job, "deterministic");
    int64_t shards = tutti_flag_int(job, "shards", 0);
    options.shards = few(shards);
    options.bucket_bytes = tutti_flag_int(job, "bucket", 0);
    options.zero = (int)tutti_flag_int(job, "zero", 0);
    options.replicate_below = tutti_flag_int(job, "replicate_below", 0);
    options.overlap = read_switch(job, "overlap");
    read_wire(job, &options);
    options.sparse = tutti_flag_text(job, "sparse", NULL);
    options.consistency = tutti_flag_text(job, "consistency", NULL);
    options.placement = tutti_flag_text(job, "placement", NULL);
    options.nan = tutti_flag_text(job, "nan", NULL);
    options.staleness = tutti_flag_text(job, "staleness", NULL);
    options.replicas = (int)(tutti_flag_int(job, "replicas", 0) > 0);
    options.server_limit = tutti_flag_int(job, "server_limit", 0);
    options.atomic = tutti_flag_on(job, "atomic");
    options.record = tutti_flag_text(job, "record", NULL);
    options.replay = tutti_flag_text(job, "replay", NULL);
    options.schedule = tutti_flag_text(job, "schedule", NULL);
    options.stages = few(tutti_flag_int(job, "stages", 0));
    options.micro_batches = few(tutti_flag_int(job, "micro", 0));
    const char *shard = tutti_flag_text(job, "shard", "auto");
    if (!tutti__strategy_policy(shard, &options.shard))
        job_refuse(job, tutti_fail(TUTTI_INVALID,
                                   "there is no way '%s' to share data; there are: auto, "
                                   "element, file, bytes, off",
                                   shard));
    return options;
}

static tutti_strategy *job_make(tutti_job *job)
{
    tutti_strategy_options options = tutti__job_strategy_options(job);
    if (tutti_flag_text(job, "plan-ranks", NULL))
        options.zero = 0; /* of the strategies that are planned, not of this process */
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
    strategy = job_make(job);
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
    if (strategy->served) /* a server, whose work is done */
        tutti__job_stop(job);
    else if (status != TUTTI_OK)
        tutti_job_fail(job, status);
    if (status == TUTTI_NOT_FOUND) /* no such strategy, no such device: a wrong flag */
        job->exit_code = 2;
    return strategy;
}

int tutti_num_replicas(tutti_job *job)
{
    return tutti_strategy_replicas(tutti_job_strategy(job));
}
