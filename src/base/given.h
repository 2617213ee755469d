/* given.h: what callers must give. */
#ifndef TUTTI_BASE_GIVEN_H
#define TUTTI_BASE_GIVEN_H

#include "tutti/base.h"

/* TUTTI_OK for something that a caller gave; for NULL the failure of `function`, which misses
 * `what`: most often an earlier call failed and was not checked. */
tutti_status tutti__given(const void *something, const char *function, const char *what);
#define TUTTI_GIVEN(something) TUTTI_TRY(tutti__given((something), __func__, #something))

#endif
