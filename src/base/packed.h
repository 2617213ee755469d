/* packed.h: structs to bytes and back, both from one table of fields, little-endian. The bytes are
 * hostile: nothing is read before it is known to be there, and no memory is taken. */
#ifndef TUTTI_BASE_PACKED_H
#define TUTTI_BASE_PACKED_H

#include "base/container.h"

typedef enum tutti_packed_kind {
    TUTTI_PACKED_END,
    TUTTI_PACKED_U32,
    TUTTI_PACKED_U64,  /* and i64 */
    TUTTI_PACKED_F64,  /* any number but NaN */
    TUTTI_PACKED_TEXT, /* char[]: u16 of bytes and the bytes, no NUL inside */
    TUTTI_PACKED_DATA, /* tutti_packed_data: u32 of bytes and the bytes */
    TUTTI_PACKED_LONGS /* tutti_packed_data: u32 of numbers and 8 bytes each */
} tutti_packed_kind;

/* Bytes that lie elsewhere: of what was read, in the bytes that it was read from. At any address.
 */
typedef struct tutti_packed_data {
    const uint8_t *bytes;
    size_t size;
} tutti_packed_data;

typedef struct tutti_packed_field {
    tutti_packed_kind kind;
    size_t offset, size; /* in the struct; size of a text: its room, NUL included */
    uint32_t below;      /* of U32: the first number that cannot be; 0: any can */
} tutti_packed_field;

/* `fields` ends with TUTTI_PACKED_END. Bytes that the struct takes, and writing so many. Texts are
 * cut at their room. */
size_t tutti__packed_size(const tutti_packed_field *fields, const void *object);
uint8_t *tutti__packed_write(const tutti_packed_field *fields, const void *object, uint8_t *to);
/* Reads a zeroed struct from *at, which moves behind what was read; false when the bytes are no
 * such struct: cut short, a number out of its range, a text that does not fit. */
bool tutti__packed_read(const tutti_packed_field *fields, const uint8_t **at, const uint8_t *end,
                        void *object);

/* One number of LONGS. */
int64_t tutti__packed_long(tutti_packed_data longs, size_t index);

static inline uint64_t tutti__packed_get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}
static inline void tutti__packed_put(uint64_t value, int bytes, uint8_t *at)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

#endif
