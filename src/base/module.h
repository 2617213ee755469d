/* module.h: libraries of ours that are loaded when they are first needed. */
#ifndef TUTTI_BASE_MODULE_H
#define TUTTI_BASE_MODULE_H

/* The module's handle for dlsym, or NULL. Looked for in the folder TUTTI_MODULES; beside the
 * program and beside this library, where both the build (in `room`, "src/comm/mpi/") and an
 * installation (in lib/tutti/) have it; where this library was to be installed; and where the
 * system looks. */
void *tutti__module_open(const char *room, const char *file);

#endif
