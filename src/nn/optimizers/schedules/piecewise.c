/* piecewise.c: a constant between boundaries. */
#include "nn/optimizers/schedule.h"

enum { BOUNDARIES = 0, VALUES = TUTTI_SCHEDULE_PIECES };

static double at(const tutti_schedule *s, double step)
{
    int piece = 0;
    while (piece < s->count && step > s->numbers[BOUNDARIES + piece])
        piece++;
    return s->numbers[VALUES + piece];
}

static const char *piecewise_check(const tutti_schedule *s)
{
    for (int i = 0; i < TUTTI_SCHEDULE_PIECES; i++) {
        double boundary = s->numbers[BOUNDARIES + i];
        if (i < s->count ? boundary <= (i > 0 ? s->numbers[BOUNDARIES + i - 1] : 0) : boundary != 0)
            return "boundaries must be above 0 and rise";
        if (i >= s->count && s->numbers[VALUES + i + 1] != 0)
            return "there must be one more value than boundaries";
    }
    return NULL;
}

extern const tutti_schedule_def tutti_schedule_def_piecewise;

tutti_schedule tutti_piecewise_with(const tutti_piecewise_settings *settings)
{
    tutti_schedule s = {.def = &tutti_schedule_def_piecewise};
    while (s.count < TUTTI_SCHEDULE_PIECES && settings->boundaries[s.count] > 0)
        s.count++;
    for (int i = 0; i <= TUTTI_SCHEDULE_PIECES; i++) {
        s.numbers[VALUES + i] = settings->values[i];
        if (i < TUTTI_SCHEDULE_PIECES)
            s.numbers[BOUNDARIES + i] = settings->boundaries[i];
    }
    return s;
}

const tutti_schedule_def tutti_schedule_def_piecewise = {
    .name = "piecewise",
    .doc = "values[i], i the first with step <= boundaries[i]",
    .fields = (const tutti_schedule_field[]){{"boundaries", BOUNDARIES, true, 0},
                                             {"values", VALUES, true, 1},
                                             {NULL}},
    .at = at,
    .check = piecewise_check,
};
