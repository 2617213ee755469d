/* digits.h: digits drawn from strokes: data that needs no file. */
#ifndef TUTTI_DATA_DIGITS_H
#define TUTTI_DATA_DIGITS_H

#include <stdint.h>

#define TUTTI_DIGIT_SIDE 28

/* Draws image `index` of a seed, values in [0,1], row by row; returns its label. A function of its
 * arguments alone. */
int tutti__digit_draw(uint64_t seed, uint64_t index,
                      float ret_pixels[TUTTI_DIGIT_SIDE * TUTTI_DIGIT_SIDE]);

#endif
