/* idx_fuzz.c: IDX bytes, packed by gzip or not; what is accepted is written again as it was, i16 as
 * i32. */
#include <string.h>

#include "fuzz.h"
#include "io/gzip.h"
#include "io/idx.h"

enum { I16 = 0x0b }; /* read as i32, which then is written */

static void parse(const uint8_t *data, size_t size)
{
    tutti_tensor *tensor, *again;
    tutti_text text = {0};
    if (!went_well(tutti__idx_parse("input", data, size, &tensor)))
        return;
    if (went_well(tutti__idx_write("again", tensor, &text))) {
        promise(data[2] == I16 || (text.size == size && memcmp(text.data, data, size) == 0));
        promise(tutti__idx_parse("again", (const uint8_t *)text.data, text.size, &again) ==
                TUTTI_OK);
        promise(tutti_tensor_same(tensor, again));
        tutti_tensor_release(again);
    }
    tutti__text_free(&text);
    tutti_tensor_release(tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *unpacked;
    size_t unpacked_size;
    if (!tutti__gzip_is(data, size)) {
        parse(data, size);
        return 0;
    }
    if (went_well(tutti__gzip_unpack("input", data, size, 1 << 20, &unpacked, &unpacked_size))) {
        parse(unpacked, unpacked_size);
        free(unpacked);
    }
    return 0;
}
