/* protobuf.c: see protobuf.h. */
#include "io/protobuf.h"

#include <string.h>

#include "io/stream.h"

#define MOST_DEPTH 100

tutti_proto tutti__proto(const char *name, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    return (tutti_proto){
        .name = name, .start = bytes, .at = bytes, .end = size ? bytes + size : bytes};
}

void tutti__proto_stop(tutti_proto *p, const char *expected)
{
    if (p->wrong == NULL)
        p->wrong = expected;
}

tutti_status tutti__proto_end(const tutti_proto *p)
{
    if (p->wrong == NULL && p->at == p->end)
        return TUTTI_OK;
    return tutti_fail(TUTTI_CORRUPT, "%s: offset %zu of the message: protobuf, expected %s",
                      p->name, (size_t)(p->at - p->start), p->wrong != NULL ? p->wrong : "its end");
}

/* Seven bits a byte, the lowest first; at most ten bytes. */
static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    uint64_t value = 0;
    const uint8_t *p = *at;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p == end)
            return false;
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *at = p;
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool take_value(tutti_proto *p, tutti_proto_field *f)
{
    size_t left = (size_t)(p->end - p->at);
    switch (f->kind) {
    case TUTTI_PROTO_VARINT:
        return take_varint(&p->at, p->end, &f->value);
    case TUTTI_PROTO_FIXED64:
        if (left < 8)
            return false;
        f->value = tutti__get_u64(p->at);
        p->at += 8;
        return true;
    case TUTTI_PROTO_FIXED32:
        if (left < 4)
            return false;
        f->value = tutti__get_u32(p->at);
        p->at += 4;
        return true;
    case TUTTI_PROTO_BYTES:
        if (!take_varint(&p->at, p->end, &f->value) || f->value > (uint64_t)(p->end - p->at))
            return false;
        f->data = p->at;
        f->size = (size_t)f->value;
        p->at += f->size;
        return true;
    }
    return false;
}

bool tutti__proto_next(tutti_proto *p, tutti_proto_field *ret)
{
    uint64_t key;
    if (p->wrong != NULL || p->at == p->end)
        return false;
    if (!take_varint(&p->at, p->end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        p->wrong = "a field's number, from 1 to 2^29 - 1";
        return false;
    }
    unsigned kind = (unsigned)(key & 7);
    if (kind != 0 && kind != 1 && kind != 2 && kind != 5) {
        p->wrong = "a number, 4 or 8 bytes, or bytes (groups are not read)";
        return false;
    }
    tutti_proto_field f = {.number = (uint32_t)(key >> 3), .kind = (tutti_proto_kind)kind};
    if (!take_value(p, &f)) {
        p->wrong = "a whole field; the message is truncated or a size is wrong";
        return false;
    }
    *ret = f;
    return true;
}

tutti_proto tutti__proto_inside(const tutti_proto *p, const tutti_proto_field *field)
{
    tutti_proto inside = {.name = p->name, .start = p->start, .at = field->data};
    inside.depth = p->depth + 1;
    if (field->kind != TUTTI_PROTO_BYTES) {
        inside.at = p->at;
        inside.wrong = "a message";
    } else if (inside.depth > MOST_DEPTH) {
        inside.wrong = "messages at most 100 deep";
    }
    inside.end = field->kind == TUTTI_PROTO_BYTES ? field->data + field->size : inside.at;
    return inside;
}

int64_t tutti__proto_int(const tutti_proto_field *field)
{
    return field->kind != TUTTI_PROTO_BYTES ? (int64_t)field->value : 0;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

float tutti__proto_float(const tutti_proto_field *field)
{
    return field->kind == TUTTI_PROTO_FIXED32 ? float_of((uint32_t)field->value) : 0;
}

double tutti__proto_double(const tutti_proto_field *field)
{
    return field->kind == TUTTI_PROTO_FIXED64 ? double_of(field->value) : 0;
}

bool tutti__proto_is(const tutti_proto_field *field, const char *text)
{
    size_t size = strlen(text);
    return field->kind == TUTTI_PROTO_BYTES && field->size == size &&
           (size == 0 || memcmp(field->data, text, size) == 0);
}

bool tutti__proto_each_int(tutti_proto *p, const tutti_proto_field *field, size_t *at, int64_t *ret)
{
    if (field->kind != TUTTI_PROTO_BYTES) {
        *ret = (int64_t)field->value;
        return (*at)++ == 0;
    }
    const uint8_t *from = field->data + *at;
    uint64_t value;
    if (*at >= field->size)
        return false;
    if (!take_varint(&from, field->data + field->size, &value)) {
        tutti__proto_stop(p, "packed integers");
        return false;
    }
    *at = (size_t)(from - field->data);
    *ret = (int64_t)value;
    return true;
}

/* The next `size` bytes of packed numbers, or NULL. */
static const uint8_t *take_packed(tutti_proto *p, const tutti_proto_field *field, size_t size,
                                  size_t *at)
{
    if (field->size % size != 0) {
        tutti__proto_stop(p, "packed numbers of 4 or 8 bytes");
        return NULL;
    }
    if (*at >= field->size)
        return NULL;
    *at += size;
    return field->data + *at - size;
}

bool tutti__proto_each_float(tutti_proto *p, const tutti_proto_field *field, size_t *at, float *ret)
{
    if (field->kind != TUTTI_PROTO_BYTES) {
        *ret = tutti__proto_float(field);
        return (*at)++ == 0;
    }
    const uint8_t *bytes = take_packed(p, field, 4, at);
    if (bytes != NULL)
        *ret = float_of(tutti__get_u32(bytes));
    return bytes != NULL;
}

bool tutti__proto_each_double(tutti_proto *p, const tutti_proto_field *field, size_t *at,
                              double *ret)
{
    if (field->kind != TUTTI_PROTO_BYTES) {
        *ret = tutti__proto_double(field);
        return (*at)++ == 0;
    }
    const uint8_t *bytes = take_packed(p, field, 8, at);
    if (bytes != NULL)
        *ret = double_of(tutti__get_u64(bytes));
    return bytes != NULL;
}

void tutti__proto_put_varint(tutti_text *text, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; value > 127; value >>= 7)
        bytes[size++] = (uint8_t)(value | 128);
    bytes[size++] = (uint8_t)value;
    tutti__text_bytes(text, bytes, size);
}

static void put_key(tutti_text *text, uint32_t number, tutti_proto_kind kind)
{
    tutti__proto_put_varint(text, (uint64_t)number << 3 | (uint64_t)kind);
}

void tutti__proto_put_int(tutti_text *text, uint32_t number, int64_t value)
{
    put_key(text, number, TUTTI_PROTO_VARINT);
    tutti__proto_put_varint(text, (uint64_t)value);
}

void tutti__proto_put_float(tutti_text *text, uint32_t number, float value)
{
    uint32_t bits;
    uint8_t bytes[4];
    memcpy(&bits, &value, 4);
    tutti__put_u32(bytes, bits);
    put_key(text, number, TUTTI_PROTO_FIXED32);
    tutti__text_bytes(text, bytes, 4);
}

void tutti__proto_put_double(tutti_text *text, uint32_t number, double value)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, 8);
    tutti__put_u64(bytes, bits);
    put_key(text, number, TUTTI_PROTO_FIXED64);
    tutti__text_bytes(text, bytes, 8);
}

void tutti__proto_put_bytes(tutti_text *text, uint32_t number, const void *data, size_t size)
{
    put_key(text, number, TUTTI_PROTO_BYTES);
    tutti__proto_put_varint(text, size);
    tutti__text_bytes(text, data, size);
}

void tutti__proto_put_string(tutti_text *text, uint32_t number, const char *string)
{
    tutti__proto_put_bytes(text, number, string, strlen(string));
}

size_t tutti__proto_open(tutti_text *text, uint32_t number)
{
    put_key(text, number, TUTTI_PROTO_BYTES);
    return text->size;
}

/* The size goes before what was written: it is appended, then turned to the front. */
void tutti__proto_close(tutti_text *text, size_t mark)
{
    if (text->failed)
        return;
    size_t size = text->size - mark;
    uint8_t bytes[10];
    tutti__proto_put_varint(text, size);
    if (text->failed)
        return;
    size_t length = text->size - mark - size;
    memcpy(bytes, text->data + mark + size, length);
    memmove(text->data + mark + length, text->data + mark, size);
    memcpy(text->data + mark, bytes, length);
}
