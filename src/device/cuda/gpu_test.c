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
