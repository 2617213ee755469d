/* nearest.h: what a misspelt word was meant to be. */
#ifndef TUTTI_BASE_NEAREST_H
#define TUTTI_BASE_NEAREST_H

#include <stdbool.h>

/* Letters to change, add, leave out or swap between two words; words above 40 letters are far. */
int tutti__word_distance(const char *a, const char *b);

/* Whether a word at that distance may be what was meant: one letter in three, but one at least. */
bool tutti__word_near(const char *word, int distance);

/* The nearest so far to a word: zeroed but for `word`. */
typedef struct tutti_nearest {
    const char *word;
    const char *found; /* NULL: nothing is near */
    int distance;
} tutti_nearest;
void tutti__nearest_try(tutti_nearest *nearest, const char *candidate);

#endif
