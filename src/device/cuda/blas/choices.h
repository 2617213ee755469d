/* choices.h: algorithms of cuBLASLt that were measured, as a text in the cache folder, so that
 * another process makes the same choice and need not measure:
 *
 *     tutti products 1
 *     3f9a01c2b4d5e6f7 <64 bytes of the algorithm, hexadecimal>
 *     sum 8c0e...
 *
 * A key covers shape, chip and the library's version. What is damaged counts as empty. */
#ifndef TUTTI_CUDA_CHOICES_H
#define TUTTI_CUDA_CHOICES_H

#include "base/status.h"
#include "device/cuda/driver/handles.h"

typedef struct tutti_cuda_choice {
    uint64_t key;
    tutti_blas_algorithm algorithm;
} tutti_cuda_choice;

typedef struct tutti_cuda_choices {
    tutti_cuda_choice *data;
    size_t count;
} tutti_cuda_choices;

const tutti_cuda_choice *tutti__cuda_choices_find(const tutti_cuda_choices *choices, uint64_t key);
/* The first choice of a key stays. */
tutti_status tutti__cuda_choices_add(tutti_cuda_choices *choices, const tutti_cuda_choice *choice);
void tutti__cuda_choices_free(tutti_cuda_choices *choices);

/* Adds those in a file. None when there is no such file, or it is damaged; leaves no message. */
void tutti__cuda_choices_read(tutti_cuda_choices *choices, const char *path);
/* Replaces the file. */
tutti_status tutti__cuda_choices_write(const tutti_cuda_choices *choices, const char *path);

#endif
