/* standard.h: what a process was started with: descriptors 0 to 2, and a signal. */
#ifndef TUTTI_BASE_STANDARD_H
#define TUTTI_BASE_STANDARD_H

#include <stdbool.h>

/* Those that are closed, as a daemon's may be, become /dev/null: else the next socket or pipe would
 * be what everybody prints to. Standard output so that it cannot be written: who has to know
 * whether what it printed arrived is told. */
void tutti__standard_descriptors(void);
/* Whether something that was printed to standard output did not arrive: on a full disk, or where it
 * is closed. The first call that finds that says so on standard error. */
bool tutti__standard_output_lost(void);
/* A file that becomes larger than the process may write (ulimit -f) is an error of the writing, not
 * the end of the process, unless the program handles SIGXFSZ itself. */
void tutti__standard_file_limit(void);

#endif
