/* kept.c: see kept.h. One table by source, one lock; it is taken when programs are compiled and
 * discarded. Each form has a lock of its own that is held while it is made, so that nobody makes it
 * twice. */
#include "device/cpu/kept.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct tutti_kept {
    tutti_kept *next;
    tutti_tensor *source; /* held, so that its address means nothing else */
    int64_t floats;
    int holders;
    pthread_mutex_t making;
    atomic_bool asked, made;
    float *data;
    char form[]; /* what makes it another one of the same source */
};

enum { LISTS_LOG2 = 13 }; /* with tens of thousands of constants a list is a few long */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_kept *lists[1 << LISTS_LOG2];
static int kept_count;

/* Where the forms of a source are listed. The product's upper bits depend on all of the address. */
static tutti_kept **list_of(const tutti_tensor *source)
{
    return &lists[(uint64_t)(uintptr_t)source * UINT64_C(0x9e3779b97f4a7c15) >> (64 - LISTS_LOG2)];
}

static tutti_kept *kept_find(const tutti_tensor *source, const char *form, int64_t floats)
{
    for (tutti_kept *kept = *list_of(source); kept != NULL; kept = kept->next)
        if (kept->source == source && kept->floats == floats && strcmp(kept->form, form) == 0)
            return kept;
    return NULL;
}

static tutti_kept *kept_make(tutti_tensor *source, const char *form, int64_t floats)
{
    size_t bytes = ((size_t)floats * sizeof(float) + 63) / 64 * 64, length = strlen(form) + 1;
    tutti_kept *kept = calloc(1, sizeof *kept + length);
    float *data = tutti__aligned_alloc(64, bytes == 0 ? 64 : bytes);
    if (kept == NULL || data == NULL) {
        free(kept);
        free(data);
        return NULL;
    }
    memcpy(kept->form, form, length);
    pthread_mutex_init(&kept->making, NULL);
    kept->data = data;
    kept->floats = floats;
    kept->source = tutti_tensor_retain(source);
    kept->next = *list_of(source);
    *list_of(source) = kept;
    kept_count++;
    return kept;
}

tutti_status tutti__kept_take(tutti_tensor *source, const char *form, int64_t floats,
                              tutti_kept **ret)
{
    if (floats < 0 || floats > INT64_MAX / 8)
        return tutti_fail(TUTTI_TOO_LARGE, "a constant's form of %lld floats", (long long)floats);
    pthread_mutex_lock(&lock);
    tutti_kept *kept = kept_find(source, form, floats);
    if (kept == NULL)
        kept = kept_make(source, form, floats);
    if (kept != NULL)
        kept->holders++;
    pthread_mutex_unlock(&lock);
    if (kept == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld bytes of a packed constant",
                          (long long)(floats * 4));
    *ret = kept;
    return TUTTI_OK;
}

void tutti__kept_give(tutti_kept *kept)
{
    if (kept == NULL)
        return;
    pthread_mutex_lock(&lock);
    bool last = --kept->holders == 0;
    if (last) {
        tutti_kept **at = list_of(kept->source);
        while (*at != kept)
            at = &(*at)->next;
        *at = kept->next;
        kept_count--;
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    tutti_tensor_release(kept->source);
    pthread_mutex_destroy(&kept->making);
    free(kept->data);
    free(kept);
}

enum { LEAST_ROOM = 1 << 16 }; /* floats: smaller forms find their memory in the heap */

size_t tutti__kept_room(int64_t floats)
{
    return floats < LEAST_ROOM ? 0 : ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

const float *tutti__kept_data(tutti_kept *kept, tutti_kept_fill *fill, const void *context,
                              tutti_pool *pool, float *room)
{
    if (kept == NULL)
        return NULL;
    if (atomic_load_explicit(&kept->made, memory_order_acquire))
        return kept->data;
    if (!atomic_exchange(&kept->asked, true) && room != NULL) {
        fill(context, pool, kept->source, room);
        return room;
    }
    pthread_mutex_lock(&kept->making);
    if (!atomic_load_explicit(&kept->made, memory_order_relaxed)) {
        fill(context, pool, kept->source, kept->data);
        atomic_store_explicit(&kept->made, true, memory_order_release);
    }
    pthread_mutex_unlock(&kept->making);
    return kept->data;
}

int tutti__kept_count(void)
{
    pthread_mutex_lock(&lock);
    int count = kept_count;
    pthread_mutex_unlock(&lock);
    return count;
}
