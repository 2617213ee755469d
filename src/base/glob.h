/* glob.h: names chosen by patterns, as a shell writes them.
 *
 * '*' stands for any letters, also none, also '/'; '?' for one letter. A name without either is
 * itself. Several patterns stand in one text with commas between them; spaces round each do not
 * count. */
#ifndef TUTTI_BASE_GLOB_H
#define TUTTI_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether one of the patterns matches the whole text. */
bool tutti__glob_match(const char *patterns, const char *text);

/* A pattern of a list: not terminated by a zero. */
typedef struct tutti_glob {
    const char *text;
    size_t length;
} tutti_glob;

/* Takes the next pattern and moves *patterns behind it; false after the last. Empty ones, as in
 * "a,,b", are passed over. */
bool tutti__glob_next(const char **patterns, tutti_glob *ret_pattern);
bool tutti__glob_match_one(tutti_glob pattern, const char *text);

#endif
