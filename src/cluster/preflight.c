/* preflight.c: descriptions of a cluster that cannot work are refused before anything is tried. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cluster/cluster.h"

bool tutti__task_split(const char *task, char *ret_host, size_t size, int *ret_port)
{
    const char *host = task, *colon;
    size_t length;
    if (*task == '[') {
        const char *end = strchr(task, ']');
        if (end == NULL || (end[1] != ':' && end[1] != '\0'))
            return false;
        host = task + 1;
        length = (size_t)(end - host);
        colon = end[1] == ':' ? end + 1 : NULL;
    } else {
        colon = strchr(task, ':');
        if (colon != NULL && strchr(colon + 1, ':') != NULL)
            return false; /* where an IPv6 address without brackets ends nobody knows */
        length = colon != NULL ? (size_t)(colon - task) : strlen(task);
    }
    long port = 0;
    if (colon != NULL) {
        char *end;
        port = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535)
            return false;
    }
    if (length == 0 || length >= size || memchr(host, '/', length) != NULL ||
        memchr(host, ' ', length) != NULL)
        return false;
    snprintf(ret_host, size, "%.*s", (int)length, host);
    *ret_port = (int)port;
    return true;
}

bool tutti__host_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0 || strcasecmp(host, "ip6-localhost") == 0 ||
           strcasecmp(host, "localhost.localdomain") == 0;
}

typedef struct seen {
    const char *local, *remote; /* tasks on loopback and elsewhere; evaluators do not count */
    tutti_map places;           /* to the task that is there */
} seen;

/* One text for one address, however it is written: names without regard to case, localhost by its
 * number. */
static void write_place(const char *host, int port, char *ret_text, size_t size)
{
    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, "localhost.localdomain") == 0)
        host = "127.0.0.1";
    if (strcasecmp(host, "ip6-localhost") == 0)
        host = "::1";
    snprintf(ret_text, size, "[%s]:%d", host, port);
    for (char *at = ret_text; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
}

static tutti_status fail_twin(const char *twin, const char *task, const char *name)
{
    if (strcmp(twin, task) == 0)
        return tutti_fail(TUTTI_INVALID,
                          "'%s' stands there twice (the second time as %s): two processes cannot "
                          "listen at one port; give each its own",
                          task, name);
    return tutti_fail(TUTTI_INVALID,
                      "'%s' and '%s' (%s) are one address: two processes cannot listen at one "
                      "port; give each its own",
                      twin, task, name);
}

static tutti_status check_task(const char *task, tutti_role role, int index, seen *all)
{
    char host[256], name[64], place[300];
    int port;
    if (*task == '\0')
        return TUTTI_OK;
    snprintf(name, sizeof name, "%s %d", tutti_role_text(role), index);
    if (!tutti__task_split(task, host, sizeof host, &port))
        return tutti_fail(TUTTI_INVALID,
                          "the address '%s' of %s is not of the form host:port; write for example "
                          "node1:4000, or [2001:db8::1]:4000",
                          task, name);
    write_place(host, port, place, sizeof place);
    const char *twin = port > 0 ? tutti__map_get(&all->places, place) : NULL;
    if (twin != NULL)
        return fail_twin(twin, task, name);
    if (port > 0)
        TUTTI_TRY(tutti__map_set(&all->places, place, (void *)(uintptr_t)task));
    bool here =
        tutti__host_loopback(host) || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    if (role != TUTTI_ROLE_EVALUATOR)
        *(here ? &all->local : &all->remote) = task;
    return TUTTI_OK;
}

static tutti_status check_tasks(const tutti_cluster *cluster, seen *all)
{
    for (int role = 0; role < TUTTI_ROLE_COUNT; role++)
        for (size_t i = 0; i < cluster->tasks[role].count; i++)
            TUTTI_TRY(check_task(cluster->tasks[role].data[i], (tutti_role)role, (int)i, all));
    if (all->local != NULL && all->remote != NULL)
        return tutti_fail(TUTTI_INVALID,
                          "'%s' and '%s' are in one cluster: from another machine, the first is "
                          "that other machine; write the name under which all machines reach it",
                          all->local, all->remote);
    return TUTTI_OK;
}

/* Others may leave their port to the system; where all ranks meet must be known. */
static tutti_status check_meeting(const tutti_cluster *cluster)
{
    char host[256];
    int port = 0;
    const char *meeting = cluster->meeting, *variable = getenv("TUTTI_MEETING");
    if (cluster->size < 2 || meeting == NULL || *meeting == '\0' ||
        (tutti__task_split(meeting, host, sizeof host, &port) && port > 0))
        return TUTTI_OK;
    bool given = variable != NULL && strcmp(variable, meeting) == 0;
    return tutti_fail(TUTTI_INVALID,
                      "%s is '%s', which is not of the form host:port with a port from 1 to 65535; "
                      "the ranks meet there: write for example node1:4000, or [2001:db8::1]:4000",
                      given ? "TUTTI_MEETING" : "the address of rank 0", meeting);
}

tutti_status tutti__preflight(const tutti_cluster *cluster)
{
    const char *role = tutti_role_text(cluster->role);
    int count = (int)cluster->tasks[cluster->role].count;
    if (cluster->size == 0)
        return tutti_fail(TUTTI_INVALID,
                          "the cluster has no chief, worker or ps; name at least one worker");
    if (cluster->tasks[TUTTI_ROLE_CHIEF].count > 1)
        return tutti_fail(TUTTI_INVALID, "the cluster has %zu chiefs; make all but one workers",
                          cluster->tasks[TUTTI_ROLE_CHIEF].count);
    if (cluster->tasks[TUTTI_ROLE_CHIEF].count + cluster->tasks[TUTTI_ROLE_WORKER].count == 0)
        return tutti_fail(TUTTI_INVALID,
                          "the cluster has parameter servers but nobody who trains; add a worker");
    if (count == 0 && cluster->role != TUTTI_ROLE_EVALUATOR)
        return tutti_fail(
            TUTTI_INVALID,
            "this process is %s %d, but the cluster has no task of that role; add its "
            "address to the list of '%s'",
            role, cluster->index, role);
    if (cluster->index < 0 || (count > 0 && cluster->index >= count))
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "this process is %s %d, but there are %d: numbers go from 0 to %d", role,
                          cluster->index, count, count - 1);
    if (cluster->local_size > 0 && cluster->local_rank >= cluster->local_size)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "this process is number %d on its machine, but there are %d: numbers go "
                          "from 0 to %d; correct the local rank or the local size",
                          cluster->local_rank, cluster->local_size, cluster->local_size - 1);
    seen all = {0};
    tutti_status status = check_tasks(cluster, &all);
    tutti__map_free(&all.places);
    return status == TUTTI_OK ? check_meeting(cluster) : status;
}
