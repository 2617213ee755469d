/* npz.c: see npz.h. */
#include "io/npz.h"

#include <string.h>

#include "io/npy.h"
#include "io/zip.h"

static tutti_status read_member(tutti_zip_file *zip, size_t index, tutti_named_tensors *list)
{
    const char *name = zip->members[index].name;
    size_t length = strlen(name);
    if (length <= 4 || strcmp(name + length - 4, ".npy") != 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: member '%.200s' is no array (expected .npy)",
                          zip->source->name, name);
    tutti_source *member;
    tutti_tensor *tensor;
    TUTTI_TRY(tutti__zip_member_source(zip, index, &member));
    tutti_status status = tutti__npy_read(member, &tensor);
    tutti__source_close(member);
    TUTTI_TRY(status);
    return tutti__named_add(list, name, length - 4, tensor);
}

tutti_status tutti__npz_read(tutti_source *source, tutti_named_tensors *ret_list)
{
    tutti_zip_file *zip;
    tutti_named_tensors list = {0};
    TUTTI_TRY(tutti__zip_open(source, &zip));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < zip->count && status == TUTTI_OK; i++)
        status = read_member(zip, i, &list);
    tutti__zip_close(zip);
    if (status != TUTTI_OK)
        tutti_named_tensors_clear(&list);
    else
        *ret_list = list;
    return status;
}

static tutti_status write_member(tutti_zip_writer *writer, const tutti_named_tensor *each,
                                 bool compress)
{
    tutti_text name = {0};
    tutti_sink *sink;
    tutti__text_add(&name, "%s.npy", each->name);
    tutti_status status = name.failed
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write '%s'", each->name)
                              : tutti__zip_begin_member(writer, name.data, compress, &sink);
    tutti__text_free(&name);
    TUTTI_TRY(status);
    return tutti__zip_end_member(writer, sink, tutti__npy_write(sink, each->tensor));
}

static tutti_status check_names(const tutti_sink *sink, size_t count,
                                const tutti_named_tensor *tensors)
{
    tutti_map seen = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        status = tutti__map_get(&seen, tensors[i].name) != NULL
                     ? tutti_fail(TUTTI_INVALID, "%s: the name '%.200s' is given twice", sink->name,
                                  tensors[i].name)
                     : tutti__map_set(&seen, tensors[i].name, tensors[i].tensor);
    tutti__map_free(&seen);
    return status;
}

tutti_status tutti__npz_write(tutti_sink *sink, size_t count, const tutti_named_tensor *tensors,
                              bool compress)
{
    tutti_zip_writer writer;
    TUTTI_TRY(check_names(sink, count, tensors));
    TUTTI_TRY(tutti__zip_begin(sink, &writer));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        status = write_member(&writer, &tensors[i], compress);
    if (status == TUTTI_OK)
        status = tutti__zip_finish(&writer);
    tutti__zip_free(&writer);
    return status;
}
