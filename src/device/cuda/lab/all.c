/* all.c: the checks, in the order they run. The first measures the ceiling. */
#include "device/cuda/lab/checks.h"

const lab_check lab_checks[] = {
    {"copy", lab_check_copy},
    {"softmax", lab_check_softmax},
    {"cross_entropy", lab_check_cross_entropy},
    {"norm", lab_check_norm},
    {"reduce", lab_check_reduce},
    {"sort", lab_check_sort},
    {"embedding", lab_check_embedding},
    {"adamw", lab_check_adamw},
    {"chain", lab_check_chain},
    {"random", lab_check_random},
    {"move", lab_check_move},
    {"products", lab_check_products},
    {"epilogues", lab_check_epilogues},
    {"step", lab_check_step},
    {"convolution", lab_check_convolution},
    {"attention", lab_check_attention},
};
const int lab_check_count = sizeof lab_checks / sizeof *lab_checks;
