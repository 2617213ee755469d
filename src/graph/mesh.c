/* mesh.c: see mesh.h. */
#include "graph/mesh.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"

/* Up to the next comma, without spaces around it; moves *at behind the comma. */
static size_t next_word(const char **at, const char **ret_word)
{
    const char *word = *at + strspn(*at, " ");
    size_t size = strcspn(word, ",");
    *at = word + size + (word[size] == ',');
    while (size > 0 && word[size - 1] == ' ')
        size--;
    *ret_word = word;
    return size;
}

static bool is_name(const char *text, size_t size)
{
    bool ok = size > 0 && size < sizeof((tutti_mesh_axis){0}.name) && isalpha((unsigned char)*text);
    for (size_t i = 0; ok && i < size; i++)
        ok = isalnum((unsigned char)text[i]) || text[i] == '_';
    return ok;
}

static tutti_status read_axis(const char *text, size_t size, const char *all, tutti_mesh_axis *ret)
{
    const char *equals = memchr(text, '=', size);
    size_t name = equals ? (size_t)(equals - text) : size;
    char *end = NULL;
    long number = equals ? strtol(equals + 1, &end, 10) : 0;
    if (!is_name(text, name) || !equals || end != text + size || !isdigit((unsigned char)equals[1]))
        return tutti_fail(TUTTI_INVALID,
                          "mesh '%s': cannot read '%.*s'; axes look like data=2, with a name of at "
                          "most %zu letters, digits and _",
                          all, (int)size, text, sizeof ret->name - 1);
    if (number < 1 || number > TUTTI_MESH_DEVICES)
        return tutti_fail(TUTTI_INVALID, "mesh '%s': '%.*s' needs a size of 1 to %d", all,
                          (int)size, text, TUTTI_MESH_DEVICES);
    *ret = (tutti_mesh_axis){.size = (int)number};
    memcpy(ret->name, text, name);
    return TUTTI_OK;
}

static tutti_status read_axes(const char *text, tutti_mesh *mesh)
{
    mesh->device_count = 1;
    for (const char *at = text, *word; *at || mesh->axis_count == 0;) {
        size_t size = next_word(&at, &word);
        tutti_mesh_axis axis;
        if (mesh->axis_count == TUTTI_MESH_AXES)
            return tutti_fail(TUTTI_INVALID, "mesh '%s' has more than %d axes", text,
                              TUTTI_MESH_AXES);
        TUTTI_TRY(read_axis(word, size, text, &axis));
        if (tutti__mesh_axis(mesh, axis.name) >= 0)
            return tutti_fail(TUTTI_INVALID, "mesh '%s' has two axes called '%s'", text, axis.name);
        mesh->axes[mesh->axis_count++] = axis;
        mesh->device_count *= axis.size;
        if (mesh->device_count > TUTTI_MESH_DEVICES)
            return tutti_fail(TUTTI_TOO_LARGE, "mesh '%s' has more than %d devices", text,
                              TUTTI_MESH_DEVICES);
    }
    return TUTTI_OK;
}

static bool same_device(const tutti_device_name *a, const tutti_device_name *b)
{
    return a->index == b->index && a->part == b->part && a->task == b->task &&
           a->replica == b->replica && strcmp(a->kind, b->kind) == 0 && strcmp(a->job, b->job) == 0;
}

static tutti_status read_device(const char *text, size_t size, tutti_mesh *mesh, int count)
{
    char name[TUTTI_DEVICE_TEXT], other[TUTTI_DEVICE_TEXT];
    tutti_device_name *device = &mesh->devices[count];
    if (size >= sizeof name)
        return tutti_fail(TUTTI_INVALID, "device %d of the mesh has a name of %zu characters",
                          count, size);
    memcpy(name, text, size);
    name[size] = 0;
    TUTTI_TRY(tutti_device_parse(name, device));
    if (!device->kind[0] || device->index < 0)
        return tutti_fail(TUTTI_INVALID, "device %d of the mesh is '%s', needs one device: cpu:0",
                          count, name);
    for (int i = 0; i < count; i++)
        if (same_device(&mesh->devices[i], device))
            return tutti_fail(TUTTI_INVALID, "devices %d and %d of the mesh are both '%s'", i,
                              count, tutti_device_text(device, other));
    return TUTTI_OK;
}

static tutti_status read_devices(const char *text, const char *axes, tutti_mesh *mesh)
{
    int count = 0, named = *text != 0;
    for (const char *c = text; *c; c++)
        named += *c == ',';
    if (named != mesh->device_count)
        return tutti_fail(TUTTI_INVALID,
                          "the mesh '%s' has places for %d devices, and %d %s named ('%s'); the "
                          "sizes of its axes multiply to the number of devices",
                          axes, mesh->device_count, named, named == 1 ? "is" : "are", text);
    for (const char *at = text, *word; count < named; count++) {
        size_t size = next_word(&at, &word);
        TUTTI_TRY(read_device(word, size, mesh, count));
    }
    return TUTTI_OK;
}

tutti_status tutti__mesh_create(const char *axes, const char *devices, tutti_mesh **ret)
{
    tutti_mesh *mesh = calloc(1, sizeof *mesh);
    if (!mesh)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    tutti_status status = read_axes(axes, mesh);
    if (status == TUTTI_OK) {
        mesh->devices = calloc((size_t)mesh->device_count, sizeof *mesh->devices);
        status = mesh->devices ? read_devices(devices ? devices : "", axes, mesh)
                               : tutti_fail(TUTTI_NO_MEMORY, "no memory for a mesh");
    }
    if (status != TUTTI_OK)
        tutti__mesh_destroy(mesh);
    else
        *ret = mesh;
    return status;
}

void tutti__mesh_destroy(tutti_mesh *mesh)
{
    if (!mesh)
        return;
    free(mesh->devices);
    free(mesh);
}

int tutti__mesh_axis(const tutti_mesh *mesh, const char *name)
{
    for (int i = 0; i < mesh->axis_count; i++)
        if (strcmp(mesh->axes[i].name, name) == 0)
            return i;
    return -1;
}

int tutti__mesh_find(const tutti_mesh *mesh, const char *device)
{
    tutti_device_name name;
    if (tutti_device_parse(device, &name) != TUTTI_OK)
        return -1;
    for (int i = 0; i < mesh->device_count; i++)
        if (same_device(&mesh->devices[i], &name))
            return i;
    return -1;
}

int tutti__mesh_rank(const tutti_mesh *mesh, int place, int axis, int *ret_first)
{
    int stride = 1;
    for (int i = mesh->axis_count - 1; i > axis; i--)
        stride *= mesh->axes[i].size;
    int rank = place / stride % mesh->axes[axis].size;
    *ret_first = place - rank * stride;
    return rank;
}

bool tutti__mesh_axes_rank(const tutti_mesh *mesh, int place, const char *axes, int *ret_rank,
                           int *ret_size, int *ret_first)
{
    char name[sizeof mesh->axes[0].name];
    int rank = 0, size = 1, first = place;
    for (const char *at = axes; *at;) {
        size_t length = strcspn(at, "*");
        if (length >= sizeof name)
            return false;
        memcpy(name, at, length);
        name[length] = 0;
        int axis = tutti__mesh_axis(mesh, name);
        if (axis < 0)
            return false;
        rank = rank * mesh->axes[axis].size + tutti__mesh_rank(mesh, first, axis, &first);
        size *= mesh->axes[axis].size;
        at += length + (at[length] == '*');
    }
    *ret_rank = rank;
    *ret_size = size;
    *ret_first = first;
    return true;
}

bool tutti__mesh_axes_span(const tutti_mesh *mesh, const char *axes)
{
    int rank, size, first;
    for (int place = 0; place < mesh->device_count; place++)
        if (!tutti__mesh_axes_rank(mesh, place, axes, &rank, &size, &first) || rank != place)
            return false;
    return true;
}

tutti_status tutti__mesh_axes(const tutti_mesh *mesh, const char *text,
                              int ret_axes[TUTTI_MESH_AXES], int *ret_count)
{
    int count = 0, axes[TUTTI_MESH_AXES];
    for (const char *at = text;; at++) {
        char name[sizeof mesh->axes[0].name];
        size_t size = strcspn(at, "*");
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        int axis = size < sizeof name ? tutti__mesh_axis(mesh, name) : -1;
        for (int i = 0; axis >= 0 && i < count; i++)
            if (axes[i] == axis)
                return tutti_fail(TUTTI_INVALID, "'%s' names the axis '%s' twice", text, name);
        if (axis < 0) {
            tutti_text all = {0};
            tutti__mesh_print(&all, mesh);
            tutti_status status = tutti_fail(TUTTI_INVALID, "the mesh has no axis '%.*s'; it is %s",
                                             (int)size, at, all.data ? all.data : "");
            tutti__text_free(&all);
            return status;
        }
        axes[count++] = axis;
        at += size;
        if (!*at)
            break;
    }
    memcpy(ret_axes, axes, (size_t)count * sizeof *axes);
    *ret_count = count;
    return TUTTI_OK;
}

int tutti__mesh_group(const tutti_mesh *mesh, int place, const int *axes, int count,
                      int *ret_places)
{
    int size = 1;
    for (int i = 0; i < count; i++)
        size *= mesh->axes[axes[i]].size;
    for (int i = 0; i < count; i++)
        (void)tutti__mesh_rank(mesh, place, axes[i], &place); /* down to rank 0 */
    for (int r = 0; ret_places && r < size; r++) {
        int rest = r;
        ret_places[r] = place;
        for (int i = count - 1; i >= 0; i--) {
            int stride = 1;
            for (int k = mesh->axis_count - 1; k > axes[i]; k--)
                stride *= mesh->axes[k].size;
            ret_places[r] += rest % mesh->axes[axes[i]].size * stride;
            rest /= mesh->axes[axes[i]].size;
        }
    }
    return size;
}

void tutti__mesh_print(tutti_text *out, const tutti_mesh *mesh)
{
    for (int i = 0; i < mesh->axis_count; i++)
        tutti__text_add(out, "%s%s=%d", i > 0 ? "," : "", mesh->axes[i].name, mesh->axes[i].size);
}
