/* printable_test.c: what terminals obey is written out; messages and lines of the log hold none. */
#include "base/printable.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/test.h"

static void check(const char *text, const char *kept, const char *expected)
{
    char out[64];
    CHECK_INT(tutti__printable(text, kept, out, sizeof out), strlen(expected));
    CHECK_STR(out, expected);
    CHECK(tutti__is_printable(text, kept) == (strcmp(text, expected) == 0));
}

TUTTI_TEST(control_characters_are_written_out)
{
    check("plain, größer, 重み", "", "plain, größer, 重み");
    check("\033[2Jx\177\r", "", "\\x1b[2Jx\\x7f\\x0d");
    check("a\nb\tc", "\n\t", "a\nb\tc");
    check("a\nb\tc", "", "a\\x0ab\\x09c");
    check("\xc2\x9b"
          "5m \xc2\xa0",
          "", "\\u009b5m \xc2\xa0");
    check("", "", "");
}

TUTTI_TEST(no_escape_is_cut_in_its_middle)
{
    char out[8];
    CHECK_INT(tutti__printable("abcd\033x", "", out, sizeof out), 9);
    CHECK_STR(out, "abcd");
    CHECK_INT(tutti__printable("abc\033", "", out, sizeof out), 7);
    CHECK_STR(out, "abc\\x1b");
}

static void keep_line(void *context, tutti_log_level level, const char *message)
{
    (void)level;
    strncpy(context, message, 63);
}

TUTTI_TEST(messages_and_lines_hold_no_commands_for_terminals)
{
    char line[64] = "", long_name[2000];
    tutti_fail(TUTTI_CORRUPT, "tensor '%s'", "\033]0;x\007");
    CHECK_STR(tutti_error_message(), "tensor '\\x1b]0;x\\x07'");
    tutti__error_prefix(TUTTI_CORRUPT, "%s", "a\033");
    CHECK_STR(tutti_error_message(), "a\\x1b: tensor '\\x1b]0;x\\x07'");
    tutti_log_install(keep_line, line);
    tutti__log(TUTTI_LOG_INFO, "%s", "\033[31m");
    tutti_log_install(NULL, NULL);
    CHECK_STR(line, "\\x1b[31m");
    memset(long_name, '\033', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    tutti_fail(TUTTI_CORRUPT, "%s", long_name);
    CHECK(strlen(tutti_error_message()) < 1024 && strlen(tutti_error_message()) > 1000);
    CHECK_STR(tutti_error_message() + strlen(tutti_error_message()) - 7, "\\x1b...");
}
