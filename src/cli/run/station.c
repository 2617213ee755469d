/* station.c: starts the ranks of one host and watches them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/world.h"
#include "cli/run/run.h"

typedef struct station_rank {
    int number;
    pid_t process; /* 0: ended and reported */
    int status;    /* of waitpid */
    bool ended;    /* seen, its output perhaps not read to the end */
    int output[2]; /* we read its stdout and stderr; -1: at the end */
    int news;      /* we write how others ended */
} station_rank;

typedef struct station {
    int out, signals, listener, secret_fd;
    int64_t quiet_until_ns; /* output of a dead rank's children is read no longer than that */
    tutti_station_plan plan;
    tutti_frames in;
    TUTTI_VEC(char *) arguments;
    char meeting[300];
    station_rank *ranks;
    bool started, lost;
} station;

/* ---- one rank ---- */

static void put_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void set_variables(const station *s, int local, int news)
{
    const tutti_station_plan *plan = &s->plan;
    put_number("TUTTI_RANK", plan->first + local);
    put_number("TUTTI_SIZE", plan->size);
    put_number("TUTTI_PS", plan->ps);
    put_number("TUTTI_LOCAL_RANK", local);
    put_number("TUTTI_LOCAL_SIZE", plan->count);
    put_number("TUTTI_EPOCH", plan->epoch);
    put_number("TUTTI_SECRET_FD", s->secret_fd);
    put_number("TUTTI_LAUNCHER_FD", news);
    setenv("TUTTI_MEETING", s->meeting, 1);
    unsetenv("TUTTI_LISTEN_FD");
    if (plan->first + local == 0 && s->listener >= 0)
        put_number("TUTTI_LISTEN_FD", s->listener);
    if (getenv("TUTTI_THREADS") == NULL) {
        int threads = tutti__cpu_count() / plan->count;
        put_number("TUTTI_THREADS", threads > 0 ? threads : 1);
    }
}

static void inherit(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, 0);
}

/* In the child. The parent may have died between fork and prctl, hence the second look. */
static _Noreturn void become_rank(const station *s, int local, const int output[2], int news,
                                  pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(output[0], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    inherit(s->secret_fd);
    inherit(news);
    if (s->plan.first + local == 0)
        inherit(s->listener);
    set_variables(s, local, news);
    execvp(s->arguments.data[0], s->arguments.data);
    fprintf(stderr, "tutti run: cannot start '%s': %s\n", s->arguments.data[0], strerror(errno));
    _exit(127);
}

/* A terminal for rank 0, so that its progress bar is one. */
static bool open_terminal(int ends[2])
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[128];
    struct termios mode;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, name, sizeof name) != 0)
        return false;
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || tcgetattr(slave, &mode) != 0)
        return false;
    cfmakeraw(&mode);
    tcsetattr(slave, TCSANOW, &mode);
    ends[0] = master;
    ends[1] = slave;
    return true;
}

static bool open_pipes(const station *s, int local, int output[2][2], int news[2])
{
    bool terminal = s->plan.terminal && s->plan.first + local == 0;
    if (!(terminal && open_terminal(output[0])) && pipe2(output[0], O_CLOEXEC) != 0)
        return false;
    return pipe2(output[1], O_CLOEXEC) == 0 && pipe2(news, O_CLOEXEC) == 0;
}

static bool start_rank(station *s, int local)
{
    int output[2][2], news[2];
    station_rank *rank = &s->ranks[local];
    if (!open_pipes(s, local, output, news))
        return false;
    pid_t parent = getpid(), process = fork();
    if (process < 0)
        return false;
    if (process == 0)
        become_rank(s, local, (int[2]){output[0][1], output[1][1]}, news[0], parent);
    setpgid(process, process);
    for (int i = 0; i < 2; i++) {
        close(output[i][1]);
        fcntl(output[i][0], F_SETFL, O_NONBLOCK);
    }
    close(news[0]);
    fcntl(news[1], F_SETFL, O_NONBLOCK);
    *rank = (station_rank){.number = s->plan.first + local,
                           .process = process,
                           .output = {output[0][0], output[1][0]},
                           .news = news[1]};
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    return tutti__frame_text(s->out, TUTTI_FRAME_STARTED, "%d %d %s", rank->number, (int)process,
                             host);
}

static void start_ranks(station *s)
{
    char *nothing = NULL;
    s->ranks = calloc((size_t)s->plan.count, sizeof *s->ranks);
    s->started =
        s->ranks != NULL && s->arguments.count > 0 && TUTTI_VEC_PUSH(&s->arguments, nothing);
    for (int i = 0; s->started && i < s->plan.count; i++)
        if (!start_rank(s, i)) {
            fprintf(stderr, "tutti run: rank %d cannot be started: %s\n", s->plan.first + i,
                    strerror(errno));
            s->lost = true;
            return;
        }
    if (s->listener >= 0)
        close(s->listener); /* rank 0 alone has it now: when it dies, others are refused */
    s->listener = -1;
}

static void signal_ranks(const station *s, int number)
{
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++)
        if (s->ranks[i].process > 0) {
            kill(-s->ranks[i].process, number);
            if (number != SIGCONT && number != SIGSTOP)
                kill(-s->ranks[i].process, SIGCONT);
        }
}

/* ---- what the launcher says ---- */

/* Bound before anybody starts, so that nobody can take the port in between. */
static bool bind_port(station *s)
{
    const tutti_world *world = tutti__world();
    tutti_address addresses[4];
    size_t count = 0;
    int port = 0;
    tutti_status status =
        world->resolve(world->self, s->plan.open ? NULL : "127.0.0.1", 0, 4, addresses, &count);
    for (size_t i = count; status == TUTTI_OK && i > 0; i--) /* IPv6 stands last, and takes both */
        if (world->listen(world->self, &addresses[i - 1], &s->listener, &port) == TUTTI_OK)
            return tutti__frame_text(s->out, TUTTI_FRAME_PORT, "%d", port);
    fprintf(stderr, "tutti run: %s\n", tutti_error_message());
    return false;
}

static bool keep_secret(station *s, const tutti_frame *frame)
{
    s->secret_fd = memfd_create("secret", MFD_CLOEXEC);
    return s->secret_fd >= 0 &&
           write(s->secret_fd, frame->data, frame->size) == (ssize_t)frame->size;
}

static bool take_plan(station *s, const char *text)
{
    tutti_station_plan *p = &s->plan;
    if (sscanf(text, "%d %d %d %d %d %d %d", &p->first, &p->count, &p->size, &p->ps, &p->epoch,
               &p->terminal, &p->open) != 7 ||
        p->count < 1 || p->count > TUTTI_MOST_RANKS)
        return false;
    return p->first != 0 || bind_port(s);
}

static bool take_frame(station *s, const tutti_frame *frame)
{
    char *copy;
    switch (frame->type) {
    case TUTTI_FRAME_SECRET:
        return keep_secret(s, frame);
    case TUTTI_FRAME_VARIABLE:
        copy = strdup(frame->data); /* the environment keeps it */
        return copy != NULL && putenv(copy) == 0;
    case TUTTI_FRAME_FOLDER:
        if (chdir(frame->data) != 0)
            fprintf(stderr, "tutti run: there is no folder '%s' on this host; starting at home\n",
                    frame->data);
        return true;
    case TUTTI_FRAME_ARGUMENT:
        copy = strdup(frame->data);
        return copy != NULL && TUTTI_VEC_PUSH(&s->arguments, copy);
    case TUTTI_FRAME_PLAN:
        return take_plan(s, frame->data);
    case TUTTI_FRAME_MEETING:
        snprintf(s->meeting, sizeof s->meeting, "%s", frame->data);
        start_ranks(s);
        return s->started;
    case TUTTI_FRAME_SIGNAL:
        signal_ranks(s, atoi(frame->data));
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

static void read_launcher(station *s)
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

static void read_output(station *s, station_rank *rank, int stream)
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

static void reap(station *s)
{
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < s->plan.count && s->ranks != NULL; i++)
            if (s->ranks[i].process == process) {
                s->ranks[i].ended = true;
                s->ranks[i].status = status;
                s->quiet_until_ns = tutti__now_ns() + 200000000;
            }
}

/* A rank is reported when its output has been read too, so that the reason stands before the fact;
 * children of its own that hold the pipe are not waited for. */
static int report_ended(station *s)
{
    int alive = 0;
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++) {
        station_rank *rank = &s->ranks[i];
        bool open = rank->output[0] >= 0 || rank->output[1] >= 0;
        alive += rank->process > 0;
        if (rank->process == 0 || !rank->ended || (open && tutti__now_ns() < s->quiet_until_ns))
            continue;
        bool signal = WIFSIGNALED(rank->status);
        kill(-rank->process, SIGKILL); /* what it started itself */
        rank->process = 0;
        alive--;
        close(rank->news);
        s->lost = !tutti__frame_text(s->out, TUTTI_FRAME_ENDED, "%d %s %d", rank->number,
                                     signal ? "signal" : "exit",
                                     signal ? WTERMSIG(rank->status) : WEXITSTATUS(rank->status)) ||
                  s->lost;
    }
    return alive;
}

static void wait_for_something(station *s, struct pollfd *polls)
{
    int count = 0;
    polls[count++] = (struct pollfd){s->in.fd, POLLIN, 0};
    polls[count++] = (struct pollfd){s->signals, POLLIN, 0};
    bool ending = false;
    for (int i = 0; s->ranks != NULL && i < s->plan.count; i++) {
        ending = ending || (s->ranks[i].ended && s->ranks[i].process > 0);
        for (int stream = 0; stream < 2; stream++)
            polls[count++] = (struct pollfd){
                s->ranks[i].process > 0 ? s->ranks[i].output[stream] : -1, POLLIN, 0};
    }
    poll(polls, (nfds_t)count, ending ? 50 : -1);
}

static void watch(station *s, struct pollfd *polls)
{
    struct signalfd_siginfo info;
    while (!s->lost) {
        wait_for_something(s, polls);
        bool had_ranks = s->ranks != NULL;
        if (polls[1].revents != 0 && read(s->signals, &info, sizeof info) > 0 &&
            info.ssi_signo != SIGCHLD)
            s->lost = true;
        for (int i = 0; had_ranks && i < 2 * s->plan.count; i++)
            if (polls[2 + i].revents != 0)
                read_output(s, &s->ranks[i / 2], i % 2);
        if (polls[0].revents != 0)
            read_launcher(s);
        reap(s);
        if (report_ended(s) == 0 && s->started)
            return;
    }
}

int tutti__station_run(int in, int out)
{
    station s = {.out = out, .listener = -1, .secret_fd = -1, .in = {.fd = in}};
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGHUP);
    sigprocmask(SIG_BLOCK, &handled, NULL);
    signal(SIGINT, SIG_IGN); /* the launcher hears it and tells us */
    signal(SIGPIPE, SIG_IGN);
    s.signals = signalfd(-1, &handled, SFD_CLOEXEC);
    struct pollfd *polls = calloc(2 + 2 * (size_t)TUTTI_MOST_RANKS, sizeof *polls);
    if (s.signals < 0 || polls == NULL)
        return 1;
    watch(&s, polls);
    signal_ranks(&s, SIGKILL);
    free(polls);
    free(s.ranks);
    for (size_t i = 0; i < s.arguments.count; i++)
        free(s.arguments.data[i]);
    TUTTI_VEC_FREE(&s.arguments);
    tutti__frames_free(&s.in);
    return s.lost ? 1 : 0;
}
