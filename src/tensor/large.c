/* large.c: see large.h. */
#include "tensor/large.h"

#include <pthread.h>
#include <stdlib.h>

#define SMALLEST ((size_t)256 << 10) /* below this malloc is as good */
#define MOST_BYTES ((size_t)512 << 20)
#define BLOCKS 8

/* Sanitizers see no misuse of memory that is never freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEP 0
#endif
#endif
#ifndef KEEP
#define KEEP 1
#endif

typedef struct block {
    void *data;
    size_t size;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block blocks[BLOCKS];
static size_t kept;

void *tutti__large_take(size_t size)
{
    void *data = NULL;
    if (size < SMALLEST || !KEEP)
        return NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BLOCKS && !data; i++)
        if (blocks[i].data && blocks[i].size == size) {
            data = blocks[i].data;
            kept -= size;
            blocks[i].data = NULL;
        }
    pthread_mutex_unlock(&lock);
    return data;
}

bool tutti__large_keep(void *data, size_t size)
{
    bool done = false;
    if (size < SMALLEST || !KEEP)
        return false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BLOCKS && !done && kept + size <= MOST_BYTES; i++)
        if (!blocks[i].data) {
            blocks[i] = (block){data, size};
            kept += size;
            done = true;
        }
    pthread_mutex_unlock(&lock);
    return done;
}
