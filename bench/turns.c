/* turns.c: see turns.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench/turns.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(const char *const *arguments, int in, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t process = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&process, "/proc/self/exe", &actions, NULL, (char *const *)arguments,
                    environ) != 0)
        process = 0;
    posix_spawn_file_actions_destroy(&actions);
    return process;
}

void tutti__turns_end(tutti_turns *turns)
{
    if (turns->process > 0) {
        kill(turns->process, SIGKILL);
        waitpid(turns->process, NULL, 0);
    }
    if (turns->orders)
        fclose(turns->orders);
    if (turns->answers)
        fclose(turns->answers);
    *turns = (tutti_turns){0};
}

/* What it says next, and stops it; false when it has ended. */
static bool await(tutti_turns *turns, double *ret)
{
    char line[64];
    if (turns->process <= 0 || !fgets(line, sizeof line, turns->answers)) {
        tutti__turns_end(turns);
        return false;
    }
    kill(turns->process, SIGSTOP);
    *ret = strtod(line, NULL);
    return true;
}

bool tutti__turns_begin(tutti_turns *turns, const char *const *arguments)
{
    int orders[2], answers[2];
    *turns = (tutti_turns){0};
    if (pipe2(orders, O_CLOEXEC) != 0)
        return false;
    if (pipe2(answers, O_CLOEXEC) == 0) {
        turns->process = start(arguments, orders[0], answers[1]);
        turns->orders = fdopen(orders[1], "w");
        turns->answers = fdopen(answers[0], "r");
        close(answers[1]);
    }
    close(orders[0]);
    signal(SIGPIPE, SIG_IGN);
    double ready;
    return await(turns, &ready);
}

double tutti__turns_take(tutti_turns *turns, int order)
{
    double answer = 0;
    if (turns->process == 0)
        return 0;
    kill(turns->process, SIGCONT);
    fprintf(turns->orders, "%d\n", order);
    fflush(turns->orders);
    await(turns, &answer);
    return answer;
}

void tutti__turns_serve(double (*work)(void *context, int order), void *context)
{
    char line[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* stopped or not */
    puts("1");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        printf("%g\n", work(context, (int)strtol(line, NULL, 10)));
        fflush(stdout);
    }
}
