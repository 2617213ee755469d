/* gpu_test.c: gpu:0 passes what every device must, logical devices share it, and memory is limited
 * and given back. Skipped where there is no GPU. */
#include "base/memory.h"
#include "base/test.h"
#include "device/cuda/run.h"
#include "device/far/suite.h"
#include "program/target.h"
#include "tutti/session.h"

static void need_gpu(void)
{
    tutti_device *device;
    if (tutti__device_open("gpu:0", &device) != TUTTI_OK)
        SKIP("no GPU: %s", tutti_error_message());
}

TUTTI_TEST(gpu_trains_like_cpu)
{
    need_gpu();
    tutti__suite_trains("gpu:0", 1e-4);
}

TUTTI_TEST(gpu_trains_cut_from_far)
{
    need_gpu();
    tutti__suite_trains_cut("far:0", "gpu:0", 1e-4);
}

TUTTI_TEST(gpu_trains_cut_to_cpu)
{
    need_gpu();
    tutti__suite_trains_cut("gpu:0", "cpu:0", 1e-4);
}

TUTTI_TEST(gpu_variables)
{
    need_gpu();
    tutti__suite_variables("gpu:0");
}

TUTTI_TEST(gpu_results)
{
    need_gpu();
    tutti__suite_results("gpu:0");
}

TUTTI_TEST(gpu_errors)
{
    need_gpu();
    tutti__suite_errors("gpu:0");
}

TUTTI_TEST(gpu_delayed)
{
    need_gpu();
    tutti__suite_delayed("gpu:0", "cpu:0");
}

TUTTI_TEST(gpu_control)
{
    need_gpu();
    tutti__suite_control("gpu:0", 1e-4);
}

TUTTI_TEST(gpu_threads)
{
    need_gpu();
    tutti__suite_threads("gpu:0");
}

TUTTI_TEST(gpu_dynamic)
{
    need_gpu();
    tutti__suite_dynamic("gpu:0");
}

TUTTI_TEST(gpu_strings_and_queues)
{
    need_gpu();
    tutti__suite_strings_and_queues("gpu:0");
}

TUTTI_TEST(gpu_trains_cut_between_logical_devices)
{
    need_gpu();
    tutti__suite_trains_cut("gpu:0/0", "gpu:0/1", 1e-4);
}

TUTTI_TEST(gpu_delayed_between_logical_devices)
{
    need_gpu();
    tutti__suite_delayed("gpu:0/0", "gpu:0/1");
}

TUTTI_TEST(gpu_parts_are_of_gpus_that_exist)
{
    tutti_device *device;
    need_gpu();
    CHECK_STATUS(tutti__device_open("cpu:0/1", &device), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "gpu only");
    CHECK_STATUS(tutti__device_open("gpu:77/0", &device), TUTTI_NOT_FOUND);
}

/* ---- memory ---- */

static tutti_gpu_device *limited(const char *name, size_t mib)
{
    tutti_device *device;
    CHECK_OK(tutti__device_open(name, &device));
    device->target->limit(device, mib << 20);
    return device->self;
}

/* relu of so many rows of 1 KiB; its sum is as it must be. */
static tutti_status run_rows(tutti_session *session, tutti_sym x, tutti_sym y, int64_t rows)
{
    const int64_t dims[2] = {rows, 256};
    tutti_tensor *in = tutti__suite_numbers(3, 2, dims), *out = NULL;
    double expected = 0;
    for (int64_t i = 0; i < tutti_tensor_count(in); i++)
        expected += tutti_tensor_get(in, i) > 0 ? tutti_tensor_get(in, i) : 0;
    tutti_status status =
        tutti_run(session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out}));
    if (status == TUTTI_OK)
        CHECK_NEAR(tutti_tensor_get(out, 0), expected, 1e-5 * expected);
    tutti_tensor_release(in);
    tutti_tensor_release(out);
    return status;
}

TUTTI_TEST(gpu_says_what_it_has_no_room_for)
{
    tutti_graph *g;
    tutti_session *s;
    need_gpu();
    limited("gpu:0/3", 2);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 256), y = tutti_sum(tutti_relu(x));
    CHECK_OK(tutti_session_open(&s, g, .device = "gpu:0/3"));
    CHECK_OK(run_rows(s, x, y, 100));
    CHECK_STATUS(run_rows(s, x, y, 4000), TUTTI_NO_MEMORY);
    CHECK_CONTAINS(tutti_error_message(), "gpu:0/3 has no room");
    CHECK_CONTAINS(tutti_error_message(), "values between instructions");
    CHECK_CONTAINS(tutti_error_message(), "limit");
    CHECK_OK(run_rows(s, x, y, 100));
    limited("gpu:0/3", 64);
    CHECK_OK(run_rows(s, x, y, 4000));
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(gpu_runs_that_wait_give_their_memory)
{
    tutti_graph *g;
    tutti_session *s;
    need_gpu();
    limited("gpu:0/4", 12);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 256), y = tutti_sum(tutti_relu(x));
    CHECK_OK(tutti_session_open(&s, g, .device = "gpu:0/4"));
    for (int64_t rows = 4000; rows < 4012; rows++) /* a program and its memory for each */
        CHECK_OK(run_rows(s, x, y, rows));
    for (int64_t rows = 4000; rows < 4012; rows++)
        CHECK_OK(run_rows(s, x, y, rows));
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* A graph, a session, three steps of training, and their end. */
static void train_once(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym w = tutti_variable(g, tutti_full(1, 64, 64), .name = "w");
    tutti_sym loss = tutti_mean(tutti_square(tutti_matmul(w, w)));
    tutti_grad gradient;
    tutti_gradients(loss, 1, &w, &gradient);
    tutti_sym step = tutti_assign_sub(w, tutti_mul(gradient.value, 1e-9));
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({loss, &out}), .target = step));
        CHECK(tutti_tensor_get(out, 0) > 0);
        tutti_tensor_release(out);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST_ALONE(gpu_programs_come_and_go_without_growth)
{
    enum { FIRST = 50, TIMES = 1000, GROWTH = 8 << 20 };
    need_gpu();
    const tutti_gpu_device *device = limited("gpu:0/5", 0);
    for (int i = 0; i < FIRST; i++)
        train_once("gpu:0/5");
    size_t used = device->table->used(device->gpu);
    int64_t host = tutti__memory_now();
    for (int i = 0; i < TIMES; i++)
        train_once("gpu:0/5");
    CHECK_INT(device->table->used(device->gpu), used);
    CHECK(tutti__memory_now() < host + GROWTH);
}
