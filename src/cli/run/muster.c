/* muster.c: which hosts are there before a restart: each is asked by the command that starts its
 * station, which greets and, since it is given nothing to do, ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "cli/run/run.h"

static const int64_t second = 1000000000;
static const int short_wait = 5, between_tries = 2; /* seconds */

typedef struct call {
    pid_t process; /* 0: none under way */
    tutti_frames from;
    int64_t again_ns, until_ns;
    int tries;
    bool done;
} call;

typedef struct muster {
    tutti_run_job *job;
    call *calls; /* [hosts] */
    struct pollfd *polls;
    int signals;
} muster;

/* What ssh complains of is shown once for each host. */
static _Noreturn void become_question(const muster *m, size_t host, int out)
{
    int nothing = open("/dev/null", O_RDWR);
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    if (m->calls[host].tries > 0)
        dup2(nothing, STDERR_FILENO);
    tutti__ssh_run(m->job, m->job->hosts.data[host].name);
    _exit(127);
}

static void ask(muster *m, size_t host)
{
    call *c = &m->calls[host];
    int out[2];
    c->again_ns = tutti__now_ns() + between_tries * second;
    if (pipe2(out, O_CLOEXEC) != 0)
        return;
    fflush(NULL);
    c->process = fork();
    if (c->process == 0)
        become_question(m, host, out[1]);
    close(out[1]);
    c->from = (tutti_frames){.fd = out[0]};
    c->tries++;
    if (c->process < 0) {
        close(out[0]);
        c->process = 0;
    }
}

static void hang_up(call *c)
{
    if (c->process == 0)
        return;
    kill(-c->process, SIGKILL);
    kill(c->process, SIGKILL); /* it may not have its group yet */
    waitpid(c->process, NULL, 0);
    close(c->from.fd);
    tutti__frames_free(&c->from);
    c->process = 0;
}

/* Where the answer has come, or will not. */
static void listen_to(muster *m, size_t host)
{
    call *c = &m->calls[host];
    tutti_run_host *h = &m->job->hosts.data[host];
    bool more = tutti__frames_fill(&c->from);
    int greeted = more ? tutti__ssh_greeted(&c->from) : -1;
    if (greeted == 0)
        return;
    hang_up(c);
    c->done = greeted > 0;
    if (c->done && c->tries > 1)
        fprintf(stderr, "tutti run: host %s is there\n", h->name);
    else if (!c->done && c->tries == 1 && !h->away)
        fprintf(stderr,
                "tutti run: host %s does not answer; waiting up to %d s for it (--host-wait), "
                "then %s\n",
                h->name, m->job->host_wait, h->met ? "going on without it" : "giving up");
    if (c->done)
        h->away = false;
}

static void give_up(muster *m, size_t host)
{
    tutti_run_host *h = &m->job->hosts.data[host];
    hang_up(&m->calls[host]);
    m->calls[host].done = true;
    fprintf(stderr, "tutti run: host %s %s%s\n", h->name, h->away ? "is still away" : "stayed away",
            h->met ? "; going on without it" : "");
    h->away = true;
}

/* Asks who is to be asked; false when nobody is left. */
static bool muster_advance(muster *m)
{
    bool open = false;
    for (size_t i = 0; i < m->job->hosts.count; i++) {
        call *c = &m->calls[i];
        int64_t now = tutti__now_ns();
        if (c->done)
            continue;
        if (now >= c->until_ns && c->tries > 0)
            give_up(m, i);
        else if (c->process == 0 && now >= c->again_ns)
            ask(m, i);
        open = open || !c->done;
    }
    return open;
}

static int wait_for_all(muster *m)
{
    struct signalfd_siginfo info;
    size_t count = m->job->hosts.count;
    while (muster_advance(m)) {
        m->polls[0] = (struct pollfd){m->signals, POLLIN, 0};
        for (size_t i = 0; i < count; i++)
            m->polls[1 + i] =
                (struct pollfd){m->calls[i].process > 0 ? m->calls[i].from.fd : -1, POLLIN, 0};
        poll(m->polls, (nfds_t)count + 1, 100);
        if (m->polls[0].revents != 0 && read(m->signals, &info, sizeof info) == sizeof info)
            return (int)info.ssi_signo;
        for (size_t i = 0; i < count; i++)
            if (m->polls[1 + i].revents != 0)
                listen_to(m, i);
    }
    return 0;
}

int tutti__muster(tutti_run_job *job)
{
    size_t count = job->hosts.count;
    muster m = {.job = job};
    sigset_t handled, before;
    tutti__signals_ending(&handled);
    sigprocmask(SIG_BLOCK, &handled, &before);
    m.signals = signalfd(-1, &handled, SFD_CLOEXEC);
    m.calls = calloc(count, sizeof *m.calls);
    m.polls = calloc(count + 1, sizeof *m.polls);
    int number = 0;
    if (m.signals >= 0 && m.calls != NULL && m.polls != NULL) {
        for (size_t i = 0; i < count; i++) {
            const tutti_run_host *host = &job->hosts.data[i];
            m.calls[i].done = host->local || host->apart;
            m.calls[i].until_ns =
                tutti__now_ns() + (host->away ? short_wait : job->host_wait) * second;
        }
        number = wait_for_all(&m);
        for (size_t i = 0; i < count; i++)
            hang_up(&m.calls[i]);
    }
    if (m.signals >= 0)
        close(m.signals);
    free(m.calls);
    free(m.polls);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return number;
}
