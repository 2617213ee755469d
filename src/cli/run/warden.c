/* warden.c: a station is two processes, so that one of them may be killed. The station does all the
 * work; its warden only waits for it. Where the station is killed, its ranks die by the system's
 * hand, and what they have started, in their process groups or out of them, comes to the warden,
 * which ends it. Where the warden is killed, the station hears of it and ends with its ranks. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/station.h"

/* As for the station itself: Ctrl-C comes by way of the launcher, and SIGTERM ends it. */
static void take_signals(void)
{
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    signal(SIGINT, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &ending, NULL);
}

/* The launcher sees the station's end by that of `out`, which is ours too: when all are gone. */
static int guard(pid_t station, int in)
{
    int status = 0;
    pid_t ended;
    close(in);
    take_signals();
    while ((ended = waitpid(station, &status, 0)) < 0 && errno == EINTR)
        ;
    if (ended == station && WIFEXITED(status))
        return WEXITSTATUS(status); /* it has ended its ranks itself */
    tutti__orphans_end();
    return 1;
}

int tutti__station_run(int in, int out)
{
    pid_t warden = getpid();
    tutti__orphans_adopt();
    pid_t station = fork();
    if (station > 0)
        return guard(station, in);
    if (station < 0) /* without one */
        return tutti__station_work(in, out);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    _exit(getppid() == warden ? tutti__station_work(in, out) : 1);
}
