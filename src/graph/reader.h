/* reader.h: hostile bytes, read from front to end. Nothing is read before it is known to be there.
 * Every function fails with TUTTI_CORRUPT when the bytes cannot be what they claim to be. */
#ifndef TUTTI_GRAPH_READER_H
#define TUTTI_GRAPH_READER_H

#include "graph/serialize.h"

typedef struct tutti_reader {
    const unsigned char *at;
    size_t left;
    const char **strings; /* in `arena` */
    uint32_t string_count;
    size_t nodes, graphs; /* still allowed */
    int depth;            /* of sub-graphs, still allowed */
    tutti_arena arena;
} tutti_reader;

#define TUTTI_READ_FAIL(...) tutti_fail(TUTTI_CORRUPT, "serialised graph: " __VA_ARGS__)

/* The next `size` bytes. */
tutti_status tutti__read_bytes(tutti_reader *r, size_t size, const unsigned char **ret);
tutti_status tutti__read_word(tutti_reader *r, uint32_t *ret);
tutti_status tutti__read_long(tutti_reader *r, uint64_t *ret);
/* A number of things of which each takes at least `size` bytes of what is left; fits an int. */
tutti_status tutti__read_count(tutti_reader *r, size_t size, const char *what, uint32_t *ret);

/* The table of strings; then a string by the index that comes next. It lives as long as the arena.
 */
tutti_status tutti__read_strings(tutti_reader *r);
tutti_status tutti__read_string(tutti_reader *r, const char **ret);

/* An operator by name and version; TUTTI_NOT_FOUND names one that is not registered. */
tutti_status tutti__read_operator(tutti_reader *r, const tutti_op **ret);
/* A type with a known dtype and rank whose dimensions are sizes or TUTTI_ANY. */
tutti_status tutti__read_type(tutti_reader *r, tutti_type *ret);
/* A tensor with one reference. */
tutti_status tutti__read_tensor(tutti_reader *r, tutti_tensor **ret);
/* Gives the outputs of a node, whose types are known, their shardings. */
tutti_status tutti__read_shardings(tutti_reader *r, tutti_node *node);

#endif
