/* station.c: starts the ranks of one host and watches them. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "cli/run/station.h"
#include "cluster/place.h"

/* The system has no process or descriptors for it: that is the job's first failure, and what
 * becomes of the other ranks its consequence. */
static void report_unstarted(const tutti_station *s, int rank, int error)
{
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    tutti__frame_text(s->out, TUTTI_FRAME_UNSTARTED, "%d %s %s", rank, host, strerror(error));
}

static void start_ranks(tutti_station *s)
{
    char *nothing = NULL;
    s->ranks = calloc((size_t)s->plan.count, sizeof *s->ranks);
    s->started =
        s->ranks != NULL && s->arguments.count > 0 && TUTTI_VEC_PUSH(&s->arguments, nothing);
    for (int i = 0; s->started && i < s->plan.count; i++)
        if (!tutti__station_start(s, i, false)) {
            report_unstarted(s, s->plan.first + i, errno);
            s->lost = true;
            return;
        }
    if (s->listener >= 0)
        close(s->listener); /* rank 0 alone has it now: when it dies, others are refused */
    s->listener = -1;
}

/* "2 1 host:port" */
static bool start_again(tutti_station *s, const char *text)
{
    int rank, joins, at = 0;
    if (!s->started || sscanf(text, "%d %d %n", &rank, &joins, &at) != 2 || rank < s->plan.first ||
        rank >= s->plan.first + s->plan.count || s->ranks[rank - s->plan.first].process > 0)
        return false;
    snprintf(s->meeting, sizeof s->meeting, "%s", text + at);
    if (!tutti__station_start(s, rank - s->plan.first, joins != 0))
        report_unstarted(s, rank, errno);
    return true;
}

static void signal_ranks(const tutti_station *s, int number)
{
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++)
        if (s->ranks[i].process > 0) {
            kill(-s->ranks[i].process, number);
            if (number != SIGCONT && number != SIGSTOP)
                kill(-s->ranks[i].process, SIGCONT);
        }
}

/* Of a program's own the processes that it has started know nothing: they would die of it. Nor does
 * it let a rank go on that somebody has stopped. */
static void pass_signal(const tutti_station *s, int number)
{
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++)
        if (s->ranks[i].process > 0 && !s->ranks[i].ended)
            kill(s->ranks[i].process, number);
}

/* False where the station itself is what ends: there are no ranks yet. */
static bool take_signal(const tutti_station *s, int number)
{
    bool passed = tutti__signal_passed(number);
    (passed ? pass_signal : signal_ranks)(s, number);
    return s->started || passed;
}

/* ---- what the launcher says ---- */

/* Bound before anybody starts, so that nobody can take the port in between. */
static bool bind_port(tutti_station *s)
{
    const tutti_world *world = tutti__world();
    tutti_address addresses[4];
    size_t count = 0;
    int port = 0;
    char own[64];
    tutti__ssh_own_address(own, sizeof own);
    tutti_status status =
        world->resolve(world->self, s->plan.open ? NULL : "127.0.0.1", 0, 4, addresses, &count);
    for (size_t i = count; status == TUTTI_OK && i > 0; i--) /* IPv6 stands last, and takes both */
        if (world->listen(world->self, &addresses[i - 1], &s->listener, &port) == TUTTI_OK)
            return tutti__frame_text(s->out, TUTTI_FRAME_PORT, "%d %s", port, own);
    fprintf(stderr, "tutti run: %s\n", tutti_error_message());
    return false;
}

static bool keep_secret(tutti_station *s, const tutti_frame *frame)
{
    s->secret_fd = memfd_create("secret", MFD_CLOEXEC);
    return s->secret_fd >= 0 &&
           write(s->secret_fd, frame->data, frame->size) == (ssize_t)frame->size;
}

static bool take_plan(tutti_station *s, const char *text)
{
    tutti_station_plan *p = &s->plan;
    if (sscanf(text, "%d %d %d %d %d %d %d", &p->first, &p->count, &p->size, &p->ps, &p->epoch,
               &p->terminal, &p->open) != 7 ||
        p->count < 1 || p->count > TUTTI_MOST_RANKS)
        return false;
    if (tutti__allow_descriptors(3 * p->count) != TUTTI_OK) {
        fprintf(stderr, "tutti run: %s\n", tutti_error_message());
        return false;
    }
    return p->first != 0 || bind_port(s);
}

/* NAME=VALUE */
static bool set_variable(char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL)
        return false;
    *value = '\0';
    return setenv(text, value + 1, 1) == 0;
}

static bool add_argument(tutti_station *s, const char *text)
{
    if (!TUTTI_VEC_RESERVE_ONE(&s->arguments))
        return false;
    s->arguments.data[s->arguments.count] = strdup(text);
    return s->arguments.data[s->arguments.count++] != NULL;
}

/* It is nobody's controlling terminal: rank 0 would not hear of it. */
static bool take_window(tutti_station *s, const char *text)
{
    int rows, columns;
    if (sscanf(text, "%d %d", &rows, &columns) != 2)
        return false;
    s->window = (struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    bool there = s->ranks != NULL && s->plan.first == 0 && s->plan.terminal;
    if (there && s->ranks[0].process > 0 && s->ranks[0].output[0] >= 0 &&
        ioctl(s->ranks[0].output[0], TIOCSWINSZ, &s->window) == 0)
        kill(-s->ranks[0].process, SIGWINCH);
    return true;
}

static bool take_frame(tutti_station *s, const tutti_frame *frame)
{
    switch (frame->type) {
    case TUTTI_FRAME_SECRET:
        return keep_secret(s, frame);
    case TUTTI_FRAME_VARIABLE:
        return set_variable(frame->data);
    case TUTTI_FRAME_FOLDER:
        if (chdir(frame->data) != 0) {
            char host[256] = "this host";
            gethostname(host, sizeof host - 1);
            fprintf(stderr, "tutti run: there is no folder '%s' on %s; starting at home\n",
                    frame->data, host);
        }
        return true;
    case TUTTI_FRAME_ARGUMENT:
        return add_argument(s, frame->data);
    case TUTTI_FRAME_PLAN:
        return take_plan(s, frame->data);
    case TUTTI_FRAME_MEETING:
        snprintf(s->meeting, sizeof s->meeting, "%s", frame->data);
        start_ranks(s);
        return s->started;
    case TUTTI_FRAME_WINDOW:
        return take_window(s, frame->data);
    case TUTTI_FRAME_SIGNAL:
        return take_signal(s, atoi(frame->data));
    case TUTTI_FRAME_AGAIN:
        return start_again(s, frame->data);
    case TUTTI_FRAME_FINISH:
        s->finish = true;
        return true;
    case TUTTI_FRAME_NEWS:
        for (int i = 0; s->ranks != NULL && i < s->plan.count; i++)
            if (s->ranks[i].process > 0)
                (void)!write(s->ranks[i].news, frame->data, frame->size);
        return true;
    default:
        return false;
    }
}

static void read_launcher(tutti_station *s)
{
    tutti_frame frame;
    int found = 1;
    if (!tutti__frames_fill(&s->in)) {
        s->lost = true;
        return;
    }
    while ((found = tutti__frames_next(&s->in, &frame)) == 1)
        if (!take_frame(s, &frame))
            s->lost = true;
    s->lost = s->lost || found < 0;
}

/* ---- what the ranks do ---- */

static void read_output(tutti_station *s, tutti_station_rank *rank, int stream)
{
    char frame[5 + 65536];
    ssize_t got = read(rank->output[stream], frame + 5, sizeof frame - 5);
    if (got > 0) {
        for (int i = 0; i < 4; i++)
            frame[i] = (char)(rank->number >> (8 * i));
        frame[4] = (char)(stream + 1);
        s->lost =
            !tutti__frame_write(s->out, TUTTI_FRAME_OUTPUT, frame, 5 + (size_t)got) || s->lost;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(rank->output[stream]);
        rank->output[stream] = -1;
    }
}

/* A rank that somebody has stopped is waited for, however long: he may let it go on. */
static void say_stopped(const tutti_station_rank *rank, int signal)
{
    char host[256] = "this host";
    gethostname(host, sizeof host - 1);
    fprintf(stderr,
            "tutti run: rank %d (host %s, process %d) was stopped by signal %d (%s); kill -CONT %d "
            "there lets it go on\n",
            rank->number, host, (int)rank->process, signal, strsignal(signal), (int)rank->process);
}

static void reap(tutti_station *s)
{
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        for (int i = 0; i < s->plan.count && s->ranks != NULL; i++)
            if (s->ranks[i].process == process && WIFSTOPPED(status)) {
                say_stopped(&s->ranks[i], WSTOPSIG(status));
            } else if (s->ranks[i].process == process) {
                s->ranks[i].ended = true;
                s->ranks[i].status = status;
                s->quiet_until_ns = tutti__now_ns() + 200000000;
            }
}

/* What a rank says of its own: whom it could not meet ("missing 2 3"), why its group failed
 * ("verdict rank 2 …"), or who keeps the roster of an open job ("keeper 0 4711"). */
static void report_news(tutti_station *s, const tutti_station_rank *rank)
{
    char text[8192], *state = NULL;
    ssize_t got = read(rank->news, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    for (const char *line = strtok_r(text, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        bool good = true;
        if (strncmp(line, "missing ", 8) == 0)
            good = tutti__frame_text(s->out, TUTTI_FRAME_MISSING, "%.900s", line + 8);
        else if (strncmp(line, "verdict ", 8) == 0)
            good =
                tutti__frame_text(s->out, TUTTI_FRAME_VERDICT, "%d %.900s", rank->number, line + 8);
        else if (strncmp(line, "keeper ", 7) == 0)
            good = tutti__frame_text(s->out, TUTTI_FRAME_KEEPER, "%.60s", line + 7);
        s->lost = s->lost || !good;
    }
}

/* A rank is reported when its output has been read too, so that the reason stands before the fact;
 * children of its own that hold the pipe are not waited for. */
static int report_ended(tutti_station *s)
{
    int alive = 0;
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++) {
        tutti_station_rank *rank = &s->ranks[i];
        bool open = rank->output[0] >= 0 || rank->output[1] >= 0;
        alive += rank->process > 0;
        if (rank->process == 0 || !rank->ended || (open && tutti__now_ns() < s->quiet_until_ns))
            continue;
        bool signal = WIFSIGNALED(rank->status);
        kill(-rank->process, SIGKILL); /* what it started itself */
        rank->process = 0;
        alive--;
        report_news(s, rank);
        close(rank->news);
        s->lost = !tutti__frame_text(s->out, TUTTI_FRAME_ENDED, "%d %s %d", rank->number,
                                     signal ? "signal" : "exit",
                                     signal ? WTERMSIG(rank->status) : WEXITSTATUS(rank->status)) ||
                  s->lost;
    }
    return alive;
}

static void wait_for_something(tutti_station *s, struct pollfd *polls)
{
    int count = 0;
    polls[count++] = (struct pollfd){s->in.fd, POLLIN, 0};
    polls[count++] = (struct pollfd){s->signals, POLLIN, 0};
    bool ending = false;
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++) {
        ending = ending || (s->ranks[i].ended && s->ranks[i].process > 0);
        bool alive = s->ranks[i].process > 0;
        for (int stream = 0; stream < 2; stream++)
            polls[count++] = (struct pollfd){alive ? s->ranks[i].output[stream] : -1, POLLIN, 0};
        /* What it says while it runs matters in jobs with servers; else it is its last word. */
        bool heard = alive && !s->ranks[i].ended && s->plan.ps > 0;
        polls[count++] = (struct pollfd){heard ? s->ranks[i].news : -1, POLLIN, 0};
    }
    poll(polls, (nfds_t)count, ending ? 50 : TUTTI_STATION_BEAT_MS);
}

static void beat(tutti_station *s)
{
    int64_t now = tutti__now_ns();
    if (now - s->beat_ns < TUTTI_STATION_BEAT_MS * INT64_C(1000000))
        return;
    s->beat_ns = now;
    s->lost = !tutti__frame_write(s->out, TUTTI_FRAME_BEAT, "", 0) || s->lost;
}

static void watch(tutti_station *s, struct pollfd *polls)
{
    struct signalfd_siginfo info;
    while (!s->lost) {
        wait_for_something(s, polls);
        bool had_ranks = s->ranks != NULL;
        if (polls[1].revents != 0 && read(s->signals, &info, sizeof info) > 0 &&
            info.ssi_signo != SIGCHLD)
            s->lost = true;
        for (int i = 0; had_ranks && i < 3 * s->plan.count; i++)
            if (polls[2 + i].revents != 0 && i % 3 < 2)
                read_output(s, &s->ranks[i / 3], i % 3);
            else if (polls[2 + i].revents != 0)
                report_news(s, &s->ranks[i / 3]);
        if (polls[0].revents != 0)
            read_launcher(s);
        reap(s);
        beat(s);
        if (report_ended(s) == 0 && s->started && (s->plan.ps == 0 || s->finish))
            return;
    }
}

int tutti__station_work(int in, int out)
{
    tutti_station s = {.out = out, .listener = -1, .secret_fd = -1, .in = {.fd = in}};
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGHUP);
    s.signals = signalfd(-1, &handled, SFD_CLOEXEC);
    sigaddset(&handled,
              SIGINT); /* the launcher hears it and tells us; ranks wait for it, blocked */
    sigprocmask(SIG_BLOCK, &handled, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    tutti__orphans_adopt();
    struct pollfd *polls = calloc(2 + 3 * (size_t)TUTTI_MOST_RANKS, sizeof *polls);
    if (s.signals >= 0 && polls != NULL)
        watch(&s, polls);
    else
        s.lost = true;
    signal_ranks(&s, SIGKILL);
    tutti__orphans_end();
    free(polls);
    free(s.ranks);
    for (size_t i = 0; i < s.arguments.count; i++)
        free(s.arguments.data[i]);
    TUTTI_VEC_FREE(&s.arguments);
    tutti__frames_free(&s.in);
    return s.lost ? 1 : 0;
}
