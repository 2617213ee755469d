/* saver_test.c: what is saved in the background is saved where there is no background, too. */
#include "nn/model/saver.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/test.h"

static tutti_status count(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
    return TUTTI_OK;
}

static tutti_status fail(void *context)
{
    (void)context;
    return tutti_fail(TUTTI_IO, "the disk is full");
}

static void count_line(void *context, tutti_log_level level, const char *message)
{
    *(int *)context += level == TUTTI_LOG_WARNING && strstr(message, "no thread can be started");
}

TUTTI_TEST(work_is_done_at_once_where_no_thread_can_be_started)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("a sanitizer needs memory of its own");
    struct rlimit limit;
    atomic_int done = 0;
    int lines = 0;
    tutti_saver *saver;
    CHECK_OK(tutti__saver_create(&saver));
    tutti_log_install(count_line, &lines);
    CHECK_INT(getrlimit(RLIMIT_AS, &limit), 0);
    CHECK_INT(setrlimit(RLIMIT_AS, &(struct rlimit){0, limit.rlim_max}), 0); /* for no stack */
    tutti__saver_start(saver, count, &done);
    CHECK_INT(atomic_load(&done), 1);
    tutti__saver_start(saver, fail, NULL);
    CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK(tutti__saver_wait(saver) == TUTTI_IO && strstr(tutti_error_message(), "disk is full"));
    CHECK_OK(tutti__saver_wait(saver));
    tutti_log_install(NULL, NULL);
    CHECK_INT(lines, 1);
    tutti__saver_destroy(saver);
}

static int use_in_child(tutti_saver *saver, bool saves)
{
    atomic_int done = 0;
    alarm(20);
    if (saves) {
        tutti__saver_start(saver, count, &done);
        if (tutti__saver_wait(saver) != TUTTI_OK || atomic_load(&done) != 1)
            return 1;
    }
    tutti__saver_destroy(saver);
    return 0;
}

TUTTI_TEST(a_forked_child_saves_and_ends_by_itself)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("a sanitizer does not know threads of forked children");
    atomic_int done = 0;
    tutti_saver *saver;
    CHECK_OK(tutti__saver_create(&saver));
    tutti__saver_start(saver, count, &done);
    CHECK_OK(tutti__saver_wait(saver));
    for (int saves = 0; saves < 2; saves++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(use_in_child(saver, saves));
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK_INT(status, 0);
    }
    tutti__saver_start(saver, count, &done);
    CHECK_OK(tutti__saver_wait(saver));
    CHECK_INT(atomic_load(&done), 2);
    tutti__saver_destroy(saver);
}
