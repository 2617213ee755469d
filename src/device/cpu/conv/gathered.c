/* gathered.c: see gathered.h. */
#include "device/cpu/conv/gathered.h"

#include <string.h>

enum { JOINED_CHANNELS = 16, ROUND_FLOATS = 1 << 22 };

static int64_t aligned(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* As many groups as fill JOINED_CHANNELS and divide all. */
static int64_t joined_groups(const tutti_convolution *c)
{
    int64_t wider = c->cin > c->cout ? c->cin : c->cout, joined = JOINED_CHANNELS / wider;
    joined = joined > c->groups ? c->groups : joined;
    for (; joined > 1; joined--)
        if (c->groups % joined == 0)
            return joined;
    return 1;
}

/* Input that windows along an axis read, padding included. */
static int64_t reached(const tutti_windows *w, int axis)
{
    return (w->out[axis] - 1) * w->stride[axis] + (w->size[axis] - 1) * w->dilation[axis] + 1;
}

/* One set as a convolution over images: height and width are axes 1 and 2 of the volume. */
static tutti_convolution part_of(const tutti_convolution *whole, int64_t images, bool backward)
{
    const tutti_windows *w = &whole->windows;
    tutti_convolution part = {.windows = {.axes = 2},
                              .batch = images * w->out[0],
                              .groups = 1,
                              .cin = w->size[0] * whole->cin,
                              .cout = whole->cout};
    for (int a = 0; a < 2; a++) {
        part.windows.in[a] = backward ? w->in[a + 1] : reached(w, a + 1);
        part.windows.before[a] = backward ? w->before[a + 1] : 0;
        part.windows.out[a] = w->out[a + 1];
        part.windows.size[a] = w->size[a + 1];
        part.windows.stride[a] = w->stride[a + 1];
        part.windows.dilation[a] = w->dilation[a + 1];
    }
    return part;
}

static int64_t x_floats(const tutti_convolution *part)
{
    return part->batch * part->windows.in[0] * part->windows.in[1] * part->cin;
}

bool tutti__gathering(const tutti_kernel_query *query, int x, int kernel, int y, bool backward,
                      tutti_gathering *ret)
{
    tutti_convolution c;
    if (!tutti__conv_shapes(query, x, kernel, y, &c))
        return false;
    tutti_gathering g = {.joined = joined_groups(&c), .images = 1};
    g.whole = (tutti_convolution){.windows = tutti__windows_volume(&c.windows),
                                  .batch = c.batch,
                                  .groups = c.groups / g.joined,
                                  .cin = c.cin * g.joined,
                                  .cout = c.cout * g.joined};
    g.part = part_of(&g.whole, 1, backward);
    if (!tutti__conv_countable(&g.part)) /* with joined groups */
        return false;
    int64_t most = ROUND_FLOATS / (x_floats(&g.part) + 1);
    for (int64_t images = 1; images <= most && images <= c.batch; images++)
        g.images = c.batch % images == 0 ? images : g.images;
    g.rounds = c.batch / g.images;
    g.part = part_of(&g.whole, g.images, backward);
    const tutti_windows *w = &g.part.windows;
    g.x = aligned(x_floats(&g.part));
    g.kernel = aligned(w->size[0] * w->size[1] * g.part.cin * g.part.cout);
    g.y = g.whole.groups == 1 ? 0 : aligned(g.part.batch * w->out[0] * w->out[1] * g.part.cout);
    *ret = g;
    return true;
}

typedef struct moving {
    const tutti_gathering *g;
    int64_t set, image; /* the first of the round */
    const float *from;
    float *to;
    bool add;
    const float *made_of, *kernel; /* what is scattered, as gathered; where groups are joined */
    float *made;
} moving;

static inline void copy_floats(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
}

static inline void add_floats(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* A line of the gathered input, tap `tap` of depth, from the line of x that it is: `line` NULL is
 * padding. */
static void gather_line(const tutti_gathering *g, const float *line, int64_t tap, float *to)
{
    const tutti_windows *w = &g->whole.windows;
    int64_t cin = g->whole.cin, pixel = g->whole.groups * cin, width = g->part.windows.in[1];
    int64_t begin = w->before[2] < width ? w->before[2] : width;
    int64_t end = w->before[2] + w->in[2] < width ? w->before[2] + w->in[2] : width;
    to += tap * cin;
    for (int64_t column = 0; column < width; column++, to += g->part.cin) {
        if (line != NULL && column >= begin && column < end)
            copy_floats(to, line + (column - begin) * pixel, cin);
        else
            memset(to, 0, (size_t)cin * sizeof *to);
    }
}

/* Piece: one line of one gathered image. */
static void gather_x_piece(void *context, int64_t piece)
{
    const moving *m = context;
    const tutti_gathering *g = m->g;
    const tutti_windows *w = &g->whole.windows;
    int64_t height = g->part.windows.in[0], line = g->part.windows.in[1] * g->part.cin;
    int64_t row = piece % height - w->before[1], plane = piece / height;
    int64_t depth = plane % w->out[0], image = m->image + plane / w->out[0];
    for (int64_t tap = 0; tap < w->size[0]; tap++) {
        int64_t z = tutti__window_start(w, 0, depth) + tap * w->dilation[0];
        bool inside = z >= 0 && z < w->in[0] && row >= 0 && row < w->in[1];
        const float *from = m->from + m->set * g->whole.cin;
        if (inside)
            from += ((image * w->in[0] + z) * w->in[1] + row) * w->in[2] * g->whole.groups *
                    g->whole.cin;
        gather_line(g, inside ? from : NULL, tap, m->to + piece * line);
    }
}

void tutti__gather_x(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                     int64_t round, const float *x, float *to)
{
    moving m = {g, set, round * g->images, x, to, false};
    tutti_parallel(call, g->part.batch * g->part.windows.in[0], gather_x_piece, &m);
}

/* Piece: one cell [height, width] of the kernel. Lines of a set: [tap of depth][channel][filter],
 * of which those that join a channel and a filter of one group come from the kernel. */
static void gather_kernel_piece(void *context, int64_t cell)
{
    const moving *m = context;
    const tutti_gathering *g = m->g;
    int64_t cells = g->part.windows.size[0] * g->part.windows.size[1], cout = g->whole.cout;
    int64_t few = cout / g->joined, channels = g->whole.cin / g->joined;
    float *to = m->to + cell * g->part.cin * cout;
    for (int64_t tap = 0; tap < g->whole.windows.size[0]; tap++)
        for (int64_t i = 0; i < g->whole.cin; i++, to += cout) {
            const float *from =
                m->from +
                ((tap * cells + cell) * channels + i % channels) * g->whole.groups * cout +
                m->set * cout + i / channels * few;
            memset(to, 0, (size_t)cout * sizeof *to);
            copy_floats(to + i / channels * few, from, few);
        }
}

void tutti__gather_kernel(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                          const float *kernel, float *to)
{
    moving m = {g, set, 0, kernel, to, false};
    tutti_parallel(call, g->part.windows.size[0] * g->part.windows.size[1], gather_kernel_piece,
                   &m);
}

static void scatter_kernel_piece(void *context, int64_t cell)
{
    const moving *m = context;
    const tutti_gathering *g = m->g;
    int64_t cells = g->part.windows.size[0] * g->part.windows.size[1], cout = g->whole.cout;
    int64_t few = cout / g->joined, channels = g->whole.cin / g->joined;
    const float *from = m->from + cell * g->part.cin * cout;
    for (int64_t tap = 0; tap < g->whole.windows.size[0]; tap++)
        for (int64_t i = 0; i < g->whole.cin; i++, from += cout) {
            float *to = m->to +
                        ((tap * cells + cell) * channels + i % channels) * g->whole.groups * cout +
                        m->set * cout + i / channels * few;
            (m->add ? add_floats : copy_floats)(to, from + i / channels * few, few);
        }
}

void tutti__scatter_kernel(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                           bool add, const float *from, float *kernel)
{
    moving m = {g, set, 0, from, kernel, add};
    tutti_parallel(call, g->part.windows.size[0] * g->part.windows.size[1], scatter_kernel_piece,
                   &m);
}

/* Where line `piece` of y's part begins in y, for the first filter of the set. */
static int64_t y_line(const moving *m, int64_t piece)
{
    const tutti_gathering *g = m->g;
    const tutti_windows *w = &g->whole.windows;
    return (m->image * w->out[0] * w->out[1] + piece) * w->out[2] * g->whole.groups *
               g->whole.cout +
           m->set * g->whole.cout;
}

static void gather_y_piece(void *context, int64_t piece)
{
    const moving *m = context;
    int64_t cout = m->g->whole.cout, width = m->g->whole.windows.out[2];
    const float *from = m->from + y_line(m, piece);
    float *to = m->to + piece * width * cout;
    for (int64_t column = 0; column < width; column++)
        copy_floats(to + column * cout, from + column * m->g->whole.groups * cout, cout);
}

static void scatter_y_piece(void *context, int64_t piece)
{
    const moving *m = context;
    int64_t cout = m->g->whole.cout, width = m->g->whole.windows.out[2];
    float *from = m->made + piece * width * cout, *to = m->to + y_line(m, piece);
    if (m->g->joined > 1)
        tutti__gathered_mend_y(m->g, m->made_of, m->kernel, piece, from);
    for (int64_t column = 0; m->g->y != 0 && column < width; column++)
        copy_floats(to + column * m->g->whole.groups * cout, from + column * cout, cout);
}

float *tutti__gathered_y(const tutti_gathering *g, int64_t round, float *y, float *to)
{
    moving m = {g, 0, round * g->images, NULL, NULL, false};
    return g->y == 0 ? y + y_line(&m, 0) : to;
}

const float *tutti__gather_y(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                             int64_t round, const float *y, float *to)
{
    moving m = {g, set, round * g->images, y, to, false};
    if (g->y == 0)
        return y + y_line(&m, 0);
    tutti_parallel(call, g->part.batch * g->part.windows.out[0], gather_y_piece, &m);
    return to;
}

void tutti__scatter_y(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                      int64_t round, const float *x, const float *kernel, float *from, float *y)
{
    moving m = {.g = g,
                .set = set,
                .image = round * g->images,
                .to = y,
                .made_of = x,
                .kernel = kernel,
                .made = from};
    if (g->y != 0 || g->joined > 1)
        tutti_parallel(call, g->part.batch * g->part.windows.out[0], scatter_y_piece, &m);
}

/* Piece: one line of x; the sum over the taps of depth that read it. */
static void scatter_x_piece(void *context, int64_t piece)
{
    const moving *m = context;
    const tutti_gathering *g = m->g;
    const tutti_windows *w = &g->whole.windows;
    int64_t row = piece % w->in[1], plane = piece / w->in[1], z = plane % w->in[0],
            image = plane / w->in[0], cin = g->whole.cin, pixel = g->whole.groups * cin;
    float *to = m->to + m->set * cin +
                (((m->image + image) * w->in[0] + z) * w->in[1] + row) * w->in[2] * pixel;
    for (int64_t column = 0; column < w->in[2]; column++)
        memset(to + column * pixel, 0, (size_t)cin * sizeof *to);
    for (int64_t tap = 0; tap < w->size[0]; tap++) {
        int64_t start = z + w->before[0] - tap * w->dilation[0], out = start / w->stride[0];
        if (start < 0 || start % w->stride[0] != 0 || out >= w->out[0])
            continue;
        int64_t line = (image * w->out[0] + out) * w->in[1] + row;
        float *from = m->made + line * w->in[2] * g->part.cin;
        if (g->joined > 1)
            tutti__gathered_mend_x(g, m->made_of, m->kernel, line, tap, from);
        from += tap * cin;
        for (int64_t column = 0; column < w->in[2]; column++)
            add_floats(to + column * pixel, from + column * g->part.cin, cin);
    }
}

void tutti__scatter_x(const tutti_kernel_call *call, const tutti_gathering *g, int64_t set,
                      int64_t round, const float *grad, const float *kernel, float *from, float *x)
{
    const tutti_windows *w = &g->whole.windows;
    moving m = {.g = g,
                .set = set,
                .image = round * g->images,
                .to = x,
                .made_of = grad,
                .kernel = kernel,
                .made = from};
    tutti_parallel(call, g->images * w->in[0] * w->in[1], scatter_x_piece, &m);
}
