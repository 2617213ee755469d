/* forecast_table_test.c: what `tutti plan` says of a cluster that is not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/params.h"
#include "base/test.h"
#include "io/json.h"
#include "nn/training/examples_test.h"
#include "nn/training/forecast_model.h"

enum { WIDTH = 64, CLASSES = 16, BATCH = 16 };

/* The plan of a dense layer for four ranks, 1 ms from each other; from malloc. */
static char *plan(int64_t batch, const char *setting, bool json)
{
    const char *list[] = {"p",     "--set", "plan-ranks=4", "--set",       "plan-alpha=1e-3",
                          "--set", setting, "--set",        "overlap=off", "--json"};
    char *copy[10] = {0}, **argv = copy, *text;
    int argc = json ? 10 : 9;
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)list[i];
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose programs are counted */
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_model *m =
        tutti_sequential(job, tutti_input_shape(WIDTH), tutti_dense(WIDTH), tutti_dense(CLASSES));
    tutti_compile(m, .optimizer = tutti_sgd(0.1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_dataset *data =
        tutti__test_examples(job, (tutti_test_examples){batch, WIDTH, CLASSES, 1, batch});
    CHECK_OK(tutti__model_forecast_table(m, data, &text));
    CHECK_INT(tutti_close(job), 0);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
    return text;
}

typedef struct line {
    double sent, exposed;
    char problem[100];
} line;

/* What is said of multi_worker_mirrored. */
static line workers(const char *setting)
{
    char *text = plan(BATCH, setting, true);
    line found = {0};
    int lines = 0;
    for (char *at = text, *end; *at; at = end + 1) {
        tutti_arena arena = {0};
        const tutti_json *root;
        end = strchr(at, '\n');
        CHECK(end != NULL);
        CHECK_OK(tutti__json_parse("plan", at, (size_t)(end - at), NULL, &arena, &root));
        CHECK_INT(tutti__json_int(tutti__json_get(root, "ranks"), 0), 4);
        if (strcmp(tutti__json_text(tutti__json_get(root, "strategy"), ""),
                   "multi_worker_mirrored") == 0) {
            found.sent = tutti__json_real(tutti__json_get(root, "sent_bytes"), -1);
            found.exposed = tutti__json_real(tutti__json_get(root, "exposed_us"), -1);
            snprintf(found.problem, sizeof found.problem, "%s",
                     tutti__json_text(tutti__json_get(root, "problem"), ""));
        }
        lines++;
        tutti__arena_free(&arena);
    }
    CHECK_INT(lines, 8);
    free(text);
    return found;
}

TUTTI_TEST(a_plan_counts_the_settings_of_the_strategy)
{
    line plain = workers("bucket=0");
    double gradients = 4.0 * (WIDTH * WIDTH + WIDTH + WIDTH * CLASSES + CLASSES);
    CHECK_NEAR(plain.sent / (2 * gradients * 3 / 4), 1, 0.02);
    CHECK_NEAR(workers("wire=bf16").sent / (plain.sent / 2), 1, 0.02);
    CHECK_NEAR(workers("wire=topk:0.01").sent / (0.01 * 2 * gradients * 3), 1, 0.25);
    CHECK(workers("wire=powersgd:1").sent < plain.sent / 4);
    CHECK(workers("reduction=ring").exposed > 1.5 * plain.exposed); /* 6 messages for 4 */
    CHECK(workers("bucket=1000").exposed > 1.5 * plain.exposed);    /* more sums */
    CHECK_STR(workers("deterministic=1").problem, "");
}

TUTTI_TEST(a_plan_says_what_it_does_not_count)
{
    char *text = plan(BATCH, "engine=shm", false);
    CHECK_CONTAINS(text, "engine=shm is not counted");
    CHECK_CONTAINS(text, "KiB of gradients");
    free(text);
    text = plan(1, "engine=tcp", false);
    CHECK(strstr(text, "of gradients") == NULL); /* nobody sums anything: one row is not shared */
    free(text);
}

static void check_servers(const tutti_json *row)
{
    double alpha = 1e-3, beta = 1e-6; /* of the plan */
    double bytes = 4.0 * (WIDTH * WIDTH + WIDTH + WIDTH * CLASSES + CLASSES);
    int64_t servers = tutti__json_int(tutti__json_get(row, "servers"), 0);
    double exposed = 2 * alpha + 2 * (4.0 / (double)servers) * bytes * beta;
    CHECK_NEAR(tutti__json_real(tutti__json_get(row, "exposed_us"), 0) / (exposed * 1e6), 1, 0.02);
    CHECK_NEAR(tutti__json_real(tutti__json_get(row, "pull_us"), 0) +
                   tutti__json_real(tutti__json_get(row, "push_us"), 0) +
                   tutti__json_real(tutti__json_get(row, "waiting_us"), 0),
               tutti__json_real(tutti__json_get(row, "exposed_us"), 0), 0.05);
}

TUTTI_TEST(a_plan_has_rows_of_parameter_servers)
{
    char *text = plan(BATCH, "plan-beta=1e-6", true);
    int found = 0;
    for (char *at = text, *end; *at; at = end + 1) {
        tutti_arena arena = {0};
        const tutti_json *root;
        end = strchr(at, '\n');
        CHECK_OK(tutti__json_parse("plan", at, (size_t)(end - at), NULL, &arena, &root));
        if (strcmp(tutti__json_text(tutti__json_get(root, "strategy"), ""), "parameter_server") ==
            0) {
            CHECK_INT(tutti__json_int(tutti__json_get(root, "servers"), 0), ++found);
            check_servers(root);
        }
        tutti__arena_free(&arena);
    }
    CHECK_INT(found, 2);
    free(text);
}
