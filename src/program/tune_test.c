#include "program/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "ops/sample.h"

typedef struct bench {
    char folder[64];
    tutti_sample *sample;
    tutti_device *device;
    tutti_kernel_query query;
    const tutti_kernel *rivals[8];
    int count;
} bench;

/* A convolution for which two kernels bid. */
static bench bench_make(void)
{
    bench b = {.folder = "/tmp/tutti-tune-XXXXXX"};
    CHECK(mkdtemp(b.folder) != NULL);
    CHECK_OK(tutti__param_set("CACHE", b.folder));
    CHECK_OK(tutti__param_set("TUNE", "1"));
    tutti__tune_forget();
    CHECK_OK(
        tutti__sample_parse(tutti_op_find("conv2d"), "f32[2,9,9,16] f32[3,3,16,16]", 1, &b.sample));
    CHECK_OK(tutti__device_open("cpu:0", &b.device));
    b.query = (tutti_kernel_query){.node = tutti__sample_rule(b.sample), .threads = 1};
    b.count = tutti__kernel_rivals("cpu", &b.query, 8, b.rivals);
    CHECK(b.count >= 2);
    return b;
}

static void bench_end(bench *b)
{
    const tutti_world *world = tutti__world();
    const char *path = tutti__tune_path();
    CHECK(path != NULL && strncmp(path, b->folder, strlen(b->folder)) == 0);
    CHECK_OK(world->remove_file(world->self, path));
    CHECK_OK(world->remove_file(world->self, b->folder));
    tutti__tune_forget();
    tutti__sample_free(b->sample);
    CHECK_OK(tutti__param_set("CACHE", NULL));
    CHECK_OK(tutti__param_set("TUNE", NULL));
}

TUTTI_TEST(tuning_measures_once_and_keeps_the_choice)
{
    bench b = bench_make();
    const tutti_kernel *first = tutti__tune_pick(b.device, &b.query);
    CHECK(first != NULL && first->flags & TUTTI_KERNEL_TUNED);
    tutti__tune_save();
    tutti_choices kept = {0};
    tutti__choices_read(&kept, tutti__tune_path());
    CHECK_INT(kept.count, 1);
    CHECK_STR(kept.data[0].kernel, first->name);
    CHECK(kept.data[0].nanoseconds > 0);
    /* What the file says is done, also when it says something else. */
    const tutti_kernel *other = b.rivals[0] == first ? b.rivals[1] : b.rivals[0];
    snprintf(kept.data[0].kernel, sizeof kept.data[0].kernel, "%s", other->name);
    CHECK_OK(tutti__choices_write(&kept, tutti__tune_path()));
    CHECK(tutti__tune_pick(b.device, &b.query) == first);
    tutti__tune_forget();
    CHECK(tutti__tune_pick(b.device, &b.query) == other);
    b.query.threads = 7;
    CHECK(tutti__tune_pick(b.device, &b.query) == other);
    TUTTI_VEC_FREE(&kept);
    bench_end(&b);
}

TUTTI_TEST(tuning_is_off_when_deterministic_or_told_so)
{
    bench b = bench_make();
    const tutti_kernel *highest = tutti__kernel_pick("cpu", &b.query), *other = b.rivals[1];
    CHECK(b.rivals[0] == highest && other != highest);
    tutti_choices choices = {0};
    CHECK(tutti__tune_pick(b.device, &b.query) != NULL);
    tutti__tune_save();
    tutti__choices_read(&choices, tutti__tune_path());
    snprintf(choices.data[0].kernel, sizeof choices.data[0].kernel, "%s", other->name);
    CHECK_OK(tutti__choices_write(&choices, tutti__tune_path()));
    tutti__tune_forget();
    CHECK(tutti__tune_pick(b.device, &b.query) == other);
    b.query.deterministic = true;
    CHECK(tutti__tune_pick(b.device, &b.query) == highest);
    b.query.deterministic = false;
    CHECK_OK(tutti__param_set("TUNE", "0"));
    CHECK(tutti__tune_pick(b.device, &b.query) == highest);
    TUTTI_VEC_FREE(&choices);
    bench_end(&b);
}

/* Where nothing can be kept, processes would choose differently: nothing is measured. */
TUTTI_TEST(tuning_without_a_folder_decides_by_score)
{
    bench b = bench_make();
    const tutti_kernel *highest = tutti__kernel_pick("cpu", &b.query);
    CHECK(tutti__tune_pick(b.device, &b.query) != NULL);
    CHECK_OK(tutti__param_set("CACHE", "/proc/no/such/folder"));
    tutti__tune_forget();
    (void)tutti_fail(TUTTI_IO, "before");
    CHECK(tutti__tune_pick(b.device, &b.query) == highest);
    CHECK_STR(tutti_error_message(), "before");
    CHECK_OK(tutti__param_set("CACHE", b.folder));
    bench_end(&b);
}
