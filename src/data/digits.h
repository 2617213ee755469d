/* digits.h: digits drawn from strokes: data that needs no file. */
#ifndef TUTTI_DATA_DIGITS_H
#define TUTTI_DATA_DIGITS_H

#include <stdint.h>

#include "tutti/tensor.h"

#define TUTTI_DIGIT_SIDE 28

/* Draws image `index` of a seed, values k / 255 in [0,1], row by row; returns its label. A function
 * of its arguments alone. */
int tutti__digit_draw(uint64_t seed, uint64_t index,
                      float ret_pixels[TUTTI_DIGIT_SIDE * TUTTI_DIGIT_SIDE]);

#define TUTTI_DIGIT_SEED 20 /* of the split "train" from image 0 and "test" from image 60,000 */

/* The split's images u8[n,28,28] and labels u8[n]. They are drawn once in a process and kept; the
 * caller gets references. */
tutti_status tutti__digits_split(bool train, tutti_tensor **ret_images, tutti_tensor **ret_labels);

#endif
