/* data.h: data for training: files and drawn digits. */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an IDX file (MNIST's format), gzip-compressed or not, as a tensor of its own element type.
 * At most 4 GiB once unpacked; malformed files are refused. */
TUTTI_API tutti_status tutti_idx_load(const char *path, tutti_tensor **ret_tensor);

/* Images [n,28,28,1] f32 in [0,1] and labels [n] i64 of the split "train" or "test": MNIST from the
 * folder `directory` (files named as MNIST's, with or without .gz), or, with NULL or "", the same
 * number of drawn digits (60,000 and 10,000). `limit` > 0 takes the first ones only. */
TUTTI_API tutti_status tutti_mnist_load(const char *directory, const char *split, int64_t limit,
                                        tutti_tensor **ret_images, tutti_tensor **ret_labels);

/* Digits drawn from strokes, with affine and elastic distortion and noise: image i of a seed is the
 * same on every machine and thread. images [count,28,28,1] f32, labels [count] i64. */
TUTTI_API tutti_status tutti_digits_draw(uint64_t seed, int64_t first, int64_t count,
                                         tutti_tensor **ret_images, tutti_tensor **ret_labels);

/* Rows `rows[0 .. count)` of the axis 0 of a contiguous tensor of numbers, copied into a new
 * tensor. */
TUTTI_API tutti_status tutti_take_rows(const tutti_tensor *tensor, int64_t count,
                                       const int64_t *rows, tutti_tensor **ret_tensor);
/* Writes a permutation of 0 … count-1: a function of seed and epoch. */
TUTTI_API void tutti_shuffled(uint64_t seed, uint64_t epoch, int64_t count, int64_t *ret_order);

#ifdef __cplusplus
}
#endif
#endif
