/* shapes.h: small colour images of ten shapes: data in CIFAR-10's form that needs no file. */
#ifndef TUTTI_DATA_SHAPES_H
#define TUTTI_DATA_SHAPES_H

#include <stdint.h>

#define TUTTI_SHAPE_SIDE 32

/* Draws image `index` of a seed as bytes [32,32,3]; returns its class, 0 … 9. A function of its
 * arguments alone. */
int tutti__shape_draw(uint64_t seed, uint64_t index,
                      uint8_t ret_pixels[TUTTI_SHAPE_SIDE * TUTTI_SHAPE_SIDE * 3]);

#endif
