/* status.h: how errors are recorded. A message is written once, where the error is decided. */
#ifndef TUTTI_BASE_STATUS_H
#define TUTTI_BASE_STATUS_H

#include "tutti/base.h"

/* One failure, to be carried between threads. */
typedef struct tutti_error {
    tutti_status status;
    char message[1024];
} tutti_error;

/* Copies the calling thread's last message with `status` into `ret`. */
void tutti__error_capture(tutti_status status, tutti_error *ret);

/* Makes `error` the calling thread's last message and returns its status. */
tutti_status tutti__error_restore(const tutti_error *error);

/* Around code of the user, which may return a status and leave no message: forget before it, and
 * afterwards say gives its status a message if none was written since. Returns the status. */
void tutti__error_forget(void);
tutti_status tutti__error_say(tutti_status status, const char *who);

/* Puts "prefix: " before the calling thread's last message; returns status. */
tutti_status tutti__error_prefix(tutti_status status, const char *format, ...) TUTTI_PRINTF(2, 3);

/* The place set by tutti_here(); file may be NULL. */
void tutti__here_get(const char **ret_file, int *ret_line);

#define TUTTI_UNUSED(x) ((void)(x))
#define TUTTI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
