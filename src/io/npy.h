/* npy.h: NumPy's format of one array (1.0, 2.0, 3.0):
 *
 *     "\x93NUMPY" major minor | u16 or u32 n | n bytes: a Python dictionary with 'descr',
 *     'fortran_order' and 'shape', ending in a new line | elements
 */
#ifndef TUTTI_IO_NPY_H
#define TUTTI_IO_NPY_H

#include "io/stream.h"
#include "tensor/tensor.h"

/* Reads a whole array in order of offsets, from offset 0 to the source's end, which must be known.
 */
tutti_status tutti__npy_read(tutti_source *source, tutti_tensor **ret_tensor);
/* Writes header and elements. Any strides, host or device memory. */
tutti_status tutti__npy_write(tutti_sink *sink, tutti_tensor *tensor);

/* How elements stand in a file. */
typedef struct tutti_npy_kind {
    char letter;  /* f i u b S U */
    int64_t size; /* bytes of one element */
    bool big_endian;
    tutti_dtype dtype; /* that it becomes */
} tutti_npy_kind;
/* "<f4", "|b1", ">i8", "<U12"; objects and what has no dtype here are refused. */
tutti_status tutti__npy_parse_descr(const char *name, const char *text, size_t size,
                                    tutti_npy_kind *ret);

typedef struct tutti_npy_header {
    tutti_npy_kind kind;
    bool fortran_order;
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
} tutti_npy_header;
/* The dictionary; `at` is its offset in the file. */
tutti_status tutti__npy_parse_header(const char *name, const char *text, size_t size, int64_t at,
                                     tutti_npy_header *ret);
/* Turns `count` elements as they stand in a file into those of a tensor's dtype. */
tutti_status tutti__npy_convert(const char *name, const tutti_npy_kind *kind, uint8_t *elements,
                                int64_t count, tutti_tensor *tensor);

#endif
