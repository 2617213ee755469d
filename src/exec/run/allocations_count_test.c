/* allocations_count_test.c: the allocator's functions, in front of the system's. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/run/allocations_test.h"

static _Atomic int64_t allocations;
static _Atomic bool counting, telling;

bool tutti__allocations_counted(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
    return false;
#else
    return true;
#endif
}

void tutti__allocations_begin(void)
{
    void *frames[4];
    if (getenv("TUTTI_TEST_ALLOCATIONS"))
        telling = backtrace(frames, 4) > 0; /* the first call allocates itself */
    allocations = 0;
    counting = true;
}

int64_t tutti__allocations_end(void)
{
    counting = false;
    return allocations;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
static void count_one(void)
{
    enum { FRAMES = 12 };
    void *frames[FRAMES];
    if (!counting)
        return;
    allocations++;
    if (!telling)
        return;
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
    (void)!write(STDERR_FILENO, "\n", 1);
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    count_one();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count_one();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    count_one();
    *ret = __libc_memalign(alignment, size);
    return *ret ? 0 : 12; /* ENOMEM */
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
    count_one();
    return (void *)syscall(SYS_mmap, where, size, protection, flags, fd, offset);
}
#endif
