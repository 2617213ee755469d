/* kernel.c: the table of kernels, and which of them this CPU can run. */
#include "program/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/params.h"
#include "base/status.h"
#include "tables/kernel.h"

/* Instruction sets, each family from plain to best. Sets of another family are never present. */
static const struct {
    const char *name;
    int rank;
} isas[] = {{"base", 0}, {"avx2", 1}, {"avx512", 2},  {"avx512vnni", 3}, {"avx512bf16", 4},
            {"amx", 5},  {"sve", 1},  {"dotprod", 1}, {"bf16", 2},       {"i8mm", 3}};

static tutti_param isa_param = TUTTI_PARAM(
    "ISA", "",
    "best instruction set to use: base, avx2, avx512, avx512vnni, avx512bf16, amx, dotprod, sve, "
    "bf16, i8mm; empty: "
    "what the CPU has");

/* -1 for a name that is none. */
static int isa_rank(const char *isa)
{
    for (size_t i = 0; i < TUTTI_COUNT(isas); i++)
        if (strcmp(isas[i].name, isa) == 0)
            return isas[i].rank;
    return -1;
}

tutti_status tutti__isa_check_setting(void)
{
    const char *text = tutti__param_text(&isa_param);
    if (!text[0] || isa_rank(text) >= 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "TUTTI_ISA is '%s', needs base, avx2, avx512, avx512vnni, avx512bf16, amx, "
                      "dotprod, sve, bf16 or i8mm, or nothing for what the CPU has",
                      text);
}

bool tutti__isa_present(const char *isa)
{
    int most = isa_rank(tutti__param_text(&isa_param)); /* -1: any */
    if (strcmp(isa, "base") == 0)
        return true;
    const tutti_cpu *cpu = tutti__cpu();
    bool present = strcmp(isa, "avx2") == 0         ? cpu->avx2
                   : strcmp(isa, "avx512") == 0     ? cpu->avx512
                   : strcmp(isa, "avx512vnni") == 0 ? cpu->avx512_vnni
                   : strcmp(isa, "avx512bf16") == 0 ? cpu->avx512_bf16
                   : strcmp(isa, "amx") == 0        ? cpu->avx512 && cpu->amx_bf16
                   : strcmp(isa, "sve") == 0        ? cpu->sve_bytes == 64 /* as it is compiled */
                   : strcmp(isa, "dotprod") == 0    ? cpu->neon && cpu->dotprod
                   : strcmp(isa, "bf16") == 0       ? cpu->neon && cpu->bf16
                   : strcmp(isa, "i8mm") == 0       ? cpu->neon && cpu->i8mm && cpu->dotprod
                                                    : false;
    if (!present)
        return false;
    return most < 0 || isa_rank(isa) <= most;
}

bool tutti__isa_better(const char *isa, const char *other)
{
    return isa_rank(isa) > isa_rank(other);
}

/* Nearly all that are asked are not, most of them by their first letter. */
static bool same(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

static bool runs(const tutti_kernel *kernel, const tutti_op *op)
{
    bool named = same(kernel->op, op->name) || same(kernel->op, TUTTI_KERNEL_ANY) ||
                 (op->flags & TUTTI_OP_ELEMENTWISE && same(kernel->op, TUTTI_KERNEL_ELEMENTWISE));
    return named && (kernel->covers == NULL || kernel->covers(op));
}

/* 0 when it cannot run the node here. */
static int bid(const tutti_kernel *kernel, const char *target, const tutti_kernel_query *query)
{
    if (!runs(kernel, query->node.op) || strcmp(kernel->target, target) != 0 ||
        (query->deterministic && !(kernel->flags & TUTTI_KERNEL_ROW_INVARIANT)) ||
        !tutti__isa_present(kernel->isa))
        return 0;
    return kernel->score(query);
}

size_t tutti__kernel_workspace(const tutti_kernel *kernel, const tutti_kernel_query *query,
                               const void *plan)
{
    if (kernel->room != NULL)
        return kernel->room(plan);
    return kernel->workspace != NULL ? kernel->workspace(query) : 0;
}

static const tutti_kernel *pick(const char *target, const tutti_kernel_query *query)
{
    const tutti_kernel *best = NULL;
    int best_score = 0;
    for (const tutti_kernel *const *k = tutti__kernel_table; *k != NULL; k++) {
        int score = bid(*k, target, query);
        if (score > best_score ||
            (score == best_score && best != NULL && isa_rank((*k)->isa) > isa_rank(best->isa))) {
            best = *k;
            best_score = score;
        }
    }
    return best;
}

/* A kernel that cannot run a node finds that out by trying to prepare for it: its message tells
 * nobody anything. */
const tutti_kernel *tutti__kernel_pick(const char *target, const tutti_kernel_query *query)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    const tutti_kernel *best = pick(target, query);
    tutti__error_restore(&before);
    return best;
}

/* Takes the place of the same kernel of a lesser set, or is added. */
static int add_rival(const tutti_kernel *kernel, int count, int capacity, const tutti_kernel **ret)
{
    for (int i = 0; i < count; i++)
        if (strcmp(ret[i]->name, kernel->name) == 0) {
            if (isa_rank(kernel->isa) > isa_rank(ret[i]->isa))
                ret[i] = kernel;
            return count;
        }
    if (count < capacity)
        ret[count++] = kernel;
    return count;
}

int tutti__kernel_rivals(const char *target, const tutti_kernel_query *query, int capacity,
                         const tutti_kernel **ret)
{
    const tutti_kernel *best = tutti__kernel_pick(target, query);
    tutti_error before;
    if (best == NULL || !(best->flags & TUTTI_KERNEL_TUNED) || capacity < 1)
        return 0;
    tutti__error_capture(TUTTI_OK, &before);
    int count = 1, least = best->score(query) / 4;
    ret[0] = best;
    for (const tutti_kernel *const *k = tutti__kernel_table; *k != NULL; k++)
        if ((*k)->flags & TUTTI_KERNEL_TUNED) {
            int score = bid(*k, target, query);
            if (score > 0 && score >= least)
                count = add_rival(*k, count, capacity, ret);
        }
    tutti__error_restore(&before);
    return count;
}

/* Whether `a` goes before `b` in a list: own kernels before general ones, better sets first. */
static bool before(const tutti_kernel *a, const tutti_kernel *b)
{
    bool general_a = a->op[0] == '*', general_b = b->op[0] == '*';
    if (general_a != general_b)
        return general_b;
    return isa_rank(a->isa) > isa_rank(b->isa);
}

tutti_status tutti__kernel_keep(const tutti_kernel_query *query, const void *plan, size_t size,
                                void **ret_plan)
{
    void *kept = malloc(size);
    if (kept == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    memcpy(kept, plan, size);
    *ret_plan = kept;
    return TUTTI_OK;
}

int tutti__kernel_list(const char *op, const char *target, int capacity, const tutti_kernel **ret)
{
    const tutti_op *found = tutti_op_find(op);
    int count = 0;
    for (const tutti_kernel *const *k = tutti__kernel_table; found != NULL && *k != NULL; k++) {
        if (!runs(*k, found) || strcmp((*k)->target, target) != 0 || !tutti__isa_present((*k)->isa))
            continue;
        int at = count++ < capacity ? count - 1 : capacity;
        for (; at > 0 && before(*k, ret[at - 1]); at--)
            if (at < capacity)
                ret[at] = ret[at - 1];
        if (at < capacity)
            ret[at] = *k;
    }
    return count;
}
