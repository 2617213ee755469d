/* checkpoint.h: the state in a safetensors file: each variable under its name, and texts in the
 * metadata, or in several files with an index. What is replaced stays as the generation before
 * (io/safetensors_files.h). */
#ifndef TUTTI_STATE_CHECKPOINT_H
#define TUTTI_STATE_CHECKPOINT_H

#include "io/safetensors.h"
#include "state/state.h"

/* `path` with ".safetensors" behind it, unless it is there; without ".index.json" behind that. */
tutti_status tutti__checkpoint_path(const char *path, char *ret_path, size_t size);
/* Makes the folder of a checkpoint and finds out that a file can be written there; leaves none. */
tutti_status tutti__checkpoint_try(const char *path);
/* The same for a file of this very name. */
tutti_status tutti__place_try(const char *path);

/* Writes the snapshot (values in any memory). The folder is made when it is missing. */
tutti_status tutti__checkpoint_write(const char *path, const tutti_snapshot *snapshot,
                                     size_t metadata_count, const tutti_text_pair *metadata,
                                     int64_t shard_bytes);
/* Bytes of data in one file of a checkpoint: TUTTI_SHARD_BYTES. */
int64_t tutti__checkpoint_shard_bytes(void);

/* Opens and checks every byte. When the file is damaged or missing and the generation before it is
 * good, that one is opened, with a line in the log. `checked` as in tutti__safetensors_open. */
tutti_status tutti__checkpoint_open(const char *path, bool checked, tutti_safetensors **ret);
/* A number by which copies of one checkpoint are known: of all that stands in it, by its checksums.
 * Not 0. */
uint64_t tutti__checkpoint_identity(const tutti_safetensors *file);
/* Gives every tensor of the file to the state, as tutti__state_expect. Where a variable or queue
 * that is there is another than was saved, INVALID says how, and nothing has changed. */
tutti_status tutti__checkpoint_restore(const tutti_safetensors *file, tutti_state *state);

#endif
