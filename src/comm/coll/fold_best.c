/* fold_best.c: the reductions for this CPU. */
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "comm/coll/fold.h"
#include "tables/comm_fold.h"

static const tutti_comm_fold *fold_best_find(const char *isa)
{
    for (const tutti_comm_fold *const *each = tutti__comm_fold_table; *each; each++)
        if (strcmp((*each)->isa, isa) == 0)
            return *each;
    return NULL;
}

const tutti_comm_fold *tutti__fold_best(void)
{
    static _Atomic(const tutti_comm_fold *) best;
    const tutti_comm_fold *found = atomic_load_explicit(&best, memory_order_acquire);
    if (found)
        return found;
    const tutti_cpu *cpu = tutti__cpu();
    if (cpu->avx512)
        found = fold_best_find("avx512");
    if (!found && cpu->avx2)
        found = fold_best_find("avx2");
    if (!found)
        found = fold_best_find("base");
    atomic_store_explicit(&best, found, memory_order_release);
    return found;
}

tutti_fold_function *tutti__fold_find(tutti_dtype dtype, tutti_reduction reduction)
{
    if (dtype <= TUTTI_NO_DTYPE || dtype >= TUTTI_DTYPE_END || reduction < TUTTI_SUM ||
        reduction > TUTTI_PROD)
        return NULL;
    const tutti_comm_fold *best = tutti__fold_best(); /* NULL: built for another CPU */
    return best ? best->fold[dtype][reduction] : NULL;
}

void tutti__fold_finish(tutti_dtype dtype, tutti_reduction reduction, void *data, int64_t count,
                        int64_t ranks)
{
    if (reduction == TUTTI_MEAN && ranks > 1)
        tutti__fold_best()->divide[dtype](data, count, ranks);
}
