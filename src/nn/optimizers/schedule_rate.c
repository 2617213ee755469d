/* schedule_rate.c: a schedule as an operator of the count of updates, so that the rate is part of
 * the step, wherever the step runs. It stands here and not in ops/ because it computes what
 * tutti_schedule_at does, by the same functions, and so to the same bits. */
#include <math.h>
#include <string.h>

#include "nn/optimizers/schedule.h"
#include "ops/build.h"

static tutti_status read_schedule(const char *kind, const tutti_attr *numbers, int64_t count,
                                  int64_t function, tutti_schedule *ret)
{
    tutti_schedule schedule = {.def = tutti__schedule_find(kind), .count = (int)count};
    if (!schedule.def)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no schedule '%s'", kind);
    if (numbers->count > TUTTI_SCHEDULE_NUMBERS || count < 0 || count > TUTTI_SCHEDULE_PIECES)
        return tutti_fail(TUTTI_INVALID, "%d numbers and %lld boundaries are too many",
                          (int)numbers->count, (long long)count);
    if (numbers->count > 0)
        memcpy(schedule.numbers, numbers->value.floats,
               (size_t)numbers->count * sizeof *schedule.numbers);
    if (!schedule.def->fields)
        TUTTI_TRY(tutti__schedule_function_find(function, &schedule));
    TUTTI_TRY(tutti_schedule_check(&schedule));
    *ret = schedule;
    return TUTTI_OK;
}

#define READ_SCHEDULE(node, ret)                                                                   \
    read_schedule(RULE_STRING(node, "kind"),                                                       \
                  tutti_attr_find((node)->attrs, (node)->attr_count, "numbers"),                   \
                  RULE_INT(node, "boundaries"), RULE_INT(node, "function"), ret)

static tutti_status schedule_rate_infer(tutti_infer *node)
{
    tutti_schedule schedule;
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *step = &node->inputs[0];
    if (step->dtype != TUTTI_I64 || step->rank != 0 || step->handle)
        return RULE_FAIL(node, TUTTI_INVALID, "the count of updates is %s; needs i64[]",
                         tutti_type_text(step, text));
    if (READ_SCHEDULE(node, &schedule) != TUTTI_OK)
        return RULE_FAIL(node, TUTTI_INVALID, "%s", tutti_error_message());
    node->outputs[0] = tutti_type_make(TUTTI_F32, 0, NULL);
    return TUTTI_OK;
}

static tutti_status schedule_rate_reference(const tutti_kernel_call *call)
{
    tutti_schedule schedule;
    int64_t update = *(const int64_t *)call->inputs[0].data;
    TUTTI_TRY(READ_SCHEDULE(call, &schedule));
    double rate = tutti_schedule_at(&schedule, update > 0 ? update - 1 : 0);
    *(float *)call->outputs[0].data = (float)(rate >= 0 && isfinite(rate) ? rate : NAN);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"kind", TUTTI_ATTR_STRING, NULL},
    {"numbers", TUTTI_ATTR_FLOATS, "[]"},
    {"boundaries", TUTTI_ATTR_INT, "0"},
    {"function", TUTTI_ATTR_INT, "0"}, /* of this process; such a node means nothing in another */
    {NULL},
};

static const char *const samples[] = {
    "i64[]{=1} | kind=exponential_decay numbers=[0.1,10,0.5,0]",
    "i64[]{=7} | kind=cosine_decay numbers=[0.1,100,0,10,0,0,2,1]",
    "i64[]{=0} | kind=step_decay numbers=[0.1,3,0.5]",
    NULL,
};

extern const tutti_op tutti_op_schedule_rate;

tutti_sym tutti__schedule_rate(const tutti_schedule *schedule, tutti_sym updates)
{
    int64_t function = 0;
    int count = TUTTI_SCHEDULE_NUMBERS;
    if (!schedule->def->fields && tutti__schedule_function_note(schedule, &function) != TUTTI_OK)
        return tutti__poison(tutti_sym_graph(updates), TUTTI_NO_MEMORY, "%s",
                             tutti_error_message());
    while (count > 0 && schedule->numbers[count - 1] == 0)
        count--;
    return TUTTI_NARY(&tutti_op_schedule_rate, ((tutti_sym[]){updates}),
                      TUTTI_STR("kind", schedule->def->name),
                      TUTTI_FLOATS("numbers", count, schedule->numbers),
                      TUTTI_INT("boundaries", schedule->count), TUTTI_INT("function", function));
}

const tutti_op tutti_op_schedule_rate = {
    .struct_size = sizeof(tutti_op),
    .name = "schedule_rate",
    .version = 1,
    .doc =
        "schedule_rate(t; kind, numbers): y = the schedule's rate at step t - 1, where t = 1 is the first update; NaN where it is none",
    .category = "update",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = schedule_rate_infer,
    .reference = schedule_rate_reference,
    .samples = samples,
};
