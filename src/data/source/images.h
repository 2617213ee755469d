/* images.h: what the sources of images with labels share. */
#ifndef TUTTI_DATA_SOURCE_IMAGES_H
#define TUTTI_DATA_SOURCE_IMAGES_H

#include "data/source/rows.h"

/* New u8 [count,height,width,channels] and u8 [count]. */
tutti_status tutti__images_create(int64_t count, int64_t height, int64_t width, int64_t channels,
                                  tutti_tensor **ret_images, tutti_tensor **ret_labels);
/* Bytes as elements: images f32 in [0,1], with a channel axis where they have none, labels (u8 or
 * i64; NULL: none) i64. Takes both references, also on failure. */
tutti_dataset *tutti__images_dataset(tutti_job *job, const tutti_dataset_def *def,
                                     tutti_tensor *images, tutti_tensor *labels, int64_t classes);
/* False, and the job's error, when the split is neither "train" nor "test". */
bool tutti__split_is_train(tutti_job *job, const tutti_dataset_def *def, const char *split,
                           bool *ret_train);

#endif
