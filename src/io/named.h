/* named.h: lists of tensors with names, as they are built up. */
#ifndef TUTTI_IO_NAMED_H
#define TUTTI_IO_NAMED_H

#include "tensor/tensor.h"
#include "tutti/files.h"

/* Appends; takes the tensor over, also on failure. The name's bytes are copied. */
tutti_status tutti__named_add(tutti_named_tensors *list, const char *name, size_t name_size,
                              tutti_tensor *tensor);

#endif
