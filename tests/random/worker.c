/* worker.c: one process for each environment; it lives until it crashes. */
#include "worker.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 60 }; /* seconds */

typedef struct request {
    int way;
    random_recipe recipe;
} request;

static void serve(int from, int to)
{
    request r;
    while (read(from, &r, sizeof r) == (ssize_t)sizeof r) {
        results given = {0};
        ways[r.way].run(&ways[r.way], r.recipe, &given);
        if (!results_write(to, &given))
            break;
        results_free(&given);
    }
    exit(0);
}

static void start(run_worker *w)
{
    int there[2], back[2];
    fflush(NULL);
    if (pipe(there) != 0 || pipe(back) != 0 || (w->pid = fork()) < 0)
        abort();
    if (w->pid == 0) {
        close(there[1]);
        close(back[0]);
        for (int i = 0; i < 8 && w->settings[i]; i += 2)
            setenv(w->settings[i], w->settings[i + 1], 1);
        serve(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    w->to = there[1];
    w->from = back[0];
}

void worker_stop(run_worker *w)
{
    if (w->pid <= 0)
        return;
    kill(w->pid, SIGKILL); /* workers started later hold its pipe open, too */
    close(w->to);
    close(w->from);
    waitpid(w->pid, NULL, 0);
    w->pid = 0;
}

static void gone(run_worker *w, results *ret, bool late)
{
    char words[100];
    int state = 0;
    if (late)
        kill(w->pid, SIGKILL);
    close(w->to);
    close(w->from);
    waitpid(w->pid, &state, 0);
    w->pid = 0;
    if (late)
        snprintf(words, sizeof words, "hangs: nothing in %d seconds", PATIENCE);
    else if (WIFSIGNALED(state))
        snprintf(words, sizeof words, "crashes: %s", strsignal(WTERMSIG(state)));
    else
        snprintf(words, sizeof words, "exits with %d", WEXITSTATUS(state));
    results_free(ret);
    results_fail(ret, TUTTI_INTERNAL, words);
}

void worker_run(run_worker *w, const run_way *way, random_recipe recipe, results *ret)
{
    *ret = (results){0};
    if (w->pid == 0)
        start(w);
    request r = {(int)(way - ways), recipe};
    struct pollfd heard = {.fd = w->from, .events = POLLIN};
    if (write(w->to, &r, sizeof r) != (ssize_t)sizeof r)
        gone(w, ret, false);
    else if (poll(&heard, 1, PATIENCE * 1000) <= 0)
        gone(w, ret, true);
    else if (!results_read(w->from, ret))
        gone(w, ret, false);
}
