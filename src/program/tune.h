/* tune.h: which of several kernels is fastest, measured once for a shape on a machine.
 *
 * Choices are kept in the user's cache folder, so every process makes the same ones: where nothing
 * can be kept there, nothing is measured. They do not depend on the number of threads. In
 * deterministic mode nothing is measured and scores decide. */
#ifndef TUTTI_PROGRAM_TUNE_H
#define TUTTI_PROGRAM_TUNE_H

#include "base/container.h"
#include "program/kernel.h"
#include "program/target.h"

/* The kernel for a node: the fastest of its rivals, or the highest bid when there are none. NULL
 * when only the reference is left. */
const tutti_kernel *tutti__tune_pick(const tutti_device *device, const tutti_kernel_query *query);

/* Whether TUTTI_TUNE says anything. */
tutti_status tutti__tune_check_setting(void);

/* Writes what was measured since the last call. */
void tutti__tune_save(void);

/* The folder of what was measured or compiled: TUTTI_CACHE, else the user's cache folder; or NULL.
 * Valid until the next call of a thread. */
const char *tutti__tune_folder(void);
/* The file, or NULL where no folder for it is known; valid until the next call of a thread. */
const char *tutti__tune_path(void);

/* Forgets what was measured and read, not the file; for tests. */
void tutti__tune_forget(void);

/* ---- the choices as a text, one a line, with a head and a sum that prove it whole ---- */

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
