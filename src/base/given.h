/* given.h: what callers must give. */
#ifndef TUTTI_BASE_GIVEN_H
#define TUTTI_BASE_GIVEN_H

#include "tutti/base.h"

/* TUTTI_OK for something that a caller gave; for NULL the failure of `function`, which misses
 * `what`: most often an earlier call failed and was not checked. */
tutti_status tutti__given(const void *something, const char *function, const char *what);
#define TUTTI_GIVEN(something) TUTTI_TRY(tutti__given((something), __func__, #something))

/* Options that a caller gave begin with their size, which `macro` sets: TUTTI_INVALID where it is 0
 * and something else is not, since none of it would be read. NULL is fine. */
tutti_status tutti__options_given(const void *options, size_t size, const char *function,
                                  const char *macro);
#define TUTTI_OPTIONS_GIVEN(options, macro)                                                        \
    TUTTI_TRY(tutti__options_given((options), sizeof *(options), __func__, macro))

#endif
