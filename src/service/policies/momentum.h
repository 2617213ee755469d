/* momentum.h: momentum that stays useful with many workers. Where N workers push at their own pace,
 * a server's momentum adds to what staleness does anyway (Mitliagkas 2016), and training diverges
 * at rates that are fine for one. Here each worker has the momentum of its own gradients
 * (DANA-Slim, Hakimi 2019), and the server's rule is plain gradient descent:
 *
 *     v = m v + g;  pushes g + m v
 *
 * The server's value is then where all workers' momenta will have taken it (Nesterov's look-ahead),
 * and the velocities that are under way are bounded by those of one worker each. */
#ifndef TUTTI_SERVICE_POLICIES_MOMENTUM_H
#define TUTTI_SERVICE_POLICIES_MOMENTUM_H

#include "base/status.h"
#include "tutti/tensor.h"

/* A worker's velocity of one variable; zeroed at first. */
typedef struct tutti_worker_momentum {
    tutti_tensor *velocity;
} tutti_worker_momentum;

/* What is pushed in the place of a dense gradient of floats: a new tensor. */
tutti_status tutti__worker_momentum_push(tutti_worker_momentum *momentum, double m,
                                         tutti_tensor *gradient, tutti_tensor **ret_pushed);
void tutti__worker_momentum_free(tutti_worker_momentum *momentum); /* a zeroed one is fine */

#endif
