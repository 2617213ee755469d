/* meetings.c: see meetings.h. */
#include "exec/plan/meetings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a node meets others: not where it is alone on its axis, and a wait meets nobody. */
static bool is_met(const tutti_node *node)
{
    return !node->dead && (node->op->flags & TUTTI_OP_COLLECTIVE) &&
           tutti__int(node, "size") != 1 && !tutti__is(node, "all_reduce_wait");
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
}

static tutti_status find_group(const tutti_engine_options *options, const tutti_node *node,
                               const char *device, tutti_axis_group **ret, int *ret_local)
{
    tutti_axis_group *group;
    char place[TUTTI_PLACE_TEXT];
    tutti_status status = tutti__axis_groups_find(
        tutti__engine_groups(options), tutti__str(node, "axis"), device, &group, ret_local);
    if (status == TUTTI_OK && group->size != tutti__int(node, "size"))
        status = tutti_fail(TUTTI_INVALID,
                            "it was built for %lld devices along axis '%s', the mesh has %d",
                            (long long)tutti__int(node, "size"), group->axes, group->size);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s '%s'%s", node->op->name, node->name,
                                   tutti__node_place(node, place));
    *ret = group;
    return TUTTI_OK;
}

tutti_status tutti__plan_check_tasks(const tutti_engine_options *options, const tutti_graph *graph)
{
    const tutti_axis_groups *groups = tutti__engine_groups(options);
    char place[TUTTI_PLACE_TEXT];
    for (size_t n = 0; groups && groups->mesh && n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!node->dead && tutti__axis_groups_process(groups, node->device) != groups->process)
            return tutti_fail(TUTTI_INVALID,
                              "%s '%s'%s is on %s, in another process of the mesh; build it there, "
                              "and send what goes between with tutti_send and tutti_recv",
                              node->op->name, node->name, tutti__node_place(node, place),
                              node->device);
    }
    return TUTTI_OK;
}

/* ---- channels ---- */

static tutti_attr *channel_of(tutti_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, "channel") == 0)
            return &node->attrs[i];
    return NULL;
}

tutti_status tutti__plan_name_channels(const tutti_engine_options *options, tutti_graph *graph)
{
    typedef struct counter {
        const tutti_axis_group *group;
        int local, next;
    } counter;
    TUTTI_VEC(counter) counters = {0};
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        tutti_axis_group *group;
        int local;
        size_t at = 0;
        if (!is_met(node))
            continue;
        status = find_group(options, node, node->device, &group, &local);
        if (status != TUTTI_OK || tutti__str(node, "channel")[0])
            continue;
        while (at < counters.count &&
               (counters.data[at].group != group || counters.data[at].local != local))
            at++;
        counter first = {group, local, 0};
        if (at == counters.count && !TUTTI_VEC_PUSH(&counters, first))
            status = no_memory();
        char *text = status == TUTTI_OK
                         ? tutti__arena_format(&graph->arena, "#%d@%d", counters.data[at].next++,
                                               group->begin)
                         : NULL;
        tutti_attr *channel = channel_of(node);
        if (status == TUTTI_OK && !text)
            status = no_memory();
        if (status == TUTTI_OK && channel) {
            channel->value.s = text;
            channel->count = (int32_t)strlen(text);
        }
    }
    TUTTI_VEC_FREE(&counters);
    return status;
}

/* ---- what the devices of this process do in their groups ---- */

typedef struct member {
    tutti_axis_group *group;
    int local;
    TUTTI_VEC(const tutti_node *) nodes;
} member;
typedef TUTTI_VEC(member) members;

static tutti_status add(members *all, tutti_axis_group *group, int local, const tutti_node *node)
{
    size_t at = 0;
    member none = {.group = group, .local = local};
    while (at < all->count && (all->data[at].group != group || all->data[at].local != local))
        at++;
    if (at == all->count && !TUTTI_VEC_PUSH(all, none))
        return no_memory();
    return !node || TUTTI_VEC_PUSH(&all->data[at].nodes, node) ? TUTTI_OK : no_memory();
}

static tutti_status find_members(const tutti_engine_options *options, int count,
                                 const tutti_piece_graph *pieces, members *all)
{
    for (int i = 0; i < count; i++)
        for (size_t n = 0; n < pieces[i].graph->nodes.count; n++) {
            const tutti_node *node = pieces[i].graph->nodes.data[n];
            tutti_axis_group *group;
            int local;
            if (!is_met(node))
                continue;
            TUTTI_TRY(find_group(options, node, pieces[i].device, &group, &local));
            for (int other = 0; other < group->local;
                 other++) /* those that do nothing there, too */
                TUTTI_TRY(add(all, group, other, other == local ? node : NULL));
        }
    return TUTTI_OK;
}

static tutti_status differ(const member *a, const member *b, size_t at, const char *what)
{
    const tutti_node *one = a->nodes.data[at], *other = b->nodes.data[at];
    char places[2][TUTTI_PLACE_TEXT];
    return tutti_fail(TUTTI_INVALID, "%s '%s'%s: rank %d and rank %d (%s '%s'%s) differ in %s",
                      one->op->name, one->name, tutti__node_place(one, places[0]),
                      a->group->ranks[a->local], b->group->ranks[b->local], other->op->name,
                      other->name, tutti__node_place(other, places[1]), what);
}

static tutti_status absent(const member *a, const member *b)
{
    const member *more = a->nodes.count > b->nodes.count ? a : b, *less = more == a ? b : a;
    const tutti_node *node = more->nodes.data[less->nodes.count];
    char place[TUTTI_PLACE_TEXT];
    return tutti_fail(TUTTI_INVALID,
                      "%s '%s'%s: rank %d on '%s' (%s) does not come to it; is the %s of each rank "
                      "a fetch or a target of this run?",
                      node->op->name, node->name, tutti__node_place(node, place),
                      less->group->ranks[less->local], less->group->axes,
                      less->group->devices[less->local], node->op->name);
}

/* What may differ between ranks: their inputs' sizes where blocks are uneven, and how many nodes of
 * the tree of shards each has ("blocks"). */
static tutti_status compare_nodes(const member *a, const member *b, size_t at)
{
    const tutti_node *one = a->nodes.data[at], *other = b->nodes.data[at];
    if (one->op != other->op)
        return differ(a, b, at, "the operator");
    for (int i = 0; i < one->attr_count; i++)
        if (!tutti__attr_equal(&one->attrs[i], &other->attrs[i]) &&
            strcmp(one->attrs[i].name, "blocks") != 0) {
            char what[80];
            snprintf(what, sizeof what, "\"%s\"", one->attrs[i].name);
            return differ(a, b, at, what);
        }
    for (int i = 0; i < one->output_count; i++)
        if (!tutti_type_equal(&one->types[i], &other->types[i]))
            return differ(a, b, at, "the shape");
    return TUTTI_OK;
}

/* Each against the first of its group. */
static tutti_status compare_members(const members *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const member *b = &all->data[i], *a = b;
        for (size_t k = 0; k < i && a == b; k++)
            a = all->data[k].group == b->group ? &all->data[k] : a;
        size_t least = a->nodes.count < b->nodes.count ? a->nodes.count : b->nodes.count;
        for (size_t n = 0; n < least; n++)
            TUTTI_TRY(compare_nodes(a, b, n));
        if (a->nodes.count != b->nodes.count)
            return absent(a, b);
    }
    return TUTTI_OK;
}

/* ---- what processes compare ---- */

/* "all_reduce of 'loss', value 1 of 1: f32[]": buckets have names of their own making, which other
 * nodes of a replica may change, and users' own nodes have those that were free. */
static const char *text_of(tutti_arena *arena, const tutti_node *node, bool spread, int value)
{
    char type[TUTTI_TYPE_TEXT];
    bool named = spread && strncmp(node->origin, "bucket_", 7) != 0;
    tutti_text more = {0};
    for (int i = 0; !spread && i < node->attr_count; i++) {
        const tutti_attr *attr = &node->attrs[i];
        if (attr->kind == TUTTI_ATTR_INT)
            tutti__text_add(&more, ", %s=%lld", attr->name, (long long)attr->value.i);
        else if (attr->kind == TUTTI_ATTR_STRING && strcmp(attr->name, "channel") != 0)
            tutti__text_add(&more, ", %s=%s", attr->name, attr->value.s);
    }
    const char *text = tutti__arena_format(
        arena, "%s of '%s', value %d of %d: %s%s", node->op->name,
        named ? node->origin : tutti__str(node, "channel"), value + 1, node->output_count,
        tutti_type_text(&node->types[value], type), more.data ? more.data : "");
    tutti__text_free(&more);
    return text;
}

static tutti_status note(tutti_plan *plan, const member *m, bool spread, int64_t batch)
{
    tutti_group_schedule schedule = {.group = m->group};
    if (!TUTTI_VEC_PUSH(&plan->schedules, schedule))
        return no_memory();
    tutti_group_schedule *s = &plan->schedules.data[plan->schedules.count - 1];
    for (size_t n = 0; n < m->nodes.count; n++)
        for (int value = 0; value < m->nodes.data[n]->output_count; value++) {
            const char *text = text_of(&plan->arena, m->nodes.data[n], spread, value);
            if (!text || !TUTTI_VEC_PUSH(&s->texts, text))
                return no_memory();
        }
    const char *rows = tutti__arena_format(&plan->arena, "batch of %lld rows", (long long)batch);
    return rows && TUTTI_VEC_PUSH(&s->texts, rows) ? TUTTI_OK : no_memory();
}

/* All processes take the groups that they are in in this order, so that none waits in a circle. */
static int by_group(const void *left, const void *right)
{
    const tutti_axis_group *a = ((const tutti_group_schedule *)left)->group,
                           *b = ((const tutti_group_schedule *)right)->group;
    int order = strcmp(a->axes, b->axes);
    return order ? order : a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Values that go to other processes, or come from there. */
static bool transfers(const tutti_axis_groups *groups, const tutti_graph *graph)
{
    for (size_t n = 0; groups && n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        const char *attr = tutti__is(node, "send") ? "to" : tutti__is(node, "recv") ? "from" : NULL;
        if (attr && tutti__axis_groups_process(groups, tutti__str(node, attr)) != groups->process)
            return true;
    }
    return false;
}

static void look_for_more(const tutti_engine_options *options, int count,
                          const tutti_piece_graph *pieces, tutti_plan *plan)
{
    for (int i = 0; i < count; i++) {
        const tutti_graph *graph = pieces[i].graph;
        plan->meets = plan->meets || transfers(tutti__engine_groups(options), graph);
        for (size_t n = 0; n < graph->nodes.count; n++) {
            const tutti_node *node = graph->nodes.data[n];
            plan->joins = plan->joins || (node->op->flags & TUTTI_OP_COLLECTIVE);
            plan->dries = plan->dries || tutti__is(node, "need_rows");
        }
    }
}

tutti_status tutti__plan_meetings(const tutti_engine_options *options, bool spread, int64_t batch,
                                  int count, const tutti_piece_graph *pieces, tutti_plan *plan)
{
    members all = {0};
    tutti_status status = find_members(options, count, pieces, &all);
    if (status == TUTTI_OK)
        status = compare_members(&all);
    const tutti_axis_groups *groups = tutti__engine_groups(options);
    for (size_t i = 0; status == TUTTI_OK && i < all.count; i++)
        if (all.data[i].group->processes > 1 && groups->world && all.data[i].local == 0)
            status = note(plan, &all.data[i], spread, batch);
    if (plan->schedules.count > 0)
        qsort(plan->schedules.data, plan->schedules.count, sizeof *plan->schedules.data, by_group);
    plan->meets = plan->schedules.count > 0;
    look_for_more(options, count, pieces, plan);
    for (size_t i = 0; i < all.count; i++)
        TUTTI_VEC_FREE(&all.data[i].nodes);
    TUTTI_VEC_FREE(&all);
    return status;
}

tutti_status tutti__plan_agree(const tutti_plan *plan, const tutti_run *run)
{
    for (size_t i = 0; i < plan->schedules.count; i++) {
        const tutti_group_schedule *s = &plan->schedules.data[i];
        TUTTI_TRY(tutti__axis_group_connect(s->group, run->groups->world, run->deadline));
        TUTTI_TRY(tutti__axis_group_agree(s->group, (int64_t)s->texts.count, s->texts.data,
                                          run->deadline));
    }
    return TUTTI_OK;
}
