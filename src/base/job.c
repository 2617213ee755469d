/* job.c: the first error, and what the job owns. */
#include "base/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/standard.h"

/* What a job is when there is no memory for one: an error, and nothing to free. */
static tutti_job nothing = {.error = {TUTTI_NO_MEMORY, "no memory for a job"}, .exit_code = 1};

tutti_job *tutti_open(int *argc, char ***argv)
{
    tutti_job *job = calloc(1, sizeof *job);
    if (!job)
        return &nothing;
    tutti__standard_descriptors();
    tutti__standard_file_limit();
    job->exit_code = 1;
    const char *name = argc && argv && *argc > 0 && (*argv)[0] ? (*argv)[0] : "tutti";
    const char *slash = strrchr(name, '/');
    snprintf(job->program, sizeof job->program, "%s", slash ? slash + 1 : name);
    if (argc && argv && *argc > 0)
        tutti__flags_read(job, argc, *argv);
    tutti__flags_apply(job);
    return job;
}

void tutti__job_note(tutti_job *job, const char *text)
{
    if (!job || job == &nothing)
        return;
    job->notes++;
    snprintf(job->note, sizeof job->note, "%s", text);
}

static void say_note(const tutti_job *job)
{
    if (job->notes == 1)
        fprintf(stderr, "tutti: note: %s\n", job->note);
    else if (job->notes > 1)
        fprintf(stderr, "tutti: note: %s (the last of %d times)\n", job->note, job->notes);
}

int tutti_close(tutti_job *job)
{
    if (!job)
        return 0;
    tutti__flags_refuse(job);
    say_note(job);
    int code = job->error.status == TUTTI_OK ? 0 : job->exit_code;
    if (code != 0)
        fprintf(stderr, "tutti: %s\n", job->error.message);
    else if (tutti__standard_output_lost())
        code = 1;
    else
        tutti__flags_unread(job);
    tutti__job_discard(job);
    return code == 0 && tutti__preempted() ? TUTTI_EXIT_PREEMPTED : code;
}

void tutti__job_discard(tutti_job *job)
{
    if (!job || job == &nothing)
        return;
    while (job->owned.count > 0) {
        tutti_owned *last = &job->owned.data[--job->owned.count];
        last->destroy(last->object);
    }
    TUTTI_VEC_FREE(&job->owned);
    tutti__map_free(&job->flags);
    tutti__arena_free(&job->arena);
    free(job);
}

tutti_status tutti_job_check(const tutti_job *job)
{
    if (!job)
        return tutti_fail(TUTTI_INVALID, "there is no job; make one with tutti_open");
    return job->error.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&job->error);
}

bool tutti_job_ok(const tutti_job *job)
{
    return tutti__job_able(job) && !tutti_interrupted();
}

tutti_status tutti_job_fail(tutti_job *job, tutti_status status)
{
    if (tutti__job_able(job) && status != TUTTI_OK)
        tutti__error_capture(status, &job->error);
    return status;
}

bool tutti_job_quiet(tutti_job *job)
{
    return tutti_flag_on(job, "quiet") || tutti_flag_on(job, "json") || (job && job->silent);
}

void tutti_expect(tutti_job *job, const char *name, double value, double at_least)
{
    bool changed = tutti_flag_text(job, "epochs", NULL) != NULL ||
                   tutti_flag_text(job, "steps-per-epoch", NULL) != NULL;
    bool given = tutti_flag_text(job, "expect", NULL) != NULL;
    double limit = tutti_flag_number(job, "expect", at_least);
    if (!job || job->helped || tutti_interrupted() || value >= limit)
        return;
    if (isnan(value))
        tutti_job_fail(job, tutti_fail(TUTTI_CHECK_FAILED,
                                       "%s is not a number (nan): nothing was measured, as on data "
                                       "without elements, or the training diverged",
                                       name));
    if (isnan(value) || (changed && !given))
        return;
    tutti_job_fail(job, tutti_fail(TUTTI_CHECK_FAILED,
                                   "%s is %.4f, at least %g is expected; --set expect=V asks for "
                                   "another value",
                                   name, value, limit));
}

bool tutti_job_own(tutti_job *job, void *object, void (*destroy)(void *object))
{
    if (job)
        tutti__flags_refuse(job);
    if (job && TUTTI_VEC_PUSH(&job->owned, ((tutti_owned){object, destroy})))
        return true;
    if (destroy)
        destroy(object);
    tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for an object of the job"));
    return false;
}

uint64_t tutti_job_seed(const tutti_job *job)
{
    return job ? job->seed : 1;
}
