/* plan_test.c: plans with simulations and measurements, and their picture. */
#include "cli/plan/plan.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"

static tutti_comm_plan *new_plan(void)
{
    tutti_comm_plan *plan = calloc(1, sizeof *plan);
    CHECK(plan != NULL);
    plan->operation = "all_reduce";
    plan->simulate = true;
    plan->limit = 1000000;
    plan->network = (tutti_network){
        .ranks = 8, .hosts = 8, .alpha = {1e-5, 1e-5}, .beta = {1e-9, 1e-9}, .overhead = 0.5};
    plan->cost = tutti__network_cost(&plan->network);
    CHECK_OK(tutti__comm_plan_fill(plan));
    return plan;
}

static int find(const tutti_comm_plan *plan, const char *name)
{
    for (int a = 0; a < plan->algorithm_count; a++)
        if (strcmp(plan->names[a], name) == 0)
            return a;
    return -1;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

TUTTI_TEST(plan_has_a_hierarchy_where_machines_have_several_ranks)
{
    static const int hosts[] = {1, 4, 8};
    tutti_comm_plan *plan = new_plan();
    for (int i = 0; i < 3; i++) {
        plan->size_count = plan->algorithm_count = 0;
        plan->network.hosts = hosts[i];
        plan->cost = tutti__network_cost(&plan->network);
        CHECK_OK(tutti__comm_plan_fill(plan));
        CHECK((find(plan, "hierarchical") >= 0) == (hosts[i] == 4));
    }
    free(plan);
}

TUTTI_TEST(plan_has_predictions_simulations_and_measurements)
{
    char path[] = "/tmp/tutti-plan-XXXXXX";
    int rows = 0, descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    close(descriptor);
    tutti_comm_plan *plan = new_plan();
    int ring = find(plan, "ring");
    CHECK(ring >= 0 && find(plan, "direct") < 0 && find(plan, "compressed") < 0);
    CHECK_NEAR(plan->cells[ring][7].simulated / plan->cells[ring][7].predicted, 1, 0.01);
    write_file(path,
               "{\"op\":\"all_reduce\",\"engine\":\"tcp\",\"algorithm\":\"ring\",\"ranks\":8,"
               "\"bytes\":262144,\"us\":700.5,\"predicted_us\":1}\n"
               "{\"op\":\"all_reduce\",\"algorithm\":\"ring\",\"ranks\":4,\"bytes\":262144,"
               "\"us\":3}\nnonsense\n{\"op\":\"all_reduce\",\"ranks\":8,\"bytes\":1,\"us\":\n");
    CHECK_OK(tutti__comm_plan_measured(plan, path, &rows));
    CHECK_INT(rows, 1);
    CHECK_NEAR(plan->cells[ring][5].measured, 700.5e-6, 1e-12);
    CHECK(isnan(plan->cells[ring][4].measured));
    memset(plan->bytes, 0, sizeof plan->bytes);
    plan->size_count = plan->algorithm_count = 0;
    write_file(
        path,
        "{\"op\":\"all_reduce\",\"algorithm\":\"ring\",\"ranks\":8,\"bytes\":65536,\"us\":2}\n"
        "{\"op\":\"all_reduce\",\"algorithm\":\"ring\",\"ranks\":8,\"bytes\":1024,\"us\":1}\n"
        "{\"op\":\"all_reduce\",\"algorithm\":\"tree\",\"ranks\":8,\"bytes\":1024,\"us\":3}\n");
    CHECK_OK(tutti__comm_plan_sizes(plan, path, &rows));
    CHECK_INT(rows, 2);
    CHECK_OK(tutti__comm_plan_fill(plan));
    CHECK_INT(plan->size_count, 2);
    CHECK(plan->bytes[0] == 1024 && plan->bytes[1] == 65536);
    CHECK_OK(tutti__comm_plan_measured(plan, path, &rows));
    CHECK_INT(rows, 3);
    CHECK_NEAR(plan->cells[find(plan, "ring")][1].measured, 2e-6, 1e-12);
    CHECK_NEAR(plan->cells[find(plan, "tree")][0].measured, 3e-6, 1e-12);
    CHECK_STATUS(tutti__comm_plan_measured(plan, "/nowhere/at/all", &rows), TUTTI_IO);
    CHECK_CONTAINS(tutti_error_message(), "tutti bench collectives --json");
    free(plan);
    unlink(path);
}

TUTTI_TEST(plan_draws_a_picture)
{
    char path[] = "/tmp/tutti-plan-XXXXXX", *text = calloc(1, 1 << 20);
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0 && text != NULL);
    tutti_comm_plan *plan = new_plan();
    plan->cells[0][3].measured = 1e-3;
    close(descriptor);
    CHECK_OK(tutti__comm_plan_picture(plan, path));
    descriptor = open(path, O_RDONLY); /* another file has the name now */
    CHECK(read(descriptor, text, (1 << 20) - 1) > 1000);
    close(descriptor);
    CHECK(strncmp(text, "<svg ", 5) == 0);
    CHECK(strcmp(text + strlen(text) - 7, "</svg>\n") == 0);
    CHECK_CONTAINS(text, ">double_tree<");
    CHECK_CONTAINS(text, "stroke-dasharray");
    CHECK_CONTAINS(text, "<circle");
    CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
    CHECK_STATUS(tutti__comm_plan_picture(plan, "/nowhere/at/all"), TUTTI_NOT_FOUND);
    free(plan);
    free(text);
    unlink(path);
}

static tutti_network described(const char *text)
{
    char path[] = "/tmp/tutti-plan-XXXXXX";
    tutti_description d;
    tutti_network n = {.ranks = 2, .hosts = 2, .gamma = 0.05e-9, .overhead = 0.5};
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    close(descriptor);
    write_file(path, text);
    CHECK_OK(tutti__description_read(path, &d));
    unlink(path);
    tutti__comm_plan_describe(&d, &n);
    return n;
}

/* Predictions and simulations take the figures of a description at every size. */
TUTTI_TEST(plan_takes_beta_by_size_and_phase_from_a_description)
{
    tutti_simulated simulated;
    tutti_network n = described("{\"between\": {\"alpha\": \"15us\", \"beta\": "
                                "{\"4k\": \"1GB/s\", \"2m\": \"100GB/s\"}}, \"phase\": \"1s\"}");
    tutti_comm_cost cost = tutti__comm_plan_cost(&n);
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "central", 2, 4096), 19.096e-6, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "central", 2, 1 << 27), 1357.2e-6, 1e-7);
    CHECK_OK(tutti__simulate(&n, "broadcast", "central", 1 << 27, 1000, &simulated));
    CHECK_NEAR(simulated.seconds, 1357.2e-6, 1e-7);
    CHECK_OK(tutti__simulate(&n, "broadcast", "central", 4096, 1000, &simulated));
    CHECK_NEAR(simulated.seconds, 19.096e-6, 1e-9);
    cost.hosts = 1;
    CHECK(tutti_comm_predict(&cost, "all_reduce", "direct", 2, 4096) > 1);
    n = described("{\"between\": {\"alpha\": \"15us\", \"beta\": "
                  "{\"64k\": \"8GB/s\", \"1m\": \"12GB/s\"}}, \"gamma\": \"30GB/s\"}");
    cost = tutti__comm_plan_cost(&n);
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "central", 2, 1 << 18),
               15e-6 + (1 << 18) / 8e9, 1e-9);
    CHECK_NEAR(cost.link[TUTTI_LINK_WITHIN].beta[0], tutti__cost_assumed[TUTTI_LINK_WITHIN].beta,
               1e-15);
    CHECK_NEAR(cost.phase, 0.5e-6, 1e-12);
}
