/* printable.h: text of others on its way to a terminal or a log. Names in files may hold anything,
 * and what a terminal takes for a command (ESC and its like) would be obeyed. */
#ifndef TUTTI_BASE_PRINTABLE_H
#define TUTTI_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Control characters but those of `kept` ("\n\t") as \x1b, the ones above 0x7f (UTF-8) as \u009b.
 * Returns the length that it needs, like snprintf; what does not fit is cut, no escape in its
 * middle. */
size_t tutti__printable(const char *text, const char *kept, char *ret, size_t size);
/* Whether it would change the text. */
bool tutti__is_printable(const char *text, const char *kept);

#endif
