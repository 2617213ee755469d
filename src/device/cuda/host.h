/* host.h: where host.c passes calls on to. */
#ifndef TUTTI_CUDA_HOST_H
#define TUTTI_CUDA_HOST_H

#include "device/cuda/module.h"

void tutti__cuda_host_set(const tutti_cuda_host *given);

#endif
