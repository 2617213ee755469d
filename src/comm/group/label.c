/* label.c: names of operations with what their callers say of them, kept for good: the flight
 * recorder holds pointers to them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "comm/comm.h"

enum { PLACES = 8192, MOST = PLACES / 2, LENGTH = 96 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *table[PLACES];
static int count;

const char *tutti__comm_label(const char *operation, const char *label)
{
    char text[LENGTH];
    if (!label || !label[0])
        return operation;
    snprintf(text, sizeof text, "%s%s%s", operation, operation[0] ? " " : "", label);
    const char *found = operation; /* too many different ones: the bare operation */
    pthread_mutex_lock(&lock);
    size_t at = (size_t)(tutti__hash_string(0, text) % PLACES);
    while (table[at] && strcmp(table[at], text) != 0)
        at = (at + 1) % PLACES;
    if (!table[at] && count < MOST && (table[at] = strdup(text)))
        count++;
    if (table[at])
        found = table[at];
    pthread_mutex_unlock(&lock);
    return found;
}
