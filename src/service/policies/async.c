/* async.c: each gradient is an update as soon as it arrives; nobody waits (Downpour, Hogwild). */
#include "service/policies/policy.h"

static tutti_policy_arrival async_arrive(const tutti_policy *policy, uint64_t step)
{
    TUTTI_UNUSED(policy);
    TUTTI_UNUSED(step);
    return TUTTI_POLICY_APPLY;
}

const tutti_consistency tutti_consistency_async = {
    .name = "async",
    .doc = "each gradient is an update when it arrives; nobody waits",
    .arrive = async_arrive,
};
