/* ops.h: every operator as a function that builds a node. Families in headers of their own. */
#ifndef TUTTI_OPS_H
#define TUTTI_OPS_H

#include "tutti/op.h"

#if __has_include("tutti/ops_elementwise.h")
#include "tutti/ops_elementwise.h"
#endif
#if __has_include("tutti/ops_linear.h")
#include "tutti/ops_linear.h"
#endif
#if __has_include("tutti/ops_reduce.h")
#include "tutti/ops_reduce.h"
#endif
#if __has_include("tutti/ops_shape.h")
#include "tutti/ops_shape.h"
#endif
#if __has_include("tutti/ops_network.h")
#include "tutti/ops_network.h"
#endif
#if __has_include("tutti/ops_random.h")
#include "tutti/ops_random.h"
#endif
#if __has_include("tutti/ops_sparse.h")
#include "tutti/ops_sparse.h"
#endif
#if __has_include("tutti/ops_state.h")
#include "tutti/ops_state.h"
#endif
#if __has_include("tutti/ops_control.h")
#include "tutti/ops_control.h"
#endif
#if __has_include("tutti/ops_text.h")
#include "tutti/ops_text.h"
#endif
#if __has_include("tutti/ops_quantized.h")
#include "tutti/ops_quantized.h"
#endif
#if __has_include("tutti/ops_comm.h")
#include "tutti/ops_comm.h"
#endif

#endif
