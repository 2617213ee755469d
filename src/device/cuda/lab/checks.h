/* checks.h: the checks of the laboratory. */
#ifndef TUTTI_CUDA_LAB_CHECKS_H
#define TUTTI_CUDA_LAB_CHECKS_H

#include "device/cuda/lab/lab.h"

tutti_status lab_check_copy(lab *lab);
tutti_status lab_check_softmax(lab *lab);
tutti_status lab_check_cross_entropy(lab *lab);
tutti_status lab_check_norm(lab *lab);
tutti_status lab_check_reduce(lab *lab);
tutti_status lab_check_embedding(lab *lab);
tutti_status lab_check_sort(lab *lab);
tutti_status lab_check_adamw(lab *lab);
tutti_status lab_check_random(lab *lab);
tutti_status lab_check_move(lab *lab);
tutti_status lab_check_chain(lab *lab);
tutti_status lab_check_products(lab *lab);
tutti_status lab_check_epilogues(lab *lab);
tutti_status lab_check_step(lab *lab);
tutti_status lab_check_convolution(lab *lab);
tutti_status lab_check_attention(lab *lab);

#endif
