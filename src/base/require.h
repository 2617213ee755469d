/* require.h: what callers must give. */
#ifndef TUTTI_BASE_REQUIRE_H
#define TUTTI_BASE_REQUIRE_H

#include "tutti/base.h"

/* TUTTI_OK for something that a caller gave; for NULL the failure of `function`, which misses
 * `what`: most often an earlier call failed and was not checked. */
tutti_status tutti__require(const void *something, const char *function, const char *what);
#define TUTTI_REQUIRE(something) TUTTI_TRY(tutti__require((something), __func__, #something))

/* Options that a caller gave begin with their size, which `macro` sets: TUTTI_INVALID where it is 0
 * and something else is not, since none of it would be read. NULL is fine. */
tutti_status tutti__require_options(const void *options, size_t size, const char *function,
                                    const char *macro);
#define TUTTI_REQUIRE_OPTIONS(options, macro)                                                      \
    TUTTI_TRY(tutti__require_options((options), sizeof *(options), __func__, macro))

#endif
