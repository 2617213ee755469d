/* message_test.c: every message to bytes and back; what is no message. */
#include "service/store/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"

static tutti_store_message sample(uint32_t type)
{
    static const uint8_t rows[16] = {3, [8] = 9}, data[5] = "data", graph[3] = {1, 2, 3};
    return (tutti_store_message){.type = type,
                                 .view = 7,
                                 .node = 2,
                                 .incarnation = 3,
                                 .request = UINT64_C(1) << 40,
                                 .slot = 1,
                                 .shard = 12,
                                 .step = TUTTI_STORE_CLOSURE | 5,
                                 .contribution = 2,
                                 .clock = 4,
                                 .version = 9,
                                 .number = 8,
                                 .after = 6,
                                 .form = TUTTI_STORE_ROWS,
                                 .verdict = TUTTI_STORE_LATE,
                                 .reason = TUTTI_STORE_FULL,
                                 .dtype = 1,
                                 .factor = 0.5,
                                 .learning_rate = 0.25,
                                 .consistency = "ssp:3",
                                 .rule = "graph",
                                 .text = "words",
                                 .rows = {rows, 16},
                                 .data = {data, 5},
                                 .graph = {graph, 3}};
}

TUTTI_TEST(store_messages_round_trip)
{
    for (uint32_t type = TUTTI_STORE_CREATE; type < TUTTI_STORE_TYPES; type++) {
        tutti_store_message first = sample(type), second;
        size_t size = tutti__store_message_size(&first), used = 0;
        uint8_t *frame = malloc(size), *again = malloc(size);
        tutti__store_message_write(&first, frame);
        CHECK_OK(tutti__store_message_read(frame, size, &second, &used));
        CHECK_INT(used, size);
        CHECK_INT(tutti__store_message_size(&second), size);
        tutti__store_message_write(&second, again);
        CHECK(memcmp(frame, again, size) == 0);
        for (size_t cut = 0; cut < size; cut++) { /* not whole yet */
            CHECK_OK(tutti__store_message_read(frame, cut, &second, &used));
            CHECK_INT(used, 0);
        }
        CHECK(strcmp(tutti__store_type_text(type), "unknown") != 0);
        free(frame);
        free(again);
    }
}

TUTTI_TEST(store_messages_refuse_garbage_at_once)
{
    tutti_store_message m = sample(TUTTI_STORE_PULL);
    uint8_t frame[256];
    size_t size = tutti__store_message_size(&m), used;
    static const struct {
        size_t at;
        uint8_t byte;
        const char *words;
    } wrong[] = {{0, 'X', "no message of a parameter store"},
                 {2, 9, "version 9 of the store's protocol, this is version 2"},
                 {3, 99, "unknown type 99"},
                 {7, 0xff, "at most 1073741816 are allowed"},
                 {4, 200, NULL}};
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        tutti__store_message_write(&m, frame);
        frame[wrong[i].at] = wrong[i].byte;
        if (!wrong[i].words)
            continue;
        CHECK_STATUS(tutti__store_message_read(frame, size, &m, &used), TUTTI_CORRUPT);
        CHECK_CONTAINS(tutti_error_message(), wrong[i].words);
        m = sample(TUTTI_STORE_PULL);
    }
    tutti__store_message_write(&m, frame);
    tutti__packed_put(tutti__packed_get(frame + 4, 4) + 1, 4, frame + 4);
    CHECK_STATUS(tutti__store_message_read(frame, size + 1, &m, &used), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "1 bytes too many");
}
