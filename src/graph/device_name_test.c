#include "base/test.h"
#include "tutti/graph.h"

static const char *normal(const char *text)
{
    static char result[TUTTI_DEVICE_TEXT];
    tutti_device_name name;
    CHECK_OK(tutti_device_parse(text, &name));
    return tutti_device_text(&name, result);
}

static void refused(const char *text)
{
    tutti_device_name name = {.task = 77};
    if (tutti_device_parse(text, &name) != TUTTI_INVALID)
        tutti__test_fail(__FILE__, __LINE__, "'%s' was read as a device", text);
    CHECK_INT(name.task, 77); /* untouched */
    CHECK_CONTAINS(tutti_error_message(), text);
}

TUTTI_TEST(device_names_are_parsed_field_by_field)
{
    tutti_device_name name;
    CHECK_OK(tutti_device_parse("/job:ps/replica:2/task:13/device:GPU:1", &name));
    CHECK_STR(name.job, "ps");
    CHECK_INT(name.replica, 2);
    CHECK_INT(name.task, 13);
    CHECK_STR(name.kind, "gpu");
    CHECK_INT(name.index, 1);
    CHECK_OK(tutti_device_parse("/task:3", &name));
    CHECK_STR(name.job, "");
    CHECK_INT(name.replica, -1);
    CHECK_INT(name.task, 3);
    CHECK_STR(name.kind, "");
    CHECK_INT(name.index, -1);
}

TUTTI_TEST(device_names_have_one_text_form)
{
    CHECK_STR(normal("/job:ps/replica:0/task:0/cpu:0"), "/job:ps/replica:0/task:0/cpu:0");
    CHECK_STR(normal("/device:GPU:0"), "/gpu:0");
    CHECK_STR(normal("cpu:1"), "/cpu:1");
    CHECK_STR(normal("far"), "/far");
    CHECK_STR(normal("/cpu:*"), "/cpu");
    CHECK_STR(normal("/task:1/job:worker"), "/job:worker/task:1");
    CHECK_STR(normal(""), "");
    CHECK_STR(normal("gpu:0/1"), "/gpu:0/1");
    CHECK_STR(normal("/task:2/device:GPU:1/0"), "/task:2/gpu:1/0");
}

TUTTI_TEST(logical_devices_have_a_number_behind_their_device)
{
    tutti_device_name name, inner;
    char text[TUTTI_DEVICE_TEXT];
    CHECK_OK(tutti_device_parse("/task:1/gpu:2/3", &name));
    CHECK_INT(name.index, 2);
    CHECK_INT(name.part, 3);
    CHECK_STR(tutti_device_local(&name, text), "gpu:2/3");
    CHECK_OK(tutti_device_parse("/gpu", &inner));
    CHECK_INT(inner.part, -1);
    inner = tutti_device_merge(&name, &inner);
    CHECK_STR(tutti_device_text(&inner, text), "/task:1/gpu:2/3");
    CHECK_OK(tutti_device_parse("gpu:0", &inner));
    inner = tutti_device_merge(&name, &inner);
    CHECK_STR(tutti_device_local(&inner, text), "gpu:0");
    CHECK_OK(tutti_device_parse("", &inner));
    CHECK_STR(tutti_device_local(&inner, text), "cpu:0");
}

TUTTI_TEST(bad_device_names_are_refused)
{
    static const char *const bad[] = {
        "job",
        "/job",
        "/job:",
        "tasK",
        "Job:1",
        "/device:replica:0",
        "/device:Device",
        "/job:1st",
        "/job:a/job:b",
        "/replica",
        "/replica:",
        "/replica:x",
        "/replica:1/replica:2",
        "/task:-1",
        "/task:9999999",
        "/task:0/task:1",
        "/device",
        "/device:",
        "/device:GPU:",
        "/cpu:x",
        "/cpu:0/gpu:0",
        "//cpu:0",
        "/cpu:0/",
        "/cpu:0//task:1",
        "/c pu:0",
        "/:0",
        "cpu:0:1",
        "/cpu:1000000",
        "gpu/1",
        "gpu:0/",
        "gpu:0/x",
        "gpu:0/1/2",
        "0/gpu:1",
        "/abcdefghijklmnopqrstuvwxyz0123456789:0",
        "/job:a23456789012345678901234567890123456789012345678901234567890123456789"};
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++)
        refused(bad[i]);
    tutti_device_name name;
    CHECK_STATUS(tutti_device_parse(NULL, &name), TUTTI_INVALID);
}

static const char *merged(const char *outer, const char *inner)
{
    static char result[TUTTI_DEVICE_TEXT];
    tutti_device_name a, b, both;
    CHECK_OK(tutti_device_parse(outer, &a));
    CHECK_OK(tutti_device_parse(inner, &b));
    both = tutti_device_merge(&a, &b);
    return tutti_device_text(&both, result);
}

TUTTI_TEST(the_inner_device_wins_field_by_field)
{
    CHECK_STR(merged("/job:ps/task:1", "/cpu:0"), "/job:ps/task:1/cpu:0");
    CHECK_STR(merged("/job:ps/task:1/cpu:0", "/job:worker"), "/job:worker/task:1/cpu:0");
    CHECK_STR(merged("/cpu:0", "/gpu:1"), "/gpu:1");
    CHECK_STR(merged("/cpu:1", "/gpu"), "/gpu"); /* an index belongs to its kind */
    CHECK_STR(merged("/gpu:1", "/gpu"), "/gpu:1");
    CHECK_STR(merged("", "/replica:3"), "/replica:3");
    CHECK_STR(merged("/replica:3", ""), "/replica:3");
}
