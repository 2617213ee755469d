/* testing.h: for tests of the store: update rules, and servers with workers in one process. */
#ifndef TUTTI_SERVICE_STORE_TESTING_H
#define TUTTI_SERVICE_STORE_TESTING_H

#include "base/test.h"
#include "service/store/local.h"

/* "plain": value -= factor * gradient, in f64 or f32; "keys": the value is what was applied: i64
 * [n, 3] of (version, step, contribution), whatever the gradient is; else those of the table. */
tutti_store_find_rule tutti__store_testing_rule;

/* Two variables at most, on servers of one process. */
typedef struct store_job {
    tutti_store_local *local;
    int workers;
    tutti_store_worker *worker[8];
    tutti_store_placement placement[8];
} store_job;

void store_job_open(store_job *job, const tutti_store_local_options *options);
void store_job_close(store_job *job);
/* Every worker makes it; its number. */
int store_job_variable(store_job *job, const tutti_store_variable_spec *spec, tutti_tensor *value);
/* A worker that was killed comes back, knowing these variables. */
void store_job_rejoin(store_job *job, int worker, int count,
                      const tutti_store_variable_spec *const *specs);

tutti_tensor *store_vector(tutti_dtype dtype, int64_t count, const double *values);
/* One variable's element, as a worker sees it now; and a push of one number for all elements. */
double store_get(store_job *job, int worker, int variable, int64_t element);
tutti_status store_push(store_job *job, int worker, int variable, double gradient);
#endif
