/* message.c: messages to bytes and back, both from one description of the fields. */
#include "cluster/message.h"

#include <string.h>

typedef enum field_kind {
    FIELD_END,
    FIELD_U32,
    FIELD_U64, /* and i64 */
    FIELD_BYTES,
    FIELD_TEXT,
    FIELD_BLOB,
    FIELD_RANKS,
} field_kind;

typedef struct field {
    field_kind kind;
    size_t offset, size;
    uint32_t below; /* of u32: the first number that cannot be; 0 any */
} field;

#define AT(member)                                                                                 \
    offsetof(tutti_cluster_message, as.member), sizeof(((tutti_cluster_message *)0)->as.member)
#define U32(member)                                                                                \
    {                                                                                              \
        FIELD_U32, AT(member), 0                                                                   \
    }
#define BELOW(member, limit)                                                                       \
    {                                                                                              \
        FIELD_U32, AT(member), (limit)                                                             \
    }
#define U64(member)                                                                                \
    {                                                                                              \
        FIELD_U64, AT(member), 0                                                                   \
    }
#define BYTES(member)                                                                              \
    {                                                                                              \
        FIELD_BYTES, AT(member), 0                                                                 \
    }
#define TEXT(member)                                                                               \
    {                                                                                              \
        FIELD_TEXT, AT(member), 0                                                                  \
    }
#define BLOB(member)                                                                               \
    {                                                                                              \
        FIELD_BLOB, AT(member), 0                                                                  \
    }
#define RANKS(member)                                                                              \
    {                                                                                              \
        FIELD_RANKS, AT(member), 0                                                                 \
    }
#define WHERE(member)                                                                              \
    TEXT(member.operation), U64(member.sequence), BELOW(member.inside, 2), U64(member.for_ns),     \
        U64(member.group), RANKS(member.members)
#define WHERES(member)                                                                             \
    WHERE(member.of[0]), WHERE(member.of[1]), WHERE(member.of[2]), WHERE(member.of[3]),            \
        WHERE(member.of[4])
_Static_assert(TUTTI_WHERES == 5, "WHERES names them all");

enum { MOST_FIELDS = 36 };
static const struct shape {
    const char *name;
    field fields[MOST_FIELDS];
} shapes[TUTTI_MESSAGE_TYPES] = {
    [TUTTI_MESSAGE_CHALLENGE] = {"challenge",
                                 {U32(challenge.protocol), TEXT(challenge.version),
                                  BYTES(challenge.nonce), U32(challenge.epoch),
                                  BELOW(challenge.rank, TUTTI_MOST_RANKS)}},
    [TUTTI_MESSAGE_HELLO] =
        {"hello",
         {U32(hello.protocol), TEXT(hello.version), BYTES(hello.nonce), U32(hello.epoch),
          BELOW(hello.purpose, TUTTI_PURPOSE_JOIN + 1), BELOW(hello.rank, TUTTI_MOST_RANKS),
          BELOW(hello.to, TUTTI_MOST_RANKS), BELOW(hello.size, TUTTI_MOST_RANKS + 1),
          BELOW(hello.role, TUTTI_ROLE_COUNT), BELOW(hello.index, TUTTI_MOST_RANKS),
          U32(hello.number), BELOW(hello.port, 65536), U64(hello.pid), U64(hello.machine),
          TEXT(hello.host), TEXT(hello.address), TEXT(hello.job), U64(hello.incarnation),
          BYTES(hello.proof)}},
    [TUTTI_MESSAGE_ADMIT] = {"admit", {BYTES(admit.proof)}},
    [TUTTI_MESSAGE_REFUSE] = {"refuse",
                              {BELOW(refuse.reason, TUTTI_REFUSAL_COUNT), TEXT(refuse.text)}},
    [TUTTI_MESSAGE_PEER] = {"peer",
                            {BELOW(peer.rank, TUTTI_MOST_RANKS), BELOW(peer.role, TUTTI_ROLE_COUNT),
                             BELOW(peer.index, TUTTI_MOST_RANKS), BELOW(peer.port, 65536),
                             U64(peer.pid), U64(peer.machine), TEXT(peer.host), TEXT(peer.address),
                             U64(peer.incarnation)}},
    [TUTTI_MESSAGE_START] = {"start",
                             {U32(start.epoch), BELOW(start.size, TUTTI_MOST_RANKS + 1),
                              U64(start.job), BYTES(start.token)}},
    [TUTTI_MESSAGE_BEAT] = {"beat",
                            {U64(beat.sent_ns), U64(beat.echo_ns), U64(beat.held_ns),
                             WHERES(beat.where), BLOB(beat.arrived)}},
    [TUTTI_MESSAGE_SUSPECT] = {"suspect",
                               {BELOW(suspect.rank, TUTTI_MOST_RANKS),
                                BELOW(suspect.why, TUTTI_FAILURE_COUNT), U64(suspect.detail),
                                TEXT(suspect.reason)}},
    [TUTTI_MESSAGE_POLL] = {"ask", {{FIELD_END}}},
    [TUTTI_MESSAGE_REPORT] = {"report", {WHERES(report.where)}},
    [TUTTI_MESSAGE_VERDICT] = {"verdict",
                               {U32(verdict.rank), BELOW(verdict.why, TUTTI_FAILURE_COUNT),
                                U64(verdict.detail), U64(verdict.pid), TEXT(verdict.host),
                                TEXT(verdict.reason), TEXT(verdict.operation),
                                U64(verdict.sequence), U64(verdict.group), RANKS(verdict.members),
                                BELOW(verdict.arrived_count, TUTTI_MOST_RANKS + 1),
                                RANKS(verdict.arrived), TEXT(verdict.text)}},
    [TUTTI_MESSAGE_LEAVE] = {"leave", {{FIELD_END}}},
    [TUTTI_MESSAGE_GOODBYE] = {"goodbye", {{FIELD_END}}},
    [TUTTI_MESSAGE_EXCHANGE] = {"exchange",
                                {U64(exchange.round), BELOW(exchange.rank, TUTTI_MOST_RANKS),
                                 BLOB(exchange.data)}},
    [TUTTI_MESSAGE_GATHERED] = {"gathered",
                                {U64(exchange.round), BELOW(exchange.rank, TUTTI_MOST_RANKS),
                                 BLOB(exchange.data)}},
    [TUTTI_MESSAGE_VIEW] = {"view",
                            {U64(view.number), BELOW(view.kept, 2), BELOW(view.cut, 2),
                             RANKS(view.members), RANKS(view.left)}},
};

const char *tutti__message_text(tutti_message_type type)
{
    bool known = type >= TUTTI_MESSAGE_CHALLENGE && type < TUTTI_MESSAGE_TYPES;
    return known ? shapes[type].name : "unknown";
}

static void message_put(uint64_t value, int bytes, uint8_t *at)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static size_t put_counted(const void *data, size_t size, uint8_t *at)
{
    message_put(size, 2, at);
    memcpy(at + 2, data, size);
    return size + 2;
}

/* A bit for each rank, without zero bytes at the end. */
static size_t put_ranks(const tutti_ranks *ranks, uint8_t *at)
{
    uint8_t bytes[TUTTI_MOST_RANKS / 8];
    size_t size = sizeof bytes;
    for (size_t i = 0; i < TUTTI_COUNT(ranks->bits); i++)
        message_put(ranks->bits[i], 8, bytes + 8 * i);
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    return put_counted(bytes, size, at);
}

static size_t put_field(const field *f, const tutti_cluster_message *message, uint8_t *at)
{
    const char *from = (const char *)message + f->offset;
    const tutti_blob *blob = (const void *)from;
    uint32_t narrow;
    uint64_t wide;
    switch (f->kind) {
    case FIELD_U32:
        memcpy(&narrow, from, sizeof narrow);
        return message_put(narrow, 4, at), 4;
    case FIELD_U64:
        memcpy(&wide, from, sizeof wide);
        return message_put(wide, 8, at), 8;
    case FIELD_BYTES:
        return memcpy(at, from, f->size), f->size;
    case FIELD_TEXT:
        return put_counted(from, strnlen(from, f->size - 1), at);
    case FIELD_BLOB:
        return put_counted(blob->data, blob->size, at);
    case FIELD_RANKS:
        return put_ranks((const void *)from, at);
    default:
        return 0;
    }
}

size_t tutti__message_write(const tutti_cluster_message *message,
                            uint8_t ret_frame[TUTTI_FRAME_BYTES])
{
    size_t size = TUTTI_FRAME_HEAD;
    for (const field *f = shapes[message->type].fields; f->kind != FIELD_END; f++)
        size += put_field(f, message, ret_frame + size);
    ret_frame[0] = ret_frame[1] = 'T';
    ret_frame[2] = (uint8_t)message->type;
    ret_frame[3] = 0;
    message_put(size - TUTTI_FRAME_HEAD, 4, ret_frame + 4);
    return size;
}

/* A u16 of bytes, and they; false when they are not there or do not fit `room`. */
static bool get_counted(const uint8_t **at, const uint8_t *end, size_t room, void *to,
                        size_t *ret_size)
{
    if (end - *at < 2)
        return false;
    size_t size = get(*at, 2);
    *at += 2;
    if (size > (size_t)(end - *at) || size > room)
        return false;
    memcpy(to, *at, size);
    *at += size;
    *ret_size = size;
    return true;
}

static bool get_number(const field *f, const uint8_t **at, const uint8_t *end, char *to)
{
    int bytes = f->kind == FIELD_U32 ? 4 : 8;
    if (end - *at < bytes)
        return false;
    uint64_t wide = get(*at, bytes);
    uint32_t narrow = (uint32_t)wide;
    *at += bytes;
    if (f->kind == FIELD_U64)
        memcpy(to, &wide, sizeof wide);
    else
        memcpy(to, &narrow, sizeof narrow);
    return f->below == 0 || narrow < f->below;
}

static bool get_ranks(const uint8_t **at, const uint8_t *end, tutti_ranks *to)
{
    uint8_t bytes[TUTTI_MOST_RANKS / 8] = {0};
    size_t size;
    if (!get_counted(at, end, sizeof bytes, bytes, &size))
        return false;
    for (size_t i = 0; i < TUTTI_COUNT(to->bits); i++)
        to->bits[i] = get(bytes + 8 * i, 8);
    return size == 0 || bytes[size - 1] != 0;
}

/* `message` was zeroed, so that texts end in NUL; a NUL inside one is refused. */
static bool get_field(const field *f, const uint8_t **at, const uint8_t *end,
                      tutti_cluster_message *message)
{
    char *to = (char *)message + f->offset;
    tutti_blob *blob = (void *)to;
    size_t size;
    switch (f->kind) {
    case FIELD_BYTES:
        if ((size_t)(end - *at) < f->size)
            return false;
        memcpy(to, *at, f->size);
        *at += f->size;
        return true;
    case FIELD_TEXT:
        return get_counted(at, end, f->size - 1, to, &size) && memchr(to, 0, size) == NULL;
    case FIELD_BLOB:
        if (!get_counted(at, end, sizeof blob->data, blob->data, &size))
            return false;
        blob->size = (uint16_t)size;
        return true;
    case FIELD_RANKS:
        return get_ranks(at, end, (void *)to);
    default:
        return get_number(f, at, end, to);
    }
}

/* The bytes that are there are judged at once: garbage is not waited for. */
static tutti_status check_head(const uint8_t *data, size_t size)
{
    static const uint8_t magic[2] = {'T', 'T'};
    size_t known = size < 2 ? size : 2;
    if (memcmp(data, magic, known) != 0)
        return tutti_fail(TUTTI_CORRUPT, "these bytes are no message of tutti");
    if (size > 2 && (data[2] < TUTTI_MESSAGE_CHALLENGE || data[2] >= TUTTI_MESSAGE_TYPES))
        return tutti_fail(TUTTI_CORRUPT, "a message of unknown type %d", data[2]);
    if (size > 3 && data[3] != 0)
        return tutti_fail(TUTTI_CORRUPT, "a message with flags of another version");
    if (size >= TUTTI_FRAME_HEAD && get(data + 4, 4) > TUTTI_FRAME_BYTES - TUTTI_FRAME_HEAD)
        return tutti_fail(TUTTI_CORRUPT, "a message of %llu bytes; at most %d are allowed",
                          (unsigned long long)get(data + 4, 4),
                          TUTTI_FRAME_BYTES - TUTTI_FRAME_HEAD);
    return TUTTI_OK;
}

tutti_status tutti__message_read(const uint8_t *data, size_t size,
                                 tutti_cluster_message *ret_message, size_t *ret_used)
{
    TUTTI_TRY(size == 0 ? TUTTI_OK : check_head(data, size));
    if (size < TUTTI_FRAME_HEAD || size - TUTTI_FRAME_HEAD < get(data + 4, 4)) {
        *ret_used = 0;
        return TUTTI_OK;
    }
    tutti_cluster_message message;
    memset(&message, 0, sizeof message);
    message.type = (tutti_message_type)data[2];
    const uint8_t *at = data + TUTTI_FRAME_HEAD, *end = at + get(data + 4, 4);
    for (const field *f = shapes[message.type].fields; f->kind != FIELD_END; f++)
        if (!get_field(f, &at, end, &message))
            return tutti_fail(TUTTI_CORRUPT, "a malformed message '%s'",
                              tutti__message_text(message.type));
    if (at != end)
        return tutti_fail(TUTTI_CORRUPT, "a message '%s' with %td bytes too many",
                          tutti__message_text(message.type), end - at);
    *ret_message = message;
    *ret_used = (size_t)(end - data);
    return TUTTI_OK;
}

size_t tutti__arrivals_read(const tutti_blob *blob, tutti_arrival *ret_arrivals, size_t limit)
{
    size_t count = blob->size / (size_t)TUTTI_ARRIVAL_BYTES;
    count = count < limit ? count : limit;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = blob->data + TUTTI_ARRIVAL_BYTES * i;
        ret_arrivals[i] = (tutti_arrival){.group = get(from, 8),
                                          .sequence = get(from + 8, 8),
                                          .ranks = (uint16_t)get(from + 16, 2),
                                          .at_ns = (int64_t)get(from + 18, 8)};
    }
    return count;
}

void tutti__arrivals_write(const tutti_arrival *arrivals, size_t count, tutti_blob *ret_blob)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = ret_blob->data + TUTTI_ARRIVAL_BYTES * i;
        message_put(arrivals[i].group, 8, to);
        message_put(arrivals[i].sequence, 8, to + 8);
        message_put(arrivals[i].ranks, 2, to + 16);
        message_put((uint64_t)arrivals[i].at_ns, 8, to + 18);
    }
    ret_blob->size = (uint16_t)(TUTTI_ARRIVAL_BYTES * count);
}
