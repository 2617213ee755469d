/* large.c: see large.h. */
#include "tensor/large.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

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

/* Small control groups keep less. */
static size_t most_kept(size_t wanted)
{
    enum { LITTLE = 64 << 20 };
    if (wanted <= LITTLE)
        return LITTLE;
    int64_t share = tutti__memory_limit() / 8;
    return share < (int64_t)MOST_BYTES ? (size_t)share : MOST_BYTES;
}

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
    bool fits = kept + size <= most_kept(kept + size);
    for (int i = 0; i < BLOCKS && !done && fits; i++)
        if (!blocks[i].data) {
            blocks[i] = (block){data, size};
            kept += size;
            done = true;
        }
    pthread_mutex_unlock(&lock);
    return done;
}

void tutti__large_make_room(size_t size)
{
    pthread_mutex_lock(&lock);
    bool full = kept > 0 && tutti__memory_exceeds(size + kept);
    for (int i = 0; i < BLOCKS && full; i++) {
        free(blocks[i].data);
        blocks[i] = (block){0};
    }
    kept = full ? 0 : kept;
    pthread_mutex_unlock(&lock);
}
