/* dynamic.c: see dynamic.h. Sizes are rounded up to 64 * (4, 5, 6 or 7) * 2^k bytes, so that values
 * of nearly the same size share blocks and at most a quarter is lost; each such class has a list of
 * kept blocks, linked through their first bytes. */
#include "program/dynamic.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/params.h"

static const tutti_param bound_param =
    TUTTI_PARAM("DYNAMIC_BYTES", "0",
                "most bytes of values whose size depends on data, of all runs together; 0: half of "
                "the machine's memory");

#define CLASSES 256
#define ALIGNMENT 64
#define SMALLEST ((size_t)256)
#define MOST_KEPT ((size_t)512 << 20)

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
    struct block *next;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *lists[CLASSES]; /* kept blocks by class */
static size_t used, kept;     /* bytes */

/* The class of a size, and the bytes of its blocks. size <= PTRDIFF_MAX. */
static int class_of(size_t size, size_t *ret_bytes)
{
    size_t bytes = SMALLEST, step = SMALLEST / 4;
    int number = 0;
    for (; bytes < size; number++) {
        bytes += step;
        if (bytes == 8 * step)
            step *= 2;
    }
    *ret_bytes = bytes;
    return number;
}

tutti_status tutti__dynamic_check_setting(void)
{
    int64_t given;
    return tutti__param_in(&bound_param, 0, INT64_MAX, &given);
}

static size_t bound(void)
{
    int64_t given = tutti__param_int(&bound_param);
    if (given > 0)
        return (size_t)given;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages / 2 * (size_t)page : PTRDIFF_MAX;
}

/* Under the lock. */
static void drop_kept(void)
{
    for (int i = 0; i < CLASSES; i++)
        while (lists[i]) {
            block *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    kept = 0;
}

/* Under the lock: a kept block, or a new one for which there is room. NULL: there is none. */
static void *dynamic_take(int number, size_t bytes, size_t most)
{
    block *b = lists[number];
    if (b) {
        lists[number] = b->next;
        kept -= bytes;
        return b;
    }
    if (kept > 0 && bytes > most - used - kept)
        drop_kept();
    void *data = tutti__aligned_alloc(ALIGNMENT, bytes);
    if (!data && kept > 0) {
        drop_kept();
        data = tutti__aligned_alloc(ALIGNMENT, bytes);
    }
    return data;
}

static tutti_status dynamic_allocate(void *self, size_t size, void **ret)
{
    TUTTI_UNUSED(self);
    size_t bytes, most = bound(), before;
    if (size > PTRDIFF_MAX / 2)
        return tutti_fail(TUTTI_TOO_LARGE, "%zu bytes are more than can be addressed", size);
    int number = class_of(size, &bytes);
    void *data = NULL;
    pthread_mutex_lock(&lock);
    before = used;
    bool fits = used <= most && bytes <= most - used;
    if (fits && used + kept > most) /* the bound was lowered */
        drop_kept();
    if (fits && (data = dynamic_take(number, bytes, most)) != NULL) {
        used += bytes;
        tutti__memory_count((int64_t)bytes);
    }
    pthread_mutex_unlock(&lock);
    if (!fits)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "a value whose size depends on data takes %zu bytes; with the %zu in use "
                          "that is more than TUTTI_DYNAMIC_BYTES, which is %zu",
                          bytes, before, most);
    if (!data)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of data-sized values", bytes);
    *ret = data;
    return TUTTI_OK;
}

static void release(void *self, void *data, size_t size)
{
    TUTTI_UNUSED(self);
    size_t bytes, most = bound();
    int number = class_of(size, &bytes);
    pthread_mutex_lock(&lock);
    used -= bytes;
    tutti__memory_count(-(int64_t)bytes);
    bool keep =
        KEEP && kept + bytes <= MOST_KEPT && used + kept <= most && bytes <= most - used - kept;
    if (keep) {
        block *b = data;
        b->next = lists[number];
        lists[number] = b;
        kept += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!keep)
        free(data);
}

static tutti_status dynamic_copy(void *self, void *to, const void *from, size_t size)
{
    TUTTI_UNUSED(self);
    if (size > 0)
        memmove(to, from, size);
    return TUTTI_OK;
}

static const tutti_memory dynamic_memory = {
    .name = "dynamic",
    .allocate = dynamic_allocate,
    .release = release,
    .copy_in = dynamic_copy,
    .copy_out = dynamic_copy,
    .host_visible = true,
    .alignment = ALIGNMENT,
};

const tutti_memory *tutti__dynamic_memory(void)
{
    return &dynamic_memory;
}

void tutti__dynamic_stats(tutti_dynamic_stats *ret)
{
    tutti_dynamic_stats stats = {.bound = bound()};
    pthread_mutex_lock(&lock);
    stats.used = used;
    stats.kept = kept;
    pthread_mutex_unlock(&lock);
    *ret = stats;
}

void tutti__dynamic_drop(void)
{
    pthread_mutex_lock(&lock);
    drop_kept();
    pthread_mutex_unlock(&lock);
}
