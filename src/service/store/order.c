/* order.c: see order.h. */
#include "service/store/order.h"

void tutti__store_order_free(tutti_store_order *order)
{
    TUTTI_VEC_FREE(&order->events);
    TUTTI_VEC_FREE(&order->next);
}

tutti_status tutti__store_order_replay(const tutti_store_order *recorded,
                                       tutti_store_order *ret_replay)
{
    tutti_store_order replay = {.replays = true};
    for (size_t i = 0; i < recorded->events.count; i++)
        if (!TUTTI_VEC_PUSH(&replay.events, recorded->events.data[i])) {
            tutti__store_order_free(&replay);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu events", recorded->events.count);
        }
    *ret_replay = replay;
    return TUTTI_OK;
}

static bool order_same(const tutti_store_event *a, const tutti_store_event *b)
{
    return a->shard == b->shard && a->contribution == b->contribution && a->push == b->push &&
           a->step == b->step;
}

/* The shard's first event that has not happened; NULL: all have. */
static const tutti_store_event *order_next(tutti_store_order *order, uint32_t shard)
{
    while (order->next.count <= shard)
        if (!TUTTI_VEC_PUSH(&order->next, 0))
            return NULL;
    size_t *at = &order->next.data[shard];
    while (*at < order->events.count && order->events.data[*at].shard != shard)
        (*at)++;
    return *at < order->events.count ? &order->events.data[*at] : NULL;
}

bool tutti__store_order_may(tutti_store_order *order, tutti_store_event event)
{
    if (!order || !order->replays)
        return true;
    const tutti_store_event *next = order_next(order, event.shard);
    return !next || order_same(next, &event);
}

void tutti__store_order_happen(tutti_store_order *order, tutti_store_event event)
{
    if (!order)
        return;
    if (!order->replays)
        (void)TUTTI_VEC_PUSH(&order->events, event);
    else if (order_next(order, event.shard))
        order->next.data[event.shard]++;
}

void tutti__store_order_save(const tutti_store_order *order, tutti_text *out)
{
    saved_put(out, order->events.count);
    for (size_t i = 0; i < order->events.count; i++) {
        const tutti_store_event *e = &order->events.data[i];
        saved_put(out, (uint64_t)e->shard << 32 | e->contribution);
        saved_put(out, e->push);
        saved_put(out, e->step);
    }
}

tutti_status tutti__store_order_load(const void *data, size_t size, tutti_store_order *ret_order)
{
    saved_reader in = {data, (const uint8_t *)data + size, false};
    tutti_store_order order = {0};
    size_t count = saved_get_count(&in, 24);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        uint64_t who = saved_get(&in);
        tutti_store_event e = {.shard = (uint32_t)(who >> 32), .contribution = (uint32_t)who};
        e.push = saved_get(&in) != 0;
        e.step = saved_get(&in);
        good = TUTTI_VEC_PUSH(&order.events, e);
    }
    if (good && !in.bad && in.at == in.end) {
        *ret_order = order;
        return TUTTI_OK;
    }
    tutti__store_order_free(&order);
    return good ? tutti_fail(TUTTI_CORRUPT, "a recorded order is cut short or has bytes left over")
                : tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu events", count);
}
