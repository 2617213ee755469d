/* saved.h: numbers and bytes of what a slot holds, written one behind the other and read back. A
 * reader that has come to an end, or to what cannot be, gives zeros and stays `bad`. */
#ifndef TUTTI_SERVICE_STORE_SAVED_H
#define TUTTI_SERVICE_STORE_SAVED_H

#include <string.h>

#include "base/packed.h"

static inline void saved_put(tutti_text *out, uint64_t value)
{
    uint8_t bytes[8];
    tutti__packed_put(value, 8, bytes);
    tutti__text_bytes(out, bytes, sizeof bytes);
}
static inline void saved_put_number(tutti_text *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    saved_put(out, bits);
}
static inline void saved_put_bytes(tutti_text *out, const void *data, size_t size)
{
    saved_put(out, size);
    if (size > 0)
        tutti__text_bytes(out, data, size);
}

typedef struct saved_reader {
    const uint8_t *at, *end;
    bool bad;
} saved_reader;

static inline uint64_t saved_get(saved_reader *in)
{
    if (in->bad || in->end - in->at < 8) {
        in->bad = true;
        return 0;
    }
    uint64_t value = tutti__packed_get(in->at, 8);
    in->at += 8;
    return value;
}
static inline double saved_get_number(saved_reader *in)
{
    uint64_t bits = saved_get(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline tutti_packed_data saved_get_bytes(saved_reader *in)
{
    uint64_t size = saved_get(in);
    if (in->bad || size > (uint64_t)(in->end - in->at)) {
        in->bad = true;
        return (tutti_packed_data){0};
    }
    tutti_packed_data data = {in->at, (size_t)size};
    in->at += size;
    return data;
}
/* A count of things that take at least `each` bytes. */
static inline size_t saved_get_count(saved_reader *in, size_t each)
{
    uint64_t count = saved_get(in);
    if (in->bad || count > (uint64_t)(in->end - in->at) / each) {
        in->bad = true;
        return 0;
    }
    return (size_t)count;
}

#endif
