/* cache_fuzz.c: an element of a cache file; one that is accepted is written again as it was. */
#include <string.h>

#include "data/transform/cache.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_element element;
    tutti_text text = {0};
    if (!went_well(tutti__element_decode("input", data, size, &element)))
        return 0;
    promise(tutti__element_encode(&element, &text) == TUTTI_OK);
    promise(text.size == size && (size == 0 || memcmp(text.data, data, size) == 0));
    tutti__text_free(&text);
    tutti_element_release(&element);
    return 0;
}
