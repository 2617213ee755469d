/* checks.h: the checks of the laboratory. */
#ifndef TUTTI_CUDA_LAB_CHECKS_H
#define TUTTI_CUDA_LAB_CHECKS_H

#include "device/cuda/lab/lab.h"

tutti_status lab_check_copy(lab_bench *lab);
tutti_status lab_check_softmax(lab_bench *lab);
tutti_status lab_check_cross_entropy(lab_bench *lab);
tutti_status lab_check_norm(lab_bench *lab);
tutti_status lab_check_reduce(lab_bench *lab);
tutti_status lab_check_embedding(lab_bench *lab);
tutti_status lab_check_sort(lab_bench *lab);
tutti_status lab_check_adamw(lab_bench *lab);
tutti_status lab_check_random(lab_bench *lab);
tutti_status lab_check_move(lab_bench *lab);
tutti_status lab_check_chain(lab_bench *lab);
tutti_status lab_check_products(lab_bench *lab);
tutti_status lab_check_epilogues(lab_bench *lab);
tutti_status lab_check_step(lab_bench *lab);
tutti_status lab_check_convolution(lab_bench *lab);
tutti_status lab_check_attention(lab_bench *lab);

#endif
