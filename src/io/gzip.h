/* gzip.h: unpacking gzip, through zlib. */
#ifndef TUTTI_IO_GZIP_H
#define TUTTI_IO_GZIP_H

#include "base/status.h"

bool tutti__gzip_is(const void *data, size_t size);
/* Unpacks all members; refuses more than `limit` bytes. *ret_data is from malloc. */
tutti_status tutti__gzip_unpack(const char *name, const void *data, size_t size, size_t limit,
                                void **ret_data, size_t *ret_size);

#endif
