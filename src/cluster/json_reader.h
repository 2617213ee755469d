/* json_reader.h: the little of JSON that TF_CONFIG needs, read in place and without memory. (The
 * whole reader lives with the file formats, a floor above.) */
#ifndef TUTTI_CLUSTER_JSON_READER_H
#define TUTTI_CLUSTER_JSON_READER_H

#include "base/status.h"

typedef struct tutti_json_reader {
    const char *text, *at;
} tutti_json_reader;

/* The next character that is no blank; '\0' at the end. */
char tutti__json_peek(tutti_json_reader *reader);
/* Goes into an object or array; *ret_more is false when it is empty (and then left again). */
tutti_status tutti__json_open(tutti_json_reader *reader, char bracket, bool *ret_more);
/* After an element: a comma, or the closing bracket. */
tutti_status tutti__json_more(tutti_json_reader *reader, char close, bool *ret_more);
tutti_status tutti__json_key_name(tutti_json_reader *reader, char *ret_text, size_t size);
/* Escapes are understood except \u beyond ASCII. */
tutti_status tutti__json_read_text(tutti_json_reader *reader, char *ret_text, size_t size);
tutti_status tutti__json_read_int(tutti_json_reader *reader, int low, int high, int *ret_value);
tutti_status tutti__json_skip(tutti_json_reader *reader); /* any value */
tutti_status tutti__json_end_of_text(tutti_json_reader *reader);

#endif
