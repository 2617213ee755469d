/* calls.c: see calls.h. */
#include "comm/fabric/calls.h"

#include <stdlib.h>
#include <sys/mman.h>

tutti_status tutti__calls_create(int size, tutti_all_calls **ret_calls)
{
    tutti_all_calls *all = calloc(1, sizeof *all);
    void *memory = mmap(NULL, (size_t)size * sizeof *all->of, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!all || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, (size_t)size * sizeof *all->of);
        free(all);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    }
    all->of = memory;
    all->size = size;
    atomic_store(&all->users, 1);
    *ret_calls = all;
    return TUTTI_OK;
}

tutti_all_calls *tutti__calls_share(tutti_all_calls *calls)
{
    atomic_fetch_add(&calls->users, 1);
    return calls;
}

void tutti__calls_drop(tutti_all_calls *calls)
{
    if (!calls || atomic_fetch_sub(&calls->users, 1) > 1)
        return;
    munmap(calls->of, (size_t)calls->size * sizeof *calls->of);
    free(calls);
}

tutti_coming tutti__calls_look(tutti_calls *of_rank, uint64_t place)
{
    uint64_t entered = atomic_load(&tutti__calls_in(of_rank, place)->entered);
    if (entered != 0 && entered >> 32 != place >> 32)
        return TUTTI_MAY_HAVE_COME;
    bool there = entered != 0 && (int32_t)((uint32_t)entered - (uint32_t)place) >= 0;
    return there ? TUTTI_HAS_COME : TUTTI_HAS_NOT_COME;
}

/* Two in turn: that of a number stays until the rank is two further. */
bool tutti__calls_is_in(tutti_calls *of_rank, uint64_t place, uint64_t *ret_call)
{
    tutti_calls_of_group *group = tutti__calls_in(of_rank, place);
    if (atomic_load(&group->entered) != place)
        return false;
    *ret_call = atomic_load(&group->call[place & 1]);
    return atomic_load(&group->entered) == place;
}
