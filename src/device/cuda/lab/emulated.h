/* emulated.h: a device that is this machine's CPU. */
#ifndef TUTTI_CUDA_LAB_EMULATED_H
#define TUTTI_CUDA_LAB_EMULATED_H

#include "device/cuda/driver/device.h"

/* Kernels are compiled into `folder`, which exists, and kept there. */
tutti_status lab_emulated_device(const char *folder, tutti_cuda_device *ret);

#endif
