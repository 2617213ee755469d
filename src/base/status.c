/* status.c: status texts and the calling thread's last error message. */
#include "base/status.h"
#include "base/printable.h"
#include "base/require.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof(((tutti_error *)0)->message) };

static _Thread_local char last_message[MESSAGE_SIZE];
static _Thread_local tutti_status last_status; /* what the message was written for */
static _Thread_local const char *here_file;
static _Thread_local int here_line;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *tutti_version(void)
{
    return TEXT(TUTTI_VERSION_MAJOR) "." TEXT(TUTTI_VERSION_MINOR) "." TEXT(TUTTI_VERSION_PATCH);
}

const char *tutti_status_text(tutti_status status)
{
    static const struct {
        int number;
        const char *text;
    } texts[] = {
#define STATUS_ROW(name, number, text) {(number), (text)},
        TUTTI_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
    };
    for (size_t i = 0; i < TUTTI_COUNT(texts); i++)
        if (texts[i].number == (int)status)
            return texts[i].text;
    return "unknown status";
}

const char *tutti_error_message(void)
{
    return last_message;
}

/* Arguments may point into the last message, so `text` must be another buffer. A message that was
 * cut (`length` is what it needed) ends in "...". */
static void keep_message(char text[MESSAGE_SIZE], int length)
{
    char safe[MESSAGE_SIZE] = {0};
    size_t needed = length > 0 ? (size_t)length : 0, kept;
    if (!tutti__is_printable(text, "\n\t")) {
        kept = tutti__printable(text, "\n\t", safe, sizeof safe);
        needed = kept > needed ? kept : needed;
        text = safe;
    }
    kept = strlen(text);
    if (needed >= MESSAGE_SIZE)
        memcpy(text + (kept < MESSAGE_SIZE - 4 ? kept : MESSAGE_SIZE - 4), "...", 4);
    memcpy(last_message, text, MESSAGE_SIZE);
}

tutti_status tutti__require(const void *something, const char *function, const char *what)
{
    if (something != NULL)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "%s: %s is NULL; the call that should have made it has failed, or it was "
                      "never set: look at what that call returned",
                      function, what);
}

tutti_status tutti__require_options(const void *options, size_t size, const char *function,
                                    const char *macro)
{
    const unsigned char *bytes = options;
    size_t known = 1, i = 0;
    if (options != NULL)
        memcpy(&known, options, sizeof known);
    while (known == 0 && i < size && bytes[i] == 0)
        i++;
    if (known != 0 || i == size)
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_INVALID,
        "%s: the options have a struct_size of 0, so nothing of them can be read; make "
        "them with %s, or set .struct_size to their sizeof",
        function, macro);
}

tutti_status(tutti_fail)(tutti_status status, const char *format, ...)
{
    char text[MESSAGE_SIZE] = {0};
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    keep_message(text, length);
    last_status = status;
    return status;
}

void tutti__error_forget(void)
{
    last_status = TUTTI_OK;
}

tutti_status tutti__error_say(tutti_status status, const char *who)
{
    if (status == TUTTI_OK || last_status != TUTTI_OK)
        return status;
    return tutti_fail(status,
                      "%s: %s (it returned that status without a message: tutti_fail "
                      "gives both)",
                      who, tutti_status_text(status));
}

void tutti__error_capture(tutti_status status, tutti_error *ret)
{
    ret->status = status;
    memcpy(ret->message, last_message, sizeof ret->message);
}

tutti_status tutti__error_restore(const tutti_error *error)
{
    memcpy(last_message, error->message, sizeof last_message);
    last_message[MESSAGE_SIZE - 1] = '\0';
    last_status = error->status;
    return error->status;
}

tutti_status tutti__error_prefix(tutti_status status, const char *format, ...)
{
    char text[MESSAGE_SIZE] = {0};
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return status;
    if (length < MESSAGE_SIZE)
        length += snprintf(text + length, sizeof text - (size_t)length, ": %s", last_message);
    keep_message(text, length);
    last_status = status;
    return status;
}

void tutti_here(const char *file, int line)
{
    here_file = file;
    here_line = line;
}

void tutti__here_get(const char **ret_file, int *ret_line)
{
    *ret_file = here_file;
    *ret_line = here_line;
}
