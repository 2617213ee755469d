/* shapes.c: ten shapes in random colours, places, sizes and turns, before a background that runs
 * from one colour to another, with noise. The class is the shape alone: colour tells nothing. */
#include "data/shapes.h"

#include <math.h>

#include "base/random.h"

#define SIDE TUTTI_SHAPE_SIDE

/* Is (u, v) inside the shape? The shapes fill about [-1,1] x [-1,1]. */
static int inside(int shape, float u, float v)
{
    float r2 = u * u + v * v, au = fabsf(u), av = fabsf(v);
    float most = au > av ? au : av, least = au < av ? au : av;
    switch (shape) {
    case 0:
        return r2 < 1; /* disc */
    case 1:
        return most < 0.85f; /* square */
    case 2:
        return v < 0.8f && v > 2.2f * au - 1; /* triangle */
    case 3:
        return r2 < 1 && r2 > 0.35f; /* ring */
    case 4:
        return most < 1 && least < 0.3f; /* cross */
    case 5:
        return most < 1 && ((int)((v + 1) * 2.5f) & 1) == 0; /* bars */
    case 6:
        return au + av < 1; /* diamond */
    case 7:
        return r2 < 1 && (u - 0.5f) * (u - 0.5f) + v * v > 0.6f; /* crescent */
    case 8:
        return (au - 0.55f) * (au - 0.55f) + v * v < 0.2f; /* two discs */
    default:
        return most < 1 && (((int)((u + 1) * 2) ^ (int)((v + 1) * 2)) & 1); /* chequers */
    }
}

typedef struct scene {
    float place[2], scale, cosine, sine;
    float front[3], back[2][3]; /* colours in [0,255]; the background runs from top to bottom */
    float noise;
} scene;

static float uniform(tutti_random_key key, uint64_t *draw, float low, float high)
{
    return low + (high - low) * tutti__random_f32(key, (*draw)++);
}

static scene imagine(tutti_random_key key)
{
    scene s;
    uint64_t draw = 0;
    s.scale = uniform(key, &draw, 6.5f, 12);
    s.place[0] = 15.5f + uniform(key, &draw, -5, 5);
    s.place[1] = 15.5f + uniform(key, &draw, -5, 5);
    float t = uniform(key, &draw, -0.2f, 0.2f); /* tangent of half the angle: up to 23 degrees */
    s.cosine = (1 - t * t) / (1 + t * t);
    s.sine = 2 * t / (1 + t * t);
    s.noise = uniform(key, &draw, 8, 48);
    for (int c = 0; c < 3; c++) {
        s.back[0][c] = uniform(key, &draw, 30, 225);
        s.back[1][c] = uniform(key, &draw, 30, 225);
        float middle = (s.back[0][c] + s.back[1][c]) / 2;
        float step = uniform(key, &draw, 50, 110);
        s.front[c] = middle + (middle < 128 ? step : -step);
    }
    return s;
}

int tutti__shape_draw(uint64_t seed, uint64_t index, uint8_t ret_pixels[SIDE * SIDE * 3])
{
    tutti_random_key key = {.seed = seed ^ 0x736861706573ULL, .stream = index};
    tutti_random_key grain = {.seed = seed ^ 0x677261696eULL, .stream = index};
    int shape = (int)tutti__random_below(key, 1000, 10);
    scene s = imagine(key);
    uint8_t noise[SIDE * SIDE * 3];
    for (int i = 0; i < SIDE * SIDE * 3 / 16; i++) {
        uint32_t words[4];
        tutti__random_block(grain, (uint64_t)i, words);
        for (int k = 0; k < 16; k++)
            noise[i * 16 + k] = (uint8_t)(words[k / 4] >> (k % 4 * 8));
    }
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float dx = ((float)x - s.place[0]) / s.scale, dy = ((float)y - s.place[1]) / s.scale;
            int in = inside(shape, dx * s.cosine + dy * s.sine, dy * s.cosine - dx * s.sine);
            for (int c = 0; c < 3; c++) {
                int at = (y * SIDE + x) * 3 + c;
                float down = (float)y / (SIDE - 1);
                float value = in ? s.front[c] : s.back[0][c] * (1 - down) + s.back[1][c] * down;
                value += s.noise * ((float)noise[at] / 255 - 0.5f);
                ret_pixels[at] = (uint8_t)(value < 0 ? 0 : value > 254.5f ? 255 : value + 0.5f);
            }
        }
    return shape;
}
