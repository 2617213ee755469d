/* tune.h: which of several kernels is fastest, measured once for a shape on a machine.
 *
 * Choices are kept in the user's cache folder, so every process makes the same ones: where nothing
 * can be kept there, nothing is measured. They do not depend on the number of threads. In
 * deterministic mode nothing is measured and scores decide. */
#ifndef TUTTI_PROGRAM_TUNE_H
#define TUTTI_PROGRAM_TUNE_H

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

#endif
