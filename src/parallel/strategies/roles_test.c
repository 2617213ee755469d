/* roles_test.c: who in a job does not train. */
#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "tutti/tutti.h"

static const char *refusal(const char *name, const char *role, const char *ps,
                           const char *evaluators)
{
    static char text[1024];
    tutti_cluster *cluster;
    CHECK_OK(tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .workers = "localhost:4001",
                                                 .ps = ps, .evaluators = evaluators, .role = role),
                                   &cluster));
    tutti_strategy *strategy = tutti_strategy_create(
        name, TUTTI_OPTIONS(tutti_strategy_options, .cluster = cluster, .join_timeout = 0.01));
    tutti_status status = tutti_strategy_check(strategy);
    snprintf(text, sizeof text, "%s", status == TUTTI_OK ? "" : tutti_error_message());
    tutti_strategy_close(strategy);
    tutti_cluster_free(cluster);
    return text;
}

/* By each of its processes, before they meet. */
TUTTI_TEST(roles_parameter_servers_do_not_train)
{
    static const char *const roles[] = {"worker", "ps"};
    for (int i = 0; i < 2; i++) {
        const char *text = refusal("multi_worker_mirrored", roles[i], "localhost:4002", NULL);
        CHECK_CONTAINS(text, "1 parameter server, for which strategy multi_worker_mirrored");
        CHECK_CONTAINS(text, "leave them out (--ps, ");
    }
}

TUTTI_TEST(roles_an_evaluator_does_not_train)
{
    CHECK_CONTAINS(refusal("auto", "evaluator", NULL, "localhost:4003"),
                   "this process is an evaluator");
    CHECK_STR(refusal("auto", "worker", NULL, "localhost:4003"), ""); /* nobody waits for it */
    CHECK_STR(refusal("one_device", "evaluator", NULL, "localhost:4003"), "");
    setenv("TF_CONFIG",
           "{\"cluster\":{\"worker\":[\"localhost:4001\"],\"evaluator\":[\"localhost:4003\"]},"
           "\"task\":{\"type\":\"evaluator\",\"index\":0}}",
           1);
    tutti_strategy *strategy = tutti_strategy_create("auto", NULL); /* as a job resolves it */
    CHECK_STATUS(tutti_strategy_check(strategy), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "this process is an evaluator");
    tutti_strategy_close(strategy);
    unsetenv("TF_CONFIG");
}
