/* log.h: the library never prints. A log line goes to the sink a program installed (the command
 * installs stderr), or nowhere. */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include "base/status.h"

typedef enum tutti_log_level { TUTTI_LOG_DEBUG, TUTTI_LOG_INFO, TUTTI_LOG_WARNING } tutti_log_level;
typedef void tutti_log_sink(void *context, tutti_log_level level, const char *message);
void tutti__log_install(tutti_log_sink *sink, void *context); /* NULL removes */
void tutti__log(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);

#endif
