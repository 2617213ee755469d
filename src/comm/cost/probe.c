/* probe.c: what the constants of the cost model are measured by. */
#include <string.h>

#include "base/pause.h"
#include "base/world.h"
#include "comm/coll/lane.h"
#include "comm/cost/probe.h"

tutti_status tutti__probe_one_way(tutti_probe *p, size_t bytes)
{
    tutti_collective *c = &p->call;
    int partner = c->rank ^ 1;
    if (partner >= c->size)
        return TUTTI_OK;
    if (c->rank % 2 == 0) {
        TUTTI_TRY(tutti__coll_send(c, partner, p->a, bytes));
        return tutti__coll_recv(c, partner, p->b, 8);
    }
    TUTTI_TRY(tutti__coll_recv(c, partner, p->b, bytes));
    return tutti__coll_send(c, partner, p->a, 8);
}

/* The others wait for it as they do in an operation: one hears of it from the one before. */
tutti_status tutti__probe_of_two(tutti_probe *p, size_t bytes)
{
    tutti_collective *c = &p->call;
    char done = 0;
    if (c->rank < 2)
        TUTTI_TRY(tutti__probe_one_way(p, bytes));
    else
        TUTTI_TRY(tutti__coll_recv(c, c->rank - 1, &done, sizeof done));
    bool tells = c->rank > 0 && c->rank + 1 < c->size;
    return tells ? tutti__coll_send(c, c->rank + 1, &done, sizeof done) : TUTTI_OK;
}

static tutti_status fold_one_way(tutti_probe *p, size_t bytes, void *target)
{
    tutti_collective c = p->call;
    int64_t count = (int64_t)(bytes / 4);
    int partner = c.rank ^ 1;
    void *room;
    if (partner >= c.size)
        return TUTTI_OK;
    c.dtype = TUTTI_F32;
    c.element = 4;
    c.fold = tutti__fold_find(TUTTI_F32, TUTTI_SUM);
    TUTTI_TRY(tutti__coll_scratch(&c, TUTTI_FOLD_ROOM, &room));
    if (c.rank % 2 == 0) {
        TUTTI_TRY(tutti__coll_exchange_fold(&c, partner, p->a, count, partner, NULL, NULL, 0, true,
                                            room));
        return tutti__coll_recv(&c, partner, p->b, 8);
    }
    TUTTI_TRY(
        tutti__coll_exchange_fold(&c, partner, NULL, 0, partner, p->a, target, count, true, room));
    return tutti__coll_send(&c, partner, p->a, 8);
}

tutti_status tutti__probe_folded(tutti_probe *p, size_t bytes)
{
    return fold_one_way(p, bytes, p->a);
}

tutti_status tutti__probe_folded_into(tutti_probe *p, size_t bytes)
{
    return fold_one_way(p, bytes, p->b);
}

static tutti_status receive_late(tutti_probe *p, int partner, size_t bytes)
{
    int64_t until = tutti__now_ns() + (int64_t)(p->pause * 1e9), begun;
    while ((begun = tutti__now_ns()) < until)
        tutti__pause();
    TUTTI_TRY(tutti__coll_recv(&p->call, partner, p->b, bytes));
    double taken = (double)(tutti__now_ns() - begun) * 1e-9;
    return tutti__coll_send(&p->call, partner, &taken, sizeof taken);
}

tutti_status tutti__probe_late(tutti_probe *p, size_t bytes)
{
    int partner = p->call.rank ^ 1;
    if (partner >= p->call.size)
        return TUTTI_OK;
    if (p->call.rank % 2 == 1)
        return receive_late(p, partner, bytes);
    TUTTI_TRY(tutti__coll_send(&p->call, partner, p->a, bytes));
    return tutti__coll_recv(&p->call, partner, &p->taken, sizeof p->taken);
}

tutti_status tutti__probe_prompt(tutti_probe *p, size_t bytes)
{
    int partner = p->call.rank ^ 1;
    if (partner >= p->call.size)
        return TUTTI_OK;
    if (p->call.rank % 2 == 1) {
        TUTTI_TRY(tutti__coll_send(&p->call, partner, p->a, 8));
        return tutti__coll_recv(&p->call, partner, p->b, bytes);
    }
    TUTTI_TRY(tutti__coll_recv(&p->call, partner, p->b, 8));
    int64_t begun = tutti__now_ns();
    TUTTI_TRY(tutti__coll_send(&p->call, partner, p->a, bytes));
    p->put = (double)(tutti__now_ns() - begun) * 1e-9;
    return TUTTI_OK;
}

tutti_status tutti__probe_summed(tutti_probe *p, size_t bytes)
{
    tutti_collective c = p->call;
    int64_t count = (int64_t)(bytes / 4);
    void *room;
    c.dtype = TUTTI_F32;
    c.element = 4;
    c.fold = tutti__fold_find(TUTTI_F32, TUTTI_SUM);
    TUTTI_TRY(tutti__coll_scratch(&c, TUTTI_FOLD_ROOM, &room));
    return tutti__coll_exchange_fold(&c, (c.rank + 1) % c.size, p->a, count,
                                     (c.rank + c.size - 1) % c.size, p->a, p->a, count, true, room);
}

tutti_status tutti__probe_exchange(tutti_probe *p, size_t bytes)
{
    tutti_collective *c = &p->call;
    return tutti__coll_exchange(c, (c->rank + 1) % c->size, p->a, bytes,
                                (c->rank + c->size - 1) % c->size, p->b, bytes);
}

tutti_status tutti__probe_add(tutti_probe *p, size_t bytes)
{
    tutti__fold_find(TUTTI_F32, TUTTI_SUM)(p->a, (const void *[]){p->a, p->b}, 2,
                                           (int64_t)(bytes / 4));
    return TUTTI_OK;
}

tutti_status tutti__probe_add_into(tutti_probe *p, size_t bytes)
{
    tutti__fold_find(TUTTI_F32, TUTTI_SUM)(p->b, (const void *[]){p->a, p->c}, 2,
                                           (int64_t)(bytes / 4));
    return TUTTI_OK;
}

tutti_status tutti__probe_copy(tutti_probe *p, size_t bytes)
{
    memcpy(p->b, p->a, bytes);
    return TUTTI_OK;
}

static tutti_status directly(tutti_probe *p, tutti_operation operation, void *out, size_t bytes)
{
    tutti_collective c = p->call;
    c.operation = operation;
    c.in = p->a;
    c.out = out;
    c.dtype = TUTTI_F32;
    c.element = 4;
    c.count = (int64_t)(bytes / 4);
    c.fold = tutti__fold_find(TUTTI_F32, TUTTI_SUM);
    return tutti__coll_find("direct")->on[operation].run(&c);
}

tutti_status tutti__probe_reduce_in_place(tutti_probe *p, size_t bytes)
{
    return directly(p, TUTTI_ALL_REDUCE, p->a, bytes);
}

tutti_status tutti__probe_pull(tutti_probe *p, size_t bytes)
{
    return directly(p, TUTTI_BROADCAST, p->a, bytes);
}

tutti_status tutti__probe_collect(tutti_probe *p, size_t bytes)
{
    return directly(p, TUTTI_REDUCE, p->b, bytes);
}

tutti_status tutti__probe_phases(tutti_probe *p, size_t bytes)
{
    (void)bytes;
    tutti__area_arrive(p->comm->area);
    return tutti__area_await_all(p->comm->area, p->call.deadline_ns);
}

tutti_status tutti__probe_little(tutti_probe *p, size_t bytes)
{
    return tutti_comm_all_reduce(p->call.comm, p->a, p->a, (int64_t)(bytes / 4), TUTTI_F32,
                                 TUTTI_SUM, NULL);
}

tutti_status tutti__probe_nothing(tutti_probe *p, size_t bytes)
{
    (void)p, (void)bytes;
    return TUTTI_OK;
}

typedef struct spread_work {
    const tutti_probe *probe;
    tutti_probe_work *work;
    size_t bytes;
} spread_work;

static tutti_status on_lane(tutti_collective *part, const void *context)
{
    const spread_work *spread = context;
    tutti_probe own = *spread->probe;
    size_t at = (size_t)((const char *)part->in - own.a);
    own.a += at, own.b += at, own.c += at;
    own.comm = own.call.comm = part->comm;
    return spread->work(&own, spread->bytes);
}

tutti_status tutti__probe_run(tutti_probe *p, tutti_probe_work *work, size_t bytes)
{
    if (p->lanes < 2)
        return work(p, bytes);
    tutti_collective c = p->call;
    c.in = c.out = p->a;
    c.count = (int64_t)(bytes / 4) * p->lanes;
    c.dtype = TUTTI_F32;
    c.element = 4;
    return tutti__lanes_run(&c, p->lanes, on_lane, &(spread_work){p, work, bytes});
}
