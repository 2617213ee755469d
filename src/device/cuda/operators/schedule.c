/* schedule.c: see schedule.cu: the rate of a step, so that the host has no part in it. A C function
 * of the user's is called on the host. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "tables/cuda_texts.h"

enum { PIECES = 16, NUMBERS = 2 * PIECES + 1 };

/* As the kernel has it. */
typedef struct given {
    double numbers[NUMBERS];
    int count;
} given;

/* In the order of schedule.cu. */
static const char *const kinds[] = {"cosine_decay", "exponential_decay", "inverse_decay",
                                    "piecewise",    "polynomial_decay",  "step_decay"};

static int kind_of(const tutti_attr *attrs, int count)
{
    const char *kind = tutti_attr_string(attrs, count, "kind");
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return (int)i;
    return -1;
}

static tutti_status schedule_run(const tutti_cuda_call *c)
{
    const tutti_kernel_call *call = c->call;
    const tutti_attr *numbers = tutti_attr_find(call->attrs, call->attr_count, "numbers");
    given g = {.count = (int)tutti_attr_int(call->attrs, call->attr_count, "boundaries")};
    tutti_cu_pointer updates = tutti__cuda_in(c, 0), rate = tutti__cuda_out(c, 0);
    for (int i = 0; numbers && i < numbers->count && i < NUMBERS; i++)
        g.numbers[i] = numbers->value.floats[i];
    return tutti__cuda_start(c, &tutti_cuda_source_schedule, "schedule_rate", 1, 1,
                             (void *[]){&g, &updates, &rate}, "-DKIND=%d",
                             kind_of(call->attrs, call->attr_count));
}

static int schedule_score(const tutti_kernel_query *query)
{
    return kind_of(query->node.attrs, query->node.attr_count) >= 0 ? 100 : 0;
}

static const char *const variants[] = {"-DKIND=0", "-DKIND=3", NULL};

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
