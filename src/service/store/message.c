/* message.c: messages to bytes and back, by one table of the fields of each type. */
#include "service/store/message.h"

#include <stdio.h>
#include <string.h>

#define FIELD(kind, member, below)                                                                 \
    {                                                                                              \
        TUTTI_PACKED_##kind, offsetof(tutti_store_message, member),                                \
            sizeof(((tutti_store_message *)0)->member), below                                      \
    }
#define U32(member) FIELD(U32, member, 0)
#define BELOW(member, limit) FIELD(U32, member, limit)
#define U64(member) FIELD(U64, member, 0)
#define F64(member) FIELD(F64, member, 0)
#define TEXT(member) FIELD(TEXT, member, 0)
#define DATA(member) FIELD(DATA, member, 0)
#define LONGS(member) FIELD(LONGS, member, 0)
#define KEY U64(step), U32(contribution)
#define GRADIENT                                                                                   \
    KEY, U64(version), U64(number), BELOW(form, TUTTI_STORE_FORMS), F64(factor),                   \
        F64(learning_rate), LONGS(rows), DATA(data)
#define OUTCOME KEY, U64(clock), U64(version), U64(number), BELOW(verdict, TUTTI_STORE_VERDICTS)

static const tutti_packed_field sender[] = {
    U64(view),          BELOW(node, TUTTI_STORE_NODES), U32(incarnation),
    U64(request),       BELOW(slot, TUTTI_STORE_SLOTS), U32(shard),
    {TUTTI_PACKED_END},
};

enum { MOST_FIELDS = 14 };
static const struct store_shape {
    const char *name;
    tutti_packed_field fields[MOST_FIELDS];
} shapes[TUTTI_STORE_TYPES] = {
    [TUTTI_STORE_CREATE] = {"create",
                            {TEXT(text), U32(dtype), LONGS(rows), TEXT(consistency), TEXT(nan),
                             TEXT(rate), TEXT(rule), TEXT(initial), DATA(data), DATA(graph)}},
    [TUTTI_STORE_CREATED] = {"created", {U64(clock), U64(version)}},
    [TUTTI_STORE_PULL] = {"pull",
                          {U32(contribution), U64(clock), U64(number), U64(after),
                           BELOW(form, TUTTI_STORE_FORMS), LONGS(rows)}},
    [TUTTI_STORE_PULLED] = {"pulled",
                            {U64(clock), U64(version), U64(number), BELOW(form, TUTTI_STORE_FORMS),
                             DATA(data)}},
    [TUTTI_STORE_PUSH] = {"push", {GRADIENT}},
    [TUTTI_STORE_PUSHED] = {"pushed", {OUTCOME}},
    [TUTTI_STORE_PREPARE] = {"prepare", {GRADIENT}},
    [TUTTI_STORE_PREPARED] = {"prepared", {OUTCOME}},
    [TUTTI_STORE_COMMIT] = {"commit", {U32(contribution), U64(number), LONGS(rows)}},
    [TUTTI_STORE_COMMITTED] = {"committed", {U32(contribution), U64(number), U64(version)}},
    [TUTTI_STORE_DECIDE] = {"decide",
                            {U32(contribution), U64(number), U64(version), U64(after), U64(clock),
                             BELOW(verdict, TUTTI_STORE_VERDICTS)}},
    [TUTTI_STORE_DECIDED] = {"decided", {U64(after)}},
    [TUTTI_STORE_NUMBER] = {"number", {{TUTTI_PACKED_END}}},
    [TUTTI_STORE_NUMBERED] = {"numbered", {U64(version), LONGS(rows)}},
    [TUTTI_STORE_FINISH] = {"finish", {U64(step)}},
    [TUTTI_STORE_FINISHED] = {"finished", {U64(step)}},
    [TUTTI_STORE_REPLICATE] = {"replicate", {U64(number), DATA(data)}},
    [TUTTI_STORE_REPLICATED] = {"replicated", {U64(number)}},
    [TUTTI_STORE_SNAPSHOT] = {"snapshot", {U64(number), U64(after), U64(version), DATA(data)}},
    [TUTTI_STORE_SNAPSHOT_TAKEN] = {"snapshot taken", {U64(number), U64(version)}},
    [TUTTI_STORE_MEMBERS] = {"members", {LONGS(rows)}},
    [TUTTI_STORE_GET] = {"get", {U32(contribution), U64(clock)}},
    [TUTTI_STORE_GOT] = {"got", {U64(clock), U64(version), DATA(data)}},
    [TUTTI_STORE_PUT] = {"put", {U32(contribution), U64(number), DATA(data)}},
    [TUTTI_STORE_PUT_DONE] = {"put done", {U64(number), U64(version)}},
    [TUTTI_STORE_REFUSED] = {"refused", {BELOW(reason, TUTTI_STORE_REASONS), TEXT(text)}},
    [TUTTI_STORE_RUN] = {"run",
                         {U64(step), U64(number), U64(version), U64(after), TEXT(text),
                          DATA(data)}},
    [TUTTI_STORE_RAN] = {"ran", {U64(step), U64(clock), U32(verdict), TEXT(text), DATA(data)}},
};

const char *tutti__store_type_text(uint32_t type)
{
    return type >= TUTTI_STORE_CREATE && type < TUTTI_STORE_TYPES ? shapes[type].name : "unknown";
}

const char *tutti__store_verdict_text(uint32_t verdict)
{
    static const char *const texts[TUTTI_STORE_VERDICTS] = {
        [TUTTI_STORE_NO_VERDICT] = "none", [TUTTI_STORE_APPLIED] = "applied",
        [TUTTI_STORE_HELD] = "held",       [TUTTI_STORE_LATE] = "late",
        [TUTTI_STORE_SKIPPED] = "skipped", [TUTTI_STORE_KNOWN] = "known"};
    return verdict < TUTTI_STORE_VERDICTS ? texts[verdict] : "unknown";
}

void tutti__store_refusal(tutti_store_reason reason, tutti_store_message *ret_answer)
{
    ret_answer->type = TUTTI_STORE_REFUSED;
    ret_answer->reason = reason;
    snprintf(ret_answer->text, sizeof ret_answer->text, "%s", tutti_error_message());
}

size_t tutti__store_message_size(const tutti_store_message *message)
{
    return TUTTI_STORE_HEAD + tutti__packed_size(sender, message) +
           tutti__packed_size(shapes[message->type].fields, message);
}

void tutti__store_message_write(const tutti_store_message *message, uint8_t *ret_frame)
{
    uint8_t *body = ret_frame + TUTTI_STORE_HEAD;
    uint8_t *end = tutti__packed_write(sender, message, body);
    end = tutti__packed_write(shapes[message->type].fields, message, end);
    ret_frame[0] = 'T';
    ret_frame[1] = 'S';
    ret_frame[2] = TUTTI_STORE_PROTOCOL;
    ret_frame[3] = (uint8_t)message->type;
    tutti__packed_put((uint64_t)(end - body), 4, ret_frame + 4);
}

/* The bytes that are there are judged at once: garbage is not waited for. */
static tutti_status store_check_head(const uint8_t *data, size_t size)
{
    static const uint8_t magic[2] = {'T', 'S'};
    if (memcmp(data, magic, size < 2 ? size : 2) != 0)
        return tutti_fail(TUTTI_CORRUPT, "these bytes are no message of a parameter store");
    if (size > 2 && data[2] != TUTTI_STORE_PROTOCOL)
        return tutti_fail(TUTTI_CORRUPT,
                          "a message of version %d of the store's protocol, this is version %d; "
                          "start all processes with one version of tutti",
                          data[2], TUTTI_STORE_PROTOCOL);
    if (size > 3 && (data[3] < TUTTI_STORE_CREATE || data[3] >= TUTTI_STORE_TYPES))
        return tutti_fail(TUTTI_CORRUPT, "a store's message of unknown type %d", data[3]);
    if (size >= TUTTI_STORE_HEAD &&
        tutti__packed_get(data + 4, 4) > TUTTI_STORE_MOST_BYTES - TUTTI_STORE_HEAD)
        return tutti_fail(TUTTI_CORRUPT, "a store's message of %llu bytes; at most %d are allowed",
                          (unsigned long long)tutti__packed_get(data + 4, 4),
                          TUTTI_STORE_MOST_BYTES - TUTTI_STORE_HEAD);
    return TUTTI_OK;
}

tutti_status tutti__store_message_read(const uint8_t *data, size_t size,
                                       tutti_store_message *ret_message, size_t *ret_used)
{
    TUTTI_TRY(size == 0 ? TUTTI_OK : store_check_head(data, size));
    if (size < TUTTI_STORE_HEAD || size - TUTTI_STORE_HEAD < tutti__packed_get(data + 4, 4)) {
        *ret_used = 0;
        return TUTTI_OK;
    }
    tutti_store_message message;
    memset(&message, 0, sizeof message);
    message.type = data[3];
    const uint8_t *at = data + TUTTI_STORE_HEAD, *end = at + tutti__packed_get(data + 4, 4);
    if (!tutti__packed_read(sender, &at, end, &message) ||
        !tutti__packed_read(shapes[message.type].fields, &at, end, &message))
        return tutti_fail(TUTTI_CORRUPT, "a malformed message '%s' of a store",
                          tutti__store_type_text(message.type));
    if (at != end)
        return tutti_fail(TUTTI_CORRUPT, "a store's message '%s' with %td bytes too many",
                          tutti__store_type_text(message.type), end - at);
    *ret_message = message;
    *ret_used = (size_t)(end - data);
    return TUTTI_OK;
}
