/* interrupt.c: the first Ctrl-C or SIGTERM asks for an orderly end, the second, of either kind,
 * ends the process. What waits (for data, a queue, another process) does not hear the first one:
 * then a line says so. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/job.h"
#include "base/log.h"

#define PATIENCE_SECONDS 2 /* of a step that was asked to be the last */

static volatile sig_atomic_t asked;     /* by a signal to any process of the job */
static volatile sig_atomic_t got;       /* one to this process */
static struct timespec when;            /* that one came */
static volatile sig_atomic_t deferring; /* so many look for it at one place of a step */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int depth;    /* under lock */
static bool watched; /* the watcher is there; under lock */
static sem_t heard;  /* posted by the first signal */
static struct sigaction before[2];
static const int signals[2] = {SIGINT, SIGTERM};

/* `timeout` signals a program and then its group, a launcher a rank that has heard it already: two
 * SIGTERM within a moment are one wish. */
static bool is_repeated(int number)
{
    enum { MOMENT_MS = 250 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ms =
        (int64_t)(now.tv_sec - when.tv_sec) * 1000 + (now.tv_nsec - when.tv_nsec) / 1000000;
    return number == SIGTERM && got == SIGTERM && ms < MOMENT_MS;
}

/* The second signal finds the default action again, when the handler is left. */
static void on_signal(int number)
{
    int error = errno;
    if (got && is_repeated(number)) {
        /* as if it had come once */
    } else if (got) {
        struct sigaction standard;
        memset(&standard, 0, sizeof standard);
        standard.sa_handler = SIG_DFL;
        sigaction(number, &standard, NULL);
        raise(number);
    } else {
        clock_gettime(CLOCK_MONOTONIC, &when);
        got = number;
        if (!deferring)
            asked = number;
        sem_post(&heard);
    }
    errno = error;
}

/* Says why nothing happens, when the step at hand goes on for too long after a signal. */
static void *watch(void *unused)
{
    struct timespec patience = {.tv_sec = PATIENCE_SECONDS};
    while (sem_wait(&heard) != 0)
        continue;
    while (nanosleep(&patience, &patience) != 0)
        continue;
    pthread_mutex_lock(&lock);
    bool works = depth > 0;
    pthread_mutex_unlock(&lock);
    if (works)
        tutti__log(TUTTI_LOG_WARNING,
                   "asked to end, but the present step is not over: it may wait for data, for a "
                   "queue or for another process; it is the last one, a second signal ends the "
                   "program at once");
    return unused;
}

/* With every signal blocked: they are for the program's own threads. */
static void begin_watch(void)
{
    pthread_t thread;
    sigset_t all, own;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &own);
    watched = sem_init(&heard, 0, 0) == 0 && pthread_create(&thread, NULL, watch, NULL) == 0 &&
              pthread_detach(thread) == 0;
    pthread_sigmask(SIG_SETMASK, &own, NULL);
}

bool tutti_interrupted(void)
{
    return asked != 0;
}

int tutti__interrupt_signal(void)
{
    return asked ? asked : got;
}

void tutti__interrupt_defer(bool on)
{
    pthread_mutex_lock(&lock);
    deferring += on ? 1 : -1;
    pthread_mutex_unlock(&lock);
}

void tutti__interrupt_hear(int number)
{
    if (!asked)
        asked = number;
}

bool tutti__preempted(void)
{
    return asked == SIGTERM;
}

void tutti__interrupt_begin(void)
{
    pthread_mutex_lock(&lock);
    if (depth++ == 0) {
        struct sigaction ours;
        if (!watched)
            begin_watch();
        memset(&ours, 0, sizeof ours);
        ours.sa_handler = on_signal;
        ours.sa_flags = SA_RESTART;
        for (int i = 0; i < 2; i++) {
            sigaction(signals[i], NULL, &before[i]);
            /* A program that handles or ignores the signal goes on doing so. */
            if (before[i].sa_handler == SIG_DFL)
                sigaction(signals[i], &ours, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}

void tutti__interrupt_end(void)
{
    pthread_mutex_lock(&lock);
    if (--depth == 0)
        for (int i = 0; i < 2; i++)
            sigaction(signals[i], &before[i], NULL);
    pthread_mutex_unlock(&lock);
}
