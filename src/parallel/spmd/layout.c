/* layout.c: see layout.h. */
#include "parallel/spmd/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"

static const char *const dimension_names[] = {"batch", "sequence", "embed",  "hidden", "heads",
                                              "vocab", "channels", "expert", NULL};

bool tutti__is_dimension_name(const char *name)
{
    for (const char *const *each = dimension_names; *each; each++)
        if (strcmp(*each, name) == 0)
            return true;
    return false;
}

/* Of variables, along which dimension they are stored in blocks is not said by name. */
#define WEIGHTS "weights"

/* The next name; false: there is none at *at. */
static bool read_name(const char **at, char *ret, size_t room)
{
    size_t size = 0;
    *at += strspn(*at, " ");
    while (isalnum((unsigned char)(*at)[size]) || (*at)[size] == '_')
        size++;
    if (size == 0 || size >= room)
        return false;
    memcpy(ret, *at, size);
    ret[size] = 0;
    *at += size;
    *at += strspn(*at, " ");
    return true;
}

static tutti_status no_dimension(const char *text, const char *name)
{
    tutti_text list = {0};
    for (const char *const *each = dimension_names; *each; each++)
        tutti__text_add(&list, "%s%s", list.size > 0 ? ", " : "", *each);
    tutti_status status =
        tutti_fail(TUTTI_INVALID, "layout '%s': no dimension is called '%s'; there are: %s", text,
                   name, list.data ? list.data : "");
    tutti__text_free(&list);
    return status;
}

static tutti_status no_axis(const char *text, const char *name, const tutti_mesh *mesh)
{
    tutti_text list = {0};
    tutti__mesh_print(&list, mesh);
    tutti_status status =
        tutti_fail(TUTTI_INVALID, "layout '%s': the mesh %s has no axis '%s'; give it one: --mesh",
                   text, list.data ? list.data : "", name);
    tutti__text_free(&list);
    return status;
}

static tutti_status read_axes(const char **at, const char *text, const tutti_mesh *mesh,
                              tutti_axis_set *ret)
{
    char name[sizeof mesh->axes[0].name];
    *ret = (tutti_axis_set){.size = 1};
    do {
        *at += **at == '*';
        if (!read_name(at, name, sizeof name))
            return tutti_fail(TUTTI_INVALID,
                              "layout '%s': at '%s' needs a mesh axis; rules look like batch:data "
                              "or batch:host*data, with ';' between them",
                              text, *at);
        int axis = tutti__mesh_axis(mesh, name);
        if (axis < 0)
            return no_axis(text, name, mesh);
        for (int i = 0; i < ret->count; i++)
            if (ret->axes[i] == axis)
                return tutti_fail(TUTTI_INVALID, "layout '%s' cuts one dimension along '%s' twice",
                                  text, name);
        size_t used = strlen(ret->name);
        snprintf(ret->name + used, sizeof ret->name - used, "%s%s", used > 0 ? "*" : "", name);
        ret->axes[ret->count++] = axis;
        ret->size *= mesh->axes[axis].size;
    } while (**at == '*');
    return TUTTI_OK;
}

static bool overlaps(const tutti_axis_set *a, const tutti_axis_set *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            if (a->axes[i] == b->axes[k])
                return true;
    return false;
}

/* Those of the layout that are these; added where there are none yet. */
static tutti_status add_axes(const char *text, const tutti_axis_set *axes, tutti_layout *layout,
                             int *ret)
{
    for (int i = 0; i < layout->count; i++) {
        if (strcmp(layout->axes[i].name, axes->name) == 0) {
            *ret = i;
            return TUTTI_OK;
        }
        if (overlaps(&layout->axes[i], axes))
            return tutti_fail(TUTTI_INVALID,
                              "layout '%s' cuts along '%s' and along '%s': axes of one rule cut "
                              "together, and stand in other rules as they do there or not at all",
                              text, layout->axes[i].name, axes->name);
    }
    *ret = layout->count;
    layout->axes[layout->count++] = *axes;
    return TUTTI_OK;
}

static tutti_status read_rule(const char **at, const char *text, tutti_layout *layout,
                              tutti_axis_set *weights_axes)
{
    tutti_axis_set axes;
    char name[sizeof layout->rules[0].dimension];
    int which;
    if (layout->rule_count == TUTTI_LAYOUT_RULES)
        return tutti_fail(TUTTI_INVALID, "layout '%s' has more than %d rules", text,
                          TUTTI_LAYOUT_RULES);
    if (!read_name(at, name, sizeof name) || **at != ':')
        return tutti_fail(TUTTI_INVALID,
                          "layout '%s': at '%s' needs a rule like batch:data, a dimension and the "
                          "mesh axes that cut it",
                          text, *at);
    ++*at;
    bool weights = strcmp(name, WEIGHTS) == 0;
    if (!weights && !tutti__is_dimension_name(name))
        return no_dimension(text, name);
    for (int i = 0; i < layout->rule_count; i++)
        if (strcmp(layout->rules[i].dimension, name) == 0)
            return tutti_fail(TUTTI_INVALID, "layout '%s' has two rules for '%s'", text, name);
    TUTTI_TRY(read_axes(at, text, layout->mesh, &axes));
    if (weights) {
        *weights_axes = axes;
        return TUTTI_OK;
    }
    TUTTI_TRY(add_axes(text, &axes, layout, &which));
    memcpy(layout->rules[layout->rule_count].dimension, name, sizeof name);
    layout->rules[layout->rule_count++].axes = which;
    return TUTTI_OK;
}

/* Last, so that what is cut along the batch is known before; and the axes of the batch that the
 * weights are not stored along. */
static tutti_status add_weights(const char *text, const tutti_axis_set *weights,
                                tutti_layout *layout)
{
    if (weights->count == 0)
        return TUTTI_OK;
    layout->weights = layout->count;
    layout->axes[layout->count] = *weights;
    snprintf(layout->axes[layout->count++].key, sizeof weights->key, WEIGHTS);
    const tutti_axis_set *batch = layout->batch < 0 ? NULL : &layout->axes[layout->batch];
    tutti_axis_set others = {.size = 1};
    int found = 0;
    for (int i = 0; batch && i < batch->count; i++) {
        const tutti_mesh_axis *axis = &layout->mesh->axes[batch->axes[i]];
        const tutti_axis_set one = {.count = 1, .axes = {batch->axes[i]}};
        if (overlaps(weights, &one)) {
            found++;
            continue;
        }
        size_t used = strlen(others.name);
        snprintf(others.name + used, sizeof others.name - used, "%s%s", used > 0 ? "*" : "",
                 axis->name);
        others.axes[others.count++] = batch->axes[i];
        others.size *= axis->size;
    }
    if (found < weights->count)
        return tutti_fail(TUTTI_INVALID,
                          "layout '%s': weights are stored along '%s', which does not cut the "
                          "batch; name axes of the rule for batch",
                          text, weights->name);
    if (others.count > 0) {
        layout->others = layout->count;
        layout->axes[layout->count++] = others;
    }
    return TUTTI_OK;
}

bool tutti__layout_overlap(const tutti_layout *layout, int a, int b)
{
    return a != b && overlaps(&layout->axes[a], &layout->axes[b]);
}

tutti_status tutti__layout_parse(const char *text, const tutti_mesh *mesh, tutti_layout *ret)
{
    tutti_layout layout = {.mesh = mesh, .weights = -1, .others = -1};
    tutti_axis_set weights = {0};
    const char *at = text + strspn(text, " ;");
    while (*at) {
        TUTTI_TRY(read_rule(&at, text, &layout, &weights));
        if (*at && *at != ';')
            return tutti_fail(TUTTI_INVALID, "layout '%s': at '%s' needs ';' and another rule",
                              text, at);
        at += strspn(at, " ;");
    }
    /* Axes without a rule can still be named by constraints. */
    for (int axis = 0; axis < mesh->axis_count; axis++) {
        tutti_axis_set alone = {.count = 1, .axes = {axis}, .size = mesh->axes[axis].size};
        snprintf(alone.name, sizeof alone.name, "%s", mesh->axes[axis].name);
        bool cuts = false;
        for (int i = 0; i < layout.count; i++)
            cuts = cuts || overlaps(&layout.axes[i], &alone);
        if (!cuts)
            layout.axes[layout.count++] = alone;
    }
    layout.batch = -1;
    for (int i = 0; i < layout.rule_count; i++)
        if (strcmp(layout.rules[i].dimension, "batch") == 0)
            layout.batch = layout.rules[i].axes;
    TUTTI_TRY(add_weights(text, &weights, &layout));
    for (int i = 0; i < layout.count; i++)
        if (!layout.axes[i].key[0])
            memcpy(layout.axes[i].key, layout.axes[i].name, sizeof layout.axes[i].key);
    *ret = layout;
    return TUTTI_OK;
}

int tutti__layout_find(const tutti_layout *layout, const char *name)
{
    for (int i = 0; i < layout->rule_count; i++)
        if (strcmp(layout->rules[i].dimension, name) == 0)
            return layout->rules[i].axes;
    int axis = tutti__mesh_axis(layout->mesh, name);
    for (int i = 0; axis >= 0 && i < layout->count; i++)
        for (int k = 0; k < layout->axes[i].count; k++)
            if (layout->axes[i].axes[k] == axis)
                return i;
    return -1;
}

int tutti__layout_rank(const tutti_layout *layout, int axes, int place)
{
    int rank = 0, size, first;
    (void)tutti__mesh_axes_rank(layout->mesh, place, layout->axes[axes].name, &rank, &size, &first);
    return rank;
}

bool tutti__layout_spans(const tutti_layout *layout, int axes)
{
    return tutti__mesh_axes_span(layout->mesh, layout->axes[axes].name);
}
