/* secret.h: the job's secret: where it comes from, and memory that stays out of core files. */
#ifndef TUTTI_CLUSTER_SECRET_H
#define TUTTI_CLUSTER_SECRET_H

#include "base/status.h"

typedef struct tutti_secret {
    uint8_t *bytes; /* a page of its own, not dumped, wiped at the end */
    size_t size;    /* 0: there is none */
} tutti_secret;

enum { TUTTI_SECRET_LEAST = 16, TUTTI_SECRET_MOST = 1024 };

/* In words: "launcher", the path of TUTTI_SECRET_FILE, "environment" or "none". */
void tutti__secret_source(int fd, char *ret_text, size_t size);
/* From the launcher's descriptor (-1: none), else the file TUTTI_SECRET_FILE, which nobody but its
 * owner may read (tutti__secret_open), else the variable TUTTI_SECRET. No secret at all is no
 * error. */
tutti_status tutti__secret_load(int fd, tutti_secret *ret_secret);
/* Takes `size` bytes; blanks at the end do not count. */
tutti_status tutti__secret_set(const void *bytes, size_t size, const char *source,
                               tutti_secret *ret_secret);
void tutti__secret_wipe(tutti_secret *secret); /* a zeroed one is fine */

/* A file that is nobody else's business, to be read: refused where others than its owner may read
 * it. `what` it is and by which variable it is named (`source`), for messages. */
tutti_status tutti__secret_open(const char *path, const char *what, const char *source,
                                int *ret_fd);

/* The system's random bytes. */
tutti_status tutti__random_fill(void *data, size_t size);

#endif
