/* momentum_test.c: a quadratic by many workers: momentum at the server diverges, at the workers
 * not; one worker's is Nesterov's. */
#include "service/policies/momentum.h"

#include <math.h>

#include "base/test.h"

enum { MOST = 16 };

static double push_of(tutti_worker_momentum *m, double momentum, double gradient)
{
    tutti_tensor *g = NULL, *pushed = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 0, NULL, &gradient, &g));
    CHECK_OK(tutti__worker_momentum_push(m, momentum, g, &pushed));
    double x = tutti_tensor_get(pushed, 0);
    tutti_tensor_release(g);
    tutti_tensor_release(pushed);
    return x;
}

/* w^2 / 2 by `workers` in turns, each gradient as old as there are others; |w| in the end. */
static double train(int workers, bool at_workers, double rate, int steps)
{
    tutti_worker_momentum momenta[MOST] = {{0}};
    double w = 1, read[MOST], velocity = 0;
    for (int n = 0; n < workers; n++)
        read[n] = w;
    for (int t = 0; t < steps && isfinite(w); t++) {
        int n = t % workers;
        if (at_workers) {
            w -= rate * push_of(&momenta[n], 0.9, read[n]);
        } else { /* one velocity for all, Nesterov's form as well */
            velocity = 0.9 * velocity + read[n];
            w -= rate * (read[n] + 0.9 * velocity);
        }
        read[n] = w;
    }
    for (int n = 0; n < workers; n++)
        tutti__worker_momentum_free(&momenta[n]);
    return fabs(w);
}

TUTTI_TEST(momentum_of_one_worker_is_nesterovs)
{
    CHECK_NEAR(train(1, true, 0.02, 50), train(1, false, 0.02, 50), 1e-12);
}

TUTTI_TEST(momentum_at_the_workers_stays_useful_with_many)
{
    CHECK(train(8, false, 0.02, 2000) > 1e3);
    CHECK(train(8, true, 0.02, 2000) < 1e-3);
    CHECK(train(16, true, 0.01, 4000) < 1e-3);
}
