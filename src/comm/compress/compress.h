/* compress.h: lossy all-reduces that remember what they left out. One file each in compress/,
 * ending in one descriptor.
 * tables: tutti_compression
 *
 * A compression works on g + e, what is to be reduced and what earlier calls of this rank left out;
 * what this call leaves out becomes the new e. */
#ifndef TUTTI_COMM_COMPRESS_COMPRESS_H
#define TUTTI_COMM_COMPRESS_COMPRESS_H

#include "comm/coll/coll.h"

typedef struct tutti_compression {
    const char *name, *doc;
    const char *argument;   /* what stands behind the colon, for messages; NULL: nothing */
    double least, most;     /* of the argument */
    bool whole;             /* it is a whole number */
    const tutti_dtype wire; /* not 0: this form on the wire is all; the rest is NULL */
    /* Numbers to remember for a tensor of rows x columns, and filling them at the start. */
    int64_t (*state)(const tutti_compressor *compressor);
    void (*begin)(tutti_compressor *compressor);
    /* Bytes that stand for the tensor on the wire. */
    int64_t (*bytes)(const tutti_compressor *compressor);
    /* The all-reduce, sum or mean. */
    tutti_status (*reduce)(tutti_compressor *compressor, tutti_collective *collective);
} tutti_compression;

struct tutti_compressor {
    const tutti_compression *by;
    double argument;
    int64_t rows, columns; /* as a matrix; count = rows * columns */
    float *state;          /* [state_count], of which the first `count` are e */
    int64_t state_count;
};

/* Whether the call is one that the compressor can do; sets the codec where that is all. */
tutti_status tutti__compressor_fits(tutti_collective *collective);
/* One collective inside of another, by the cheapest algorithm. `out` may be `in`. */
tutti_status tutti__compressor_call(const tutti_collective *outer, tutti_operation operation,
                                    const void *in, void *out, int64_t count, tutti_dtype dtype);

#endif
