/* mnist.h: MNIST's files as they are. */
#ifndef TUTTI_DATA_MNIST_H
#define TUTTI_DATA_MNIST_H

#include "tutti/tensor.h"

/* Images u8[n,28,28] and labels u8[n] from a folder with MNIST's files, with or without .gz. */
tutti_status tutti__mnist_files(const char *directory, bool train, tutti_tensor **ret_images,
                                tutti_tensor **ret_labels);

#endif
