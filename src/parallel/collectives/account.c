/* account.c: see account.h. Of every replica the last meetings are remembered, and their sum. */
#include "parallel/collectives/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 1024 };

struct tutti_axis_group_diary {
    double sum;   /* seconds, of all meetings */
    double count; /* of them */
    double last[KEPT];
};

void tutti__axis_group_account_begin(tutti_axis_group *axis_group)
{
    if (!axis_group->diaries)
        axis_group->diaries = calloc((size_t)axis_group->local, sizeof *axis_group->diaries);
    else
        memset(axis_group->diaries, 0, (size_t)axis_group->local * sizeof *axis_group->diaries);
}

void tutti__axis_group_account_add(tutti_axis_group *axis_group, int local, int64_t ns)
{
    if (!axis_group->diaries)
        return;
    struct tutti_axis_group_diary *diary = &axis_group->diaries[local];
    double seconds = 1e-9 * (double)ns;
    diary->last[(int64_t)diary->count % KEPT] = seconds;
    diary->count++;
    diary->sum += seconds;
}

/* One meeting, as all replicas saw it: adds who waited for whom. */
static void account_judge(const struct tutti_axis_group_diary *all, int size, int64_t at,
                          double *waited, int64_t *came_last)
{
    int last = 0;
    double sum = 0;
    for (int r = 0; r < size; r++) {
        sum += all[r].last[at];
        last = all[r].last[at] < all[last].last[at] ? r : last;
    }
    waited[last] += sum / size - all[last].last[at];
    came_last[last]++;
}

static tutti_status add_up(const struct tutti_axis_group_diary *all, int size,
                           tutti_axis_group_account *ret)
{
    tutti_axis_group_account a = {.slowest = -1};
    double *waited = calloc((size_t)size, sizeof *waited), seen = 0;
    int64_t *came_last = calloc((size_t)size, sizeof *came_last), count = INT64_MAX;
    if (!waited || !came_last) {
        free(waited);
        free(came_last);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an account of %d replicas", size);
    }
    for (int r = 0; r < size; r++) {
        a.inside += all[r].sum / size;
        count = (int64_t)fmin((double)count, fmin(all[r].count, KEPT));
    }
    a.meetings = count;
    for (int64_t i = 0; i < count; i++)
        account_judge(all, size, i, waited, came_last);
    for (int r = 0; r < size; r++) {
        for (int64_t i = 0; i < count; i++)
            seen += all[r].last[i] / size;
        if (count > 0 && (a.slowest < 0 || waited[r] > waited[a.slowest]))
            a.slowest = r;
    }
    double scale = seen > 0 ? a.inside / seen : 0; /* those remembered stand for all */
    for (int r = 0; r < size; r++)
        a.waiting += waited[r] * scale;
    if (a.slowest >= 0) {
        a.for_it = waited[a.slowest] * scale;
        a.came_last = came_last[a.slowest];
    }
    free(waited);
    free(came_last);
    *ret = a;
    return TUTTI_OK;
}

tutti_status tutti__axis_group_account_end(tutti_axis_group *axis_group,
                                           tutti_axis_group_account *ret)
{
    struct tutti_axis_group_diary *all = axis_group->diaries;
    size_t mine = (size_t)axis_group->local * sizeof *all;
    if (!all)
        return tutti_fail(TUTTI_INVALID, "no account was begun");
    if (!axis_group->world)
        return add_up(all, axis_group->size, ret);
    if (!(all = calloc((size_t)axis_group->size, sizeof *all)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an account of %d replicas",
                          axis_group->size);
    tutti_status status = tutti_comm_all_gather(axis_group->world, axis_group->diaries, all,
                                                (int64_t)(mine / sizeof(double)), TUTTI_F64, NULL);
    if (status == TUTTI_OK)
        status = add_up(all, axis_group->size, ret);
    free(all);
    return status;
}
