/* picture.c: see picture.h. */
#include "parallel/pipeline/picture.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 1024, SVG_WIDTH = 960, SVG_LEFT = 70, SVG_ROW = 26, SVG_TOP = 44 };

static bool is_compute(const tutti_pipeline_action *a)
{
    return a->kind == TUTTI_FORWARD || a->kind == TUTTI_BACKWARD || a->kind == TUTTI_WEIGHT;
}

static char letter_of(const tutti_pipeline_schedule *s, const tutti_pipeline_action *a)
{
    return (a->stage / s->devices > 0 ? "fbw" : "FBW")[a->kind];
}

/* The shortest action, which two or three columns are for. */
static double shortest(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times)
{
    double least = times->end;
    for (int d = 0; d < s->devices; d++)
        for (size_t i = 0; i < s->of[d].list.count; i++) {
            double took = times->times[d][i].end - times->times[d][i].begin;
            if (is_compute(&s->of[d].list.data[i]) && took > 0 && took < least)
                least = took;
        }
    return least;
}

static void draw_action(const tutti_pipeline_schedule *s, const tutti_pipeline_action *a, int from,
                        int to, char line[LINE])
{
    char name[24];
    int length = snprintf(name, sizeof name, "%c%d", letter_of(s, a), a->micro);
    for (int at = from; at < to && at < LINE; at++)
        line[at] = '-';
    for (int i = 0; i < length && from + i < LINE && (i == 0 || from + i < to); i++)
        line[from + i] = name[i];
    /* A gap between neighbours, where there is room for it. */
    if (to - from > length && to > 0 && to <= LINE)
        line[to - 1] = ' ';
}

void tutti__pipeline_draw_text(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                               int columns, tutti_text *text)
{
    if (times->end <= 0)
        return;
    columns = columns < 20 ? 20 : columns > LINE ? LINE : columns;
    double wide = times->end / shortest(s, times) * (s->micro > 10 ? 4 : 3);
    int width = wide < columns ? (int)(wide + 0.5) : columns;
    for (int d = 0; d < s->devices; d++) {
        char line[LINE];
        memset(line, '.', sizeof line);
        for (size_t i = 0; i < s->of[d].list.count; i++) {
            const tutti_pipeline_action_time *time = &times->times[d][i];
            int from = (int)(time->begin / times->end * width + 0.5);
            int to = (int)(time->end / times->end * width + 0.5);
            if (is_compute(&s->of[d].list.data[i]) && from < width)
                draw_action(s, &s->of[d].list.data[i], from, to, line);
        }
        tutti__text_add(text, "device %-2d %.*s  busy %3.0f %%  %d micro-batch%s held\n", d, width,
                        line, 100 * times->busy[d] / times->end, times->peak[d],
                        times->peak[d] == 1 ? "" : "es");
    }
}

static void draw_box(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times, int d,
                     size_t i, tutti_text *text)
{
    static const char *const colours[] = {"#4477aa", "#ee6677", "#ccbb44"};
    const tutti_pipeline_action *a = &s->of[d].list.data[i];
    const tutti_pipeline_action_time *time = &times->times[d][i];
    double scale = (SVG_WIDTH - SVG_LEFT - 10) / times->end;
    double x = SVG_LEFT + time->begin * scale, w = (time->end - time->begin) * scale;
    int y = SVG_TOP + d * SVG_ROW;
    tutti__text_add(text,
                    "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\" "
                    "fill-opacity=\"%.2f\" stroke=\"#fff\" stroke-width=\"0.6\"/>\n",
                    x, y, w, SVG_ROW - 4, colours[a->kind], a->stage / s->devices % 2 ? 0.6 : 1.0);
    if (w >= 9)
        tutti__text_add(text,
                        "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" font-size=\"11\" "
                        "fill=\"#fff\">%d</text>\n",
                        x + w / 2, y + SVG_ROW - 11, a->micro);
}

void tutti__pipeline_draw_svg(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                              const char *title, tutti_text *text)
{
    int height = SVG_TOP + s->devices * SVG_ROW + 26;
    tutti__text_add(text,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                    "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
                    "fill=\"#fff\"/>\n<text x=\"10\" y=\"24\" font-size=\"14\" "
                    "fill=\"#333\">%s</text>\n",
                    SVG_WIDTH, height, title);
    for (int d = 0; d < s->devices; d++) {
        int y = SVG_TOP + d * SVG_ROW;
        tutti__text_add(text,
                        "<text x=\"10\" y=\"%d\" font-size=\"12\" fill=\"#333\">device %d</text>\n"
                        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#eee\"/>\n",
                        y + SVG_ROW - 10, d, SVG_LEFT, y, SVG_WIDTH - SVG_LEFT - 10, SVG_ROW - 4);
        for (size_t i = 0; times->end > 0 && i < s->of[d].list.count; i++)
            if (is_compute(&s->of[d].list.data[i]))
                draw_box(s, times, d, i, text);
    }
    tutti__text_add(text,
                    "<text x=\"10\" y=\"%d\" font-size=\"11\" fill=\"#333\">"
                    "<tspan fill=\"#4477aa\">F forward</tspan>  <tspan fill=\"#ee6677\">B "
                    "backward</tspan>  <tspan fill=\"#ccbb44\">W gradients of weights</tspan>  "
                    "numbers: micro-batches; grey: idle</text>\n</svg>\n",
                    height - 10);
}
