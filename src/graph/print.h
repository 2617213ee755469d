/* print.h: pieces of text that the printer and the Graphviz writer share. */
#ifndef TUTTI_GRAPH_PRINT_H
#define TUTTI_GRAPH_PRINT_H

#include "graph/graph.h"

/* Bytes with everything but printable ASCII, '"' and '\\' as they are, cut after 64. */
void tutti__print_bytes(tutti_text *out, const char *data, size_t size);

/* "name=value"; sub-graphs as the name alone, because they stand elsewhere. */
void tutti__print_attr(tutti_text *out, const tutti_op *op, const tutti_attr *attr);

/* Whether the attribute has the value that its operator's table gives when it is left out. */
bool tutti__attr_is_default(const tutti_op *op, const tutti_attr *attr);

/* " [data, -] partial(sum: model)", or nothing. */
void tutti__print_sharding(tutti_text *out, tutti_edge edge);

/* Hands the text over as a string from malloc, or frees it and fails. */
tutti_status tutti__print_finish(tutti_text *out, char **ret_text);

#endif
