/* schedule.c: see schedule.cu. A schedule that is a function of the user's runs on the host. */
#include <string.h>

#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

typedef struct numbers {
    double at[33];
} numbers;

/* By the number that schedule.cu has for them. */
static const char *const kinds[] = {"exponential_decay", "inverse_decay", "cosine_decay",
                                    "polynomial_decay",  "piecewise",     "step_decay"};

static int kind_of(const char *name)
{
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
        if (strcmp(kinds[i], name) == 0)
            return (int)i;
    return -1;
}

static int schedule_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    const tutti_attr *given = tutti_attr_find(node->attrs, node->attr_count, "numbers");
    return kind_of(tutti_attr_string(node->attrs, node->attr_count, "kind")) >= 0 && given &&
                   given->count <= (int)TUTTI_COUNT(((numbers *)0)->at)
               ? 100
               : 0;
}

static tutti_status schedule_run(const tutti_cuda_call *c)
{
    const tutti_attr *attrs = c->call->attrs;
    const int count = c->call->attr_count;
    const tutti_attr *given = tutti_attr_find(attrs, count, "numbers");
    numbers n = {{0}};
    if (given->count > 0)
        memcpy(n.at, given->value.floats, (size_t)given->count * sizeof *n.at);
    int pieces = (int)tutti_attr_int(attrs, count, "boundaries");
    tutti_cu_pointer updates = tutti__cuda_in(c, 0), y = tutti__cuda_out(c, 0);
    return tutti__cuda_start(c, &tutti_cuda_source_schedule, "schedule_at", 1, 1,
                             (void *[]){&n, &pieces, &updates, &y}, "-DKIND=%d",
                             kind_of(tutti_attr_string(attrs, count, "kind")));
}

static const char *const variants[] = {"-DKIND=0", "-DKIND=1", "-DKIND=2", "-DKIND=3",
                                       "-DKIND=4", "-DKIND=5", NULL};

const tutti_cuda_source tutti_cuda_source_schedule = {
    .name = "schedule",
    .text = &tutti__cuda_text_schedule_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_schedule = {
    .name = "schedule",
    .version = 1,
    .op = "schedule_rate",
    .score = schedule_score,
    .run = schedule_run,
};
