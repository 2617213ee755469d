/* dynamic_test.c: the pool of values whose size depends on data has a bound and serves again. */
#include "program/dynamic.h"

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_status take(const tutti_memory *memory, size_t size, void **ret)
{
    return memory->allocate(memory->self, size, ret);
}

TUTTI_TEST(dynamic_pool_serves_again_and_has_a_bound)
{
    const tutti_memory *memory = tutti__dynamic_memory();
    tutti_dynamic_stats stats;
    void *first, *second, *third;
    tutti__dynamic_drop();
    CHECK_OK(tutti__param_set("DYNAMIC_BYTES", "65536"));
    CHECK_OK(take(memory, 40000, &first));
    CHECK((uintptr_t)first % memory->alignment == 0);
    CHECK_STATUS(take(memory, 40000, &second), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "TUTTI_DYNAMIC_BYTES, which is 65536");
    CHECK_STATUS(take(memory, SIZE_MAX, &second), TUTTI_TOO_LARGE);
    tutti__dynamic_stats(&stats);
    CHECK(stats.used >= 40000 && stats.used <= 50000);
    CHECK_INT(stats.kept, 0);
    CHECK_INT(stats.bound, 65536);
    memory->release(memory->self, first, 40000);
    tutti__dynamic_stats(&stats);
    CHECK_INT(stats.used, 0);
    CHECK(TUTTI_TEST_SANITIZED || stats.kept >= 40000);
    CHECK_OK(take(memory, 40500, &second)); /* nearly the same size: the same block */
    CHECK(TUTTI_TEST_SANITIZED || second == first);
    CHECK_OK(take(memory, 0, &third));
    memory->release(memory->self, third, 0);
    memory->release(memory->self, second, 40500);
    CHECK_OK(take(memory, 60000, &first)); /* what is kept makes room */
    tutti__dynamic_stats(&stats);
    CHECK(stats.used + stats.kept <= stats.bound);
    memory->release(memory->self, first, 60000);
    CHECK_OK(tutti__param_set("DYNAMIC_BYTES", "1000"));
    CHECK_STATUS(take(memory, 60000, &first), TUTTI_TOO_LARGE);
    CHECK_OK(take(memory, 500, &first)); /* more was kept than the bound is now */
    tutti__dynamic_stats(&stats);
    CHECK(stats.used + stats.kept <= stats.bound);
    memory->release(memory->self, first, 500);
    CHECK_OK(tutti__param_set("DYNAMIC_BYTES", NULL));
    tutti__dynamic_stats(&stats);
    CHECK(stats.bound > (size_t)64 << 20);
    tutti__dynamic_drop();
    tutti__dynamic_stats(&stats);
    CHECK_INT(stats.kept, 0);
}

/* Every size has a block that holds it and is at most a quarter larger. */
TUTTI_TEST(dynamic_pool_wastes_little)
{
    const tutti_memory *memory = tutti__dynamic_memory();
    for (size_t size = 257; size < (size_t)40 << 20; size += size / 3 + 1) {
        tutti_dynamic_stats before, after;
        void *data;
        tutti__dynamic_stats(&before);
        CHECK_OK(take(memory, size, &data));
        tutti__dynamic_stats(&after);
        size_t bytes = after.used - before.used;
        CHECK(bytes >= size && bytes - size <= size / 4 + 64);
        ((char *)data)[size - 1] = 1;
        memory->release(memory->self, data, size);
    }
    tutti__dynamic_drop();
}

static tutti_status count_to(tutti_session *s, tutti_sym n, tutti_sym numbers, float limit,
                             tutti_tensor **ret)
{
    tutti_tensor *fed;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &limit, &fed));
    tutti_status status =
        tutti_run(s, .feed = TUTTI_FEED({n, fed}), .fetch = TUTTI_FETCH({numbers, ret}));
    tutti_tensor_release(fed);
    return status;
}

TUTTI_TEST(dynamic_values_of_a_session_keep_to_the_bound)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out, *other;
    tutti_dynamic_stats stats;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym n = tutti_placeholder(g, TUTTI_F32);
    tutti_sym numbers = tutti_apply_op(
        g, "range_dynamic", 3,
        ((tutti_sym[]){tutti_scalar(g, TUTTI_F32, 0), n, tutti_scalar(g, TUTTI_F32, 1)}), 0, NULL);
    CHECK_OK(tutti_session_open(&s, g, .device = "cpu:0"));
    CHECK_OK(tutti__param_set("DYNAMIC_BYTES", "100000"));
    CHECK_OK(count_to(s, n, numbers, 20000, &out));
    CHECK_NEAR(tutti_tensor_get(out, 19999), 19999, 0);
    /* The result is the caller's and counts as long as he has it. */
    CHECK_STATUS(count_to(s, n, numbers, 20000, &other), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "range_dynamic");
    CHECK_CONTAINS(tutti_error_message(), "TUTTI_DYNAMIC_BYTES");
    tutti_tensor_release(out);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(count_to(s, n, numbers, 20000 - (float)i, &out));
        tutti_tensor_release(out);
    }
    CHECK_STATUS(count_to(s, n, numbers, 30000, &out), TUTTI_TOO_LARGE);
    CHECK_OK(tutti__param_set("DYNAMIC_BYTES", NULL));
    CHECK_OK(count_to(s, n, numbers, 30000, &out));
    tutti_session_close(s);
    tutti_graph_destroy(g);
    CHECK_NEAR(tutti_tensor_get(out, 29999), 29999, 0);
    tutti_tensor_release(out);
    tutti__dynamic_stats(&stats);
    CHECK_INT(stats.used, 0);
    tutti__dynamic_drop();
}
