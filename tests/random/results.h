/* results.h: what a way of running a recipe gave: named lists of numbers, and how they are
 * compared. */
#ifndef TESTS_RANDOM_RESULTS_H
#define TESTS_RANDOM_RESULTS_H

#include "tutti/tutti.h"

typedef struct result {
    char name[40];
    tutti_type type;
    int64_t count;
    double *numbers;
} result;

typedef struct results {
    tutti_status status; /* not OK: why it did not run */
    char message[500];
    int count, capacity;
    result *list;
} results;

void results_free(results *r);
void results_fail(results *r, tutti_status status, const char *message);
/* Takes the numbers of a tensor, of which it needs none afterwards. */
void results_add(results *r, const tutti_tensor *tensor, const char *format, ...)
    TUTTI_PRINTF(3, 4);
/* Through a pipe; false at its end. */
bool results_write(int to, const results *r);
bool results_read(int from, results *ret);

/* What is right and how much may be missing: `exact` in double precision, `moved` the same from
 * inputs moved by some units in the last place, `rounded` by reference kernels in the type at hand.
 * Where the last two leave the first a result may, too. */
typedef struct truth {
    results exact, moved, rounded;
    double epsilon; /* of the type at hand */
} truth;

/* Nothing (""), or the first result that is wrong, in words. */
void results_judge(const truth *t, const results *r, char *ret_words, size_t size);
/* The same bits? */
void results_same(const results *a, const results *b, char *ret_words, size_t size);

#endif
