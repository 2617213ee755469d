/* idx.h: the IDX format as bytes: two zero bytes, type, rank, dimensions (big-endian), elements. */
#ifndef TUTTI_IO_IDX_H
#define TUTTI_IO_IDX_H

#include "base/container.h"
#include "tensor/tensor.h"

/* Parses IDX bytes (uncompressed). `name` is for messages. */
tutti_status tutti__idx_parse(const char *name, const uint8_t *data, size_t size,
                              tutti_tensor **ret);
/* Appends a tensor (u8, i8, i32, f32, f64) as IDX bytes. `name` is for messages. */
tutti_status tutti__idx_write(const char *name, tutti_tensor *tensor, tutti_text *ret);

#endif
