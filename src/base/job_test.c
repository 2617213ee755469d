/* job_test.c: flags, errors and ownership of a job. */
#include "base/job.h"
#include "base/log.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

TUTTI_TEST(job_takes_its_flags_and_leaves_the_others)
{
    const char *list[] = {"dir/mnist", "--epochs", "3",       "file",  "--data=there",
                          "--resume",  "--set",    "key=a=b", "--own", NULL};
    int argc = 9;
    char **argv = (char **)list;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_own_flags(job);
    CHECK_INT(argc, 3);
    CHECK_STR(argv[1], "file");
    CHECK_STR(argv[2], "--own");
    CHECK(argv[3] == NULL);
    CHECK_INT(tutti_flag_int(job, "epochs", 1), 3);
    CHECK_INT(tutti_flag_int(job, "batch", 64), 64);
    CHECK_STR(tutti_flag_text(job, "data", NULL), "there");
    CHECK_STR(tutti_flag_text(job, "key", NULL), "a=b");
    CHECK(tutti_flag_on(job, "resume") && !tutti_flag_on(job, "json"));
    CHECK_INT(tutti_job_seed(job), 1);
    CHECK_STR(job->program, "mnist");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(what_stands_behind_two_dashes_is_the_programs)
{
    const char *list[] = {"p", "--epochs", "3", "--", "--epochs", "4", "--help", "--", NULL};
    int argc = 8;
    char **argv = (char **)list;
    tutti_job *job = tutti_open(&argc, &argv);
    CHECK_INT(argc, 6);
    CHECK_STR(argv[1], "--");
    CHECK_STR(argv[2], "--epochs");
    CHECK_STR(argv[5], "--");
    CHECK(argv[6] == NULL && tutti_job_ok(job));
    CHECK_INT(tutti_flag_int(job, "epochs", 1), 3);
    CHECK_INT(tutti_close(job), 0);
}

static int destroyed[3], destroyed_count;
static void note(void *object)
{
    destroyed[destroyed_count++] = *(int *)object;
}

TUTTI_TEST(job_destroys_the_newest_first_and_keeps_the_first_error)
{
    int one = 1, two = 2;
    tutti_job *job = tutti_open(NULL, NULL);
    destroyed_count = 0;
    CHECK(tutti_job_own(job, &one, note) && tutti_job_own(job, &two, note));
    CHECK(tutti_job_ok(job));
    job->exit_code = 0; /* nothing on standard error here */
    tutti_job_fail(job, tutti_fail(TUTTI_NOT_FOUND, "first"));
    tutti_job_fail(job, tutti_fail(TUTTI_INVALID, "second"));
    CHECK(!tutti_job_ok(job));
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_STR(tutti_error_message(), "first");
    CHECK_INT(tutti_close(job), 0);
    CHECK_INT(destroyed_count, 2);
    CHECK(destroyed[0] == 2 && destroyed[1] == 1);
}

TUTTI_TEST(wrong_flags_are_the_jobs_error)
{
    const char *cases[][4] = {{"p", "--epochs", "many", NULL},
                              {"p", "--batch", NULL, NULL},
                              {"p", "--resume=1", NULL, NULL},
                              {"p", "--set", "nothing", NULL}};
    int counts[] = {3, 2, 2, 3};
    for (int i = 0; i < 4; i++) {
        char **argv = (char **)cases[i];
        int argc = counts[i];
        tutti_job *job = tutti_open(&argc, &argv);
        tutti_flag_int(job, "epochs", 1);
        CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
        job->exit_code = 0;
        tutti_close(job);
    }
}

TUTTI_TEST(flags_are_held_to_what_they_may_be)
{
    static const struct {
        const char *flag, *message;
    } cases[] = {{"--batch=0", "from 1 to 16777216, not '0'"},
                 {"--batch=-5", "not '-5'"},
                 {"--epochs=5000000000", "from 0 to 2147483647"},
                 {"--steps-per-epoch=0", "from 1 up"},
                 {"--threads=5000", "from 0 to 4096"},
                 {"--lr=nan", "--lr takes a number from 0 up, not 'nan'"},
                 {"--lr=-1", "--lr takes"},
                 {"--lr=", "--lr takes"},
                 {"--seed=1x", "--seed takes"},
                 {"--precision=f8", "--precision takes f32|bf16|f16, not 'f8'"},
                 {"--precision=bf", "--precision takes"}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        char *list[] = {(char *)"p", (char *)cases[i].flag, NULL}, **argv = list;
        int argc = 2;
        tutti_job *job = tutti_open(&argc, &argv);
        CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), cases[i].message);
        CHECK_INT(job->exit_code, 2);
        tutti__job_discard(job);
    }
    char *list[] = {(char *)"p", (char *)"--lr=0.5", (char *)"--precision=bf16",
                    (char *)"--batch=16777216", NULL},
         **argv = list;
    int argc = 4;
    tutti_job *job = tutti_open(&argc, &argv);
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_close(job), 0);
}

/* The environment says on or off in words; --resume has none. */
TUTTI_TEST(flags_without_value_are_on_or_off)
{
    static const struct {
        const char *text;
        bool on, wrong;
    } cases[] = {{"1", true, false},  {"Yes", true, false},  {"on", true, false},
                 {"0", false, false}, {"off", false, false}, {"No", false, false},
                 {"", false, false},  {"maybe", false, true}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        char pair[40];
        char *list[] = {(char *)"p", (char *)"--set", pair, (char *)"--resume", NULL},
             **argv = list;
        int argc = 4;
        setenv("TUTTI_QUIET", cases[i].text, 1);
        snprintf(pair, sizeof pair, "forecast=%s", cases[i].text);
        tutti_job *job = tutti_open(&argc, &argv);
        CHECK(tutti_flag_on(job, "resume"));
        CHECK(tutti_flag_on(job, "quiet") == cases[i].on);
        CHECK(tutti__log_quiet() == cases[i].on);
        CHECK(tutti_flag_on(job, "forecast") == cases[i].on);
        CHECK((tutti_job_check(job) != TUTTI_OK) == cases[i].wrong);
        if (cases[i].wrong)
            CHECK_STR(tutti_error_message(), "TUTTI_QUIET takes 1, true, yes or on, or 0, false, "
                                             "no or off, not 'maybe'");
        tutti__job_discard(job);
    }
    unsetenv("TUTTI_QUIET");
}

static void keep(void *object)
{
    (void)object;
}

/* What a job with this argument is told when it makes something; "" where nothing is wrong. */
static const char *told_of(const char *argument, bool own)
{
    static char told[1024];
    const char *list[] = {"p", "--epochs", "3", argument, "2", NULL};
    int argc = 5, object = 0;
    char **argv = (char **)list;
    tutti_job *job = tutti_open(&argc, &argv);
    CHECK_INT(argc, 3);
    CHECK_STR(argv[1], argument);
    CHECK_OK(tutti_job_check(job));
    if (own)
        tutti_own_flags(job);
    tutti_job_own(job, &object, keep);
    snprintf(told, sizeof told, "%s", job->error.message);
    CHECK_INT(told[0] ? job->exit_code : 2, 2);
    tutti__job_discard(job);
    return told;
}

TUTTI_TEST(flags_that_nobody_understands_are_refused)
{
    CHECK_CONTAINS(told_of("--epoch", false), "'--epoch' is no flag of p; is --epochs meant?");
    CHECK_CONTAINS(told_of("--epoch=4", false), "'--epoch=4' is no flag of p; is --epochs meant?");
    CHECK_CONTAINS(told_of("-epochs", false), "'-epochs' is no flag of p; is --epochs meant?");
    CHECK_CONTAINS(told_of("-v", false), "'-v' is no flag of p; --help lists them");
    CHECK_STR(told_of("--epoch", true), "");
    const char *arguments[] = {"-", "-1", "--", "file", "---", ""};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        CHECK_STR(told_of(arguments[i], false), "");
}

TUTTI_TEST(a_job_that_makes_nothing_refuses_unknown_flags_at_its_end)
{
    const char *list[] = {"p", "--epoch", "2", NULL};
    int argc = 3;
    char **argv = (char **)list;
    FILE *was = freopen("/dev/null", "w", stderr);
    CHECK(was != NULL);
    CHECK_INT(tutti_close(tutti_open(&argc, &argv)), 2);
}

/* The status of a job with these flags that expected 0.9 and reached `value`. */
static tutti_status expecting(int argc, const char *const *list, double value)
{
    char *copy[8] = {0}, **argv = copy; /* flags are taken out of it */
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)list[i];
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_expect(job, "accuracy", value, 0.9);
    tutti_status status = tutti_job_check(job);
    job->exit_code = 0;
    tutti_close(job);
    return status;
}

TUTTI_TEST(a_full_run_is_held_to_what_is_expected)
{
    const char *full[] = {"p", NULL}, *brief[] = {"p", "--epochs", "1", NULL},
               *other[] = {"p", "--epochs", "1", "--set", "expect=0.5", NULL};
    CHECK_OK(expecting(1, full, 0.9));
    CHECK_STATUS(expecting(1, full, 0.89), TUTTI_CHECK_FAILED);
    CHECK_STATUS(expecting(1, full, NAN), TUTTI_CHECK_FAILED);
    CHECK_OK(expecting(3, brief, 0.1));
    CHECK_STATUS(expecting(3, brief, NAN), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "accuracy is not a number (nan): nothing was measured");
    CHECK_OK(expecting(5, other, 0.5));
    CHECK_STATUS(expecting(5, other, 0.4), TUTTI_CHECK_FAILED);
}

TUTTI_TEST(interrupt_sets_a_flag_while_it_is_in_force)
{
    struct sigaction now;
    tutti__interrupt_begin();
    sigaction(SIGINT, NULL, &now);
    CHECK(now.sa_handler != SIG_DFL);
    tutti__interrupt_end();
    sigaction(SIGINT, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
    CHECK(!tutti_interrupted());
}

/* The exit of a process in which `scene` played: -number after a signal. */
static int ends_with(void (*scene)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        tutti__interrupt_begin();
        scene();
        _exit(tutti_interrupted() ? 7 : 8);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void one_signal(void)
{
    raise(SIGINT);
}

static void told_before_its_own(void)
{
    tutti__interrupt_hear(SIGTERM);
    raise(SIGTERM);
}

static void another_kind(void)
{
    raise(SIGINT);
    raise(SIGTERM);
}

static void at_once(void)
{
    raise(SIGTERM);
    raise(SIGTERM);
}

static void the_same_kind(void)
{
    at_once();
    usleep(300000);
    raise(SIGTERM);
}

static void one_of_several_processes(void)
{
    tutti__interrupt_defer(true);
    raise(SIGTERM);
    CHECK(!tutti_interrupted() && tutti__interrupt_signal() == SIGTERM);
    tutti__interrupt_defer(false);
    CHECK(!tutti_interrupted() && !tutti__preempted());
}

static void all_have_heard(void)
{
    one_of_several_processes();
    tutti__interrupt_hear(tutti__interrupt_signal());
    CHECK(tutti__preempted());
}

TUTTI_TEST(interrupt_counts_when_all_processes_have_heard_of_it)
{
    CHECK_INT(ends_with(one_of_several_processes), 8);
    CHECK_INT(ends_with(all_have_heard), 7);
}

TUTTI_TEST(interrupt_the_second_signal_of_any_kind_ends_the_process)
{
    CHECK_INT(ends_with(one_signal), 7);
    CHECK_INT(ends_with(told_before_its_own), 7);
    CHECK_INT(ends_with(another_kind), -SIGTERM);
    CHECK_INT(ends_with(at_once), 7); /* a program's own and its group's are one */
    CHECK_INT(ends_with(the_same_kind), -SIGTERM);
}
