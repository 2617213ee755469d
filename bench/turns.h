/* turns.h: contenders of a benchmark, each in a process of its own, that take turns.
 *
 * Threads of libraries spin after their work, so a process is stopped while it is not its turn; and
 * turns are short and many, so that slow moments of the machine fall on all contenders alike. */
#ifndef TUTTI_BENCH_TURNS_H
#define TUTTI_BENCH_TURNS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct tutti_turns {
    pid_t process; /* 0 when it does not run */
    FILE *orders, *answers;
} tutti_turns;

/* Starts this program again with these arguments (NULL ends them); false when it does not start. */
bool tutti__turns_begin(tutti_turns *turns, const char *const *arguments);

/* Its turn with work `order`: the number it answers, 0 when it has nothing (any more) to say. */
double tutti__turns_take(tutti_turns *turns, int order);

void tutti__turns_end(tutti_turns *turns);

/* In the process of a contender: answers orders until there are no more. */
void tutti__turns_serve(double (*work)(void *context, int order), void *context);

#endif
