/* picture.h: a schedule and its times as a picture, for the terminal and as SVG. */
#ifndef TUTTI_PARALLEL_PIPELINE_PICTURE_H
#define TUTTI_PARALLEL_PIPELINE_PICTURE_H

#include "parallel/pipeline/schedule.h"

/* A line for each device, at most about `columns` wide. An action is drawn as F3, B3, W3 and dashes
 * for as long as it takes, waiting as dots; with several stages to a device, forwards of the second
 * stage on are f. Where time does not fit into the columns, an action may be one letter. */
void tutti__pipeline_draw_text(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                               int columns, tutti_text *text);
/* The same as an SVG document of fixed width. */
void tutti__pipeline_draw_svg(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                              const char *title, tutti_text *text);

#endif
