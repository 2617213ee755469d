/* standard.h: descriptors 0 to 2. */
#ifndef TUTTI_BASE_STANDARD_H
#define TUTTI_BASE_STANDARD_H

/* Those that are closed, as a daemon's may be, become /dev/null: else the next socket or pipe would
 * be what everybody prints to. */
void tutti__standard_descriptors(void);

#endif
