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
/* What is no whole number from 0 up gives the fallback, and a line that is said once
 * (tutti__log_job). */
int64_t tutti__param_int(const tutti_param *param);
/* The same, but what is no whole number, or not in [least, most], is refused. */
tutti_status tutti__param_in(const tutti_param *param, int64_t least, int64_t most, int64_t *ret);
/* 1, true, yes or on; 0, false, no, off or nothing. False when it is neither. */
bool tutti__switch_read(const char *text, bool *ret);
#define TUTTI_SWITCH_WORDS "1, true, yes or on, or 0, false, no or off"
bool tutti__param_flag(const tutti_param *param); /* whether it is on */
/* The same, but what is neither on nor off is refused. */
tutti_status tutti__param_switch(const tutti_param *param, bool *ret);
/* Overrides by name ("THREADS"); value NULL removes. Copies. Thread-safe. */
tutti_status tutti__param_set(const char *name, const char *value);

#endif
