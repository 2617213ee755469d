/* bytes.h: whole files, unpacked where they are gzip. */
#ifndef TUTTI_DATA_BYTES_H
#define TUTTI_DATA_BYTES_H

#include "base/status.h"

/* At most 4 GiB, packed or not. *ret_data is from malloc. */
tutti_status tutti__bytes_read(const char *path, void **ret_data, size_t *ret_size);

#endif
