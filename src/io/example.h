/* example.h: tf.train.Example: named lists of bytes, floats or integers.
 *
 *     Example  { Features features = 1; }
 *     Features { map<string, Feature> feature = 1; }       an entry is { key = 1; value = 2; }
 *     Feature  { BytesList = 1 | FloatList = 2 | Int64List = 3; }   each { repeated value = 1; }
 */
#ifndef TUTTI_IO_EXAMPLE_H
#define TUTTI_IO_EXAMPLE_H

#include "io/named.h"
#include "io/protobuf.h"

/* Each feature as a tensor of rank 1: string, f32 or i64, in the record's order; of a name that
 * stands twice the last counts, as protobuf has it. A feature without any list is an f32 of size 0.
 */
tutti_status tutti__example_parse(const char *name, const void *data, size_t size,
                                  tutti_named_tensors *ret_features);
/* The bytes of an Example: floats become floats, integers and booleans integers, strings bytes;
 * elements in row-major order, without their shape. */
tutti_status tutti__example_build(size_t count, const tutti_named_tensor *features,
                                  tutti_text *ret_text);

#endif
