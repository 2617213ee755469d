/* message_fuzz.c: a message between ranks that is accepted is written and read again as it was. */
#include <string.h>

#include "cluster/message.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tutti_cluster_message first, second;
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    size_t used, again;
    while (size > 0 && went_well(tutti__message_read(data, size, &first, &used)) && used > 0) {
        size_t written = tutti__message_write(&first, frame);
        promise(written == used && memcmp(frame, data, used) == 0);
        promise(tutti__message_read(frame, written, &second, &again) == TUTTI_OK);
        promise(again == written && memcmp(&first, &second, sizeof first) == 0);
        if (first.type == TUTTI_MESSAGE_BEAT)
            tutti__arrivals_read(&first.as.beat.arrived, arrivals, TUTTI_BEAT_ARRIVALS);
        data += used;
        size -= used;
    }
    return 0;
}
