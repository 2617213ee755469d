/* interrupt.c: the first Ctrl-C asks for an orderly end, the second ends the process. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/job.h"

static volatile sig_atomic_t asked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int depth; /* under lock */
static struct sigaction before[2];
static const int signals[2] = {SIGINT, SIGTERM};

/* The second signal finds the default action again. */
static void on_signal(int number)
{
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    asked = number;
    sigaction(number, &standard, NULL);
}

bool tutti_interrupted(void)
{
    return asked != 0;
}

int tutti__interrupt_signal(void)
{
    return asked;
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
