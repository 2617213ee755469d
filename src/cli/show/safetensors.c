/* safetensors.c: weights and checkpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/viewer.h"
#include "io/safetensors.h"

static int recognise(const tutti_glance *glance)
{
    if (tutti__ends_with(glance->path, ".safetensors.index.json"))
        return 4;
    bool header = glance->head_size > 9 && glance->head[8] == '{' && glance->head[7] == 0;
    return header ? 3 : tutti__ends_with(glance->path, ".safetensors");
}

static void show_metadata(const tutti_safetensors *file, bool json)
{
    const tutti_json *metadata = file->file_count > 0 ? file->files[0].metadata : NULL;
    for (const tutti_json *each = tutti__json_first(metadata); each; each = each->next) {
        if (strstr(each->key, "crc32c"))
            continue;
        if (!json) {
            printf("  ");
            tutti__print_name(each->key, 44);
            printf(" ");
            tutti__print_text(tutti__json_text(each, ""));
            printf("\n");
            continue;
        }
        printf("{\"metadata\":");
        tutti__print_quoted(each->key);
        printf(",\"value\":");
        tutti__print_quoted(tutti__json_text(each, ""));
        printf("}\n");
    }
}

static tutti_status safetensors_show(const tutti_glance *glance, bool json)
{
    tutti_safetensors *file;
    int64_t elements = 0, bytes = 0;
    TUTTI_TRY(tutti__safetensors_open(glance->path, false, &file));
    show_metadata(file, json);
    for (size_t i = 0; i < file->count; i++) {
        const tutti_safetensor *item = &file->items[i];
        int64_t size = item->size + (item->lengths ? item->lengths->size : 0);
        tutti__show_tensor(item->name, &item->type, size, json);
        elements += tutti_type_count(&item->type);
        bytes += size;
    }
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < file->count; i++) {
        tutti_tensor *tensor;
        status = tutti__safetensors_tensor(file, &file->items[i], &tensor);
        if (status == TUTTI_OK)
            tutti_tensor_release(tensor);
    }
    bool checked = file->count > 0 && file->items[0].checked;
    if (status == TUTTI_OK && !json)
        printf("  %zu tensors, %" PRId64 " elements, %" PRId64 " bytes in %d file%s; %s\n",
               file->count, elements, bytes, file->file_count, file->file_count == 1 ? "" : "s",
               checked ? "checksums are right" : "no checksums");
    tutti__safetensors_close(file);
    return status;
}

const tutti_viewer tutti_viewer_safetensors = {
    .kind = "safetensors",
    .recognise = recognise,
    .show = safetensors_show,
};
