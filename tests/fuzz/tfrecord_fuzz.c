/* tfrecord_fuzz.c: the input as a file of records, packed or plain, and as one Example; an Example
 * that is accepted is built and parsed again. */
#include "fuzz.h"
#include "io/example.h"
#include "io/tfrecord.h"

static void parse(const uint8_t *data, size_t size)
{
    tutti_named_tensors features = {0}, again = {0};
    tutti_text text;
    if (!went_well(tutti__example_parse("input", data, size, &features)))
        return;
    promise(tutti__example_build(features.count, features.items, &text) == TUTTI_OK);
    promise(tutti__example_parse("again", text.data, text.size, &again) == TUTTI_OK);
    promise(again.count == features.count);
    for (size_t i = 0; i < again.count; i++)
        promise(tutti_tensor_same(again.items[i].tensor, features.items[i].tensor));
    tutti__text_free(&text);
    tutti_named_tensors_clear(&again);
    tutti_named_tensors_clear(&features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_tfrecord reader;
    const uint8_t *record;
    size_t record_size;
    parse(data, size);
    if (went_well(tutti__tfrecord_open(source_of(data, size), 1 << 20, &reader))) {
        while (went_well(tutti__tfrecord_next(&reader, &record, &record_size)) && record != NULL)
            parse(record, record_size);
        tutti__tfrecord_close(&reader);
    }
    return 0;
}
