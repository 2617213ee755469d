/* signals.c: which signals the launcher takes: those that ask the job to end, and those that are
 * the ranks' own. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "cli/run/run.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int passed[] = {SIGUSR1, SIGUSR2};

/* A terminal that goes does not end what nohup has started. (Shells that have no jobs ignore Ctrl-C
 * for what they start in the background: there it is meant when somebody sends it.) */
static bool unwanted(int number)
{
    struct sigaction action;
    return number == SIGHUP && sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

void tutti__signals_ending(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (size_t i = 0; i < TUTTI_COUNT(ending); i++)
        if (!unwanted(ending[i]))
            sigaddset(ret_set, ending[i]);
}

void tutti__signals_add_passed(sigset_t *set)
{
    for (size_t i = 0; i < TUTTI_COUNT(passed); i++)
        sigaddset(set, passed[i]);
}

bool tutti__signal_passed(int number)
{
    for (size_t i = 0; i < TUTTI_COUNT(passed); i++)
        if (passed[i] == number)
            return true;
    return false;
}

static void end_at_once(int number)
{
    TUTTI_UNUSED(number);
    _exit(TUTTI_EXIT_INTERRUPTED);
}

static void let_pass(int number)
{
    TUTTI_UNUSED(number);
}

/* One that is ignored stays so, also for the ranks. */
static void handle(int number, void (*handler)(int))
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

void tutti__signals_between_starts(void)
{
    for (size_t i = 0; i < TUTTI_COUNT(ending); i++)
        handle(ending[i], end_at_once);
    for (size_t i = 0; i < TUTTI_COUNT(passed); i++)
        handle(passed[i], let_pass);
}
