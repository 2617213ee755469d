/* safetensors_fuzz.c: the input is a file; or, when it does not begin with a size of its own, a
 * header for which size and data are made up. */
#include <string.h>

#include "fuzz.h"
#include "io/safetensors.h"

static void read_file(const uint8_t *data, size_t size)
{
    tutti_source *source = source_of(data, size);
    tutti_safetensors *file;
    if (went_well(tutti__safetensors_read(source, &file))) {
        for (size_t i = 0; i < file->count; i++) {
            const tutti_safetensor *item = &file->items[i];
            tutti_tensor *tensor;
            promise(tutti__safetensors_find(file, item->name) == item);
            promise(item->offset >= 8 && item->offset + item->size <= (int64_t)size);
            if (went_well(tutti__safetensors_tensor(file, item, &tensor)))
                tutti_tensor_release(tensor);
        }
        tutti__safetensors_close(file);
    }
    tutti__source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_file(data, size);
    if (size > 2 && data[0] == '{') {
        uint8_t *made = calloc(1, size + 8 + 64);
        promise(made != NULL);
        tutti__put_u64(made, size);
        memcpy(made + 8, data, size);
        for (size_t extra = 0; extra <= 64; extra += 8)
            read_file(made, size + 8 + extra);
        free(made);
    }
    return 0;
}
