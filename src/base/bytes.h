/* bytes.h: sizes as people write them. */
#ifndef TUTTI_BASE_BYTES_H
#define TUTTI_BASE_BYTES_H

#include "base/status.h"

/* "64MiB" "1.5 GiB" "500kB" "2M" "4096": i means 1024, and so does a letter alone; kB, MB, GB are
 * 1000s. INVALID says what sizes look like. */
tutti_status tutti__bytes_parse(const char *text, int64_t *ret_bytes);

#endif
