/* rank.c: starting one rank: its pipes, its variables, its process group. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/pool.h"
#include "cli/run/station.h"

static void put_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void set_variables(const tutti_station *s, int local, int news, bool joins)
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
    unsetenv("TUTTI_REJOIN");
    if (joins)
        put_number("TUTTI_REJOIN", 1);
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
static _Noreturn void become_rank(const tutti_station *s, int local, const int output[2], int news,
                                  pid_t parent, bool joins)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGINT, SIG_DFL); /* before one that has come already is let through */
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output[0], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    inherit(s->secret_fd);
    inherit(news);
    if (s->plan.first + local == 0)
        inherit(s->listener);
    set_variables(s, local, news, joins);
    execvp(s->arguments.data[0], s->arguments.data);
    fprintf(stderr, "tutti run: cannot start '%s': %s\n", s->arguments.data[0], strerror(errno));
    _exit(127);
}

/* A terminal for rank 0, so that its progress bar is one; as wide as the user's. */
static bool open_terminal(const struct winsize *window, int ends[2])
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
    if (window->ws_col > 0)
        ioctl(slave, TIOCSWINSZ, window);
    ends[0] = master;
    ends[1] = slave;
    return true;
}

static bool open_pipes(const tutti_station *s, int local, int output[2][2], int news[2])
{
    bool terminal = s->plan.terminal && s->plan.first + local == 0;
    if (!(terminal && open_terminal(&s->window, output[0])) && pipe2(output[0], O_CLOEXEC) != 0)
        return false;
    return pipe2(output[1], O_CLOEXEC) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, news) == 0;
}

bool tutti__station_start(tutti_station *s, int local, bool joins)
{
    int output[2][2], news[2];
    tutti_station_rank *rank = &s->ranks[local];
    if (!open_pipes(s, local, output, news))
        return false;
    pid_t parent = getpid(), process = fork();
    if (process < 0)
        return false;
    if (process == 0)
        become_rank(s, local, (int[2]){output[0][1], output[1][1]}, news[0], parent, joins);
    setpgid(process, process);
    for (int i = 0; i < 2; i++) {
        close(output[i][1]);
        fcntl(output[i][0], F_SETFL, O_NONBLOCK);
    }
    close(news[0]);
    fcntl(news[1], F_SETFL, O_NONBLOCK);
    *rank = (tutti_station_rank){.number = s->plan.first + local,
                                 .process = process,
                                 .output = {output[0][0], output[1][0]},
                                 .news = news[1]};
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    return tutti__frame_text(s->out, TUTTI_FRAME_STARTED, "%d %d %s", rank->number, (int)process,
                             host);
}
