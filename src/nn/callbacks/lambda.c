/* lambda.c: functions of the user as a callback. */
#include "nn/callbacks/common.h"

static tutti_status tell(tutti_event_fn *fn, const tutti_lambda_callback_options *all,
                         tutti_event *event)
{
    if (fn)
        fn(all->context, event);
    return tutti_model_check(event->model);
}

#define TELL(name)                                                                                 \
    static tutti_status name(void *self, tutti_event *event)                                       \
    {                                                                                              \
        const tutti_lambda_callback_options *all = self;                                           \
        return tell(all->name, all, event);                                                        \
    }
TELL(train_begin)
TELL(train_end)
TELL(epoch_begin)
TELL(epoch_end)
TELL(batch_begin)
TELL(batch_end)

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "lambda",
    .train_begin = train_begin,
    .train_end = train_end,
    .epoch_begin = epoch_begin,
    .epoch_end = epoch_end,
    .batch_begin = batch_begin,
    .batch_end = batch_end,
    .destroy = free,
};

tutti_callback *tutti_lambda_callback_with(const tutti_lambda_callback_options *options)
{
    tutti_lambda_callback_options *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *options;
    return tutti_callback_make(&kind, copy);
}
