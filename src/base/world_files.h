/* world_files.h: the real world's files, for world.c's table. Everything else calls through
 * tutti__world. */
#ifndef TUTTI_BASE_WORLD_FILES_H
#define TUTTI_BASE_WORLD_FILES_H

#include "base/world.h"

/* ---- world_whole.c ---- */
/* Records "cannot <verb> '<path>': …" with the status for `error`, an errno. */
tutti_status tutti__fail_path(int error, const char *verb, const char *path);
/* Whether there is something that is neither a file nor a folder: a device, a pipe. */
bool tutti__is_nonfinite(const char *path);
bool tutti__is_folder(const char *path);
/* Creates a new file beside `path`; the name written to `name` was free. It is locked while it is
 * open, which tells it from one whose writer died. Returns -1 with errno. */
int tutti__open_beside(const char *path, char *name, size_t name_size);
/* Makes what was written to the file durable; 0 or an errno. What cannot be synced is done with. */
int tutti__sync(int fd);
/* The file that writing to `path` is about: at the end of symbolic links, if there are any, also
 * where it is not there yet. From malloc; NULL with errno. */
char *tutti__behind_links(const char *path);
/* Makes a rename to `path` durable; 0 or an errno. `name` is room to work in, of strlen(path) + 64
 * bytes. */
int tutti__sync_folder(const char *path, char *name, size_t name_size);

tutti_status tutti__real_read_file(void *self, const char *path, size_t limit, void **ret_data,
                                   size_t *ret_size);
tutti_status tutti__real_map_file(void *self, const char *path, size_t limit, void **ret_data,
                                  size_t *ret_size);
void tutti__real_unmap_file(void *self, void *data, size_t size);
tutti_status tutti__real_write_file(void *self, const char *path, const void *data, size_t size);
tutti_status tutti__real_make_folder(void *self, const char *path);

/* ---- world_files.c ---- */
tutti_status tutti__real_open_file(void *self, const char *path, tutti_file_mode mode,
                                   tutti_file **ret_file, int64_t *ret_size);
tutti_status tutti__real_read_at(void *self, tutti_file *file, int64_t offset, void *data,
                                 size_t size, size_t *ret_got);
tutti_status tutti__real_write_at(void *self, tutti_file *file, int64_t offset, const void *data,
                                  size_t size);
tutti_status tutti__real_sync_file(void *self, tutti_file *file);
tutti_status tutti__real_close_file(void *self, tutti_file *file, bool keep);
tutti_status tutti__real_list_folder(void *self, const char *path, char ***ret_names,
                                     size_t *ret_count);
tutti_status tutti__real_remove_file(void *self, const char *path);
tutti_status tutti__real_link_file(void *self, const char *path, const char *second);
tutti_status tutti__real_remove_abandoned(void *self, const char *temporary);

#endif
