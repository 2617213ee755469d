/* notice.c: why a group has ended, in shared memory. */
#include "comm/notice.h"

#include <stdio.h>

bool tutti__notice_post(tutti_notice *notice, const tutti_error *error)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&notice->broken, &none, 1))
        return false;
    notice->status = error->status;
    snprintf(notice->why, sizeof notice->why, "%s", error->message);
    atomic_store(&notice->broken, 2);
    return true;
}

void tutti__notice_read(const tutti_notice *notice, tutti_error *ret_error)
{
    ret_error->status = notice->status;
    snprintf(ret_error->message, sizeof ret_error->message, "%s", notice->why);
}
