/* views_test.c: who leads which slot when servers come and go. */
#include "base/test.h"
#include "service/store/views.h"

enum { SLOTS = 2 };

static tutti_store_process at(uint32_t node, uint32_t incarnation)
{
    return (tutti_store_process){node, incarnation, node};
}

/* Members 1 + `number`: workers 0 and 1, these servers. */
static void members(tutti_store_decider *d, uint64_t number, size_t count,
                    const tutti_store_process *servers, size_t workers)
{
    tutti_store_process list[2] = {at(0, 1), at(1, 1)};
    CHECK_OK(tutti__store_decider_members(d, number, count, servers, workers, list));
}

static void hear(tutti_store_decider *d, uint64_t number, tutti_store_process who,
                 const tutti_store_view *view, bool first, bool second)
{
    bool complete[SLOTS] = {first, second};
    tutti_store_state_of state = {
        .node = who.node, .incarnation = who.incarnation, .members = number, .complete = complete};
    if (view)
        state.view = *view;
    CHECK_OK(tutti__store_decider_hear(d, &state));
}

static tutti_store_decider *decider(bool replicas)
{
    tutti_store_decider *d;
    CHECK_OK(tutti__store_decider_create(
        &(tutti_store_decider_options){
            .slots = SLOTS, .servers = 2, .workers = 2, .replicas = replicas},
        &d));
    return d;
}

/* As bytes and back: a view as somebody else has it. */
static tutti_store_view sent(const tutti_store_view *view)
{
    tutti_text text = {0};
    tutti_store_view read;
    CHECK_OK(tutti__store_view_write(view, &text));
    CHECK_OK(tutti__store_view_read((const uint8_t *)text.data, text.size, &read));
    for (size_t size = 0; size < text.size; size++)
        CHECK_STATUS(
            tutti__store_view_read((const uint8_t *)text.data, size, &(tutti_store_view){0}),
            TUTTI_CORRUPT);
    tutti__text_free(&text);
    return read;
}

TUTTI_TEST(store_views_wait_for_all_that_are_expected)
{
    tutti_store_decider *d = decider(true);
    const tutti_store_view *view;
    tutti_store_process servers[2] = {at(2, 3), at(3, 4)};
    members(d, 4, 2, servers, 1);
    hear(d, 4, servers[0], NULL, false, false);
    CHECK(!tutti__store_decider_decide(d, true, &view));
    hear(d, 4, servers[1], NULL, false, false);
    CHECK(!tutti__store_decider_decide(d, true, &view)); /* a worker is missing */
    members(d, 5, 2, servers, 2);
    hear(d, 5, servers[0], NULL, false, false);
    hear(d, 5, servers[1], NULL, false, false);
    CHECK(tutti__store_decider_decide(d, true, &view));
    CHECK(!tutti__store_decider_decide(d, true, &(const tutti_store_view *){NULL}));
    CHECK(view->number == 5 && view->server_count == 2 && view->worker_count == 2);
    CHECK(view->slots[0].leader == 2 && view->slots[0].replica == 3 && view->slots[0].fresh);
    CHECK(view->slots[1].leader == 3 && view->slots[1].replica == 2);
    tutti__store_decider_free(d);
}

TUTTI_TEST(store_views_give_a_slot_to_its_complete_replica_only)
{
    tutti_store_decider *d = decider(true);
    const tutti_store_view *view;
    tutti_store_process servers[2] = {at(2, 3), at(3, 4)};
    members(d, 5, 2, servers, 2);
    hear(d, 5, servers[0], NULL, false, false);
    hear(d, 5, servers[1], NULL, false, false);
    CHECK(tutti__store_decider_decide(d, true, &view));
    tutti_store_view first = sent(view);
    /* Server 2 is gone; 3 has all of slot 0, and leads slot 1. */
    members(d, 6, 1, servers + 1, 2);
    hear(d, 6, servers[1], &first, true, true);
    CHECK(tutti__store_decider_decide(d, true, &view));
    CHECK(view->slots[0].leader == 3 && view->slots[0].replica == TUTTI_STORE_NOBODY);
    CHECK(view->slots[1].leader == 3 && !view->slots[0].fresh);
    tutti_store_view second = sent(view);
    /* Another process of rank 2 comes: it gets replicas, and leads nothing. */
    tutti_store_process again[2] = {at(2, 7), servers[1]};
    members(d, 7, 2, again, 2);
    hear(d, 7, again[0], NULL, false, false);
    hear(d, 7, again[1], &second, true, true);
    CHECK(tutti__store_decider_decide(d, true, &view));
    CHECK(view->slots[0].leader == 3 && view->slots[0].replica == 2);
    tutti_store_view third = sent(view);
    /* 3 goes before 2 has everything: slot 0 is lost, slot 1 goes on. */
    members(d, 8, 1, again, 2);
    hear(d, 8, again[0], &third, false, true);
    CHECK(tutti__store_decider_decide(d, true, &view));
    CHECK(view->slots[0].leader == TUTTI_STORE_NOBODY && view->slots[1].leader == 2);
    tutti__store_view_free(&first);
    tutti__store_view_free(&second);
    tutti__store_view_free(&third);
    tutti__store_decider_free(d);
}

/* Who says that it has all of a slot, but under an earlier view than another one knows, may have
 * missed what was acknowledged since. */
TUTTI_TEST(store_views_do_not_go_back)
{
    tutti_store_decider *d = decider(true);
    const tutti_store_view *view;
    tutti_store_process servers[3] = {at(2, 3), at(3, 4), at(4, 5)};
    tutti_store_place old_places[SLOTS] = {{2, 3, true}, {3, 4, true}};
    tutti_store_place new_places[SLOTS] = {{2, 4, false}, {3, 4, false}};
    tutti_store_view old = {.number = 5, .server_count = 3, .slot_count = SLOTS};
    tutti_store_view new = {.number = 6, .server_count = 3, .slot_count = SLOTS};
    old.servers = new.servers = servers;
    old.slots = old_places;
    new.slots = new_places;
    members(d, 7, 2, servers + 1, 2);
    hear(d, 7, servers[1], &old, true, true);
    hear(d, 7, servers[2], &new, true, false);
    CHECK(tutti__store_decider_decide(d, true, &view));
    CHECK(view->slots[0].leader == 4 && view->slots[1].leader == 3);
    tutti__store_decider_free(d);
}
