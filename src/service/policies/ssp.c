/* ssp.c: stale synchronous parallel (Ho 2013). A worker with clock c reads when the slowest has
 * reached c - s. Gradients apply when they arrive, at 1/workers. With s = 0 nobody reads before all
 * gradients of a clock are there, so these are applied as one mean in the order of workers: sync,
 * to the bit. */
#include "service/policies/policy.h"

static tutti_policy_arrival ssp_arrive(const tutti_policy *policy, uint64_t step)
{
    return policy->argument == 0 ? tutti__policy_of_step(policy, step) : TUTTI_POLICY_APPLY;
}

static bool ssp_ready(const tutti_policy *policy, int64_t held)
{
    int64_t wanted = tutti__policy_counting(policy);
    return held > 0 && tutti__policy_arrived(policy, policy->version) >= wanted;
}

static bool ssp_may_read(const tutti_policy *policy, uint64_t clock)
{
    if (policy->argument == 0)
        return tutti__policy_step_is_here(policy, clock);
    return tutti__policy_counting(policy) == 0 ||
           tutti__policy_slowest(policy) + (uint64_t)policy->argument >= clock;
}

/* One that joins begins with the slowest. */
static uint64_t ssp_clock(const tutti_policy *policy, uint64_t own)
{
    if (policy->argument == 0)
        return tutti__policy_clock_of_step(policy, own);
    uint64_t slowest = tutti__policy_slowest(policy);
    return own > slowest ? own : slowest;
}

static double ssp_share(const tutti_policy *policy)
{
    int64_t workers = tutti__policy_counting(policy);
    return workers > 1 ? 1 / (double)workers : 1;
}

const tutti_consistency tutti_consistency_ssp = {
    .name = "ssp",
    .doc =
        "a worker with clock c reads when the slowest has reached c - s; each gradient is applied when it arrives, at 1/workers",
    .argument = "s",
    .least = 0,
    .most = INT64_C(1) << 40,
    .clocked = true,
    .arrive = ssp_arrive,
    .ready = ssp_ready,
    .may_read = ssp_may_read,
    .clock = ssp_clock,
    .share = ssp_share,
};
