/* sync.c: one update a step, the mean of its gradients in the order of workers. With backup workers
 * (Chen 2016) the first N - b gradients of a step make it, and the last b are dropped by their
 * step. */
#include "service/policies/policy.h"

/* What is held goes on when nobody is left to wait for: all its workers are gone, or begin anew. */
static bool sync_ready(const tutti_policy *policy, int64_t held)
{
    int64_t workers = tutti__policy_counting(policy), wanted = workers - policy->argument;
    if (workers == 0)
        return held > 0;
    return held > 0 && tutti__policy_arrived(policy, policy->version) >= (wanted > 1 ? wanted : 1);
}

const tutti_consistency tutti_consistency_sync = {
    .name = "sync",
    .doc = "one update a step, the mean of the first N - b gradients; later ones are dropped",
    .argument = "backup=b",
    .optional = true,
    .least = 0,
    .most = 1 << 16,
    .clocked = true,
    .arrive = tutti__policy_of_step,
    .ready = sync_ready,
    .may_read = tutti__policy_step_is_here,
    .clock = tutti__policy_clock_of_step,
};
