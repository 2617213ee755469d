/* tune_file.h: the choices as a text, one a line, with a head and a sum that prove it whole. */
#ifndef TUTTI_PROGRAM_TUNE_FILE_H
#define TUTTI_PROGRAM_TUNE_FILE_H

#include "base/container.h"

typedef struct tutti_choice {
    uint64_t key;
    char kernel[48];
    double nanoseconds;
} tutti_choice;

typedef TUTTI_VEC(tutti_choice) tutti_choices;

/* NULL when there is none. */
const tutti_choice *tutti__choices_find(const tutti_choices *choices, uint64_t key);
/* One that is there already stays as it is. */
tutti_status tutti__choices_add(tutti_choices *choices, const tutti_choice *choice);

/* Adds what the file holds; a file that is missing, of another version or damaged holds nothing. */
void tutti__choices_read(tutti_choices *choices, const char *path);
/* Replaces the file at once, and makes its folder. */
tutti_status tutti__choices_write(const tutti_choices *choices, const char *path);

#endif
