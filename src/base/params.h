/* params.h: parameters declared beside their use and set by environment, TUTTI_<NAME>.
 *
 *     static tutti_param threads = TUTTI_PARAM("THREADS", "0", "CPU threads; 0 takes all granted");
 *     int64_t n = tutti__param_int(&threads);
 */
#ifndef TUTTI_BASE_PARAMS_H
#define TUTTI_BASE_PARAMS_H

#include "base/status.h"

typedef struct tutti_param {
    const char *name, *fallback, *help;
} tutti_param;
#define TUTTI_PARAM(name_, fallback_, help_)                                                       \
    {                                                                                              \
        .name = (name_), .fallback = (fallback_), .help = (help_)                                  \
    }

/* The text in force: an override set by the program, else the environment, else the fallback. */
const char *tutti__param_text(const tutti_param *param);
/* Unreadable text gives the fallback, and a line that is said once (tutti__log_job). */
int64_t tutti__param_int(const tutti_param *param);
/* The same, but what is no whole number, or not in [least, most], is refused. */
tutti_status tutti__param_in(const tutti_param *param, int64_t least, int64_t most, int64_t *ret);
bool tutti__param_flag(const tutti_param *param); /* 1 true yes on; set but empty is false */
/* The same, but what is neither one of these nor 0, false, no, off or empty is refused. */
tutti_status tutti__param_switch(const tutti_param *param, bool *ret);
/* Overrides by name ("THREADS"); value NULL removes. Copies. Thread-safe. */
tutti_status tutti__param_set(const char *name, const char *value);

#endif
