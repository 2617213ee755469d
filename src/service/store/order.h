/* order.h: in which order the reads and pushes of each shard happened; recorded, and given to a
 * later run, which then does the same to the bit. */
#ifndef TUTTI_SERVICE_STORE_ORDER_H
#define TUTTI_SERVICE_STORE_ORDER_H

#include "service/store/saved.h"

typedef struct tutti_store_event {
    uint32_t shard, contribution;
    bool push;
    uint64_t step; /* of a push the key's; of a read the reader's clock */
} tutti_store_event;

typedef struct tutti_store_order {
    bool replays;
    TUTTI_VEC(tutti_store_event) events;
    TUTTI_VEC(size_t) next; /* replay: by shard, its first event that has not happened */
} tutti_store_order;

void tutti__store_order_free(tutti_store_order *order); /* a zeroed one is fine */
/* The same events, to be replayed. */
tutti_status tutti__store_order_replay(const tutti_store_order *recorded,
                                       tutti_store_order *ret_replay);
/* Whether it may happen now: always, unless another event of the shard is to come first. What the
 * recorded run never had may happen when all is over. */
bool tutti__store_order_may(tutti_store_order *order, tutti_store_event event);
/* It happens. */
void tutti__store_order_happen(tutti_store_order *order, tutti_store_event event);
/* Of a server, in a file: read to be replayed; written. */
tutti_status tutti__store_order_read(const char *path, int server, tutti_store_order *ret_replay);
tutti_status tutti__store_order_write(const char *path, int server, const tutti_store_order *order);
/* To bytes and back. */
void tutti__store_order_save(const tutti_store_order *order, tutti_text *out);
tutti_status tutti__store_order_load(const void *data, size_t size, tutti_store_order *ret_order);

#endif
