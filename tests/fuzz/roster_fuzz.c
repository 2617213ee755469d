/* roster_fuzz.c: a member, and rank 0, that are told anything by a peer who knows the secret. The
 * first byte chooses which one, in a closed or an open roster, the rest are frames from rank 0 or
 * from ranks 1 and 2 in turn. */
#include <string.h>

#include "cluster/roster_view.h"
#include "fuzz.h"

static void ignore_send(void *context, int rank, const tutti_cluster_message *message)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    (void)context;
    (void)rank;
    promise(tutti__message_write(message, frame) <= sizeof frame);
}

static void ignore_drop(void *context, int rank)
{
    (void)context;
    (void)rank;
}

static void nowhere(void *context, tutti_wheres *ret_where)
{
    (void)context;
    *ret_where = (tutti_wheres){0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tutti_cluster_message message;
    tutti_roster roster;
    const tutti_peer peer = {.pid = 1, .port = 1};
    if (size == 0)
        return 0;
    int own = data[0] & 1;
    tutti_roster_options options = {
        .rank = own, .size = 3, .silence_ns = 5000000000, .open = (data[0] & 8) != 0};
    tutti_roster_ways ways = {NULL, ignore_send, ignore_drop, nowhere, NULL};
    promise(tutti__roster_init(&roster, &options, &ways, 0) == TUTTI_OK);
    tutti__roster_self(&roster, &peer);
    if (own == 0 && options.open)
        tutti__roster_view_found(&roster, 0);
    if (own == 1 && options.open)
        tutti__roster_view_linked(&roster, 0, 0, "10.0.0.1");
    if (own == 0)
        for (int r = 1; r < 3; r++)
            tutti__roster_admit(&roster, 0, r, &peer);
    else if (!options.open)
        tutti__roster_linked(&roster, 0);
    if (data[0] & 2)
        tutti__roster_leave(&roster, 1);
    if ((data[0] & 4) && !options.open)
        tutti__roster_exchange(&roster, 1, "x", 1);
    size_t used;
    int64_t now = 2;
    data++;
    size--;
    for (int turn = 0;
         size > 0 && tutti__message_read(data, size, &message, &used) == TUTTI_OK && used > 0;
         turn++) {
        tutti__roster_receive(&roster, now, own == 0 ? 1 + turn % 2 : 0, &message);
        tutti__roster_tick(&roster, now += 50000000);
        promise(tutti__roster_next(&roster) > INT64_MIN);
        data += used;
        size -= used;
    }
    tutti__roster_free(&roster);
    return 0;
}
