/* bytes.c: whole files, unpacked where they are gzip. */
#include "data/bytes.h"

#include <stdlib.h>

#include "base/world.h"
#include "io/gzip.h"

#define FILE_LIMIT ((size_t)4 << 30)

tutti_status tutti__bytes_read(const char *path, void **ret_data, size_t *ret_size)
{
    const tutti_world *world = tutti__world();
    void *data, *unpacked;
    size_t size;
    if (!path)
        return tutti_fail(TUTTI_INVALID, "the path is NULL");
    TUTTI_TRY(world->read_file(world->self, path, FILE_LIMIT, &data, &size));
    if (tutti__gzip_is(data, size)) {
        tutti_status status = tutti__gzip_unpack(path, data, size, FILE_LIMIT, &unpacked, &size);
        free(data);
        if (status != TUTTI_OK)
            return status;
        data = unpacked;
    }
    *ret_data = data;
    *ret_size = size;
    return TUTTI_OK;
}
