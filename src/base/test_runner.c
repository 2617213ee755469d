/* test_runner.c: the program tutti_tests. Every test runs in a child process of its own, so that a
 * crash or a hang is the failure of one test; as many run at once as there are CPUs.
 *
 *     tutti_tests [--list] [--json] [--verbose] [--no-fork | --together] [--jobs N] [--timeout S]
 *                 [FILTER...]
 *
 * --together: those of a file share a process, where the end of one is dear (a search for leaks).
 * A filter is part of "file name"; one that selects nothing is a mistake. The last line is
 * "N passed, N failed, N skipped". */
#define _GNU_SOURCE
#include "base/test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64 };
static const double slow_seconds = 2.0;

static struct {
    bool list, json, verbose, no_fork, together;
    int jobs;
    double timeout;
    char **filters;
    int filter_count;
} options = {.timeout = 60};

/* Shared with children that report tests themselves. */
static struct {
    atomic_int passed, failed, skipped;
} * totals;

/* Tests that run in a child process: one, or some of a file. */
typedef struct test_job {
    const tutti_test *test; /* NULL: free */
    int others;             /* rows of the table after it that are looked at as well */
    pid_t pid;
    FILE *output;
    double started;
    bool timed_out;
} test_job;

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > MAX_JOBS ? MAX_JOBS : count;
}

static bool matches(const tutti_test *test, const char *filter)
{
    char full[512];
    snprintf(full, sizeof full, "%s %s", test->file, test->name);
    return strstr(full, filter) != NULL;
}

static bool is_selected(const tutti_test *test)
{
    for (int i = 0; i < options.filter_count; i++)
        if (matches(test, options.filters[i]))
            return true;
    return options.filter_count == 0;
}

/* A misspelt filter must not look like tests that passed. */
static bool every_filter_selects(void)
{
    for (int i = 0; i < options.filter_count; i++) {
        const tutti_test *test = tutti__test_table;
        while (test->name && !matches(test, options.filters[i]))
            test++;
        if (test->name)
            continue;
        fprintf(stderr, "tutti_tests: no test's file or name contains '%s'; --list shows all\n",
                options.filters[i]);
        return false;
    }
    return true;
}

static void copy_output(FILE *from)
{
    char line[4096];
    rewind(from);
    while (fgets(line, sizeof line, from))
        printf("    %s", line);
}

/* The last line that a skipped test printed is its reason. */
static void print_reason(FILE *from)
{
    char line[512], last[512] = "";
    rewind(from);
    while (fgets(line, sizeof line, from))
        memcpy(last, line, sizeof last);
    last[strcspn(last, "\n")] = 0;
    printf(": %s", last);
}

static void test_runner_report(const tutti_test *test, int result, const char *why, double seconds,
                               FILE *output)
{
    const char *word = result == TUTTI_TEST_PASSED    ? "passed"
                       : result == TUTTI_TEST_SKIPPED ? "skipped"
                                                      : "failed";
    totals->passed += result == TUTTI_TEST_PASSED;
    totals->skipped += result == TUTTI_TEST_SKIPPED;
    totals->failed += result != TUTTI_TEST_PASSED && result != TUTTI_TEST_SKIPPED;
    if (options.json) {
        printf("{\"file\": \"%s\", \"test\": \"%s\", \"result\": \"%s\", \"seconds\": %.3f}\n",
               test->file, test->name, word, seconds);
    } else if (result == TUTTI_TEST_PASSED) {
        if (seconds >= slow_seconds || options.verbose)
            printf("%s  %s %s  %.2f s\n", seconds >= slow_seconds ? "slow" : "pass", test->file,
                   test->name, seconds);
        if (options.verbose && output)
            copy_output(output);
    } else if (result == TUTTI_TEST_SKIPPED) {
        printf("skip  %s %s", test->file, test->name);
        if (output)
            print_reason(output);
        putchar('\n');
    } else {
        printf("FAIL  %s %s  %s\n", test->file, test->name, why);
        if (output)
            copy_output(output);
    }
    fflush(stdout);
}

static void run_here(const tutti_test *test)
{
    double started = now_seconds();
    int result = tutti__test_run(test);
    test_runner_report(test, result, "", now_seconds() - started, NULL);
}

/* The child: its output goes to the job's file, and it leads a process group, so that a timeout
 * also ends the processes that the test started. */
_Noreturn static void run_child(const test_job *job)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    dup2(fileno(job->output), STDOUT_FILENO);
    dup2(fileno(job->output), STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (job->others == 0)
        exit(tutti__test_run(job->test));
    for (int i = 0; i <= job->others; i++)
        if (is_selected(&job->test[i]) && !job->test[i].alone)
            run_here(&job->test[i]);
    exit(0);
}

/* How many of the tests that follow are of the same file, where they go together. */
static int count_others(const tutti_test *test)
{
    int count = 0;
    while (options.together && test[count + 1].name &&
           strcmp(test[count + 1].file, test->file) == 0)
        count++;
    return count;
}

static bool start_job(test_job *job, const tutti_test *test, int others)
{
    FILE *output = tmpfile();
    if (!output) {
        fprintf(stderr, "tutti_tests: no temporary file: %s\n", strerror(errno));
        return false;
    }
    *job = (test_job){.test = test, .others = others, .output = output, .started = now_seconds()};
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0)
        run_child(job);
    if (job->pid < 0) {
        fprintf(stderr, "tutti_tests: cannot fork: %s\n", strerror(errno));
        fclose(output);
        job->test = NULL;
        return false;
    }
    setpgid(job->pid, job->pid);
    return true;
}

static void finish_job(test_job *job, int status)
{
    char why[128] = "";
    int result = WIFEXITED(status) ? WEXITSTATUS(status) : TUTTI_TEST_FAILED;
    if (job->timed_out)
        snprintf(why, sizeof why, "did not end within %g s", options.timeout);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (result != TUTTI_TEST_FAILED)
        snprintf(why, sizeof why, "exit status %d", result);
    kill(-job->pid, SIGKILL); /* processes that the test left behind */
    const tutti_test whole = {.file = job->test->file, .name = "(together)"};
    if (job->others == 0)
        test_runner_report(job->test, result, why, now_seconds() - job->started, job->output);
    else if (result == 0)
        copy_output(job->output);
    else
        test_runner_report(&whole, TUTTI_TEST_FAILED, why, now_seconds() - job->started,
                           job->output);
    fclose(job->output);
    job->test = NULL;
}

/* How many times longer a test may take while others keep the machine busy: processes that want to
 * run, for each CPU. */
static double patience(void)
{
    enum { MOST = 10 };
    double load, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) != 1 || cpus < 1 || load <= cpus)
        return 1;
    return load / cpus < MOST ? load / cpus : MOST;
}

static void kill_late(test_job *jobs)
{
    for (int i = 0; i < options.jobs; i++)
        if (jobs[i].test && !jobs[i].timed_out &&
            now_seconds() - jobs[i].started > options.timeout * patience()) {
            jobs[i].timed_out = true;
            kill(-jobs[i].pid, SIGKILL);
        }
}

/* Waits until at least one job ends; SIGCHLD is blocked, so none is missed. */
static void reap(test_job *jobs)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (int i = 0; pid > 0 && i < options.jobs; i++)
            if (jobs[i].test && jobs[i].pid == pid) {
                finish_job(&jobs[i], status);
                return;
            }
        if (pid > 0)
            continue;
        kill_late(jobs);
        sigset_t children;
        sigemptyset(&children);
        sigaddset(&children, SIGCHLD);
        sigtimedwait(&children, NULL, &(struct timespec){.tv_nsec = 100 * 1000 * 1000});
    }
}

/* The next test for a child, and those that share it; NULL: there is none. */
static const tutti_test *take_next(const tutti_test **next, int *ret_others)
{
    static const tutti_test *apart; /* until here those that are not alone have run together */
    const tutti_test *test = *next;
    while (test->name && (!is_selected(test) || (test < apart && !test->alone)))
        test++;
    *next = test;
    if (!test->name)
        return NULL;
    *ret_others = test->alone ? 0 : count_others(test);
    if (*ret_others > 0)
        apart = test + *ret_others + 1; /* and go on behind it: some may be alone */
    *next = test + 1;
    return test;
}

static int run_forked(void)
{
    test_job jobs[MAX_JOBS] = {0};
    int running = 0;
    const tutti_test *next = tutti__test_table;
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    for (;;) {
        for (int i = 0; i < options.jobs; i++) {
            int others = 0;
            const tutti_test *test = jobs[i].test ? NULL : take_next(&next, &others);
            if (test == NULL)
                continue;
            if (!start_job(&jobs[i], test, others))
                return 2;
            running++;
        }
        if (running == 0)
            return 0;
        reap(jobs);
        running--;
    }
}

static int run_all(void)
{
    if (!options.list && !options.no_fork)
        return run_forked();
    for (const tutti_test *test = tutti__test_table; test->name; test++) {
        if (!is_selected(test))
            continue;
        if (options.list)
            printf("%s %s\n", test->file, test->name);
        else
            run_here(test);
    }
    return 0;
}

static bool read_options(int argc, char **argv)
{
    options.jobs = cpu_count();
    options.filters = argv; /* filters are moved to the front */
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--list") == 0)
            options.list = true;
        else if (strcmp(argument, "--json") == 0)
            options.json = true;
        else if (strcmp(argument, "--verbose") == 0)
            options.verbose = true;
        else if (strcmp(argument, "--no-fork") == 0)
            options.no_fork = true;
        else if (strcmp(argument, "--together") == 0)
            options.together = true;
        else if (strcmp(argument, "--jobs") == 0 && i + 1 < argc)
            options.jobs = atoi(argv[++i]);
        else if (strcmp(argument, "--timeout") == 0 && i + 1 < argc)
            options.timeout = atof(argv[++i]);
        else if (argument[0] == '-')
            return false;
        else
            options.filters[options.filter_count++] = argv[i];
    }
    return options.jobs >= 1 && options.jobs <= MAX_JOBS && options.timeout > 0;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: tutti_tests [--list] [--json] [--verbose] [--no-fork | --together] "
                        "[--jobs N] [--timeout SECONDS] [FILTER...]\n");
        return 2;
    }
    if (!every_filter_selects())
        return 2;
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED) {
        perror("tutti_tests");
        return 2;
    }
    signal(SIGINT, SIG_DFL);      /* shells let what they start in the background ignore it */
    setenv("TUTTI_TUNE", "0", 0); /* tests neither read nor write the user's cache */
    int broken = run_all();
    if (options.list)
        return 0;
    printf("%d passed, %d failed, %d skipped\n", totals->passed, totals->failed, totals->skipped);
    return broken ? broken : totals->failed > 0;
}
