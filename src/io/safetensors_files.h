/* safetensors_files.h: the files that belong to one path, two generations deep.
 *
 *     x.safetensors                                 all tensors, or
 *     x.safetensors.index.json                      which tensor is in which of
 *     x-00001-of-00003.safetensors, …               the pieces; of a later saving
 *     x-00001-of-00003.g2.safetensors, …            with its number, the generation
 *     x.safetensors.previous, x.safetensors.index.json.previous
 *                                                   the first or the second as it was before
 *
 * Invariants:
 *  1. No piece that an index names is ever written over: a saving makes pieces of a new generation.
 *  2. The saving is done when its file or index is renamed into place, and not before. Where both
 *     are there, the file counts: from one file to pieces the removal of the file is that moment.
 *  3. Pieces that neither index names are removed after a saving. */
#ifndef TUTTI_IO_SAFETENSORS_FILES_H
#define TUTTI_IO_SAFETENSORS_FILES_H

#include "base/status.h"

/* Is it the name of a piece, of any path? */
bool tutti__safetensors_is_piece(const char *name);
/* The generation for the pieces of the next saving: one more than any that is there, or 0. */
tutti_status tutti__safetensors_next_generation(const char *path, int64_t *ret_generation);
/* What is there gets the name of the generation before, in the place of what had it. Where nothing
 * is there, nothing happens. */
tutti_status tutti__safetensors_keep_previous(const char *path);
/* After a saving, into pieces or not: removes the file or index of the other kind, then pieces that
 * no index names and temporary files of processes that died. */
tutti_status tutti__safetensors_clean(const char *path, bool pieces);
/* All files of the path, as far as that is possible. */
void tutti__safetensors_remove(const char *path);

#endif
