/* memory.c: the limit is the machine's or the control groups', whichever is less. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "base/cgroup.h"

/* "max", or what is no number, is no limit. */
static int64_t read_bytes(const char *folder, const char *file)
{
    char *text = tutti__cgroup_text(folder, file);
    long long bytes = text == NULL ? 0 : atoll(text);
    free(text);
    return bytes <= 0 ? INT64_MAX : bytes;
}

/* Without a limit on swap a group may swap as much as the machine has. */
static int64_t bytes_v2(const char *folder)
{
    int64_t memory = read_bytes(folder, "memory.max");
    int64_t swap = read_bytes(folder, "memory.swap.max");
    struct sysinfo info;
    if (memory == INT64_MAX || sysinfo(&info) != 0)
        return memory;
    int64_t all = (int64_t)info.totalswap * info.mem_unit;
    return memory + (swap < all ? swap : all);
}

static int64_t bytes_v1(const char *folder)
{
    return read_bytes(folder, "memory.limit_in_bytes");
}

static int64_t find_limit(void)
{
    struct sysinfo info;
    int64_t machine = INT64_MAX;
    if (sysinfo(&info) == 0)
        machine = (int64_t)(info.totalram + info.totalswap) * info.mem_unit;
    int64_t groups = tutti__cgroup_least("memory", bytes_v1, bytes_v2);
    return groups < machine ? groups : machine;
}

int64_t tutti__memory_limit(void)
{
    static _Atomic int64_t known; /* two threads may find it at once: they find the same */
    static _Thread_local bool finding;
    int64_t limit = atomic_load_explicit(&known, memory_order_relaxed);
    if (limit != 0)
        return limit;
    if (finding) /* the files that tell it are read into memory, too */
        return INT64_MAX;
    finding = true;
    limit = find_limit();
    finding = false;
    atomic_store_explicit(&known, limit, memory_order_relaxed);
    return limit;
}

/* Pages of 2 MiB where the system has them: rows of matrices that lie a page apart then share one
 * entry of the translation cache. */
#define HUGE_PAGE ((size_t)2 << 20)
static void *large_alloc(size_t size)
{
    void *data = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
#if defined(MADV_HUGEPAGE)
    if (data != NULL)
        (void)madvise(data, (size + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return data;
}

/* Reading the limit takes time at the start: programs with little memory never do. */
bool tutti__memory_exceeds(size_t size)
{
    enum { LITTLE = 64 << 20 };
    int64_t held = tutti__memory_now();
    uint64_t sum = size + (held > 0 ? (uint64_t)held : 0);
    return sum > LITTLE && (sum < size || sum > (uint64_t)tutti__memory_limit());
}

void *tutti__aligned_alloc(size_t alignment, size_t size)
{
    if (tutti__memory_exceeds(size))
        return NULL;
    if (size >= 2 * HUGE_PAGE && alignment <= HUGE_PAGE)
        return large_alloc(size);
    return aligned_alloc(alignment, size);
}

static _Atomic int64_t taken, most;

void tutti__memory_count(int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&taken, bytes, memory_order_relaxed) + bytes;
    int64_t before = atomic_load_explicit(&most, memory_order_relaxed);
    while (now > before && !atomic_compare_exchange_weak_explicit(
                               &most, &before, now, memory_order_relaxed, memory_order_relaxed))
        continue;
}

int64_t tutti__memory_now(void)
{
    return atomic_load_explicit(&taken, memory_order_relaxed);
}

int64_t tutti__memory_most(void)
{
    return atomic_load_explicit(&most, memory_order_relaxed);
}

void tutti__memory_mark(void)
{
    atomic_store_explicit(&most, tutti__memory_now(), memory_order_relaxed);
}
