/* resize.c: bilinear interpolation. */
#include "data/resize.h"

/* The two neighbours of a place, and the share of the second. */
typedef struct neighbours {
    int64_t low, high;
    float share;
} neighbours;

static neighbours resize_place(int64_t i, int64_t size, int64_t from)
{
    float at = ((float)i + 0.5f) * (float)from / (float)size - 0.5f;
    at = at < 0 ? 0 : at > (float)(from - 1) ? (float)(from - 1) : at;
    neighbours n = {.low = (int64_t)at};
    n.high = n.low + 1 < from ? n.low + 1 : n.low;
    n.share = at - (float)n.low;
    return n;
}

void tutti__resize(const uint8_t *from, int64_t h, int64_t w, int64_t channels, int64_t height,
                   int64_t width, float *ret)
{
    for (int64_t y = 0; y < height; y++) {
        neighbours v = resize_place(y, height, h);
        const uint8_t *top = from + v.low * w * channels, *bottom = from + v.high * w * channels;
        for (int64_t x = 0; x < width; x++) {
            neighbours u = resize_place(x, width, w);
            for (int64_t c = 0; c < channels; c++) {
                float a = (float)top[u.low * channels + c], b = (float)top[u.high * channels + c];
                float d = (float)bottom[u.low * channels + c],
                      e = (float)bottom[u.high * channels + c];
                float above = a + (b - a) * u.share, below = d + (e - d) * u.share;
                *ret++ = (above + (below - above) * v.share) / 255;
            }
        }
    }
}
