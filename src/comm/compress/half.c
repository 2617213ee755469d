/* half.c: 16 bits on the wire, nothing to remember. */
#include "comm/compress/compress.h"

const tutti_compression tutti_compression_bf16 = {
    .name = "bf16",
    .doc = "bfloat16 between ranks",
    .wire = TUTTI_BF16,
};

const tutti_compression tutti_compression_f16 = {
    .name = "f16",
    .doc = "half floats between ranks",
    .wire = TUTTI_F16,
};
