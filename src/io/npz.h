/* npz.h: NumPy's archive of arrays: a zip whose members are NPY files named "<array>.npy". */
#ifndef TUTTI_IO_NPZ_H
#define TUTTI_IO_NPZ_H

#include "io/named.h"
#include "io/stream.h"

/* All arrays, in the archive's order. Members that are no .npy are refused. */
tutti_status tutti__npz_read(tutti_source *source, tutti_named_tensors *ret_list);
tutti_status tutti__npz_write(tutti_sink *sink, size_t count, const tutti_named_tensor *tensors,
                              bool compress);

#endif
