/* notice.h: why a group has ended, in memory that some of its ranks share: those of one machine, or
 * all that one process has made. */
#ifndef TUTTI_COMM_NOTICE_H
#define TUTTI_COMM_NOTICE_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct tutti_notice {
    atomic_int given_up; /* a rank has failed in a collective, and looks for the cause */
    atomic_int broken;   /* 1: being written, 2: `status` and `why` are valid */
    int32_t status;
    char why[1024];
} tutti_notice;

/* The first reason stays; false: there was one. */
bool tutti__notice_post(tutti_notice *notice, const tutti_error *error);
/* Whether there is one, and which. */
static inline bool tutti__notice_there(const tutti_notice *notice)
{
    return atomic_load(&notice->broken) == 2;
}
void tutti__notice_read(const tutti_notice *notice, tutti_error *ret_error);

#endif
