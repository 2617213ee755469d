/* inside.h: for the operators' own files. Nodes that a gradient rule or a builder makes belong to
 * the line of the user who asked for them, so the macros of the headers note no place here. */
#ifndef ACME_INSIDE_H
#define ACME_INSIDE_H

#include "acme.h"

#undef TUTTI_AT
#define TUTTI_AT(call) (call)

/* "op 'name': " before a message of a rule or a kernel; the library adds the user's file and line.
 */
#define ACME_FAIL(node, status, format, ...)                                                       \
    tutti_fail(status, "%s '%s': " format, (node)->op->name, (node)->name, __VA_ARGS__)

#endif
