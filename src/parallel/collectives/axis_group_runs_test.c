/* axis_group_runs_test.c: a step that fails in one process of a job. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { ROWS = 6, STEPS = 3 };

/* Mean of squares of what is checked to be numbers; the step `bad` of rank 1 has one that is not.
 */
static tutti_status train(tutti_strategy *s, int bad)
{
    tutti_eager *eager;
    TUTTI_TRY(tutti_eager_open(&eager, .strategy = s, .deadline_seconds = 30));
    tutti_sym w = tutti_variable(tutti_eager_graph(eager), tutti_full(0.5, 2, 1), .name = "w");
    tutti_status status = TUTTI_OK;
    for (int step = 0; step < STEPS && status == TUTTI_OK; step++) {
        tutti_tensor *rows;
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){ROWS, 2}, &rows));
        tutti_tensor_set(rows, 6, /* in its fourth row, which is rank 1's */
                         step == bad && tutti_strategy_rank(s) == 1 ? (double)NAN : 1.0);
        tutti_sym x = tutti_check_numerics(tutti_eager_feed(eager, rows), "input"), loss;
        TUTTI_TAPE(tape, eager)
            loss = tutti_mean(tutti_square(tutti_matmul(x, w)));
        tutti_grad grad;
        tutti_tape_gradients(&tape, loss, 1, &w, &grad);
        tutti_apply_gradients(tutti_sgd(0.1), 1, &w, &grad);
        status = tutti_eager_step(eager);
        tutti_tensor_release(rows);
    }
    if (status == TUTTI_OK)
        tutti_eager_close(eager);
    return status;
}

/* Rank 1 stays for 4 s after its failure, and the others hear of it at once. */
static tutti_status check_failure(tutti_strategy *s, void *context)
{
    int64_t began = tutti__now_ns();
    (void)context;
    WORKER_EXPECT(train(s, STEPS) == TUTTI_OK);
    tutti_status status = train(s, STEPS - 1);
    if (!strstr(tutti_error_message(), "is nan"))
        return status == TUTTI_OK ? TUTTI_CHECK_FAILED : status; /* with another message */
    if (tutti_strategy_rank(s) == 1) {
        WORKER_EXPECT(status == TUTTI_CHECK_FAILED);
        sleep(4);
    } else {
        WORKER_EXPECT(status == TUTTI_CANCELLED || status == TUTTI_CLOSED);
        WORKER_EXPECT(strstr(tutti_error_message(), "rank 1 aborted: check_numerics") != NULL);
        WORKER_EXPECT(tutti__now_ns() - began < (int64_t)3000000000);
    }
    _exit(0); /* the job is over: its group cannot be closed without an error */
}

TUTTI_TEST(a_step_that_fails_in_one_process_ends_in_all)
{
    tutti__test_workers(3, NULL, check_failure, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .engine = "tcp"), check_failure,
                        NULL);
}
