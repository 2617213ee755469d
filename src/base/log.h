/* log.h: the library never prints. A log line goes to the sink a program installed (the command
 * installs stderr), or nowhere. */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include "base/status.h"

void tutti__log(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);

#endif
