/* stand_in.c: examples on one synthetic batch, step by step. */
#include "bench/stand_in.h"

#include "cli/bench.h"
#include "exec/plan/share.h"
#include "exec/tape/eager.h"
#include "nn/training/trainer.h"

static const tutti_stand_in *measured; /* NULL: nothing is */
static tutti_engine *engine;           /* of the example's session or tape */
/* The batch of hand-written loops. */
static tutti_tensor *kept[TUTTI_MAX_COMPONENTS];

void tutti__stand_in_set(const tutti_stand_in *stand_in)
{
    measured = stand_in;
}

static void watch(tutti_engine *from)
{
    engine = from;
    if (measured && measured->plan_made)
        tutti__engine_set_watch(engine, &(tutti_engine_watch){.made = measured->plan_made,
                                                              .context = measured->context});
}

/* ---- data ---- */

static tutti_dataset *images(tutti_job *job, int64_t side, int64_t channels)
{
    int64_t dims[] = {measured->batch, side, side, channels};
    tutti_tensor *pixels = tutti__bench_tensor(TUTTI_F32, 4, dims, 1);
    tutti_tensor *labels = tutti__bench_tensor(TUTTI_I64, 1, dims, 2);
    tutti_dataset *data = tutti_from_tensor_slices(job, pixels, labels);
    tutti_tensor_release(pixels);
    tutti_tensor_release(labels);
    return data;
}

tutti_dataset *tutti__stand_in_mnist(tutti_job *job, const char *split)
{
    return measured && tutti_job_ok(job) ? images(job, 28, 1) : (tutti_mnist)(job, split);
}

tutti_dataset *tutti__stand_in_cifar10(tutti_job *job, const char *split)
{
    return measured && tutti_job_ok(job) ? images(job, 32, 3) : (tutti_cifar10)(job, split);
}

tutti_dataset *tutti__stand_in_range_dataset(tutti_job *job, int64_t start, int64_t stop,
                                             int64_t step)
{
    if (measured && stop > start + measured->batch * step)
        stop = start + measured->batch * step;
    return (tutti_range_dataset)(job, start, stop, step);
}

/* ---- loops ---- */

/* Whether a batch is kept, which is then given. */
static bool give_kept(int count, tutti_tensor **const *ret_components)
{
    for (int i = 0; measured && kept[0] && i < count; i++)
        if (ret_components[i])
            *ret_components[i] = kept[i];
    return measured && kept[0];
}

static void keep(int count, tutti_tensor **const *components)
{
    for (int i = 0; measured && i < count; i++)
        kept[i] = components[i] ? tutti_tensor_retain(*components[i]) : NULL;
}

tutti_status tutti__stand_in_next_components(tutti_dataset *dataset, int count,
                                             tutti_tensor **const *ret_components)
{
    if (give_kept(count, ret_components))
        return TUTTI_OK;
    TUTTI_TRY(tutti_next_components(dataset, count, ret_components));
    keep(count, ret_components);
    return TUTTI_OK;
}

bool tutti__stand_in_each_next(tutti_each *each, int count, tutti_tensor **const *ret_components)
{
    if (give_kept(count, ret_components))
        return true;
    if (!tutti_each_next(each, count, ret_components))
        return false;
    keep(count, ret_components);
    return true;
}

bool tutti__stand_in_progress_step(tutti_progress *progress, int64_t examples)
{
    if (!measured)
        return tutti_progress_step(progress, examples);
    measured->step_done(measured->context, engine);
    return true;
}

tutti_status tutti__stand_in_session_open_with(tutti_graph *graph,
                                               const tutti_session_options *options,
                                               tutti_session **ret_session)
{
    TUTTI_TRY(tutti_session_open_with(graph, options, ret_session));
    watch(tutti__session_engine(*ret_session));
    return TUTTI_OK;
}

tutti_eager *tutti__stand_in_model_eager(tutti_model *model)
{
    tutti_eager *eager = tutti_model_eager(model);
    if (eager)
        watch(eager->engine);
    return eager;
}

tutti_status tutti__stand_in_eager_open_with(const tutti_session_options *options,
                                             tutti_eager **ret_eager)
{
    TUTTI_TRY(tutti_eager_open_with(options, ret_eager));
    watch((*ret_eager)->engine);
    return TUTTI_OK;
}

/* ---- fit ---- */

static tutti_status steps(tutti_model *model, tutti_dataset *data)
{
    tutti_wiring wiring;
    tutti_element element;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    tutti_step_function *form;
    TUTTI_TRY(tutti__need_trainer(model));
    TUTTI_TRY(tutti__model_meet(model, data, true, &wiring));
    TUTTI_TRY(tutti_dataset_peek(data, &element));
    watch(model->engine);
    for (int i = 0; i < wiring.count; i++)
        tensors[i] = element.tensors[wiring.order[i]];
    for (;;) {
        TUTTI_TRY(tutti__step_function_for(model, true, wiring.count, tensors, &form));
        TUTTI_TRY(tutti__step_function_run(model, form, 0, false, wiring.count, tensors));
        measured->step_done(measured->context, tutti__session_engine(model->session));
    }
}

const tutti_history *tutti__stand_in_fit_with(tutti_model *model, tutti_dataset *data,
                                              const tutti_fit_options *options)
{
    if (!measured || !model)
        return tutti_fit_with(model, data, options);
    tutti_job_fail(tutti_model_job(model), steps(model, data));
    return NULL;
}
