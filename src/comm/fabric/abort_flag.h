/* abort_flag.h: why a group has ended, in memory that some of its ranks share: those of one
 * machine, or all that one process has made. */
#ifndef TUTTI_COMM_FABRIC_ABORT_FLAG_H
#define TUTTI_COMM_FABRIC_ABORT_FLAG_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct tutti_abort_flag {
    atomic_int given_up; /* a rank has failed in a collective, and looks for the cause */
    atomic_int broken;   /* 1: being written, 2: `status` and `why` are valid */
    int32_t status;
    char why[1024];
} tutti_abort_flag;

/* The first reason stays; false: there was one. */
bool tutti__abort_flag_post(tutti_abort_flag *abort_flag, const tutti_error *error);
/* Whether there is one, and which. */
static inline bool tutti__abort_flag_there(const tutti_abort_flag *abort_flag)
{
    return atomic_load(&abort_flag->broken) == 2;
}
void tutti__abort_flag_read(const tutti_abort_flag *abort_flag, tutti_error *ret_error);

#endif
