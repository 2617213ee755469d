/* debug.h: --debug-nan (TUTTI_DEBUG_NAN): targets look at every value, and passes fuse nothing, so
 * that each operator has its own name. */
#ifndef TUTTI_PROGRAM_DEBUG_H
#define TUTTI_PROGRAM_DEBUG_H

#include <stdbool.h>

bool tutti__debug_nan(void);

#endif
