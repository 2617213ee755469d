/* stand_in.h: what the examples inside the command call in place of the library's functions of
 * these names (examples/meson.build). They hand on to the library, unless steps are measured: then
 * the sources of data give one batch, every step is fed with it, and each step is told of. Model,
 * optimizer and step are the example's own. */
#ifndef TUTTI_BENCH_STAND_IN_H
#define TUTTI_BENCH_STAND_IN_H

#include "exec/engine.h"
#include "tutti/tutti.h"

typedef struct tutti_stand_in {
    int64_t batch; /* examples that a source of data gives */
    void (*step_done)(void *context, tutti_engine *engine); /* the engine that ran it */
    void *context;
    /* (optional) told of plans before they run for the first time */
    void (*plan_made)(void *context, const tutti_made *made);
} tutti_stand_in;
/* Until the process ends; NULL: the library's own functions again. */
void tutti__stand_in_set(const tutti_stand_in *stand_in);

tutti_dataset *tutti__stand_in_dataset_mnist(tutti_job *job, const char *split);
tutti_dataset *tutti__stand_in_dataset_cifar10(tutti_job *job, const char *split);
tutti_dataset *tutti__stand_in_dataset_range(tutti_job *job, int64_t start, int64_t stop,
                                             int64_t step);
const tutti_history *tutti__stand_in_fit_model(tutti_model *model, tutti_dataset *data,
                                               const tutti_fit_options *options);
tutti_status tutti__stand_in_next_components(tutti_dataset *dataset, int count,
                                             tutti_tensor **const *ret_components);
bool tutti__stand_in_each_next(tutti_each *each, int count, tutti_tensor **const *ret_components);
bool tutti__stand_in_progress_step(tutti_progress *progress, int64_t examples);
tutti_status tutti__stand_in_session_create(tutti_graph *graph,
                                            const tutti_session_options *options,
                                            tutti_session **ret_session);
tutti_eager *tutti__stand_in_model_eager(tutti_model *model);
tutti_status tutti__stand_in_eager_create(const tutti_session_options *options,
                                          tutti_eager **ret_eager);

#endif
