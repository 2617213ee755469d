/* monitor.c: a log that is watched, and weights that are kept for later. */
#include <math.h>
#include <stdio.h>

#include "nn/callbacks/common.h"
#include "nn/training/callback.h"

static bool larger_is_better(const char *name)
{
    static const char *const words[] = {"acc", "auc", "precision", "recall", "f1", "confusion"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

void tutti__monitor_begin(tutti_monitor *monitor, const char *name, const char *mode,
                          double min_delta)
{
    memset(monitor, 0, sizeof *monitor);
    snprintf(monitor->name, sizeof monitor->name, "%s", name ? name : "val_loss");
    monitor->up = mode ? strcmp(mode, "max") == 0 : larger_is_better(monitor->name);
    monitor->min_delta = fabs(min_delta);
}

tutti_status tutti__monitor_check(const tutti_monitor *monitor, const tutti_model *model)
{
    const tutti_fit *fit = model->trainer->fit;
    char list[600] = "lr";
    size_t used = 2;
    if (strcmp(monitor->name, "lr") == 0)
        return TUTTI_OK;
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        if (strcmp(monitor->name, item->name) == 0)
            return TUTTI_OK;
        if (strcmp(monitor->name, item->val_name) == 0)
            return !fit || fit->validates
                       ? TUTTI_OK
                       : tutti_fail(
                             TUTTI_INVALID,
                             "'%s' is to be monitored, but there is no validation data; give "
                             "tutti_fit .validation or .validation_split, or monitor '%s'",
                             monitor->name, item->name);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, ", %s, %s", item->name,
                                     item->val_name);
    }
    return tutti_fail(TUTTI_NOT_FOUND, "there is no '%s' to monitor; there are: %s", monitor->name,
                      list);
}

bool tutti__monitor_see(tutti_monitor *monitor, const tutti_event *event, bool *ret_better)
{
    double value = tutti_logs_get(event->logs, monitor->name);
    *ret_better = false;
    if (isnan(value)) {
        for (int i = 0; event->logs && i < event->logs->count; i++)
            if (strcmp(event->logs->items[i].name, monitor->name) == 0)
                return true; /* it is there, and not better than anything */
        return false;
    }
    double gain = monitor->up ? value - monitor->best : monitor->best - value;
    if (!monitor->any || gain > monitor->min_delta) {
        monitor->best = value;
        monitor->any = true;
        *ret_better = true;
    }
    return true;
}

void tutti__monitor_remember(const tutti_monitor *monitor, tutti_logs *memory)
{
    if (monitor->any)
        tutti_logs_set(memory, "best", monitor->best);
}

void tutti__monitor_recall(tutti_monitor *monitor, const tutti_logs *memory)
{
    double best = tutti_logs_get(memory, "best");
    monitor->any = !isnan(best);
    monitor->best = monitor->any ? best : 0;
}

tutti_status tutti__weights_keep(tutti_model *model, tutti_kept_weights *kept)
{
    tutti__weights_drop(kept);
    int count = tutti_weight_count(model);
    for (int i = 0; i < count; i++) {
        tutti_weight_info info;
        tutti_tensor *value;
        TUTTI_TRY(tutti_weight_at(model, i, &info));
        TUTTI_TRY(tutti_get_weight(model, info.name, &value));
        if (!TUTTI_VEC_PUSH(kept, value)) {
            tutti_tensor_release(value);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy of the weights");
        }
    }
    return TUTTI_OK;
}

tutti_status tutti__weights_bring_back(tutti_model *model, const tutti_kept_weights *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        tutti_weight_info info;
        TUTTI_TRY(tutti_weight_at(model, (int)i, &info));
        TUTTI_TRY(tutti_set_weight(model, info.name, kept->data[i]));
    }
    return TUTTI_OK;
}

void tutti__weights_drop(tutti_kept_weights *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        tutti_tensor_release(kept->data[i]);
    TUTTI_VEC_FREE(kept);
}
