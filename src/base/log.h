/* log.h: a log line goes to the sink a program installed (the command installs stderr), or
 * nowhere. Only what a job of several processes says once goes to stderr where no program ever
 * spoke about sinks: who is in it, and who held it up. */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include "base/status.h"

void tutti__log(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);
void tutti__log_job(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);

#endif
