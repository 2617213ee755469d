/* gpu_test.c: gpu:0 passes what every device must. Skipped where there is no GPU. */
#include "base/test.h"
#include "device/far/suite.h"
#include "program/target.h"
#include "tutti/session.h"

static void need_gpu(void)
{
    tutti_device *device;
    if (tutti__device_open("gpu:0", &device) != TUTTI_OK)
        SKIP("no GPU: %s", tutti_error_message());
}

#define GPU_TEST(name, call)                                                                       \
    TUTTI_TEST(gpu_##name)                                                                         \
    {                                                                                              \
        need_gpu();                                                                                \
        call;                                                                                      \
        CHECK_OK(tutti__devices_finish());                                                         \
    }

GPU_TEST(trains_like_cpu, tutti__suite_trains("gpu:0", 1e-4))
GPU_TEST(trains_cut_from_far, tutti__suite_trains_cut("far:0", "gpu:0", 1e-4))
GPU_TEST(trains_cut_to_cpu, tutti__suite_trains_cut("gpu:0", "cpu:0", 1e-4))
GPU_TEST(variables, tutti__suite_variables("gpu:0"))
GPU_TEST(results, tutti__suite_results("gpu:0"))
GPU_TEST(errors, tutti__suite_errors("gpu:0"))
GPU_TEST(delayed, tutti__suite_delayed("gpu:0", "cpu:0"))
GPU_TEST(control, tutti__suite_control("gpu:0", 1e-4))
GPU_TEST(threads, tutti__suite_threads("gpu:0"))
GPU_TEST(dynamic, tutti__suite_dynamic("gpu:0"))
GPU_TEST(strings_and_queues, tutti__suite_strings_and_queues("gpu:0"))
