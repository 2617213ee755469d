/* softsync.c: n-softsync (Zhang 2015): an update after workers/n gradients, rounded down, whoever
 * sent them; it is their mean. n = 1 waits for as many as there are workers, n = workers for none.
 */
#include "service/policies/policy.h"

static tutti_policy_arrival softsync_arrive(const tutti_policy *policy, uint64_t step)
{
    TUTTI_UNUSED(policy);
    TUTTI_UNUSED(step);
    return TUTTI_POLICY_HOLD;
}

static bool softsync_ready(const tutti_policy *policy, int64_t held)
{
    int64_t wanted = tutti__policy_counting(policy) / policy->argument;
    return held >= (wanted > 1 ? wanted : 1);
}

const tutti_consistency tutti_consistency_softsync = {
    .name = "softsync",
    .doc = "an update after workers/n gradients, their mean; nobody waits",
    .argument = "n",
    .least = 1,
    .most = 1 << 16,
    .arrive = softsync_arrive,
    .ready = softsync_ready,
};
