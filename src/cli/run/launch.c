/* launch.c: one start of a job: stations, their frames, the first failure. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "cli/run/launch.h"
#include "tutti/job.h"

enum { SECOND = 1000000000 };

/* ---- starting ---- */

static _Noreturn void become_station(const tutti_launch *l, const tutti_run_host *host,
                                     const int in[2], const int out[2])
{
    setpgid(0, 0);
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (l->stations[i].to >= 0)
            close(l->stations[i].to); /* else a station would never see the launcher's end */
    close(in[1]);
    close(out[0]);
    if (host->local)
        _exit(tutti__station_run(in[0], out[1]));
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    tutti__ssh_run(l->job, host->name);
    _exit(127);
}

static bool start_station(tutti_launch *l, int number)
{
    const tutti_run_host *host = &l->job->hosts.data[number];
    tutti_launch_station *station = &l->stations[number];
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    station->process = fork();
    if (station->process < 0)
        return false;
    if (station->process == 0)
        become_station(l, host, in, out);
    close(in[0]);
    close(out[1]);
    station->to = in[1];
    station->from = (tutti_frames){.fd = out[0]};
    return true;
}

/* A remote station gets our TUTTI_ variables; a local one has them. */
static bool send_variables(const tutti_launch *l, const tutti_launch_station *station, bool local)
{
    extern char **environ;
    bool good = true;
    for (char **each = environ; !local && *each != NULL; each++)
        if (strncmp(*each, "TUTTI_", 6) == 0 && strncmp(*each, "TUTTI_SECRET", 12) != 0)
            good =
                good && tutti__frame_write(station->to, TUTTI_FRAME_VARIABLE, *each, strlen(*each));
    for (size_t i = 0; i < l->job->variables.count; i++) {
        const char *variable = l->job->variables.data[i];
        good = good &&
               tutti__frame_write(station->to, TUTTI_FRAME_VARIABLE, variable, strlen(variable));
    }
    return good;
}

/* The size of our terminal is that of rank 0's. */
static void send_window(const tutti_launch *l)
{
    struct winsize size;
    if (l->ranks[0].output.raw && l->stations[0].to >= 0 &&
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        tutti__frame_text(l->stations[0].to, TUTTI_FRAME_WINDOW, "%d %d", size.ws_row, size.ws_col);
}

static bool brief_station(const tutti_launch *l, int number)
{
    const tutti_launch_station *station = &l->stations[number];
    const tutti_run_job *job = l->job;
    bool local = job->hosts.data[number].local, spread = job->hosts.count > 1;
    char folder[4096];
    bool good =
        tutti__frame_write(station->to, TUTTI_FRAME_SECRET, job->secret, strlen(job->secret)) &&
        send_variables(l, station, local);
    if (getcwd(folder, sizeof folder) != NULL)
        good = good && tutti__frame_write(station->to, TUTTI_FRAME_FOLDER, folder, strlen(folder));
    for (char **each = job->program; *each != NULL; each++)
        good = good && tutti__frame_write(station->to, TUTTI_FRAME_ARGUMENT, *each, strlen(*each));
    int terminal = l->ranks[0].output.raw;
    if (number == 0)
        send_window(l);
    return good &&
           tutti__frame_text(station->to, TUTTI_FRAME_PLAN, "%d %d %d %d %d %d %d", station->first,
                             station->count, job->size, job->ps, l->epoch, terminal, spread);
}

void tutti__launch_tell(tutti_launch *l, int station, char type, const char *text)
{
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if ((station < 0 || (size_t)station == i) && l->stations[i].to >= 0)
            tutti__frame_write(l->stations[i].to, type, text, strlen(text));
}

static void tell_all(tutti_launch *l, char type, const char *text)
{
    tutti__launch_tell(l, -1, type, text);
}

static void signal_all(tutti_launch *l, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    tell_all(l, TUTTI_FRAME_SIGNAL, text);
}

/* ---- what stations say ---- */

void tutti__launch_fail(tutti_launch *l, int rank)
{
    if (l->first_failed < 0)
        l->first_failed = rank;
    if (l->patience_until == 0)
        l->patience_until = tutti__now_ns() + 3 * (int64_t)SECOND;
}

static void take_ended(tutti_launch *l, const char *text)
{
    int rank, number;
    char how[16], news[64];
    if (sscanf(text, "%d %15s %d", &rank, how, &number) != 3 || rank < 0 || rank >= l->job->size)
        return;
    tutti_launch_rank *r = &l->ranks[rank];
    r->ended = true;
    r->by_signal = strcmp(how, "signal") == 0;
    r->number = number;
    tutti__output_end(&r->output, l->width);
    r->done = !r->by_signal && number == 0 && l->first_failed < 0;
    if ((r->by_signal || number != 0) && !tutti__servers_lost(l, rank))
        tutti__launch_fail(l, rank);
    snprintf(news, sizeof news, "rank %d %s %d\n", rank, how, number);
    tell_all(l, TUTTI_FRAME_NEWS, news);
}

/* "2 host Resource temporarily unavailable" */
static void take_unstarted(tutti_launch *l, const char *text)
{
    int rank, reason = 0;
    char host[256], ended[32];
    if (sscanf(text, "%d %255s %n", &rank, host, &reason) != 2 || rank < 0 || rank >= l->job->size)
        return;
    tutti_launch_rank *r = &l->ranks[rank];
    snprintf(r->host, sizeof r->host, "%s", host);
    snprintf(r->reason, sizeof r->reason, "%s", text + reason);
    snprintf(ended, sizeof ended, "%d exit %d", rank, TUTTI_EXIT_UNSTARTED);
    take_ended(l, ended);
}

static void take_verdict(tutti_launch *l, const char *text)
{
    int rank, at = 0;
    if (sscanf(text, "%d %n", &rank, &at) != 1 || rank < 0 || rank >= l->job->size)
        return;
    const char *failed = text + at;
    tutti_launch_rank *r = &l->ranks[rank];
    size_t failure = strcspn(failed, "\t");
    const char *waiting = failed + failure + (failed[failure] == '\t');
    size_t length = strcspn(waiting, "\t");
    if (length >= strlen(r->waiting)) /* who decided knows the training step as well */
        snprintf(r->waiting, sizeof r->waiting, "%.*s", (int)length, waiting);
    snprintf(r->reason, sizeof r->reason, "%.*s%s", (int)failure, failed,
             waiting + length + (waiting[length] == '\t'));
}

static void take_output(tutti_launch *l, const tutti_frame *frame)
{
    if (frame->size < 5)
        return;
    const unsigned char *at = (const unsigned char *)frame->data;
    uint32_t rank = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    if (rank < (uint32_t)l->job->size && (at[4] == 1 || at[4] == 2))
        tutti__output_add(&l->ranks[rank].output, at[4], frame->data + 5, frame->size - 5,
                          l->width);
}

/* "2 3": rank 0 waited for them in vain. */
static void take_missing(tutti_launch *l, const char *text)
{
    char *end;
    for (long rank = strtol(text, &end, 10); end != text; rank = strtol(text, &end, 10)) {
        for (size_t i = 0; i < l->job->hosts.count; i++)
            if (rank >= l->stations[i].first && rank < l->stations[i].first + l->stations[i].count)
                l->job->hosts.data[i].apart = true;
        text = end;
    }
}

static void take_frame(tutti_launch *l, const tutti_frame *frame)
{
    int rank, process, port;
    char host[256], meeting[300], address[64];
    switch (frame->type) {
    case TUTTI_FRAME_PORT:
        if (sscanf(frame->data, "%d %63s", &port, address) != 2)
            break;
        tutti__ssh_meeting(l->job->hosts.count > 1 ? l->job->hosts.data[0].name : "127.0.0.1", port,
                           address, meeting, sizeof meeting);
        tell_all(l, TUTTI_FRAME_MEETING, meeting);
        snprintf(l->meeting, sizeof l->meeting, "%s", meeting);
        snprintf(l->address, sizeof l->address, "%s", address);
        break;
    case TUTTI_FRAME_KEEPER:
        l->open = l->job->ps > 0;
        if (sscanf(frame->data, "%d %d", &rank, &port) == 2 && rank >= 0 && rank < l->job->size &&
            port > 0) {
            l->keeper = rank;
            l->keeper_port = port;
        }
        break;
    case TUTTI_FRAME_STARTED:
        if (sscanf(frame->data, "%d %d %255s", &rank, &process, host) == 3 && rank >= 0 &&
            rank < l->job->size) {
            l->ranks[rank].started = true;
            l->ranks[rank].process = process;
            snprintf(l->ranks[rank].host, sizeof l->ranks[rank].host, "%s", host);
        }
        break;
    case TUTTI_FRAME_OUTPUT:
        take_output(l, frame);
        break;
    case TUTTI_FRAME_UNSTARTED:
        take_unstarted(l, frame->data);
        break;
    case TUTTI_FRAME_ENDED:
        take_ended(l, frame->data);
        break;
    case TUTTI_FRAME_VERDICT:
        take_verdict(l, frame->data);
        break;
    case TUTTI_FRAME_MISSING:
        take_missing(l, frame->data);
        break;
    default:
        break;
    }
}

/* Ranks whose station is gone count as killed: the system has done that. */
static void lose_station(tutti_launch *l, tutti_launch_station *station)
{
    /* A station that is there and starts nothing, and a host that ssh did not reach. */
    int unstarted = station->greeted ? TUTTI_EXIT_UNSTARTED : TUTTI_EXIT_SSH;
    station->gone = true;
    if (!station->greeted && l->interrupts == 0)
        tutti__ssh_failed(l->job, &l->job->hosts.data[station - l->stations], &station->from);
    close(station->to);
    close(station->from.fd);
    station->to = -1;
    tutti__frames_free(&station->from);
    for (int r = station->first; r < station->first + station->count; r++)
        if (!l->ranks[r].ended) {
            l->ranks[r].ended = true;
            l->ranks[r].by_signal = l->ranks[r].started;
            l->ranks[r].number = l->ranks[r].started ? SIGKILL : unstarted;
            tutti__output_end(&l->ranks[r].output, l->width);
            if (!tutti__servers_lost(l, r))
                tutti__launch_fail(l, r);
        }
}

static void read_station(tutti_launch *l, tutti_launch_station *station)
{
    tutti_frame frame;
    int found = 0;
    bool more = tutti__frames_fill(&station->from);
    station->heard_ns = tutti__now_ns();
    if (more && !station->greeted) {
        found = tutti__ssh_greeted(&station->from);
        station->greeted = found > 0;
        l->job->hosts.data[station - l->stations].met = found > 0;
    }
    while (more && station->greeted && (found = tutti__frames_next(&station->from, &frame)) == 1)
        take_frame(l, &frame);
    if (!more || found < 0)
        lose_station(l, station);
}

/* ---- the loop ---- */

/* An ssh that is still connecting hears of no signals. */
static void end_connecting(tutti_launch *l)
{
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (!l->stations[i].greeted && !l->stations[i].gone)
            kill(-l->stations[i].process, SIGTERM);
}

/* The first Ctrl-C asks the program to end, the second insists, the third kills. False when nobody
 * wants anything to end, as with signals that are the ranks' own. */
static bool take_signal(tutti_launch *l)
{
    static const int insist[] = {SIGTERM, SIGKILL};
    struct signalfd_siginfo info;
    if (read(l->signals, &info, sizeof info) != sizeof info)
        return false;
    int number = (int)info.ssi_signo;
    if (number == SIGWINCH) {
        send_window(l);
        return false;
    }
    if (tutti__signal_passed(number)) {
        signal_all(l, number);
        return false;
    }
    if (number != SIGINT)
        number = SIGTERM; /* as ranks know it: not many save after SIGHUP or SIGQUIT */
    int64_t now = tutti__now_ns(), before = l->signalled;
    l->signalled = now;
    if (number == SIGTERM && l->interrupts == 1 && now - before < SECOND / 4)
        return false; /* `timeout` and others signal a program and then its group: it is one wish */
    if (l->interrupts > 0)
        number = insist[l->interrupts > 1];
    l->interrupts++;
    signal_all(l, number);
    end_connecting(l);
    if (number == SIGKILL) {
        l->force = SIGKILL;
        l->patience_until = tutti__now_ns() + 3 * (int64_t)SECOND;
    }
    return true;
}

/* Stations that do not answer are behind an ssh whose other end is gone. */
static void drop_stations(tutti_launch *l)
{
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (!l->stations[i].gone) {
            fprintf(stderr,
                    "tutti run: host %s does not answer any more; ranks may be left there\n",
                    l->job->hosts.data[i].name);
            kill(-l->stations[i].process, SIGKILL);
            lose_station(l, &l->stations[i]);
        }
}

/* As with any program whose output is piped into one that has ended. A Ctrl-C ends readers such as
 * `tee` too, perhaps a moment sooner than it comes to us: ranks that were told to end by it need
 * their time, to save, and take one more signal for the second Ctrl-C. */
static void end_unread(tutti_launch *l)
{
    struct pollfd signals = {l->signals, POLLIN, 0};
    if (l->unread || !tutti__outlet_closed())
        return;
    l->unread = true;
    l->patience_until = tutti__now_ns() + 10 * (int64_t)SECOND;
    if (l->interrupts == 0 && poll(&signals, 1, 100) == 1)
        take_signal(l);
    if (l->interrupts > 0)
        return;
    fprintf(stderr, "tutti run: nobody reads the job's output any more (%s); ending the job\n",
            strerror(EPIPE));
    l->force = SIGTERM;
    signal_all(l, SIGTERM);
    end_connecting(l);
}

/* The reader is slow, or has stopped: ranks wait for it, since nothing more is taken from them.
 * After a signal it is, some MiB for each, so that a station which waits with them gets to hear of
 * it and can say how they ended; after SIGKILL all is. */
static bool held_back(const tutti_launch *l)
{
    size_t allowed = (size_t)l->interrupts * ((size_t)l->job->size + 16) << 20;
    return l->interrupts < 3 && tutti__outlet_waiting() > allowed;
}

/* Others end by themselves, with their verdict; who does not is made to. Those to whom nobody
 * listens cannot: their time does not run. */
static void lose_patience(tutti_launch *l)
{
    int64_t now = tutti__now_ns();
    if (l->patience_until != 0 && held_back(l) && l->patience_until < now + SECOND)
        l->patience_until = now + SECOND;
    if (l->patience_until == 0 || now < l->patience_until)
        return;
    if (l->force == SIGKILL) {
        drop_stations(l);
        return;
    }
    l->force = l->force == 0 ? SIGTERM : SIGKILL;
    l->patience_until += 3 * (int64_t)SECOND;
    signal_all(l, l->force);
}

static bool all_gone(const tutti_launch *l)
{
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (!l->stations[i].gone)
            return false;
    return true;
}

/* A station whose pipe has closed is about to end; one that does not (a hanging ssh) is ended. */
static void reap(pid_t process)
{
    for (int waits = 0; waits < 50; waits++) {
        if (waitpid(process, NULL, WNOHANG) != 0)
            return;
        poll(NULL, 0, 100);
    }
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

static void supervise(tutti_launch *l, struct pollfd *polls)
{
    size_t count = l->job->hosts.count;
    while (!all_gone(l)) {
        bool held = held_back(l);
        polls[0] = (struct pollfd){l->signals, POLLIN, 0};
        polls[1] = (struct pollfd){tutti__outlet_fd(), POLLOUT, 0};
        for (size_t i = 0; i < count; i++)
            polls[2 + i] = (struct pollfd){
                l->stations[i].gone || held ? -1 : l->stations[i].from.fd, POLLIN, 0};
        bool soon = l->patience_until != 0 || l->open;
        poll(polls, (nfds_t)count + 2, soon ? 100 : TUTTI_STATION_BEAT_MS);
        if (polls[0].revents != 0)
            take_signal(l);
        if (polls[1].revents != 0)
            tutti__outlet_flush();
        for (size_t i = 0; i < count; i++)
            if (polls[2 + i].revents != 0)
                read_station(l, &l->stations[i]);
        tutti__launch_watch(l, held);
        tutti__servers_watch(l);
        end_unread(l);
        lose_patience(l);
    }
    for (size_t i = 0; i < count; i++)
        reap(l->stations[i].process);
}

/* The ranks are gone, their last words wait for the reader: as long as the user does, who
 * does not after the second Ctrl-C. */
static void deliver(tutti_launch *l)
{
    struct pollfd polls[2];
    int fd;
    tutti__outlet_flush();
    while (!l->undelivered && (fd = tutti__outlet_fd()) >= 0) {
        polls[0] = (struct pollfd){l->signals, POLLIN, 0};
        polls[1] = (struct pollfd){fd, POLLOUT, 0};
        int came = poll(polls, 2, l->interrupts > 1 ? 1000 : -1);
        l->undelivered = came == 0 || (polls[0].revents != 0 && take_signal(l));
        if (polls[1].revents != 0)
            tutti__outlet_flush();
    }
    l->unread = l->unread || tutti__outlet_closed();
}

/* Those that came while stations were reaped: they end the job's restarts, and not the launcher. */
static void take_last_signals(tutti_launch *l)
{
    struct pollfd signals = {l->signals, POLLIN, 0};
    while (poll(&signals, 1, 0) == 1)
        take_signal(l);
}

static bool start_all(tutti_launch *l)
{
    int first = 0;
    for (size_t i = 0; i < l->job->hosts.count; i++) {
        l->stations[i] = (tutti_launch_station){.to = -1,
                                                .first = first,
                                                .count = l->job->hosts.data[i].count,
                                                .greeted = l->job->hosts.data[i].local};
        first += l->job->hosts.data[i].count;
    }
    for (int r = 0; r < l->job->size; r++)
        l->ranks[r].output = (tutti_run_output){.rank = r, .raw = !l->job->prefix};
    l->ranks[0].output.raw = !l->job->prefix || isatty(STDOUT_FILENO) == 1;
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (!start_station(l, (int)i))
            return false;
    /* Rank 0's station last: its answer starts the others, which must know their plan by then. */
    for (size_t i = l->job->hosts.count; i > 0; i--)
        brief_station(l, (int)i - 1); /* one that is gone already is seen by its end */
    return true;
}

int tutti__launch(const tutti_run_job *job, int epoch, bool *ret_interrupted)
{
    tutti_launch l = {.job = job, .epoch = epoch, .first_failed = -1, .keeper = -1};
    sigset_t handled, before;
    tutti__signals_ending(&handled);
    tutti__signals_add_passed(&handled);
    sigaddset(&handled, SIGWINCH);
    sigprocmask(SIG_BLOCK, &handled, &before);
    signal(SIGPIPE, SIG_IGN);
    for (int n = job->size - 1; n > 0; n /= 10)
        l.width++;
    l.signals = signalfd(-1, &handled, SFD_CLOEXEC);
    l.stations = calloc(job->hosts.count, sizeof *l.stations);
    l.ranks = calloc((size_t)job->size, sizeof *l.ranks);
    struct pollfd *polls = calloc(job->hosts.count + 2, sizeof *polls);
    int code = 1;
    if (l.signals >= 0 && l.stations && l.ranks && polls && start_all(&l)) {
        supervise(&l, polls);
        deliver(&l);
        take_last_signals(&l);
        /* Nobody is left who would have to hear of a signal; stderr may have to be waited for. */
        sigprocmask(SIG_SETMASK, &before, NULL);
        code = l.open && l.first_failed < 0             ? tutti__servers_code(&l)
               : l.interrupts > 0 && l.first_failed < 0 ? 0
                                                        : tutti__launch_code(&l);
        if (l.interrupts > 0 && (code != 0 || l.undelivered))
            code = code == TUTTI_EXIT_PREEMPTED ? code : TUTTI_EXIT_INTERRUPTED;
        else if (l.first_failed >= 0 && !l.unread)
            tutti__launch_report(&l);
        if (l.unread && l.interrupts == 0)
            code = 128 + SIGPIPE;
    } else
        fprintf(stderr, "tutti run: cannot start: %s\n", strerror(errno));
    *ret_interrupted = l.interrupts > 0 || l.unread || l.open; /* its ranks were, one by one */
    close(l.signals);
    free(polls);
    free(l.stations);
    free(l.ranks);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
