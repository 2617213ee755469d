/* cifar_fuzz.c: CIFAR-10's records; what is accepted is written again as it was. */
#include <string.h>

#include "fuzz.h"
#include "io/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_tensor *images, *labels;
    tutti_text text = {0};
    tutti_sink *sink;
    tutti_source *source = source_of(data, size);
    if (went_well(tutti__cifar_read(source, &images, &labels))) {
        promise(tutti__sink_text("again", &text, &sink) == TUTTI_OK);
        promise(tutti__sink_end(sink, tutti__cifar_write(sink, images, labels)) == TUTTI_OK);
        promise(text.size == size && memcmp(text.data, data, size) == 0);
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
    }
    tutti__text_free(&text);
    tutti__source_close(source);
    return 0;
}
