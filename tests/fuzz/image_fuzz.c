/* image_fuzz.c: JPEG and PNG of up to a million pixels. */
#include "fuzz.h"
#include "io/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int channels = 0; channels <= 4; channels += channels == 0 ? 1 : channels == 1 ? 2 : 1) {
        tutti_tensor *image;
        if (went_well(tutti__image_decode("input", data, size, channels, 1 << 20, &image))) {
            promise(channels == 0 || tutti_tensor_dims(image)[2] == channels);
            tutti_tensor_release(image);
        }
    }
    return 0;
}
