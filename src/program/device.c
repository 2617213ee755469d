/* device.c: devices by name: opened when first named, shared by all sessions of the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "tables/target.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_map devices; /* "cpu:0" → tutti_device */

static const tutti_target *find_target(const char *kind)
{
    for (const tutti_target *const *target = tutti__target_table; *target; target++)
        if (strcmp((*target)->name, kind) == 0)
            return *target;
    return NULL;
}

static tutti_status not_found(const char *name)
{
    tutti_text text = {0};
    for (const tutti_target *const *target = tutti__target_table; *target; target++) {
        int count = (*target)->count();
        tutti__text_add(&text, "%s%s (%s)", text.size ? ", " : "", (*target)->name,
                        count < 0 ? "any number" : "0 …");
    }
    tutti_status status =
        tutti_fail(TUTTI_NOT_FOUND, "there is no device '%s'; kinds here: %s", name, text.data);
    tutti__text_free(&text);
    return status;
}

static tutti_status open_device(const tutti_device_name *parsed, const char *name,
                                tutti_device **ret)
{
    const tutti_target *target = find_target(parsed->kind);
    if (!target)
        return not_found(name);
    int count = target->count();
    if (count >= 0 && parsed->index >= count)
        return tutti_fail(TUTTI_NOT_FOUND, "device '%s' does not exist: there are %d of kind %s%s",
                          name, count, target->name,
                          strcmp(target->name, "cpu") == 0
                              ? "; TUTTI_CPU_DEVICES=n splits the cores into n"
                              : "");
    if (parsed->part >= 0 && !target->parts)
        return tutti_fail(TUTTI_NOT_FOUND,
                          "device '%s' does not exist: logical devices are of kind gpu only", name);
    tutti_device *device = calloc(1, sizeof *device);
    if (!device)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for device '%s'", name);
    device->target = target;
    device->index = parsed->index;
    device->part = parsed->part;
    snprintf(device->name, sizeof device->name, "%.63s", name);
    tutti_status status = target->open(device);
    if (status == TUTTI_OK && (status = tutti__map_set(&devices, name, device)) != TUTTI_OK)
        target->close(device);
    if (status != TUTTI_OK)
        free(device);
    else
        *ret = device;
    return status;
}

tutti_status tutti__device_open(const char *name, tutti_device **ret)
{
    tutti_device_name parsed;
    char local[TUTTI_DEVICE_TEXT];
    TUTTI_TRY(tutti_device_parse(name, &parsed));
    TUTTI_TRY(tutti_device_parse(tutti_device_local(&parsed, local), &parsed));
    pthread_mutex_lock(&lock);
    tutti_device *device = tutti__map_get(&devices, local);
    tutti_status status = device ? TUTTI_OK : open_device(&parsed, local, &device);
    pthread_mutex_unlock(&lock);
    if (status == TUTTI_OK)
        *ret = device;
    return status;
}

/* Devices stay open; one that is opened meanwhile has nothing that the caller enqueued. */
tutti_status tutti__devices_finish(void)
{
    tutti_error first = {0};
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&lock);
        tutti_device *device = i < devices.count ? devices.entries[i].value : NULL;
        pthread_mutex_unlock(&lock);
        if (!device)
            break;
        tutti_status status = device->target->finish ? device->target->finish(device) : TUTTI_OK;
        if (status != TUTTI_OK && first.status == TUTTI_OK)
            tutti__error_capture(status, &first);
    }
    return tutti__error_restore(&first);
}

/* The bytes of strings lie on the host: whatever has to do with them stays there, queues of them
 * too. */
bool tutti__without_strings(const tutti_device *device, const tutti_node *node)
{
    TUTTI_UNUSED(device);
    for (int i = 0; i < node->input_count; i++)
        if (tutti__edge_type(node->inputs[i])->dtype == TUTTI_STRING)
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (node->types[i].dtype == TUTTI_STRING)
            return false;
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    for (int i = 0; types && types->kind == TUTTI_ATTR_TYPES && i < types->count; i++)
        if (types->value.types[i].dtype == TUTTI_STRING)
            return false;
    return true;
}

const tutti_kernel *tutti__device_kernel(const tutti_device *device,
                                         const tutti_kernel_query *query)
{
    const tutti_target *target = device->target;
    if (target->pick)
        return target->pick(query);
    return target->kernels ? tutti__kernel_pick(target->kernels, query) : NULL;
}

bool tutti__device_fuses(const tutti_device *device)
{
    const tutti_target *target = device->target;
    return target->pick ||
           (target->kernels && tutti__kernel_list("fused", target->kernels, 0, NULL) > 0);
}
