/* paths.h: files that a source reads one after the other, and which of them, or which of their
 * bytes, are a process's own. The settings of such a source begin with its tutti_paths. */
#ifndef TUTTI_DATA_SOURCE_PATHS_H
#define TUTTI_DATA_SOURCE_PATHS_H

#include "data/dataset.h"

typedef struct tutti_paths {
    int count;
    const char **list; /* the job's */
} tutti_paths;

/* What an iterator reads: file `file`, of it what begins in the bytes [begin, end). Zeroed at
 * first.
 */
typedef struct tutti_file_span {
    int file;
    int64_t begin, end;
    bool begun;
    int64_t *sizes; /* of the files, where bytes are cut */
} tutti_file_span;

/* A source that keeps `count` paths, or with 0 the one `path`, mixed into its hash. NULL after an
 * error, which is the job's. */
tutti_dataset *tutti__paths_dataset(const tutti_dataset_def *def, tutti_job *job, const char *path,
                                    int count, const char *const *paths);
/* The span goes on to the next file that is this process's; file == count behind the last. */
tutti_status tutti__paths_next(const tutti_paths *paths, const tutti_share *share,
                               tutti_file_span *span);
void tutti__paths_end(tutti_file_span *span);
/* For tutti_dataset_def.reads. */
void tutti__paths_reads(const tutti_dataset *dataset, tutti_intake *ret);

#endif
