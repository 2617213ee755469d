/* recycle.c: see recycle.h. Blocks of one size stand in one list, found by a hash of the size; a
 * list that is asked for another size drops what it has. */
#include "base/recycle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS = false }; /* sanitizers see who uses a block after it was given back */
#else
enum { KEEPS = true };
#endif

enum { LINE = 64, LISTS = 256, EACH = 64, BLOCK_MOST = 1 << 18, ALL_MOST = 8 << 20 };

typedef struct recycled {
    struct recycled *next;
} recycled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    size_t size;
    int count;
    recycled *first;
} lists[LISTS];           /* under the lock, as the next */
static size_t kept_bytes; /* in all lists */
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void hold(void)
{
    pthread_mutex_lock(&lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(hold, let_go, let_go);
}

static size_t padded(size_t size)
{
    return size < LINE ? LINE : (size + LINE - 1) / LINE * LINE;
}

static size_t list_of(size_t size)
{
    return size / LINE % LISTS;
}

void *tutti__recycle_take(size_t size)
{
    if (size > BLOCK_MOST || !KEEPS)
        return size > SIZE_MAX / 2 ? NULL : aligned_alloc(LINE, padded(size));
    size = padded(size);
    size_t at = list_of(size);
    recycled *block = NULL;
    pthread_once(&watched, watch_forks);
    pthread_mutex_lock(&lock);
    if (lists[at].size == size && lists[at].first) {
        block = lists[at].first;
        lists[at].first = block->next;
        lists[at].count--;
        kept_bytes -= size;
    }
    pthread_mutex_unlock(&lock);
    return block ? block : aligned_alloc(LINE, size);
}

/* Under the lock: what the list has becomes the caller's to free. */
static recycled *drop_list(size_t at)
{
    recycled *dropped = lists[at].first;
    kept_bytes -= lists[at].size * (size_t)lists[at].count;
    lists[at].first = NULL;
    lists[at].count = 0;
    return dropped;
}

void tutti__recycle_give(void *memory, size_t size)
{
    recycled *block = memory, *dropped = NULL;
    if (!block || size > BLOCK_MOST || !KEEPS) {
        free(block);
        return;
    }
    size = padded(size);
    size_t at = list_of(size);
    pthread_mutex_lock(&lock);
    if (lists[at].size != size) {
        dropped = drop_list(at);
        lists[at].size = size;
    }
    if (lists[at].count < EACH && kept_bytes + size <= ALL_MOST) {
        block->next = lists[at].first;
        lists[at].first = block;
        lists[at].count++;
        kept_bytes += size;
        block = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(block);
    while (dropped) {
        recycled *next = dropped->next;
        free(dropped);
        dropped = next;
    }
}

/* The size stands in a line of its own in front. */
void *tutti__recycle_zeros(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return NULL;
    size_t *head = tutti__recycle_take(LINE + bytes);
    if (!head)
        return NULL;
    *head = LINE + bytes;
    return memset((char *)head + LINE, 0, bytes);
}

void tutti__recycle_free(void *zeros)
{
    size_t *head = zeros ? (void *)((char *)zeros - LINE) : NULL;
    if (head)
        tutti__recycle_give(head, *head);
}
