/* cifar.h: CIFAR-10's binary form: records of 3073 bytes: a label from 0 to 9, then 32 x 32 bytes
 * of red, of green and of blue. */
#ifndef TUTTI_IO_CIFAR_H
#define TUTTI_IO_CIFAR_H

#include "io/stream.h"
#include "tensor/tensor.h"

#define TUTTI_CIFAR_RECORD 3073

/* Images u8[n,32,32,3] and labels i64[n] of all records of a source. */
tutti_status tutti__cifar_read(tutti_source *source, tutti_tensor **ret_images,
                               tutti_tensor **ret_labels);
/* Back again; labels of any integer type. */
tutti_status tutti__cifar_write(tutti_sink *sink, tutti_tensor *images, tutti_tensor *labels);
/* The split "train" (data_batch_1.bin to data_batch_5.bin, those that are there) or "test"
 * (test_batch.bin) of a folder, or of cifar-10-batches-bin in it. */
tutti_status tutti__cifar_load(const char *folder, const char *split, tutti_tensor **ret_images,
                               tutti_tensor **ret_labels);

#endif
