/* resize.h: images of other sizes. */
#ifndef TUTTI_DATA_RESIZE_H
#define TUTTI_DATA_RESIZE_H

#include <stdint.h>

/* Bilinear, pixel centres at (i + 1/2) / size, edges repeated: u8 [h,w,c] to f32 [height,width,c]
 * in [0,1]. */
void tutti__resize(const uint8_t *from, int64_t h, int64_t w, int64_t channels, int64_t height,
                   int64_t width, float *ret);

#endif
