#include "cluster/message.h"

#include <string.h>

#include "base/test.h"

static tutti_cluster_message sample_hello(void)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_HELLO};
    m.as.hello.protocol = TUTTI_PROTOCOL;
    m.as.hello.rank = 3;
    m.as.hello.size = 4;
    m.as.hello.role = TUTTI_ROLE_WORKER;
    m.as.hello.pid = -5;
    m.as.hello.machine = 0x1122334455667788;
    m.as.hello.port = 4242;
    memset(m.as.hello.proof, 7, sizeof m.as.hello.proof);
    strcpy(m.as.hello.host, "node001");
    strcpy(m.as.hello.job, "PMIX_NAMESPACE=17");
    return m;
}

TUTTI_TEST(messages_come_back_as_they_were)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_cluster_message hello = sample_hello(), back;
    size_t size = tutti__message_write(&hello, frame), used = 0;
    CHECK_OK(tutti__message_read(frame, size, &back, &used));
    CHECK_INT(used, size);
    CHECK_INT(back.as.hello.pid, -5);
    CHECK(back.as.hello.machine == hello.as.hello.machine);
    CHECK_STR(back.as.hello.host, "node001");
    CHECK_STR(back.as.hello.job, "PMIX_NAMESPACE=17");
    CHECK(memcmp(back.as.hello.proof, hello.as.hello.proof, 32) == 0);
}

TUTTI_TEST(messages_largest_fits_a_frame)
{
    static tutti_cluster_message m;
    uint8_t frame[TUTTI_FRAME_BYTES];
    m.type = TUTTI_MESSAGE_VERDICT;
    memset(m.as.verdict.host, 'h', sizeof m.as.verdict.host);
    memset(m.as.verdict.reason, 'r', sizeof m.as.verdict.reason);
    memset(m.as.verdict.operation, 'o', sizeof m.as.verdict.operation);
    memset(m.as.verdict.text, 't', sizeof m.as.verdict.text);
    memset(&m.as.verdict.arrived, 0xff, sizeof m.as.verdict.arrived);
    memset(&m.as.verdict.members, 0xff, sizeof m.as.verdict.members);
    CHECK(tutti__message_write(&m, frame) < sizeof frame);
    m.type = TUTTI_MESSAGE_BEAT;
    memset(&m.as, 'x', sizeof m.as);
    m.as.beat.arrived.size = TUTTI_BEAT_ARRIVALS * TUTTI_ARRIVAL_BYTES;
    CHECK(tutti__message_write(&m, frame) < sizeof frame);
}

TUTTI_TEST(messages_wait_for_the_rest)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_cluster_message hello = sample_hello(), back;
    size_t size = tutti__message_write(&hello, frame), used = 1;
    for (size_t part = 0; part < size; part++) {
        CHECK_OK(tutti__message_read(frame, part, &back, &used));
        CHECK_INT(used, 0);
    }
}

TUTTI_TEST(messages_refuse_what_is_malformed)
{
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_cluster_message hello = sample_hello(), back;
    size_t size = tutti__message_write(&hello, frame), used;
    CHECK_STATUS(tutti__message_read((const uint8_t *)"GET / HTTP/1.0", 14, &back, &used),
                 TUTTI_CORRUPT);
    CHECK_STATUS(tutti__message_read((const uint8_t *)"TT\xff", 3, &back, &used), TUTTI_CORRUPT);
    CHECK_STATUS(tutti__message_read((const uint8_t *)"TT\x02\0\xff\xff\0\0", 8, &back, &used),
                 TUTTI_CORRUPT);
    frame[4]++; /* one byte more than the fields */
    CHECK_STATUS(tutti__message_read(frame, size + 1, &back, &used), TUTTI_CORRUPT);
    hello.as.hello.port = 65536;
    size = tutti__message_write(&hello, frame);
    CHECK_STATUS(tutti__message_read(frame, size, &back, &used), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "hello");
}

TUTTI_TEST(messages_carry_sets_of_ranks)
{
    static tutti_cluster_message m = {.type = TUTTI_MESSAGE_REPORT}, back;
    uint8_t frame[TUTTI_FRAME_BYTES];
    tutti_where *last = &m.as.report.where.of[TUTTI_WHERES - 1];
    size_t empty = tutti__message_write(&m, frame), size, used;
    last->group = UINT64_C(7) << 32;
    tutti__ranks_add(&last->members, 0);
    tutti__ranks_add(&last->members, 70);
    size = tutti__message_write(&m, frame);
    CHECK_INT(size, empty + 9); /* up to the byte of rank 70 */
    CHECK_OK(tutti__message_read(frame, size, &back, &used));
    CHECK(memcmp(&back.as.report, &m.as.report, sizeof m.as.report) == 0);
    frame[size - 1] = 0; /* a set has one form */
    CHECK_STATUS(tutti__message_read(frame, size, &back, &used), TUTTI_CORRUPT);
    memset(&last->members, 0xff, sizeof last->members);
    size = tutti__message_write(&m, frame);
    CHECK_OK(tutti__message_read(frame, size, &back, &used));
    CHECK_INT(
        tutti__ranks_count(&back.as.report.where.of[TUTTI_WHERES - 1].members, TUTTI_MOST_RANKS),
        TUTTI_MOST_RANKS);
    frame[empty - 2]++; /* a byte more than there are ranks */
    frame[size] = 1;
    frame[4]++;
    CHECK_STATUS(tutti__message_read(frame, size + 1, &back, &used), TUTTI_CORRUPT);
}

TUTTI_TEST(messages_carry_arrivals)
{
    tutti_arrival in[3] = {{0, 1, 0, -1},
                           {UINT64_C(7) << 32, 2, 4, 5},
                           {UINT64_MAX, UINT64_MAX - 1, UINT16_MAX, INT64_MIN}},
                  out[3];
    tutti_blob blob;
    tutti__arrivals_write(in, 3, &blob);
    CHECK_INT(blob.size, 3 * TUTTI_ARRIVAL_BYTES);
    CHECK_INT(tutti__arrivals_read(&blob, out, 3), 3);
    for (int i = 0; i < 3; i++) {
        CHECK(in[i].group == out[i].group && in[i].sequence == out[i].sequence);
        CHECK(in[i].ranks == out[i].ranks && in[i].at_ns == out[i].at_ns);
    }
}
