#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/params.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/test.h"

static tutti_param size = TUTTI_PARAM("TEST_SIZE", "64", "a number");
static tutti_param fast = TUTTI_PARAM("TEST_FAST", "off", "a flag");

TUTTI_TEST(params_override_then_environment_then_fallback)
{
    CHECK_INT(tutti__param_int(&size), 64);
    setenv("TUTTI_TEST_SIZE", "128", 1);
    CHECK_INT(tutti__param_int(&size), 128);
    CHECK_OK(tutti__param_set("TEST_SIZE", "5"));
    CHECK_INT(tutti__param_int(&size), 5);
    const char *before = tutti__param_text(&size);
    CHECK_OK(tutti__param_set("TEST_SIZE", "6"));
    CHECK_STR(before, "5");
    CHECK_OK(tutti__param_set("TEST_SIZE", NULL));
    CHECK_INT(tutti__param_int(&size), 128);
    unsetenv("TUTTI_TEST_SIZE");
    CHECK_STR(tutti__param_text(&size), "64");
}

static int lines;

static void remember(void *context, tutti_log_level level, const char *message)
{
    TUTTI_UNUSED(level);
    snprintf(context, 256, "%s", message);
    lines++;
}

TUTTI_TEST(params_unreadable_number_falls_back)
{
    static const char *const bad[] = {"", "12x", "many", "99999999999999999999", "-1"};
    char message[256];
    tutti_log_install(remember, message);
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        message[0] = '\0';
        CHECK_OK(tutti__param_set("TEST_SIZE", bad[i]));
        for (int again = 0; again < 3; again++)
            CHECK_INT(tutti__param_int(&size), 64);
        CHECK_CONTAINS(message, "TUTTI_TEST_SIZE");
        CHECK_INT(lines, i + 1); /* said once */
    }
    tutti_log_install(NULL, NULL);
    CHECK_OK(tutti__param_set("TEST_SIZE", NULL));
}

TUTTI_TEST(params_flags)
{
    static const struct {
        const char *text;
        bool flag;
    } rows[] = {{"1", true},  {"true", true}, {"YES", true},  {"On", true},
                {"0", false}, {"", false},    {"off", false}, {"11", false}};
    CHECK(!tutti__param_flag(&fast));
    for (size_t i = 0; i < TUTTI_COUNT(rows); i++) {
        CHECK_OK(tutti__param_set("TEST_FAST", rows[i].text));
        CHECK(tutti__param_flag(&fast) == rows[i].flag);
    }
    CHECK_OK(tutti__param_set("TEST_FAST", NULL));
}

TUTTI_TEST(params_switches_refuse_what_means_nothing)
{
    static const char *const meant[] = {"ON", "1", "off", "No", "0", ""};
    bool on = false;
    for (size_t i = 0; i < TUTTI_COUNT(meant); i++) {
        CHECK_OK(tutti__param_set("TEST_FAST", meant[i]));
        CHECK_OK(tutti__param_switch(&fast, &on));
        CHECK(on == (i < 2));
    }
    CHECK_OK(tutti__param_set("TEST_FAST", "maybe"));
    CHECK_STATUS(tutti__param_switch(&fast, &on), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "TUTTI_TEST_FAST is 'maybe', needs 1, true, yes or on");
    CHECK_OK(tutti__param_set("TEST_FAST", NULL));
}
