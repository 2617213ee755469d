/* undumped.c: blocks of powers of two, cut from chunks and kept in one list for each size; large
 * ones are mappings of their own. */
#define _GNU_SOURCE
#include "cluster/undumped.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SMALLEST = 5, /* exponents of blocks, with their heads */
    LARGEST = 16,
    CHUNK = 1 << 20,
};

typedef struct block {
    size_t bytes; /* of the whole block */
    struct block *next;
} block;
/* What follows a head is aligned as malloc's memory is. */
_Static_assert(sizeof(block) % _Alignof(max_align_t) == 0, "blocks are aligned");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *unused[LARGEST + 1];
static char *chunk; /* what is left of the latest one */
static size_t chunk_left;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void prepare_forks(void)
{
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

/* With the lock. The rest of a chunk that is too short stays unused: at most one block's bytes. */
static block *undumped_cut(size_t bytes)
{
    if (chunk_left < bytes) {
        char *more = map(CHUNK);
        if (more == NULL)
            return NULL;
        chunk = more;
        chunk_left = CHUNK;
    }
    block *new = (block *)(void *)chunk;
    chunk += bytes;
    chunk_left -= bytes;
    return new;
}

static block *take_small(size_t bytes)
{
    int exponent = SMALLEST;
    while ((size_t)1 << exponent < bytes)
        exponent++;
    pthread_mutex_lock(&lock);
    block *found = unused[exponent];
    if (found != NULL)
        unused[exponent] = found->next;
    else if ((found = undumped_cut((size_t)1 << exponent)) != NULL)
        found->bytes = (size_t)1 << exponent;
    pthread_mutex_unlock(&lock);
    return found;
}

static block *take_large(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    block *new = map(bytes);
    if (new != NULL)
        new->bytes = bytes;
    return new;
}

void *tutti__undumped_allocate(size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_forks);
    if (size == 0 || size > PTRDIFF_MAX)
        return NULL;
    size_t bytes = size + sizeof(block);
    block *new = bytes <= (size_t)1 << LARGEST ? take_small(bytes) : take_large(bytes);
    return new != NULL ? new + 1 : NULL;
}

void *tutti__undumped_resize(void *memory, size_t size)
{
    if (memory == NULL)
        return tutti__undumped_allocate(size);
    size_t room = ((block *)memory - 1)->bytes - sizeof(block);
    if (size > 0 && size <= room)
        return memory;
    void *new = tutti__undumped_allocate(size);
    if (new != NULL)
        memcpy(new, memory, room);
    if (new != NULL || size == 0)
        tutti__undumped_free(memory);
    return new;
}

void tutti__undumped_free(void *memory)
{
    if (memory == NULL)
        return;
    block *old = (block *)memory - 1;
    if (old->bytes > (size_t)1 << LARGEST) {
        munmap(old, old->bytes); /* the system gives its pages to nobody before it wipes them */
        return;
    }
    explicit_bzero(memory, old->bytes - sizeof *old);
    int exponent = __builtin_ctzll(old->bytes);
    pthread_mutex_lock(&lock);
    old->next = unused[exponent];
    unused[exponent] = old;
    pthread_mutex_unlock(&lock);
}
