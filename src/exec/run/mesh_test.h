/* mesh_test.h: texts of meshes, for tests that have lists of devices. */
#ifndef TUTTI_EXEC_RUN_MESH_TEST_H
#define TUTTI_EXEC_RUN_MESH_TEST_H

#include <stdio.h>
#include <string.h>

/* "cpu:0,cpu:1"; the text is overwritten by the next call. */
static inline const char *mesh_devices(int count, const char *const *devices)
{
    static char text[256];
    text[0] = 0;
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "," : "",
                 devices[i]);
    return text;
}

/* "batch=3"; likewise. */
static inline const char *mesh_axis(const char *name, int size)
{
    static char text[64];
    snprintf(text, sizeof text, "%s=%d", name, size);
    return text;
}

#endif
