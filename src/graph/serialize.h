/* serialize.h: the binary form of a graph, as writer and reader share it.
 *
 * Everything is little-endian; word means 32 bits.
 *
 *   header    magic (8 bytes), version (word), reserved (word, 0), bytes of the payload (64 bits),
 *             checksum over the header before it and the payload (64 bits)
 *   payload   strings, then one graph
 *   strings   count, then each: size, bytes; no NUL inside. Everything below names strings by index
 *   graph     flags (bit 0: a trace), node count, nodes,
 *             result count, each: node, output; target count, each: node
 *   node      operator, version, name, origin, device, colocated node + 1 or 0;
 *             output count, each: a type;
 *             input count, each: node, output; control count, each: node;
 *             attribute count, attributes; sharding count (0 or the outputs), shardings
 *   type      one word: dtype | rank << 8 | handle << 16, then a 64-bit size per dimension
 *   attribute name, kind, then by kind: 64 bits (int, float); count and elements (string, ints,
 *             floats, types); tensor; graph
 *   tensor    type, then contiguous elements; strings as size (word) and bytes
 *   sharding  count + 1, or 0 for none; each: axis, kind, dimension or reduction
 *
 * Nodes stand in the order of their ids and name only earlier ones (a colocated node may come
 * later). The user's file and line do not travel. Types travel only to be compared with what the
 * reader's own shape rules say; a parameter's may say more than its attributes. */
#ifndef TUTTI_GRAPH_SERIALIZE_H
#define TUTTI_GRAPH_SERIALIZE_H

#include "graph/graph.h"

#define TUTTI_GRAPH_MAGIC "tuttigr\n"
enum {
    TUTTI_GRAPH_VERSION = 1,
    TUTTI_GRAPH_HEADER = 32,         /* bytes */
    TUTTI_GRAPH_CHECKSUM = 24,       /* where in the header */
    TUTTI_GRAPH_TRACE = 1,           /* flag */
    TUTTI_GRAPH_MAX_DEPTH = 16,      /* a graph without sub-graphs has depth 1 */
    TUTTI_GRAPH_MAX_NODES = 1000000, /* those of sub-graphs too */
    TUTTI_GRAPH_MAX_ATTRS = 64,
    TUTTI_GRAPH_MAX_GRAPHS = 65536, /* the outermost and all sub-graphs */
    TUTTI_GRAPH_MAX_STRING = 1024,  /* bytes of a name, of which every node may have a copy */
    TUTTI_GRAPH_MAX_AXIS = 64,      /* of the name of a mesh axis */
    TUTTI_GRAPH_MAX_AXES = 64       /* mesh axes of one sharding */
};

/* The checksum that the header of this form must hold; size >= TUTTI_GRAPH_HEADER. */
uint64_t tutti__graph_checksum(const void *data, size_t size);

#endif
