/* folders.h: the folders that NVIDIA's libraries may lie in. */
#ifndef TUTTI_CUDA_FOLDERS_H
#define TUTTI_CUDA_FOLDERS_H

#include "base/status.h"

typedef struct tutti_cuda_folders {
    char **paths;
    size_t count;
} tutti_cuda_folders;

/* In the order they are looked through; "" stands for where the system looks. */
tutti_status tutti__cuda_folders(bool of_the_system, tutti_cuda_folders *ret);
void tutti__cuda_folders_free(tutti_cuda_folders *folders);
/* Whether there is such a file; folders that cannot be read hold nothing. */
bool tutti__cuda_folder_holds(const char *folder, const char *file);
/* "the folders of TUTTI_CUDA (/x)" or what is looked through without it. */
void tutti__cuda_folders_say(bool of_the_system, char *ret_text, size_t size);

#endif
