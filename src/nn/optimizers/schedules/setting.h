/* setting.h: the numbers that an optimizer or a schedule is made of, by key: for files. */
#ifndef TUTTI_NN_SETTING_H
#define TUTTI_NN_SETTING_H

#include "tutti/base.h"

/* One number, or a list of them; a flag is 0 or 1. */
typedef struct tutti_setting {
    const char *key;
    bool list;
    int count; /* 1 unless it is a list */
    const double *values;
} tutti_setting;

/* The setting of that key, or NULL. */
static inline const tutti_setting *tutti__setting_find(const tutti_setting *settings, int count,
                                                       const char *key)
{
    for (int i = 0; i < count; i++)
        if (__builtin_strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

/* A number of a settings struct: 0 is the default, -0 is 0. */
static inline double tutti__setting_or(double given, double fallback)
{
    if (given != 0)
        return given;
    return __builtin_signbit(given) ? 0 : fallback;
}

#endif
