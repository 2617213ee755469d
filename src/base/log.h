/* log.h: a log line goes to the sink a program installed (the command installs stderr), or
 * nowhere. Only what a job says once (tutti__log_job) goes to stderr where no program ever spoke
 * about sinks: of several processes who is in it and who held it up; settings that cannot be read,
 * files that one asked for and that cannot be written, folders that are made, checkpoints that are
 * damaged, a training that ends early. */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include "base/status.h"

void tutti__log(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);
void tutti__log_job(tutti_log_level level, const char *format, ...) TUTTI_PRINTF(2, 3);

/* --quiet: what the command's sink leaves out of it, lines that are no warnings. A program's own
 * sink gets them all. */
void tutti__log_quieten(bool on);
bool tutti__log_quiet(void);

#endif
