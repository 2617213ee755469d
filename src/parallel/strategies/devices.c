/* devices.c: the devices of a strategy in this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/params.h"
#include "parallel/strategies/strategy.h"

static const tutti_param device_param =
    TUTTI_PARAM("DEVICE", "cpu:0", "the device of programs that name none");

/* "64MiB", "2G", "1000000". */
bool tutti__read_memory(const char *text, int64_t *ret)
{
    static const char units[] = "KMGT";
    char *end;
    double number = tutti__strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (int i = 0; unit && i <= unit - units; i++)
        number *= 1024;
    end += unit != NULL;
    if (end == text || (strcmp(end, "iB") != 0 && strcmp(end, "B") != 0 && *end != 0) ||
        !(number >= 1 && number < 9e18))
        return false;
    *ret = (int64_t)number;
    return true;
}

int64_t tutti__strategy_limit(const tutti_strategy *s, const char *device)
{
    for (int i = 0; s->limits && i < s->local; i++)
        if (strcmp(s->devices[i], device) == 0)
            return s->limits[i];
    return s->kind && s->kind->central && strcmp(s->central, device) == 0 ? s->options.memory_limit
                                                                          : 0;
}

static tutti_status add_device(tutti_strategy *s, const char *name, int64_t limit)
{
    for (int i = 0; i < s->local; i++)
        if (strcmp(s->devices[i], name) == 0)
            return tutti_fail(TUTTI_INVALID, "device %s is named twice", name);
    void *devices = realloc(s->devices, (size_t)(s->local + 1) * sizeof *s->devices);
    if (!devices)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
    s->devices = devices;
    int64_t *limits = realloc(s->limits, (size_t)(s->local + 1) * sizeof *s->limits);
    if (!limits)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
    s->limits = limits;
    limits[s->local] = limit;
    snprintf(s->devices[s->local++], sizeof s->devices[0], "%s", name);
    return TUTTI_OK;
}

/* One entry of a list: a device, or all of a kind; "=64MiB" behind it limits its memory. */
static tutti_status read_entry(tutti_strategy *s, char *text)
{
    char name[64], local[TUTTI_DEVICE_TEXT], *equals = strchr(text, '=');
    int64_t limit = s->options.memory_limit;
    if (equals && !tutti__read_memory(equals + 1, &limit))
        return tutti_fail(TUTTI_INVALID,
                          "device \"%s\": '%s' is no amount of memory; write 64MiB or 2GiB", text,
                          equals + 1);
    if (equals)
        *equals = 0;
    size_t length = strlen(text);
    tutti_device *device;
    if (length > 2 && strcmp(text + length - 2, ":*") == 0) {
        snprintf(name, sizeof name, "%.*s:0", (int)(length - 2), text);
        TUTTI_TRY(tutti__device_open(name, &device));
        int count = device->target->count();
        for (int i = 0; i < (count < 1 ? 1 : count); i++) {
            snprintf(name, sizeof name, "%s:%d", device->target->name, i);
            TUTTI_TRY(add_device(s, name, limit));
        }
        return TUTTI_OK;
    }
    tutti_device_name parsed;
    TUTTI_TRY(tutti_device_parse(text, &parsed));
    return add_device(s, tutti_device_local(&parsed, local), limit);
}

/* A list that names cpu:1 splits the cores into two, unless that was said otherwise. A number of
 * devices that is none is refused when one is opened. */
static tutti_status split_cores(const tutti_strategy *s)
{
    static const tutti_param devices_param = TUTTI_PARAM("CPU_DEVICES", "1", "");
    int64_t most = 0;
    char text[24];
    for (int i = 0; i < s->local; i++)
        if (strncmp(s->devices[i], "cpu:", 4) == 0 && atoi(s->devices[i] + 4) + 1 > most)
            most = atoi(s->devices[i] + 4) + 1;
    int64_t given;
    if (tutti__param_in(&devices_param, 1, 4096, &given) != TUTTI_OK || most <= given)
        return TUTTI_OK;
    snprintf(text, sizeof text, "%lld", (long long)most);
    return tutti__param_set("CPU_DEVICES", text);
}

tutti_status tutti__strategy_devices(tutti_strategy *s)
{
    const char *list = s->options.devices ? s->options.devices
                       : s->kind->devices ? s->kind->devices
                                          : tutti__param_text(&device_param);
    char entry[64];
    if (list[0] == 0 && !s->options.devices)
        return tutti_fail(TUTTI_INVALID, "TUTTI_DEVICE is empty; give it a device like cpu:0, or "
                                         "take it out of the environment");
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        while (length > 0 && at[0] == ' ') {
            at++;
            length--;
        }
        if (length == 0 || length >= sizeof entry)
            return tutti_fail(TUTTI_INVALID, "devices \"%s\": give names like cpu:0,cpu:1 or cpu:*",
                              list);
        snprintf(entry, sizeof entry, "%.*s", (int)length, at);
        TUTTI_TRY(read_entry(s, entry));
        at += length + (at[length] == ',');
    }
    TUTTI_TRY(split_cores(s));
    for (int i = 0; i < s->local; i++) {
        tutti_device *device;
        TUTTI_TRY(tutti__device_open(s->devices[i], &device));
        if (device->target->limit)
            device->target->limit(device, (size_t)s->limits[i]);
    }
    if (s->local > 1 && !s->kind->several)
        return tutti_fail(TUTTI_INVALID, "strategy %s takes one device, not \"%s\"; use mirrored",
                          s->kind->name, list);
    return s->local > 0 ? TUTTI_OK : tutti_fail(TUTTI_INVALID, "devices \"%s\" names none", list);
}

/* Where variables live: the device that was named, or the first one. */
tutti_status tutti__strategy_central(tutti_strategy *s)
{
    tutti_device *device;
    if (!s->kind->central)
        return TUTTI_OK;
    TUTTI_TRY(tutti__device_open(s->options.central ? s->options.central : s->devices[0], &device));
    snprintf(s->central, sizeof s->central, "%s", device->name);
    return TUTTI_OK;
}
