/* draws.c: see draws.cu: random_uniform, random_normal, random_truncated_normal, random_bernoulli,
 * dropout. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

typedef struct cut {
    int64_t rank, dim[TUTTI_MAX_RANK], whole[TUTTI_MAX_RANK], start[TUTTI_MAX_RANK];
} cut;

static const struct {
    const char *op;
    int kind;
    const char *a, *b;
} table[] = {
    {"random_uniform", 0, "low", "high"},
    {"random_normal", 2, "mean", "stddev"},
    {"random_truncated_normal", 3, "mean", "stddev"},
    {"random_bernoulli", 4, "p", NULL},
    {"dropout", 5, "rate", NULL},
};

static bool draws_covers(const tutti_op *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(table); i++)
        if (strcmp(table[i].op, op->name) == 0)
            return true;
    return false;
}

static cut cut_of(const tutti_kernel_call *call, const tutti_view *y)
{
    cut where = {0};
    const int64_t *whole, *start;
    if (tutti_attr_ints(call->attrs, call->attr_count, "global_dims", &whole) == 0 ||
        tutti_attr_ints(call->attrs, call->attr_count, "start", &start) == 0)
        return where;
    where.rank = y->rank;
    for (int i = 0; i < y->rank; i++) {
        where.dim[i] = y->dims[i];
        where.whole[i] = whole[i];
        where.start[i] = start[i];
    }
    return where;
}

static tutti_status draws_run(const tutti_cuda_call *c)
{
    const tutti_kernel_call *call = c->call;
    const tutti_view *y = &call->outputs[0];
    size_t at = 0;
    while (strcmp(table[at].op, call->op->name) != 0)
        at++;
    bool dropout = table[at].kind == 5;
    int kind = table[at].kind == 0 && tutti_dtype_is_int(y->dtype) ? 1 : table[at].kind;
    uint64_t seed =
        tutti__hash_mix((uint64_t)tutti_attr_int(call->attrs, call->attr_count, "seed"),
                        (uint64_t)tutti_attr_int(call->attrs, call->attr_count, "salt"));
    double a = tutti_attr_float(call->attrs, call->attr_count, table[at].a);
    double b = table[at].b ? tutti_attr_float(call->attrs, call->attr_count, table[at].b) : 0;
    cut where = cut_of(call, y);
    int64_t count = tutti__cuda_count(y);
    tutti_cu_pointer counter = tutti__cuda_in(c, dropout), x = dropout ? tutti__cuda_in(c, 0) : 0;
    tutti_cu_pointer to = tutti__cuda_out(c, 0);
    if (kind == 1) { /* whole numbers */
        b = (double)((int64_t)b - (int64_t)a);
        a = (double)(int64_t)a;
    }
    if (dropout)
        b = 1 / (1 - a);
    return tutti__cuda_start(
        c, &tutti_cuda_source_draws, "draws",
        tutti__cuda_blocks(where.rank ? count : tutti__cuda_ceil(count, 4)), 256,
        (void *[]){&seed, &counter, &count, &where, &a, &b, &x, &to},
        "-DTYPE=%s -DCOUNTER=%s -DKIND=%d -DBITS=%d", tutti__cuda_dtype(y->dtype),
        tutti__cuda_dtype(call->inputs[dropout].dtype), kind, y->dtype == TUTTI_BF16 ? 8 : 11);
}

static const char *const variants[] = {"-DTYPE=float -DCOUNTER=i64 -DKIND=2 -DBITS=11",
                                       "-DTYPE=bf16 -DCOUNTER=i64 -DKIND=5 -DBITS=8",
                                       "-DTYPE=i32 -DCOUNTER=i64 -DKIND=1 -DBITS=11", NULL};

const tutti_cuda_source tutti_cuda_source_draws = {
    .name = "draws",
    .text = &tutti__cuda_text_draws_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_draws = {
    .name = "draws",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = draws_covers,
    .run = draws_run,
};
