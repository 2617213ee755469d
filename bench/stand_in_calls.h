/* stand_in_calls.h: what the examples inside the command call in place of the library's functions
 * (examples/meson.build includes this file before their own text, with TUTTI_STAND_IN). */
#ifndef TUTTI_BENCH_STAND_IN_CALLS_H
#define TUTTI_BENCH_STAND_IN_CALLS_H

#include "tutti/tutti.h"

tutti_dataset *tutti__stand_in_mnist(tutti_job *job, const char *split);
tutti_dataset *tutti__stand_in_cifar10(tutti_job *job, const char *split);
tutti_dataset *tutti__stand_in_range_dataset(tutti_job *job, int64_t start, int64_t stop,
                                             int64_t step);
const tutti_history *tutti__stand_in_fit_with(tutti_model *model, tutti_dataset *data,
                                              const tutti_fit_options *options);
tutti_status tutti__stand_in_next_components(tutti_dataset *dataset, int count,
                                             tutti_tensor **const *ret_components);
bool tutti__stand_in_each_next(tutti_each *each, int count, tutti_tensor **const *ret_components);
bool tutti__stand_in_progress_step(tutti_progress *progress, int64_t examples);
tutti_status tutti__stand_in_session_open_with(tutti_graph *graph,
                                               const tutti_session_options *options,
                                               tutti_session **ret_session);
tutti_eager *tutti__stand_in_model_eager(tutti_model *model);
tutti_status tutti__stand_in_eager_open_with(const tutti_session_options *options,
                                             tutti_eager **ret_eager);

#ifdef TUTTI_STAND_IN
#undef tutti_mnist
#undef tutti_cifar10
#undef tutti_range_dataset
#define tutti_mnist(job, split) TUTTI_AT(tutti__stand_in_mnist((job), (split)))
#define tutti_cifar10(job, split) TUTTI_AT(tutti__stand_in_cifar10((job), (split)))
#define tutti_range_dataset(job, start, stop, step)                                                \
    TUTTI_AT(tutti__stand_in_range_dataset((job), (start), (stop), (step)))
#define tutti_fit_with tutti__stand_in_fit_with
#define tutti_next_components tutti__stand_in_next_components
#define tutti_each_next tutti__stand_in_each_next
#define tutti_progress_step tutti__stand_in_progress_step
#define tutti_session_open_with tutti__stand_in_session_open_with
#define tutti_model_eager tutti__stand_in_model_eager
#define tutti_eager_open_with tutti__stand_in_eager_open_with
#endif

#endif
