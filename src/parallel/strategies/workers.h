/* workers.h: strategies of several processes for tests. */
#ifndef TUTTI_PARALLEL_STRATEGIES_WORKERS_H
#define TUTTI_PARALLEL_STRATEGIES_WORKERS_H

#include "base/test.h"
#include "parallel/strategies/strategy.h"

/* What one process of a job does. */
typedef tutti_status tutti_worker_work(tutti_strategy *strategy, void *context);
/* Runs work in `count` processes that make one job with multi_worker_mirrored, or, where the
 * options have micro-batches, with pipeline; the test fails when one of them does, and its message
 * is printed. */
void tutti__test_workers(int count, const tutti_strategy_options *options, tutti_worker_work *work,
                         void *context);
/* The same of a job whose rank `lost` is killed by a signal, and whose others end all the same. */
void tutti__test_workers_but(int count, int lost, const tutti_strategy_options *options,
                             tutti_worker_work *work, void *context);
#define WORKER_EXPECT(condition)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tutti_fail(TUTTI_CHECK_FAILED, "%s:%d: %s", __FILE__, __LINE__, #condition);    \
    } while (0)
#define WORKER_NEAR(value, expected)                                                               \
    do {                                                                                           \
        double value_ = (value), expected_ = (expected);                                           \
        if (!(value_ - expected_ < 1e-5 && expected_ - value_ < 1e-5))                             \
            return tutti_fail(TUTTI_CHECK_FAILED, "%s:%d: %s is %g, not %g", __FILE__, __LINE__,   \
                              #value, value_, expected_);                                          \
    } while (0)

#endif
