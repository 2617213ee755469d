/* run.c: `tutti run`: starts the ranks of a job, here or on other hosts. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/params.h"
#include "cli/command.h"
#include "cli/run/run.h"
#include "cluster/cluster.h"
#include "comm/fabric/engine.h"

static const char usage[] =
    "usage: tutti run [OPTIONS] PROGRAM [ARGUMENTS]\n\n"
    "Starts the ranks of a job, watches them and ends them together. Every line of output begins\n"
    "with its rank; on a terminal rank 0's is shown as it is, with its progress bar. When a rank\n"
    "fails, the others are told and end; the first failure is printed last.\n\n"
    "  -n, --ranks N          ranks; default 1, or what --hosts says\n"
    "  --hosts A:2,B:2        hosts and how many ranks on each, over ssh (without a password); tutti\n"
    "                         and the program must be there at the same path\n"
    "  --ps K                 the last K ranks are parameter servers. Where the program's ranks may\n"
    "                         come and go a rank that fails ends no other, and --restarts starts it\n"
    "                         alone; when all workers have ended the servers do\n"
    "  --engine E             how ranks communicate: shm or tcp; default: what fits. The engine mpi\n"
    "                         takes the ranks of an mpirun: mpirun -x TUTTI_ENGINE=mpi PROGRAM\n"
    "  --env NAME[=VALUE]     passes a variable on; may be repeated (TUTTI_... go anyway)\n"
    "  --restarts K           starts the job again, at most K times, after a failure\n"
    "  --host-wait S          a restart waits S seconds for hosts that do not answer, then goes on\n"
    "                         with the others and fewer ranks, renumbered; default 60\n"
    "  --min-workers N        ends the job when a restart finds fewer workers; default 1: any host\n"
    "                         goes on, since the global batch stays and only time is lost\n"
    "  --no-prefix            output as it comes, without ranks\n"
    "  --ssh COMMAND          instead of ssh, with options: --ssh 'ssh -p 2222'; default TUTTI_SSH\n"
    "  --remote-tutti PATH    tutti on the other hosts; default: where it is here\n\n"
    "Ctrl-C and SIGTERM go to all ranks, SIGHUP (unless nohup has it ignored) and SIGQUIT as\n"
    "SIGTERM; the second one of any as SIGTERM, the third as SIGKILL. After them nothing is started\n"
    "again. SIGUSR1 and SIGUSR2 go to the program of every rank, and the job goes on: one that does\n"
    "not handle them is ended by them.\n\n"
    "exit codes: 0    all ranks succeeded, also those that ended well after Ctrl-C, as fit does when\n"
    "                 it has saved\n"
    "            75   after SIGTERM (SIGHUP, SIGQUIT), when the ranks saved and ended (--resume goes on); also when one\n"
    "                 rank alone got SIGTERM and --restarts did not start the job again\n"
    "            130  after Ctrl-C or one of these, when ranks ended in any other way\n"
    "            1    all ranks succeeded, but some of their output could not be written (a full\n"
    "                 disk), which is said once\n"
    "            69   a restart found fewer workers than --min-workers\n"
    "            71   the system did not start a rank's process (its reason is printed)\n"
    "            255  a host was not reached (as ssh says it)\n"
    "            141  nobody reads the output any more\n"
    "            2    wrong usage\n"
    "            else that of the first rank that failed, 128 + N for signal N; of a job with servers\n"
    "            whose ranks come and go that of rank 0\n";

/* Takes `--name value` or `--name=value` at argv[*at]; NULL when it is another option. */
static const char *run_take(int argc, char **argv, int *at, const char *name)
{
    size_t size = strlen(name);
    if (strcmp(argv[*at], name) == 0 && *at + 1 < argc)
        return argv[(*at += 2) - 1];
    if (strncmp(argv[*at], name, size) == 0 && argv[*at][size] == '=')
        return argv[(*at)++] + size + 1;
    return NULL;
}

static bool read_number(const char *name, const char *text, int low, int high, int *ret)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high) {
        tutti__complain("%s takes a whole number from %d to %d, not '%s'", name, low, high, text);
        return false;
    }
    *ret = (int)value;
    return true;
}

static bool is_local(const char *host)
{
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return tutti__host_loopback(host) || strcmp(host, own) == 0;
}

static bool add_host(tutti_run_job *job, const char *name, int count)
{
    tutti_run_host host = {.count = count, .local = is_local(name)};
    snprintf(host.name, sizeof host.name, "%s", name);
    job->size += count;
    if (job->size > TUTTI_MOST_RANKS || !TUTTI_VEC_PUSH(&job->hosts, host)) {
        tutti__complain("a job has at most %d ranks", TUTTI_MOST_RANKS);
        return false;
    }
    return true;
}

/* "user@[::1]" to "user@::1" */
static void unbracket(char *name)
{
    char *open = strchr(name, '['), *closed = strrchr(name, ']');
    if (open == NULL || closed == NULL || closed < open || closed[1] != '\0')
        return;
    *closed = '\0';
    memmove(open, open + 1, strlen(open));
}

/* "a:2,b": names as ssh takes them, user@host too; an IPv6 address with a number in brackets. */
static bool read_hosts(tutti_run_job *job, const char *text)
{
    if (*text == '\0') {
        tutti__complain("--hosts takes names and numbers of ranks, such as a:2,b:2");
        return false;
    }
    while (*text != '\0') {
        char name[256];
        int count = 1;
        size_t size = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        char *colon = strrchr(name, ':'), *closed = strrchr(name, ']');
        if (strchr(name, ':') != colon && closed == NULL)
            colon = NULL; /* an address */
        else if (colon != NULL && closed != NULL && closed > colon)
            colon = NULL;
        if (colon != NULL &&
            !read_number("a host's number of ranks", colon + 1, 1, TUTTI_MOST_RANKS, &count))
            return false;
        if (colon != NULL)
            *colon = '\0';
        unbracket(name);
        if (name[0] == '\0' || name[0] == '-' || size >= sizeof name) {
            tutti__complain("--hosts takes names and numbers of ranks, such as a:2,b:2");
            return false;
        }
        for (size_t i = 0; i < job->hosts.count; i++)
            if (strcmp(job->hosts.data[i].name, name) == 0) {
                tutti__complain(
                    "--hosts names '%s' twice; write it once, with all its ranks: %s:%d", name,
                    name, job->hosts.data[i].count + count);
                return false;
            }
        if (!add_host(job, name, count))
            return false;
        text += size + (text[size] == ',');
    }
    return true;
}

static bool add_variable(tutti_run_job *job, const char *text)
{
    char *copy = NULL;
    if (text[0] == '=' || text[0] == '\0') {
        tutti__complain("--env takes NAME or NAME=VALUE, not '%s'", text);
        return false;
    }
    if (strchr(text, '=') != NULL)
        copy = strdup(text);
    else if (getenv(text) == NULL)
        return true;
    else if (asprintf(&copy, "%s=%s", text, getenv(text)) < 0)
        copy = NULL;
    if (copy == NULL || !TUTTI_VEC_PUSH(&job->variables, copy)) {
        free(copy);
        return false;
    }
    return true;
}

static bool add_engine(tutti_run_job *job, const char *engine)
{
    char text[100];
    const tutti_fabric_engine *known;
    if (strcmp(engine, "mpi") == 0) {
        tutti__complain(
            "--engine: MPI connects processes that its own launcher started; start them "
            "with it: mpirun -n N -x TUTTI_ENGINE=mpi PROGRAM (MPICH: -genv "
            "TUTTI_ENGINE mpi)");
        return false;
    }
    if (tutti__engine_find(engine, &known) != TUTTI_OK || !known->processes) {
        tutti__complain("--engine: '%s' does not connect processes; there are: shm, tcp", engine);
        return false;
    }
    snprintf(text, sizeof text, "TUTTI_ENGINE=%s", engine);
    return add_variable(job, text);
}

/* One option; false with a complaint when it is wrong. */
static bool read_option(tutti_run_job *job, int argc, char **argv, int *at, int *ranks)
{
    const char *value;
    if ((value = run_take(argc, argv, at, "-n")) || (value = run_take(argc, argv, at, "--ranks")))
        return read_number("-n", value, 1, TUTTI_MOST_RANKS, ranks);
    if ((value = run_take(argc, argv, at, "--hosts")))
        return read_hosts(job, value);
    if ((value = run_take(argc, argv, at, "--ps")))
        return read_number("--ps", value, 0, TUTTI_MOST_RANKS, &job->ps);
    if ((value = run_take(argc, argv, at, "--restarts")))
        return read_number("--restarts", value, 0, 1000000, &job->restarts);
    if ((value = run_take(argc, argv, at, "--host-wait")))
        return read_number("--host-wait", value, 0, 1000000, &job->host_wait);
    if ((value = run_take(argc, argv, at, "--min-workers")))
        return read_number("--min-workers", value, 1, TUTTI_MOST_RANKS, &job->min_workers);
    if ((value = run_take(argc, argv, at, "--engine")))
        return add_engine(job, value);
    if ((value = run_take(argc, argv, at, "--env")))
        return add_variable(job, value);
    if ((value = run_take(argc, argv, at, "--ssh")))
        return job->ssh = value, true;
    if ((value = run_take(argc, argv, at, "--remote-tutti")))
        return job->remote = value, true;
    if (strcmp(argv[*at], "--no-prefix") == 0)
        return job->prefix = false, (*at)++, true;
    const char *meant = tutti__flag_meant(usage, argv[*at]);
    if (meant && strcmp(meant, argv[*at]) == 0)
        meant = NULL;
    tutti__complain(
        "run does not know the option '%s', or it lacks its value%s; see tutti run --help",
        argv[*at], tutti__meant(meant));
    return false;
}

static bool check_job(tutti_run_job *job, int ranks)
{
    bool local = false, remote = false;
    if (job->hosts.count == 0 && !add_host(job, "localhost", ranks > 0 ? ranks : 1))
        return false;
    if (ranks > 0 && ranks != job->size) {
        tutti__complain("-n says %d ranks, --hosts %d; leave one out", ranks, job->size);
        return false;
    }
    for (size_t i = 0; i < job->hosts.count; i++) {
        local = local || tutti__host_loopback(job->hosts.data[i].name);
        remote = remote || !job->hosts.data[i].local;
    }
    if (local && remote) {
        tutti__complain("--hosts names localhost beside other machines, for which localhost is "
                        "themselves; write this machine's name");
        return false;
    }
    if (job->ps >= job->size) {
        tutti__complain(
            "--ps %d leaves no worker among %d ranks; start more with -n, or fewer servers",
            job->ps, job->size);
        return false;
    }
    if (job->min_workers > job->size - job->ps) {
        tutti__complain("--min-workers %d is more than the %d workers of the job", job->min_workers,
                        job->size - job->ps);
        return false;
    }
    return true;
}

static int run(int argc, char **argv)
{
    char own[4096] = "tutti";
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
    own[size > 0 ? size : 5] = '\0';
    static const tutti_param ssh_param =
        TUTTI_PARAM("SSH", "ssh", "the command by which tutti run reaches other hosts");
    tutti_run_job job = {.ssh = tutti__param_text(&ssh_param),
                         .remote = own,
                         .prefix = true,
                         .min_workers = 1,
                         .host_wait = 60};
    int at = 1, ranks = 0;
    if (argc == 2 && strcmp(argv[1], "--station") == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
        tutti__ssh_greet(STDOUT_FILENO))
        return tutti__station_run(STDIN_FILENO, STDOUT_FILENO);
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0)
        if (!read_option(&job, argc, argv, &at, &ranks))
            return TUTTI_EXIT_USAGE;
    at += at < argc && strcmp(argv[at], "--") == 0;
    if (at >= argc) {
        tutti__complain("run takes the program to start: tutti run -n 4 ./train");
        return TUTTI_EXIT_USAGE;
    }
    job.program = argv + at;
    int code = check_job(&job, ranks) ? tutti__run_job(&job) : TUTTI_EXIT_USAGE;
    explicit_bzero(job.secret, sizeof job.secret);
    for (size_t i = 0; i < job.variables.count; i++)
        free((void *)(uintptr_t)job.variables.data[i]);
    TUTTI_VEC_FREE(&job.variables);
    TUTTI_VEC_FREE(&job.hosts);
    return code;
}

const tutti_command tutti_command_run = {
    .name = "run",
    .summary = "start the ranks of a job, here or on other hosts",
    .usage = usage,
    .run = run,
    .starts_program = true,
};
