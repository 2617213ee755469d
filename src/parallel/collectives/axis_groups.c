/* axis_groups.c: see axis_groups.h. */
#include "parallel/collectives/axis_groups.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/world.h"

/* ---- devices of the mesh ---- */

static bool names_task(const tutti_device_name *device)
{
    return device->job[0] || device->task >= 0;
}

/* The rank of a task, "/task:1" being a worker; -1: there is none. */
static int rank_of_task(const tutti_cluster *cluster, int size, const tutti_device_name *device)
{
    const char *job = device->job[0] ? device->job : tutti_role_text(TUTTI_ROLE_WORKER);
    int task = device->task < 0 ? 0 : device->task;
    for (int r = 0; cluster && r < size; r++) {
        tutti_role role;
        int index;
        if (tutti_cluster_find_rank(cluster, r, &role, &index) && index == task &&
            strcmp(tutti_role_text(role), job) == 0)
            return r;
    }
    return -1;
}

static tutti_status no_such_task(const tutti_device_name *device, int place, int size)
{
    char text[TUTTI_DEVICE_TEXT];
    return tutti_fail(TUTTI_INVALID,
                      "device %d of the mesh is %s, and the job has %d process%s, without this "
                      "task; start as many as the mesh names, with a strategy of several processes "
                      "(.strategy = tutti_strategy_multi_worker_mirrored())",
                      place, tutti_device_text(device, text), size, size == 1 ? "" : "es");
}

static tutti_status find_devices(tutti_axis_groups *groups, const tutti_cluster *cluster)
{
    const tutti_mesh *mesh = groups->mesh;
    char local[TUTTI_DEVICE_TEXT];
    int size = groups->world ? tutti_comm_size(groups->world) : 1;
    for (int i = 0; i < mesh->device_count; i++) {
        const tutti_device_name *device = &mesh->devices[i];
        bool tasks = names_task(device);
        if (groups->world && tasks != names_task(&mesh->devices[0]))
            return tutti_fail(TUTTI_INVALID,
                              "device %d of the mesh names %s task, and device 0 %s; name the "
                              "task of each (/job:worker/task:1/cpu:0), or of none: then the mesh "
                              "is of this process alone",
                              i, tasks ? "a" : "no", tasks ? "none" : "one");
        int process = !tasks || (!groups->world && device->task < 1)
                          ? groups->process
                          : rank_of_task(cluster, size, device);
        if (process < 0)
            return no_such_task(device, i, size);
        groups->devices[i].process = process;
        snprintf(groups->devices[i].name, sizeof groups->devices[i].name, "%.63s",
                 tutti_device_local(device, local));
    }
    return TUTTI_OK;
}

/* ---- making and ending ---- */

tutti_status tutti__axis_groups_create(const tutti_mesh *mesh, tutti_comm *world, bool owns,
                                       const tutti_cluster *cluster, tutti_axis_groups **ret)
{
    tutti_axis_groups *groups = calloc(1, sizeof *groups);
    pthread_condattr_t monotonic;
    tutti_status status = TUTTI_OK;
    if (!groups) {
        tutti_comm_close(owns ? world : NULL);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for groups of devices");
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&groups->lock, NULL);
    pthread_mutex_init(&groups->surviving, NULL);
    pthread_cond_init(&groups->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    groups->mesh = mesh;
    groups->world = world;
    groups->owns = owns;
    groups->process = world ? tutti_comm_rank(world) : 0;
    if (mesh) {
        groups->devices = calloc((size_t)mesh->device_count, sizeof *groups->devices);
        status = groups->devices ? find_devices(groups, cluster)
                                 : tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    }
    if (status != TUTTI_OK)
        tutti__axis_groups_close(groups);
    else
        *ret = groups;
    return status;
}

tutti_status tutti__axis_groups_span(tutti_axis_groups *groups, const tutti_mesh *mesh, int local,
                                     const char *const *devices)
{
    groups->devices = calloc((size_t)mesh->device_count, sizeof *groups->devices);
    if (!groups->devices)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    for (int i = 0; i < mesh->device_count; i++) {
        groups->devices[i].process = i / local;
        snprintf(groups->devices[i].name, sizeof groups->devices[i].name, "%s", devices[i % local]);
    }
    groups->mesh = mesh;
    return TUTTI_OK;
}

tutti_status tutti__axis_groups_compare(tutti_axis_groups *groups)
{
    if (!groups->world || !groups->mesh || !names_task(&groups->mesh->devices[0]))
        return TUTTI_OK;
    tutti_text axes = {0}, devices = {0};
    char name[TUTTI_DEVICE_TEXT];
    tutti__mesh_print(&axes, groups->mesh);
    for (int i = 0; i < groups->mesh->device_count; i++)
        tutti__text_add(&devices, "%s%s", i > 0 ? "," : "",
                        tutti_device_text(&groups->mesh->devices[i], name));
    tutti_status status =
        axes.data && devices.data && !axes.failed && !devices.failed
            ? tutti_comm_agree(groups->world, "mesh of devices",
                               (const char *const[]){axes.data, devices.data}, 2, 0, NULL)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    tutti__text_free(&axes);
    tutti__text_free(&devices);
    return status;
}

tutti_status tutti__axis_groups_close(tutti_axis_groups *groups)
{
    if (!groups)
        return TUTTI_OK;
    tutti_axis_group *all = groups->made;
    for (tutti_axis_group *each = all; each; each = each->next) /* messages first */
        tutti__axis_group_trace_close(each);
    for (tutti_axis_group *next; all; all = next) {
        next = all->next;
        tutti__axis_group_close(all);
    }
    tutti_status status = groups->owns ? tutti_comm_close(groups->world) : TUTTI_OK;
    pthread_mutex_destroy(&groups->lock);
    pthread_mutex_destroy(&groups->surviving);
    pthread_cond_destroy(&groups->over);
    TUTTI_VEC_FREE(&groups->states);
    free(groups->devices);
    free(groups);
    return status;
}

/* Under the lock. */
static tutti_status keep(tutti_axis_groups *groups, const char *axes, int size,
                         const tutti_axis_rank *homes, const char *const *devices,
                         tutti_axis_group **ret)
{
    tutti_axis_group *group;
    TUTTI_TRY(tutti__axis_group_create(axes, size, homes, groups->process, devices,
                                       groups->algorithm, &group));
    group->begin = groups->mesh ? homes[0].place : 0;
    group->deterministic = groups->deterministic;
    group->next = groups->made;
    atomic_store_explicit(&groups->made, group, memory_order_release);
    *ret = group;
    return TUTTI_OK;
}

tutti_status tutti__axis_groups_add(tutti_axis_groups *groups, const char *axes, int processes,
                                    int process, int local, const char *const *devices,
                                    tutti_axis_group **ret)
{
    int size = processes * local;
    tutti_axis_rank *homes = calloc((size_t)size, sizeof *homes);
    if (!homes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", size);
    for (int r = 0; r < size; r++)
        homes[r] = (tutti_axis_rank){r / local, r % local};
    groups->process = process;
    tutti_status status = keep(groups, axes, size, homes, devices, ret);
    free(homes);
    if (status == TUTTI_OK) {
        (*ret)->world = groups->world;
        (*ret)->borrowed = true;
    }
    return status;
}

/* ---- finding ---- */

static int place_of(const tutti_axis_groups *groups, const char *device)
{
    for (int i = 0; groups->mesh && i < groups->mesh->device_count; i++)
        if (groups->devices[i].process == groups->process &&
            strcmp(groups->devices[i].name, device) == 0)
            return i;
    return -1;
}

/* Under the lock. */
static tutti_status make(tutti_axis_groups *groups, const char *axes, int place,
                         tutti_axis_group **ret)
{
    const tutti_mesh *mesh = groups->mesh;
    int along[TUTTI_MESH_AXES], count;
    TUTTI_TRY(tutti__mesh_axes(mesh, axes, along, &count));
    int size = tutti__mesh_group(mesh, place, along, count, NULL);
    int *places = calloc((size_t)size, sizeof *places);
    tutti_axis_rank *homes = calloc((size_t)size, sizeof *homes);
    const char **names = calloc((size_t)mesh->device_count, sizeof *names);
    tutti_status status = places && homes && names
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of devices");
    if (status == TUTTI_OK) {
        tutti__mesh_group(mesh, place, along, count, places);
        for (int r = 0; r < size; r++)
            homes[r] = (tutti_axis_rank){groups->devices[places[r]].process, places[r]};
        for (int i = 0; i < mesh->device_count; i++)
            names[i] = groups->devices[i].name;
        status = keep(groups, axes, size, homes, names, ret);
    }
    free(places);
    free(homes);
    free(names);
    return status;
}

static tutti_axis_group *find_made(const tutti_axis_groups *groups, const char *axes,
                                   const char *device, int *ret_local)
{
    tutti_axis_group *each = atomic_load_explicit(&groups->made, memory_order_acquire);
    for (; each; each = each->next)
        if (strcmp(each->axes, axes) == 0 &&
            (*ret_local = tutti__axis_group_find(each, device)) >= 0)
            return each;
    return NULL;
}

static tutti_status find_or_make(tutti_axis_groups *groups, const char *axes, const char *device,
                                 tutti_axis_group **ret, int *ret_local)
{
    int local = -1;
    tutti_axis_group *group = find_made(groups, axes, device, &local);
    if (!group) {
        int place = place_of(groups, device), along[TUTTI_MESH_AXES], count;
        if (!groups->mesh)
            return tutti_fail(TUTTI_INVALID, "there is no axis '%s' with %s on it", axes, device);
        TUTTI_TRY(tutti__mesh_axes(groups->mesh, axes, along, &count));
        if (place < 0)
            return tutti_fail(TUTTI_INVALID, "%s is not in the session's mesh", device);
        TUTTI_TRY(make(groups, axes, place, &group));
        local = tutti__axis_group_find(group, device);
    }
    *ret = group;
    *ret_local = local;
    return TUTTI_OK;
}

tutti_status tutti__axis_groups_find(tutti_axis_groups *groups, const char *axes,
                                     const char *device, tutti_axis_group **ret, int *ret_local)
{
    if (!groups)
        return tutti_fail(TUTTI_INVALID,
                          "the session has no mesh with an axis '%s'; name it in "
                          "tutti_session_open(.mesh = \"%s=…\", .mesh_devices = …)",
                          axes, axes);
    int local;
    tutti_axis_group *made = find_made(groups, axes, device, &local);
    if (made) {
        *ret = made;
        *ret_local = local;
        return TUTTI_OK;
    }
    pthread_mutex_lock(&groups->lock);
    tutti_status status = find_or_make(groups, axes, device, ret, ret_local);
    pthread_mutex_unlock(&groups->lock);
    return status;
}

/* ---- runs whose devices meet ---- */

/* Under the lock; false when it is too late. */
static bool wait_for_others(tutti_axis_groups *groups, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    int late = 0;
    while (groups->meeting && !late)
        late = pthread_cond_timedwait(&groups->over, &groups->lock, &until);
    return !groups->meeting;
}

tutti_status tutti__axis_groups_enter(tutti_axis_groups *groups, bool meets, bool spans,
                                      int64_t deadline_ns)
{
    pthread_mutex_lock(&groups->lock);
    bool free = !meets || wait_for_others(groups, deadline_ns);
    if (free && meets) {
        groups->meeting = true;
        groups->spans = spans;
    }
    if (free)
        groups->runs++;
    pthread_mutex_unlock(&groups->lock);
    return free ? TUTTI_OK
                : tutti_fail(TUTTI_DEADLINE,
                             "another run of the same strategy had not ended before the deadline; "
                             "does it wait for this one?");
}

/* Ends of queues, deadlines and what others failed with are no failures of this process: the first
 * two are to be tried again, and of the last all know. */
static bool is_told(tutti_status status)
{
    return status != TUTTI_CLOSED && status != TUTTI_DEADLINE && status != TUTTI_CANCELLED;
}

void tutti__axis_groups_cancel(tutti_axis_groups *groups, const tutti_error *why)
{
    pthread_mutex_lock(&groups->lock);
    for (tutti_axis_group *each = groups->made; !groups->cancelled && each; each = each->next)
        if (each->inner)
            tutti_comm_abort(each->inner[0], why->message);
    groups->cancelled = true;
    if (groups->world && groups->spans && is_told(why->status) &&
        why->status != TUTTI_OUT_OF_RANGE) /* of queues, as it may be */
        tutti_comm_abort(groups->world, why->message);
    pthread_mutex_unlock(&groups->lock);
}

void tutti__axis_groups_leave(tutti_axis_groups *groups, bool meets)
{
    tutti_error before;
    pthread_mutex_lock(&groups->lock);
    if (meets) {
        groups->meeting = groups->spans = false;
        pthread_cond_signal(&groups->over);
    }
    if (--groups->runs == 0 && groups->cancelled) {
        tutti__error_capture(TUTTI_OK, &before);
        for (tutti_axis_group *each = groups->made; each; each = each->next)
            tutti__axis_group_renew(each);
        groups->cancelled = false;
        tutti__error_restore(&before);
    }
    pthread_mutex_unlock(&groups->lock);
}

void tutti__axis_groups_fail(tutti_axis_groups *groups, tutti_status status)
{
    tutti_error error;
    if (!groups || !groups->world || !is_told(status))
        return;
    tutti__error_capture(status, &error);
    tutti_comm_abort(groups->world, error.message);
    tutti__error_restore(&error);
}
