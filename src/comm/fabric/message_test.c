/* message_test.c: what a peer may send that is no message, or not the one expected. The engine is a
 * piece of memory. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"
#include "comm/fabric/fabric.h"

typedef struct memory {
    const char *data;
    size_t size, at, step; /* at most `step` bytes at a time */
    size_t held;           /* so many at the end have not been sent yet */
} memory;

static tutti_status send_nothing(void *state, int peer, const struct iovec *parts, int count,
                                 size_t *ret_done)
{
    (void)state, (void)peer, (void)parts, (void)count;
    *ret_done = 0;
    return TUTTI_OK;
}

static tutti_status recv_memory(void *state, int peer, void *data, size_t size, size_t *ret_done)
{
    memory *from = state;
    (void)peer;
    size_t left = from->size - from->at, part = left - from->held < size ? left - from->held : size;
    part = part < from->step ? part : from->step;
    memcpy(data, from->data + from->at, part);
    from->at += part;
    *ret_done = part;
    return left == 0 ? tutti_fail(TUTTI_CLOSED, "no more") : TUTTI_OK;
}

/* Of a send that takes nothing: header and five bytes are in hands that do not give them back. */
static size_t hand_over(void *state, int peer)
{
    (void)state, (void)peer;
    return TUTTI_HEADER_BYTES + 5;
}

static void detach(tutti_fabric *fabric, void *state)
{
    (void)fabric, (void)state;
}

static const tutti_fabric_engine engine = {
    .name = "memory", .send = send_nothing, .recv = recv_memory, .detach = detach};

static const tutti_fabric_engine greedy = {.name = "greedy",
                                           .send = send_nothing,
                                           .recv = recv_memory,
                                           .handed_over = hand_over,
                                           .detach = detach};

static tutti_fabric *fabric_by(const tutti_fabric_engine *by, memory *state)
{
    tutti_fabric *fabric;
    CHECK_OK(tutti__fabric_create(0, 2, &fabric));
    fabric->engines[1] = by;
    tutti__fabric_add(fabric, by, state);
    CHECK_OK(tutti__fabric_ready(fabric));
    return fabric;
}

static tutti_fabric *fabric_over(memory *state)
{
    return fabric_by(&engine, state);
}

static size_t put(char *to, uint32_t context, uint32_t tag, uint64_t size, const char *data)
{
    memcpy(to, &context, 4);
    memcpy(to + 4, &tag, 4);
    memcpy(to + 8, &size, 8);
    if (data)
        memcpy(to + 16, data, strlen(data));
    return 16 + (data ? strlen(data) : 0);
}

static tutti_status receive_for(tutti_fabric *fabric, uint32_t tag, char *data, size_t size,
                                int64_t ns)
{
    tutti_fabric_message message = {
        .peer = 1, .context = 1, .tag = tag, .data = data, .size = size};
    tutti_fabric_message *all = &message;
    tutti__fabric_recv(fabric, &message);
    return tutti__fabric_wait(fabric, &all, 1, tutti__now_ns() + ns);
}

static tutti_status receive(tutti_fabric *fabric, uint32_t tag, char *data, size_t size)
{
    return receive_for(fabric, tag, data, size, 100000000);
}

TUTTI_TEST(comm_messages_in_any_order_byte_by_byte)
{
    char bytes[200], got[8] = "";
    size_t size = put(bytes, 1, 7, TUTTI_HEADER_MARK | 5, "later");
    size += put(bytes + size, 2, 8, TUTTI_HEADER_MARK | 3, "own"); /* of another group */
    size += put(bytes + size, 1, 8, TUTTI_HEADER_MARK | 5, "first");
    for (size_t step = 1; step < 40; step += 7) {
        memory state = {bytes, size, 0, step};
        tutti_fabric *fabric = fabric_over(&state);
        CHECK_OK(receive(fabric, 8, got, 5));
        CHECK(memcmp(got, "first", 5) == 0);
        CHECK_OK(receive(fabric, 7, got, 5));
        CHECK(memcmp(got, "later", 5) == 0);
        tutti__fabric_release(fabric);
    }
}

TUTTI_TEST(comm_garbage_is_told_from_messages)
{
    char bytes[200], got[8];
    memset(bytes, 'G', sizeof bytes);
    memory garbage = {bytes, sizeof bytes, 0, 200};
    tutti_fabric *fabric = fabric_over(&garbage);
    CHECK_STATUS(receive(fabric, 8, got, 5), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "rank 1 sent bytes that are no message");
    CHECK_STATUS(receive(fabric, 8, got, 5), TUTTI_CORRUPT); /* for good */
    tutti__fabric_release(fabric);

    size_t size = put(bytes, 1, 8, TUTTI_HEADER_MARK | 100, "x");
    memory wrong = {bytes, size, 0, 200};
    fabric = fabric_over(&wrong);
    CHECK_STATUS(receive(fabric, 8, got, 5), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "sent 100 bytes where 5 were expected");
    tutti__fabric_release(fabric);

    size = put(bytes, 1, 9, TUTTI_HEADER_MARK | (UINT64_C(1) << 47), "x"); /* never takes memory */
    memory huge = {bytes, size, 0, 200};
    fabric = fabric_over(&huge);
    CHECK_STATUS(receive(fabric, 8, got, 5), TUTTI_DEADLINE);
    tutti__fabric_release(fabric);
}

/* The first bytes of a message come in time for nobody, then the rest. */
TUTTI_TEST(comm_messages_whose_receive_was_given_up_half_way_come_whole)
{
    char bytes[200], got[8] = "", other[8] = "";
    size_t size = put(bytes, 1, 7, TUTTI_HEADER_MARK | 5, "later");
    size += put(bytes + size, 1, 8, TUTTI_HEADER_MARK | 5, "first");
    size += put(bytes + size, 1, 8, TUTTI_HEADER_MARK | 5, "after");
    for (size_t held = 1; held < size; held += 3) {
        memory state = {bytes, size, 0, 200, held};
        tutti_fabric *fabric = fabric_over(&state);
        for (int i = 0; i < 3 && held > 21; i++) {
            CHECK_STATUS(receive_for(fabric, 8, got, 5, 5000000), TUTTI_DEADLINE);
            CHECK_CONTAINS(tutti_error_message(), "of 5 bytes received");
        }
        state.held = 0;
        CHECK_OK(receive(fabric, 8, got, 5));
        CHECK(memcmp(got, "first", 5) == 0);
        CHECK_OK(receive(fabric, 8, got, 5));
        CHECK(memcmp(got, "after", 5) == 0);
        CHECK_OK(receive(fabric, 7, got, 5));
        CHECK(memcmp(got, "later", 5) == 0);
        tutti__fabric_release(fabric);
    }

    memory state = {bytes, size, 0, 200, 24}; /* "fir" is there */
    tutti_fabric *fabric = fabric_over(&state);
    tutti_fabric_message next = {.peer = 1, .context = 1, .tag = 8, .data = other, .size = 5};
    tutti_fabric_message first = next, *wait[] = {&first};
    first.data = got;
    tutti__fabric_recv(fabric, &first);
    tutti__fabric_recv(fabric, &next);
    CHECK_STATUS(tutti__fabric_wait(fabric, wait, 1, tutti__now_ns() + 10000000), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "2 of 5 bytes received");
    state.held = 21;
    wait[0] = &next; /* who stood behind it gets the message */
    CHECK_OK(tutti__fabric_wait(fabric, wait, 1, tutti__now_ns() + 100000000));
    CHECK(memcmp(other, "first", 5) == 0);
    tutti__fabric_release(fabric);
}

static tutti_status send_late(tutti_fabric *fabric, size_t size, size_t *ret_done)
{
    char data[8] = "";
    tutti_fabric_message message = {.peer = 1, .context = 1, .tag = 7, .data = data, .size = size};
    tutti_fabric_message *all = &message;
    tutti__fabric_send(fabric, &message);
    tutti_status status = tutti__fabric_wait(fabric, &all, 1, tutti__now_ns() + 5000000);
    *ret_done = message.done;
    return status;
}

/* A send that nobody waits for any more may be repeated only where nothing of it can come. */
TUTTI_TEST(comm_bytes_that_an_engine_keeps_count_as_sent)
{
    char bytes[1] = "";
    size_t done;
    memory nothing = {bytes, 1, 0, 1, 1};
    tutti_fabric *fabric = fabric_over(&nothing);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(send_late(fabric, 8, &done), TUTTI_DEADLINE);
        CHECK_CONTAINS(tutti_error_message(), "0 of 8 bytes sent");
        CHECK_INT(done, 0);
    }
    tutti__fabric_release(fabric);

    fabric = fabric_by(&greedy, &nothing);
    CHECK_STATUS(send_late(fabric, 8, &done), TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "5 of 8 bytes sent");
    CHECK_INT(done, TUTTI_HEADER_BYTES + 5);
    CHECK_STATUS(send_late(fabric, 8, &done), TUTTI_CANCELLED); /* nothing can follow */
    CHECK_CONTAINS(tutti_error_message(), "given up after 5 of 8 bytes");
    tutti__fabric_release(fabric);
}

/* What a rank sends in a collective comes before what it sends in the next one. */
TUTTI_TEST(comm_messages_of_collectives_that_nobody_asks_for_are_found)
{
    char bytes[200], got[8] = "";
    uint32_t first = TUTTI_COLLECTIVE_TAG | 1, next = TUTTI_COLLECTIVE_TAG | 2;
    size_t size = put(bytes, 1, first, TUTTI_HEADER_MARK | 5, "stray");
    size += put(bytes + size, 1, 7, TUTTI_HEADER_MARK | 5, "users");
    size += put(bytes + size, 1, next, TUTTI_HEADER_MARK | 5, "after");
    for (int early = 0; early < 2; early++) { /* it comes before the next receive, or behind it */
        memory state = {bytes, size, 0, 200};
        tutti_fabric *fabric = fabric_over(&state);
        if (early)
            CHECK_OK(receive(fabric, 7, got, 5));
        CHECK_STATUS(receive(fabric, next, got, 5), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(),
                       "rank 1 sent 5 bytes in operation number 1 of the group that rank 0 did not "
                       "ask for there");
        tutti__fabric_release(fabric);
    }
    memory state = {bytes, size, 0, 200};
    tutti_fabric *fabric = fabric_over(&state);
    CHECK_OK(receive(fabric, first, got, 5));
    CHECK_OK(receive(fabric, next, got, 5)); /* users' messages may wait */
    CHECK(memcmp(got, "after", 5) == 0);
    tutti__fabric_release(fabric);
}
