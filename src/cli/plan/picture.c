/* picture.c: predicted, simulated and measured times as a picture (SVG): a panel for each
 * algorithm, both axes logarithmic and equal in all panels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "cli/plan/plan.h"

enum { WIDTH = 300, HEIGHT = 220, LEFT = 52, TOP = 30, RIGHT = 14, BOTTOM = 34, ACROSS = 3 };
static const char *const colours[] = {"#4477aa", "#ee6677", "#228833"};
static const char *const titles[] = {"predicted", "simulated", "measured"};

typedef struct frame {
    FILE *file;
    const tutti_comm_plan *plan;
    double low, high; /* log10 of seconds */
    double x, y;      /* of the panel's corner */
} frame;

static double value_of(const tutti_comm_plan_cell *cell, int which)
{
    return which == 0 ? cell->predicted : which == 1 ? cell->simulated : cell->measured;
}

/* Whole powers of ten around all times. */
static void set_range(frame *f)
{
    double low = INFINITY, high = -INFINITY;
    for (int a = 0; a < f->plan->algorithm_count; a++)
        for (int s = 0; s < f->plan->size_count; s++)
            for (int which = 0; which < 3; which++) {
                double time = value_of(&f->plan->cells[a][s], which);
                if (isfinite(time) && time > 0)
                    low = fmin(low, time), high = fmax(high, time);
            }
    f->low = isfinite(low) ? floor(log10(low)) : -6;
    f->high = isfinite(high) ? fmax(ceil(log10(high)), f->low + 1) : 0;
}

static double across(const frame *f, int size)
{
    return f->x + LEFT + (WIDTH - LEFT - RIGHT) * (double)size / (f->plan->size_count - 1);
}

static double down(const frame *f, double seconds)
{
    double part = (log10(seconds) - f->low) / (f->high - f->low);
    return f->y + HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part;
}

static void draw_text(const frame *f, double x, double y, const char *anchor, int size,
                      const char *text)
{
    fprintf(f->file,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" "
            "fill=\"#333\">%s</text>\n",
            x, y, anchor, size, text);
}

static void size_text(int64_t bytes, char *ret, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 3; unit++)
        bytes /= 1024;
    snprintf(ret, room, "%lld %s", (long long)bytes, units[unit]);
}

static void draw_axes(const frame *f)
{
    char text[40];
    double bottom = f->y + HEIGHT - BOTTOM;
    for (int exponent = (int)f->low; exponent <= (int)f->high; exponent++) {
        double y = down(f, pow(10, exponent));
        fprintf(f->file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                f->x + LEFT, y, f->x + WIDTH - RIGHT, y);
        if (exponent >= 0)
            snprintf(text, sizeof text, "%.0f s", pow(10, exponent));
        else if (exponent >= -3)
            snprintf(text, sizeof text, "%.0f ms", pow(10, exponent + 3));
        else if (exponent >= -6)
            snprintf(text, sizeof text, "%.0f us", pow(10, exponent + 6));
        else
            snprintf(text, sizeof text, "%.0f ns", pow(10, exponent + 9));
        draw_text(f, f->x + LEFT - 5, y + 3, "end", 9, text);
    }
    for (int s = 0; s < f->plan->size_count; s += 3) {
        size_text(f->plan->bytes[s], text, sizeof text);
        draw_text(f, across(f, s), bottom + 14, "middle", 9, text);
    }
    fprintf(f->file, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#333\"/>\n",
            f->x + LEFT, f->y + TOP, bottom, f->x + WIDTH - RIGHT);
}

static void draw_line(const frame *f, int algorithm, int which)
{
    bool begun = false;
    fprintf(f->file, "<path d=\"");
    for (int s = 0; s < f->plan->size_count; s++) {
        double time = value_of(&f->plan->cells[algorithm][s], which);
        if (!isfinite(time) || time <= 0)
            continue;
        fprintf(f->file, "%c%.1f %.1f", begun ? 'L' : 'M', across(f, s), down(f, time));
        begun = true;
    }
    fprintf(f->file, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s/>\n", colours[which],
            which == 0 ? "2" : "1.5", which == 1 ? " stroke-dasharray=\"5 3\"" : "");
}

static void draw_dots(const frame *f, int algorithm)
{
    for (int s = 0; s < f->plan->size_count; s++) {
        double time = f->plan->cells[algorithm][s].measured;
        if (isfinite(time) && time > 0)
            fprintf(f->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    across(f, s), down(f, time), colours[2]);
    }
}

static void draw_legend(const frame *f, double width)
{
    char text[200];
    snprintf(text, sizeof text, "%s, %d ranks on %d machines", f->plan->operation,
             f->plan->network.ranks, f->plan->cost.hosts);
    draw_text(f, 12, 20, "start", 14, text);
    for (int which = 0; which < 3; which++) {
        double x = width - 270 + 90 * which;
        fprintf(f->file, "<rect x=\"%.1f\" y=\"12\" width=\"12\" height=\"8\" fill=\"%s\"/>\n", x,
                colours[which]);
        draw_text(f, x + 16, 20, "start", 11, titles[which]);
    }
}

tutti_status tutti__comm_plan_picture(const tutti_comm_plan *plan, const char *path)
{
    const tutti_world *world = tutti__world();
    char *text = NULL;
    size_t size;
    int rows = (plan->algorithm_count + ACROSS - 1) / ACROSS;
    frame f = {.file = open_memstream(&text, &size), .plan = plan};
    if (!f.file)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a picture");
    set_range(&f);
    fprintf(
        f.file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        ACROSS * WIDTH, 30 + rows * HEIGHT);
    draw_legend(&f, ACROSS * WIDTH);
    for (int a = 0; a < plan->algorithm_count; a++) {
        int column = a % ACROSS, row = a / ACROSS;
        f.x = column * WIDTH;
        f.y = 30 + row * HEIGHT;
        draw_text(&f, f.x + LEFT, f.y + TOP - 8, "start", 12, plan->names[a]);
        draw_axes(&f);
        draw_line(&f, a, 0);
        draw_line(&f, a, 1);
        draw_dots(&f, a);
    }
    fprintf(f.file, "</svg>\n");
    bool failed = ferror(f.file) != 0;
    failed = fclose(f.file) != 0 || failed;
    tutti_status status = failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a picture")
                                 : world->write_file(world->self, path, text, size);
    free(text);
    return status;
}
