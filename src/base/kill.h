/* kill.h: for tests: TUTTI_KILL_AT=N ends this process by SIGKILL at boundary N between
 * instructions, and between the messages of their collectives, counted over all of its threads from
 * the first commit of a whole run on. */
#ifndef TUTTI_BASE_KILL_H
#define TUTTI_BASE_KILL_H

#include <stdbool.h>
#include <stdint.h>

/* Whether boundaries are counted; asked when a program is compiled. */
bool tutti__kill_counts(void);
/* Counting begins, unless it has. */
void tutti__kill_begin(void);
/* A boundary; behind this call the process may be no more. Nothing before tutti__kill_begin. */
void tutti__kill_point(void);
int64_t tutti__kill_count(void); /* boundaries so far */

#endif
