/* schedule.c: schedules by their descriptors. */
#include "nn/optimizers/schedule.h"
#include "base/require.h"

#include <math.h>
#include <string.h>

#include "tables/schedule_def.h"

double tutti_schedule_at(const tutti_schedule *schedule, int64_t step)
{
    step = step < 0 ? 0 : step;
    return schedule && schedule->def ? schedule->def->at(schedule, (double)step) : 0;
}

tutti_status tutti_schedule_check(const tutti_schedule *schedule)
{
    TUTTI_REQUIRE(schedule);
    const tutti_schedule_def *def = schedule->def;
    const char *wrong = def && def->check ? def->check(schedule) : NULL;
    for (int i = 0; i < TUTTI_SCHEDULE_NUMBERS && !wrong; i++)
        if (!isfinite(schedule->numbers[i]))
            wrong = "a number is not finite";
    return wrong ? tutti_fail(TUTTI_INVALID, "schedule %s: %s", def ? def->name : "", wrong)
                 : TUTTI_OK;
}

int tutti__schedule_settings(const tutti_schedule *schedule, int capacity, tutti_setting *ret)
{
    int count = 0;
    const tutti_schedule_field *field = schedule->def ? schedule->def->fields : NULL;
    for (; field && field->key; field++, count++)
        if (count < capacity)
            ret[count] = (tutti_setting){.key = field->key,
                                         .list = field->list,
                                         .count = field->list ? schedule->count + field->more : 1,
                                         .values = &schedule->numbers[field->at]};
    return count;
}

const tutti_schedule_def *tutti__schedule_find(const char *kind)
{
    for (const tutti_schedule_def *const *def = tutti__schedule_def_table; *def; def++)
        if (strcmp((*def)->name, kind) == 0)
            return *def;
    return NULL;
}

static tutti_status set(tutti_schedule *schedule, const tutti_setting *setting)
{
    const tutti_schedule_field *field = schedule->def->fields;
    while (field->key && strcmp(field->key, setting->key) != 0)
        field++;
    if (!field->key)
        return tutti_fail(TUTTI_INVALID, "schedule %s has no setting '%s'", schedule->def->name,
                          setting->key);
    int most = field->list ? TUTTI_SCHEDULE_PIECES + field->more : 1;
    if (setting->count < field->more || setting->count > most)
        return tutti_fail(TUTTI_INVALID,
                          "schedule %s: '%s' has %d numbers, at most %d are possible",
                          schedule->def->name, setting->key, setting->count, most);
    for (int i = 0; i < setting->count; i++)
        schedule->numbers[field->at + i] = setting->values[i];
    if (!field->list)
        return TUTTI_OK;
    int count = setting->count - field->more;
    if (schedule->count >= 0 && schedule->count != count)
        return tutti_fail(TUTTI_INVALID,
                          "schedule %s: there are %d boundaries; values must be one "
                          "more than boundaries",
                          schedule->def->name, schedule->count);
    schedule->count = count;
    return TUTTI_OK;
}

tutti_status tutti__schedule_make(const char *kind, int count, const tutti_setting *settings,
                                  tutti_schedule *ret_schedule)
{
    tutti_schedule schedule = {.def = tutti__schedule_find(kind), .count = -1};
    if (!schedule.def || !schedule.def->fields)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no schedule '%s' that could be read", kind);
    for (int i = 0; i < count; i++)
        TUTTI_TRY(set(&schedule, &settings[i]));
    schedule.count = schedule.count < 0 ? 0 : schedule.count;
    TUTTI_TRY(tutti_schedule_check(&schedule));
    *ret_schedule = schedule;
    return TUTTI_OK;
}
