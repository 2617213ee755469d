/* pieces.h: what split and split_like share. */
#ifndef TUTTI_OPS_SHAPE_PIECES_H
#define TUTTI_OPS_SHAPE_PIECES_H

#include "ops/shape/move.h"

/* The outputs are pieces of input 0 along attribute axis, one after the other. */
tutti_status tutti__pieces_reference(const tutti_kernel_call *call);

#endif
