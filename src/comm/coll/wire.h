/* wire.h: codecs that we bring. */
#ifndef TUTTI_COMM_COLL_WIRE_H
#define TUTTI_COMM_COLL_WIRE_H

#include "tutti/comm.h"

/* For f16 and bf16; NULL for others. */
const tutti_comm_codec *tutti__wire_codec(tutti_dtype dtype);

#endif
