/* abort_flag.c: why a group has ended, in shared memory. */
#include "comm/fabric/abort_flag.h"

#include <stdio.h>

bool tutti__abort_flag_post(tutti_abort_flag *abort_flag, const tutti_error *error)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&abort_flag->broken, &none, 1))
        return false;
    abort_flag->status = error->status;
    snprintf(abort_flag->why, sizeof abort_flag->why, "%s", error->message);
    atomic_store(&abort_flag->broken, 2);
    return true;
}

void tutti__abort_flag_read(const tutti_abort_flag *abort_flag, tutti_error *ret_error)
{
    ret_error->status = abort_flag->status;
    snprintf(ret_error->message, sizeof ret_error->message, "%s", abort_flag->why);
}
