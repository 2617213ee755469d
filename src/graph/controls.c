/* controls.c: what a node waits for, each once. Who waits for everything waits for thousands: a
 * list of more than MANY has a map behind its room, in the same memory, that says whether a node
 * stands in it.
 *
 * Who takes nodes out of a list, or puts others into their places, sets `grown` to NULL, so that
 * the next to come gets a new list with a new map. */
#include <string.h>

#include "base/pointers.h"
#include "graph/graph.h"

enum { MANY = 32 };

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a control edge");
}

/* Twice as much room as is taken. */
static tutti_status grow(tutti_node *node)
{
    int room = node->control_count < 2 ? 2 : 2 * node->control_count;
    size_t bytes = (size_t)room * sizeof(tutti_node *) + sizeof(tutti_pointers);
    tutti_node **controls = tutti__arena_take(&node->graph->arena, bytes);
    if (!controls)
        return no_memory();
    if (node->control_count > 0)
        memcpy(controls, node->controls, (size_t)node->control_count * sizeof *controls);
    node->controls = node->grown = controls;
    node->grown_room = room;
    return TUTTI_OK;
}

static bool has_room(const tutti_node *node)
{
    return node->grown && node->grown == node->controls && node->control_count < node->grown_room;
}

/* Of a list that has room, filled when it is first asked; NULL without memory. */
static tutti_pointers *map_of(const tutti_node *node)
{
    tutti_pointers *map = (tutti_pointers *)(void *)(node->grown + node->grown_room);
    if (map->count == (size_t)node->control_count)
        return map;
    *map = (tutti_pointers){.arena = &node->graph->arena};
    for (int i = 0; i < node->control_count; i++)
        if (!tutti__pointers_add(map, node->controls[i], i))
            return NULL;
    return map;
}

static tutti_status add_to_many(tutti_node *node, tutti_node *after)
{
    if (!has_room(node))
        TUTTI_TRY(grow(node));
    tutti_pointers *map = map_of(node);
    if (!map)
        return no_memory();
    if (tutti__pointers_get(map, after) >= 0)
        return TUTTI_OK;
    if (!tutti__pointers_add(map, after, node->control_count))
        return no_memory();
    node->controls[node->control_count++] = after;
    node->graph->version++;
    return TUTTI_OK;
}

tutti_status tutti__node_after(tutti_node *node, tutti_node *after)
{
    if (node->control_count > MANY)
        return add_to_many(node, after);
    for (int i = 0; i < node->control_count; i++)
        if (node->controls[i] == after)
            return TUTTI_OK;
    if (!has_room(node))
        TUTTI_TRY(grow(node));
    node->controls[node->control_count++] = after;
    node->graph->version++;
    return TUTTI_OK;
}
