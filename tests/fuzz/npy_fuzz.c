/* npy_fuzz.c: arrays and archives of arrays; what is accepted is written and read again. */
#include <string.h>

#include "fuzz.h"
#include "io/npy.h"
#include "io/npz.h"

static void use_array(tutti_tensor *tensor)
{
    tutti_text text = {0};
    tutti_sink *sink;
    tutti_tensor *again;
    promise(tutti__sink_text("again", &text, &sink) == TUTTI_OK);
    if (tutti__npy_write(sink, tensor) == TUTTI_OK) {
        tutti_source *source = source_of((const uint8_t *)text.data, text.size);
        promise(tutti__npy_read(source, &again) == TUTTI_OK);
        promise(tutti_tensor_same(tensor, again));
        tutti_tensor_release(again);
        tutti__source_close(source);
    }
    tutti__sink_abort(sink);
    tutti__text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_source *source = source_of(data, size);
    tutti_named_tensors list = {0};
    tutti_tensor *tensor;
    if (size > 0 && data[0] == 0x93) {
        if (went_well(tutti__npy_read(source, &tensor))) {
            use_array(tensor);
            tutti_tensor_release(tensor);
        }
    } else if (went_well(tutti__npz_read(source, &list))) {
        for (size_t i = 0; i < list.count; i++)
            use_array(list.items[i].tensor);
        tutti_named_tensors_clear(&list);
    }
    tutti__source_close(source);
    return 0;
}
