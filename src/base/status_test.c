#include "base/status.h"

#include <pthread.h>
#include <string.h>

#include "base/require.h"
#include "base/test.h"

TUTTI_TEST(status_text_covers_every_status)
{
    CHECK_STR(tutti_status_text(TUTTI_OK), "success");
    CHECK_STR(tutti_status_text(TUTTI_INTERNAL), "internal error");
    CHECK_STR(tutti_status_text((tutti_status)-999), "unknown status");
    CHECK_STR(tutti_status_text((tutti_status)7), "unknown status");
    CHECK_STR(tutti_version(), "0.1.0");
}

TUTTI_TEST(status_fail_records_and_returns)
{
    CHECK_STATUS(tutti_fail(TUTTI_INVALID, "axis %d of %s", 3, "x"), TUTTI_INVALID);
    CHECK_STR(tutti_error_message(), "axis 3 of x");
    CHECK_STATUS(tutti_fail(TUTTI_IO, "again: %s", tutti_error_message()), TUTTI_IO);
    CHECK_STR(tutti_error_message(), "again: axis 3 of x");
}

TUTTI_TEST(status_long_message_is_cut)
{
    char text[3000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    (void)tutti_fail(TUTTI_IO, "%s", text);
    CHECK_INT(strlen(tutti_error_message()), 1023);
    CHECK_STR(tutti_error_message() + 1018, "aa...");
    (void)tutti_fail(TUTTI_IO, "%.1020s", text);
    tutti__error_prefix(TUTTI_IO, "p");
    CHECK_INT(strlen(tutti_error_message()), 1023);
    CHECK_STR(tutti_error_message() + 1020, "aaa");
    tutti__error_prefix(TUTTI_IO, "%s", text);
    CHECK_STR(tutti_error_message() + 1020, "...");
}

static void *other_thread(void *error)
{
    if (tutti_error_message()[0] == '\0')
        tutti__error_capture(tutti_fail(TUTTI_CLOSED, "from afar"), error);
    return NULL;
}

TUTTI_TEST(status_error_travels_between_threads)
{
    tutti_error error = {0};
    pthread_t thread;
    (void)tutti_fail(TUTTI_IO, "mine");
    CHECK_INT(pthread_create(&thread, NULL, other_thread, &error), 0);
    pthread_join(thread, NULL);
    CHECK_STR(tutti_error_message(), "mine");
    CHECK_STATUS(tutti__error_restore(&error), TUTTI_CLOSED);
    CHECK_STATUS(tutti__error_prefix(TUTTI_CLOSED, "rank %d", 2), TUTTI_CLOSED);
    CHECK_STR(tutti_error_message(), "rank 2: from afar");
}

TUTTI_TEST(status_without_a_message_gets_one)
{
    tutti_fail(TUTTI_CLOSED, "long before");
    tutti__error_forget();
    CHECK_OK(tutti__error_say(TUTTI_OK, "it"));
    CHECK_STR(tutti_error_message(), "long before");
    CHECK_STATUS(tutti__error_say(TUTTI_CLOSED, "it"), TUTTI_CLOSED);
    CHECK_CONTAINS(tutti_error_message(), "it: closed (it returned that status");
    tutti__error_forget();
    tutti_fail(TUTTI_INVALID, "its own");
    CHECK_STATUS(tutti__error_say(TUTTI_INVALID, "it"), TUTTI_INVALID);
    CHECK_STR(tutti_error_message(), "its own");
}

TUTTI_TEST(status_here_is_remembered)
{
    const char *file;
    int line;
    TUTTI_AT((void)0);
    tutti__here_get(&file, &line);
    CHECK_CONTAINS(file, "status_test.c");
    CHECK_INT(line, __LINE__ - 3);
    tutti_here(NULL, 0);
    tutti__here_get(&file, &line);
    CHECK(file == NULL);
}

/* Without padding, which {0} need not clear. */
typedef struct some_options {
    size_t struct_size;
    int64_t number;
} some_options;

static tutti_status take_options(const some_options *options)
{
    TUTTI_REQUIRE_OPTIONS(options, "SOME_OPTIONS(...)");
    return TUTTI_OK;
}

TUTTI_TEST(status_options_without_a_size_are_refused)
{
    CHECK_OK(take_options(NULL));
    CHECK_OK(take_options(&(some_options){0})); /* nothing is lost */
    CHECK_OK(take_options(TUTTI_OPTIONS(some_options, .number = 3)));
    CHECK_STATUS(take_options(&(some_options){.number = 3}), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "take_options: the options have a struct_size of 0");
    CHECK_CONTAINS(tutti_error_message(), "make them with SOME_OPTIONS(...)");
}
