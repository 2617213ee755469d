/* control.h: what branches and loops share. */
#ifndef TUTTI_BRIDGE_ONNX_CONTROL_H
#define TUTTI_BRIDGE_ONNX_CONTROL_H

#include "bridge/onnx/list.h"

#define ONNX_CAPTURES 256 /* values from around a sub-graph */
#define ONNX_STATES 64    /* outputs of a branch; states and stacked values of a loop */

/* The sub-graph that is attribute `name`; NULL after a failure. */
const tutti_onnx_graph *tutti__onnx_graph_of(tutti_onnx_import *m, const char *name);
/* The values around a sub-graph that it uses; false after a failure. */
bool tutti__onnx_capture(tutti_onnx_import *m, int count, const char *const *names,
                         tutti_onnx_pack *ret);

#endif
