/* crc32c.h: the Castagnoli checksum (polynomial 0x1EDC6F41, reflected), by the CPU's instruction
 * where it has one. crc32c("123456789") = 0xE3069283. */
#ifndef TUTTI_IO_CRC32C_H
#define TUTTI_IO_CRC32C_H

#include "base/status.h"

/* The checksum of bytes that follow those whose checksum is `crc` (0 for none). */
uint32_t tutti__crc32c(uint32_t crc, const void *data, size_t size);
/* The same by table, on any machine. */
uint32_t tutti__crc32c_plain(uint32_t crc, const void *data, size_t size);

/* TFRecord's disguise, so that a checksum over data with checksums stays meaningful:
 * mask(c) = rotate_right(c, 15) + 0xa282ead8. */
static inline uint32_t tutti__crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
