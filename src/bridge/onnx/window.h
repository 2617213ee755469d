/* window.h: strides, dilations and padding of convolutions and pooling. ONNX's pads are
 * [top, left, bottom, right], ours [top, bottom, left, right]. */
#ifndef TUTTI_BRIDGE_ONNX_WINDOW_H
#define TUTTI_BRIDGE_ONNX_WINDOW_H

#include "bridge/onnx.h"

/* strides and pads (or auto_pad) of the node written last, from the present one's attributes;
 * `size` is the window's. */
void tutti__onnx_set_window(tutti_onnx_export *x, const int64_t size[2]);

/* Reading, over 1 to 3 axes. Padding is always explicit; where the file names a rule for it the
 * dimensions must be known, unless it is the one that we have as "same". */
typedef struct tutti_onnx_window {
    int axes;
    int64_t strides[3], dilations[3], pads[6]; /* pads in our order */
    const char *padding;                       /* "explicit" or "same" */
} tutti_onnx_window;
/* `x` channels last, `size` the window's; false after a failure. */
bool tutti__onnx_read_window(tutti_onnx_import *m, tutti_sym x, int axes, const int64_t *size,
                             tutti_onnx_window *ret);

#endif
