/* loop_test.c: progress of hand-written loops. */
#include <string.h>

#include "tutti/tutti.h"

#include "base/job.h"
#include "base/test.h"

static tutti_job *open_with(int argc, const char *const *list)
{
    char *copy[8] = {0}, **argv = copy; /* flags are taken out of it */
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)list[i];
    return tutti_open(&argc, &argv);
}

/* Runs a loop to its end and counts steps; fails the job in step `bad` of an epoch, or never. */
static int count_steps(tutti_job *job, int epochs, int64_t steps, int bad, int *ret_epochs)
{
    tutti_progress *p = tutti_progress_open(job, epochs, steps);
    int count = 0;
    *ret_epochs = 0;
    while (tutti_progress_epoch(p)) {
        CHECK_INT(tutti_progress_current_epoch(p), *ret_epochs);
        for (int i = 0; i < 5; i++) {
            count++;
            tutti_progress_mean(p, "loss", i);
            if (i == bad)
                tutti_job_fail(job, tutti_fail(TUTTI_INVALID, "on purpose"));
            if (!tutti_progress_step(p, 2))
                break;
        }
        tutti_progress_set(p, "val_loss", 1);
        (*ret_epochs)++;
    }
    CHECK(!tutti_progress_epoch(p));
    return count;
}

TUTTI_TEST(a_loop_runs_its_epochs_and_steps)
{
    static const char *const plain[] = {"p", "--quiet", NULL};
    static const char *const flags[] = {"p", "--quiet", "--epochs", "4", "--steps-per-epoch", "2"};
    int epochs;
    tutti_job *job = open_with(2, plain);
    CHECK_INT(count_steps(job, 3, 0, -1, &epochs), 15); /* until the data ends */
    CHECK_INT(epochs, 3);
    CHECK_INT(count_steps(job, 2, 3, -1, &epochs), 6);
    CHECK_INT(tutti_close(job), 0);
    job = open_with(6, flags);
    CHECK_INT(count_steps(job, 1, 5, -1, &epochs), 8);
    CHECK_INT(epochs, 4);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_loop_ends_with_the_jobs_error)
{
    static const char *const plain[] = {"p", "--quiet", NULL};
    int epochs;
    tutti_job *job = open_with(2, plain);
    CHECK_INT(count_steps(job, 3, 5, 1, &epochs), 2);
    CHECK_INT(epochs, 1);
    CHECK(tutti_progress_open(job, 1, 1) == NULL);
    CHECK(!tutti_progress_epoch(NULL) && !tutti_progress_step(NULL, 1));
    job->exit_code = 0;
    tutti_close(job);
}

static void count_unused(void *context, tutti_log_level level, const char *message)
{
    *(int *)context += level == TUTTI_LOG_WARNING && strstr(message, "mirrored is not used");
}

TUTTI_TEST(a_loop_says_that_its_session_was_opened_without_the_strategy)
{
    static const char *const two[] = {"p",        "--quiet",   "--strategy",
                                      "mirrored", "--devices", "far:0,far:1"};
    for (int given = 0; given < 2; given++) {
        int warned = 0;
        tutti_graph *graph;
        tutti_session *session;
        tutti_job *job = open_with(6, two);
        CHECK_OK(tutti_graph_create(&graph));
        CHECK_OK(tutti_session_open(&session, graph,
                                    .strategy = given ? tutti_job_strategy(job) : NULL));
        tutti_log_install(count_unused, &warned);
        CHECK(tutti_progress_open(job, 1, 1, .session = session) != NULL);
        tutti_log_install(NULL, NULL);
        CHECK_INT(warned, !given);
        tutti_session_close(session);
        tutti_graph_destroy(graph);
        CHECK_INT(tutti_close(job), 0);
    }
}
