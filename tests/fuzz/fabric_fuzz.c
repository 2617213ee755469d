/* fabric_fuzz.c: bytes on a connection between two ranks: 16-byte headers and what follows them.
 * The first byte says how the bytes come in pieces; three receives are posted at different times,
 * one is given up half way. */
#include <string.h>

#include "comm/fabric/fabric.h"
#include "fuzz.h"

typedef struct memory {
    const uint8_t *data;
    size_t size, at, step;
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
    promise(size > 0);
    size_t left = from->size - from->at, part = left < size ? left : size;
    part = part < from->step ? part : from->step;
    memcpy(data, from->data + from->at, part);
    from->at += part;
    *ret_done = part;
    return TUTTI_OK;
}

static void detach(tutti_fabric *fabric, void *state)
{
    (void)fabric, (void)state;
}

static const tutti_fabric_engine engine = {
    .name = "memory", .send = send_nothing, .recv = recv_memory, .detach = detach};

static void pull(tutti_fabric *fabric, int times)
{
    for (int i = 0; i < times; i++)
        tutti__fabric_progress(fabric);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    memory state = {data + 1, size - 1, 0, 1 + data[0]};
    tutti_fabric *fabric;
    char room[3][64];
    tutti_fabric_message messages[3];
    memset(room, 0, sizeof room);
    promise(tutti__fabric_create(0, 2, &fabric) == TUTTI_OK);
    fabric->engines[1] = &engine;
    tutti__fabric_add(fabric, &engine, &state);
    promise(tutti__fabric_ready(fabric) == TUTTI_OK);
    for (uint32_t i = 0; i < 3; i++) {
        messages[i] = (tutti_fabric_message){
            .peer = 1, .context = 1, .tag = i, .data = room[i], .size = i == 2 ? 60 : i * 4};
        tutti__fabric_recv(fabric, &messages[i]);
        pull(fabric, 8);
    }
    tutti__fabric_cancel(fabric, &messages[2]);
    memset(room[2], 'c', sizeof room[2]);
    pull(fabric, 64);
    for (size_t i = 0; i < sizeof room[2]; i++)
        promise(room[2][i] == 'c'); /* its memory is not touched any more */
    for (int i = 0; i < 2; i++)
        tutti__fabric_cancel(fabric, &messages[i]);
    tutti__fabric_release(fabric);
    return 0;
}
