/* lines.h: the names that lines of code in the documentation use without declaring them. */
#ifndef LINES_H
#define LINES_H

#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

static tutti_graph *g;
static tutti_session *s;
static tutti_sym a, b, w, x, y, loss, step, next;
static tutti_tensor *images, *digits, *tensor;
static tutti_job *job;
static tutti_dataset *train, *test;
static tutti_model *m;

#endif
