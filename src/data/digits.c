/* digits.c: how a digit is drawn.
 *
 * Each digit is a few strokes: arcs and lines. A stroke's points are bent by a smooth
 * random displacement (elastic), then turned, sheared, scaled and moved (affine); a pixel's ink
 * falls off with its distance to the nearest stroke; a little noise is added. */
#include "data/digits.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

#define SIDE TUTTI_DIGIT_SIDE

typedef struct point {
    float x, y;
} point;

/* A stroke: an arc of an ellipse, angles in degrees, 0 to the right, 90 down; or, with rx 0, a line
 * from (cx, cy) to (from, to). Coordinates are centred; digits are about 0.55 wide and 0.85 high.
 */
typedef struct stroke {
    float cx, cy, rx, ry, from, to;
} stroke;

#define MAX_STROKES 4
#define LINE(x0, y0, x1, y1)                                                                       \
    {                                                                                              \
        x0, y0, 0, 0, x1, y1                                                                       \
    }
/* Two ways of writing each digit; a stroke without extent ends the list. */
static const stroke digits[10][2][MAX_STROKES] = {
    {{{0, 0, .26f, .41f, 0, 360}}, {{.02f, 0, .21f, .40f, -80, 290}}},
    {{LINE(-.16f, -.24f, .03f, -.42f), LINE(.03f, -.42f, .03f, .42f)},
     {LINE(0, -.42f, 0, .42f), LINE(-.2f, .42f, .2f, .42f), LINE(-.15f, -.25f, 0, -.42f)}},
    {{{0, -.18f, .24f, .23f, 185, 395},
      LINE(.2f, -.05f, -.25f, .42f),
      LINE(-.25f, .42f, .27f, .42f)},
     {{-.01f, -.2f, .22f, .2f, 200, 420},
      LINE(.1f, -.03f, -.24f, .4f),
      {0, .43f, .24f, .05f, 180, 350}}},
    {{{-.02f, -.21f, .22f, .2f, 200, 450}, {-.02f, .2f, .25f, .22f, 270, 520}},
     {LINE(-.22f, -.41f, .2f, -.41f),
      LINE(.2f, -.41f, -.02f, -.08f),
      {-.03f, .17f, .25f, .25f, 272, 515}}},
    {{LINE(.06f, -.42f, -.27f, .13f), LINE(-.27f, .13f, .28f, .13f), LINE(.1f, -.18f, .1f, .42f)},
     {LINE(-.2f, -.4f, -.24f, .05f), LINE(-.24f, .05f, .22f, .05f), LINE(.17f, -.42f, .15f, .42f)}},
    {{LINE(.22f, -.41f, -.18f, -.41f),
      LINE(-.18f, -.41f, -.2f, -.06f),
      {-.02f, .15f, .25f, .26f, 230, 510}},
     {LINE(.25f, -.4f, -.12f, -.4f),
      LINE(-.12f, -.4f, -.16f, -.02f),
      {-.05f, .18f, .24f, .23f, 245, 500}}},
    {{{.22f, .16f, .42f, .58f, 180, 262}, {.01f, .18f, .21f, .23f, 0, 360}},
     {LINE(.12f, -.42f, -.17f, .1f), {0, .2f, .2f, .21f, 0, 360}}},
    {{LINE(-.25f, -.4f, .25f, -.4f), LINE(.25f, -.4f, -.06f, .42f)},
     {LINE(-.23f, -.38f, .24f, -.4f), LINE(.24f, -.4f, 0, .42f), LINE(-.1f, .03f, .2f, .03f)}},
    {{{0, -.21f, .19f, .2f, 0, 360}, {0, .2f, .23f, .21f, 0, 360}},
     {{.02f, -.22f, .17f, .18f, 90, 450}, {-.01f, .19f, .21f, .22f, -90, 270}}},
    {{{-.01f, -.18f, .21f, .22f, 0, 360}, LINE(.2f, -.18f, .15f, .42f)},
     {{0, -.18f, .2f, .21f, 0, 360}, {-.2f, -.1f, .4f, .52f, 0, 75}}},
};

/* sin(x) by its series round the nearest multiple of pi: the same bits with every C library, good
 * to 1e-5. */
static float wave(float x)
{
    float turns = floorf(x * 0.31830989f + 0.5f), y = x - turns * 3.1415927f, z = y * y;
    float value =
        y * (1 - z * (1 / 6.0f) *
                     (1 - z * (1 / 20.0f) * (1 - z * (1 / 42.0f) * (1 - z * (1 / 72.0f)))));
    return turns - 2 * floorf(turns * 0.5f) == 0 ? value : -value;
}

typedef struct dice {
    tutti_random_key key;
    uint64_t next;
} dice;

static float uniform(dice *d, float low, float high)
{
    return low + (high - low) * tutti__random_f32(d->key, d->next++);
}

/* One smooth wave per axis bends the whole plane. */
typedef struct bend {
    float amount[2], frequency[2], phase[2];
} bend;

static point digits_apply(const bend *b, const float affine[6], point p)
{
    point q = {p.x + b->amount[0] * wave(b->frequency[0] * p.y + b->phase[0]),
               p.y + b->amount[1] * wave(b->frequency[1] * p.x + b->phase[1])};
    return (point){affine[0] * q.x + affine[1] * q.y + affine[2],
                   affine[3] * q.x + affine[4] * q.y + affine[5]};
}

static void make_affine(dice *d, float affine[6])
{
    float angle = uniform(d, -0.26f, 0.26f), shear = uniform(d, -0.25f, 0.25f);
    float sx = 20 * uniform(d, 0.75f, 1.1f), sy = 20 * uniform(d, 0.85f, 1.1f);
    float c = wave(angle + 1.5707964f), s = wave(angle);
    affine[0] = sx * c;
    affine[1] = sy * (shear * c - s);
    affine[3] = sx * s;
    affine[4] = sy * (shear * s + c);
    affine[2] = 14 + uniform(d, -2, 2);
    affine[5] = 14 + uniform(d, -2, 2);
}

#define ARC_POINTS 13

/* Points along a stroke. */
static int trace(const stroke *s, point *points)
{
    if (s->rx == 0) {
        points[0] = (point){s->cx, s->cy};
        points[1] = (point){(s->cx + s->from) / 2, (s->cy + s->to) / 2};
        points[2] = (point){s->from, s->to};
        return 3;
    }
    for (int i = 0; i < ARC_POINTS; i++) {
        float angle = (s->from + (s->to - s->from) * (float)i / (ARC_POINTS - 1)) * 0.0174533f;
        points[i] = (point){s->cx + s->rx * wave(angle + 1.5707964f), s->cy + s->ry * wave(angle)};
    }
    return ARC_POINTS;
}

/* Squared distance of a pixel to a segment. */
static float distance2(float x, float y, point a, point b)
{
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    float t = length2 > 0 ? ((x - a.x) * dx + (y - a.y) * dy) / length2 : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    float ex = x - a.x - t * dx, ey = y - a.y - t * dy;
    return ex * ex + ey * ey;
}

static int clamp(int value)
{
    return value < 0 ? 0 : value >= SIDE ? SIDE - 1 : value;
}

/* Ink is 1 within the pen's radius and falls to 0 over one pixel. */
static void draw_segment(float *pixels, point a, point b, float radius)
{
    float reach = radius + 1;
    int x0 = clamp((int)floorf(fminf(a.x, b.x) - reach)),
        x1 = clamp((int)ceilf(fmaxf(a.x, b.x) + reach));
    int y0 = clamp((int)floorf(fminf(a.y, b.y) - reach)),
        y1 = clamp((int)ceilf(fmaxf(a.y, b.y) + reach));
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            float d2 = distance2((float)x, (float)y, a, b);
            if (d2 >= reach * reach)
                continue;
            float ink = reach - sqrtf(d2);
            ink = ink > 1 ? 1 : ink;
            if (ink > pixels[y * SIDE + x])
                pixels[y * SIDE + x] = ink;
        }
}

static void draw_stroke(dice *d, const stroke *s, const bend *b, const float affine[6],
                        float radius, float *pixels)
{
    point points[ARC_POINTS], previous = {0};
    int count = trace(s, points);
    float shift_x = uniform(d, -0.03f, 0.03f), shift_y = uniform(d, -0.03f, 0.03f);
    for (int i = 0; i < count; i++) {
        point p = digits_apply(b, affine, (point){points[i].x + shift_x, points[i].y + shift_y});
        if (i > 0)
            draw_segment(pixels, previous, p, radius);
        previous = p;
    }
}

/* pixel = ink pixel + noise (u - 1/2), as a multiple of 1/255; u is number 2000 + i of the image.
 */
static void add_noise(tutti_random_key key, float ink, float noise, float *pixels)
{
    for (int i = 0; i < SIDE * SIDE; i += 4) {
        uint32_t words[4];
        tutti__random_block(key, (uint64_t)(2000 + i) / 4, words);
        for (int k = 0; k < 4; k++) {
            float u = (float)(words[k] >> 8) * 0x1p-24f;
            float value = pixels[i + k] * ink + noise * (u - 0.5f);
            value = value < 0 ? 0 : value > 1 ? 1 : value;
            pixels[i + k] = (float)(int)(value * 255 + 0.5f) / 255;
        }
    }
}

int tutti__digit_draw(uint64_t seed, uint64_t index, float ret_pixels[SIDE * SIDE])
{
    dice d = {.key = {.seed = seed ^ 0x646967697473ULL, .stream = index}};
    int label = (int)tutti__random_below(d.key, 1000, 10);
    const stroke *way = digits[label][uniform(&d, 0, 1) < 0.5f];
    bend b;
    for (int i = 0; i < 2; i++) {
        b.amount[i] = uniform(&d, 0, 0.06f);
        b.frequency[i] = uniform(&d, 2, 8);
        b.phase[i] = uniform(&d, 0, 6.2832f);
    }
    float affine[6], radius = uniform(&d, 0.5f, 1.4f), noise = uniform(&d, 0, 0.08f),
                     ink = uniform(&d, 0.7f, 1);
    make_affine(&d, affine);
    memset(ret_pixels, 0, SIDE * SIDE * sizeof *ret_pixels);
    for (int i = 0; i < MAX_STROKES && (way[i].rx != 0 || way[i].from != 0 || way[i].to != 0); i++)
        draw_stroke(&d, &way[i], &b, affine, radius, ret_pixels);
    add_noise(d.key, ink, noise, ret_pixels);
    return label;
}
