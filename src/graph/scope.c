/* scope.c: name, device, control and colocation scopes: one stack per graph. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/scope.h"
#include "graph/serialize.h"

static void lack_memory(tutti_graph *graph)
{
    tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a scope");
}

/* What is opened in a scope that is lost is lost too, so that every scope's end is its own. */
static tutti_scope *scope_push(tutti_graph *graph, int kind)
{
    if (!graph)
        return NULL;
    if (graph->lost_scopes > 0 || !TUTTI_VEC_RESERVE_ONE(&graph->scopes)) {
        graph->lost_scopes++;
        lack_memory(graph);
        return NULL;
    }
    tutti_scope *scope = &graph->scopes.data[graph->scopes.count++];
    *scope = (tutti_scope){.kind = kind};
    return scope;
}

static void pop(tutti_graph *graph, int kind, int other, const char *what)
{
    if (!graph)
        return;
    if (graph->lost_scopes > 0) {
        graph->lost_scopes--;
        return;
    }
    if (graph->scopes.count == 0 ||
        ((int)graph->scopes.data[graph->scopes.count - 1].kind != kind &&
         (int)graph->scopes.data[graph->scopes.count - 1].kind != other)) {
        tutti__poison(graph, TUTTI_INVALID,
                      "a %s scope is closed that is not the innermost open scope", what);
        return;
    }
    graph->scopes.count--;
}

static const tutti_scope *innermost(const tutti_graph *graph, int kind)
{
    for (size_t i = graph->scopes.count; i-- > 0;)
        if ((int)graph->scopes.data[i].kind == kind)
            return &graph->scopes.data[i];
    return NULL;
}

const char *tutti__scope_prefix(const tutti_graph *graph)
{
    const tutti_scope *scope = innermost(graph, TUTTI_SCOPE_NAME);
    return scope && scope->text ? scope->text : "";
}

bool tutti__scope_has_control(const tutti_graph *graph)
{
    for (size_t i = 0; i < graph->scopes.count; i++)
        if (graph->scopes.data[i].kind == TUTTI_SCOPE_CONTROL &&
            graph->scopes.data[i].control_count > 0)
            return true;
    return false;
}

/* The first byte that is in no name, or NULL. */
static const char *foreign_byte(const char *name)
{
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_./-+:@", *at))
            return at;
    return NULL;
}

/* Refuses what is no name; of a long one the message has the beginning. */
static tutti_status check_name(const char *what, const char *name)
{
    enum { MOST = 512, SHOWN = 60 };
    char fault[80] = "";
    size_t size = name ? strlen(name) : 0;
    const char *foreign = name ? foreign_byte(name) : NULL;
    if (!name)
        return tutti_fail(TUTTI_INVALID, "%s: the name is NULL", what);
    if (size == 0)
        snprintf(fault, sizeof fault, "is empty");
    else if (size > MOST)
        snprintf(fault, sizeof fault, "has %zu characters, at most %d are read", size, MOST);
    else if (foreign && isprint((unsigned char)*foreign))
        snprintf(fault, sizeof fault, "has '%c' at %d", *foreign, (int)(foreign - name));
    else if (foreign)
        snprintf(fault, sizeof fault, "has byte 0x%02x at %d", (unsigned)(unsigned char)*foreign,
                 (int)(foreign - name));
    else if (name[0] == '/' || name[size - 1] == '/')
        snprintf(fault, sizeof fault, "%s with a /", name[0] == '/' ? "begins" : "ends");
    else if (strstr(name, "//"))
        snprintf(fault, sizeof fault, "has nothing between two /");
    else
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "%s '%.*s%s' %s; names have letters, digits and _ . - + : @, and a / between "
                      "parts",
                      what, SHOWN, name, size > SHOWN ? "\u2026" : "", fault);
}

void tutti_name_push(tutti_graph *graph, const char *name)
{
    const char *outer = graph ? tutti__scope_prefix(graph) : "";
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_NAME);
    if (!scope)
        return;
    if (check_name("name scope", name) != TUTTI_OK) {
        tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
        return;
    }
    scope->text = tutti__arena_format(&graph->arena, "%s%s/", outer, name);
    if (!scope->text)
        lack_memory(graph);
}

void tutti_name_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_NAME, TUTTI_SCOPE_NAME, "name");
}

void tutti_device_push(tutti_graph *graph, const char *device)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_DEVICE);
    if (!scope)
        return;
    tutti_device_name name;
    char text[TUTTI_DEVICE_TEXT];
    if (tutti_device_parse(device ? device : "", &name) != TUTTI_OK) {
        tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
        return;
    }
    scope->text = tutti__arena_string(&graph->arena, tutti_device_text(&name, text));
    if (!scope->text)
        lack_memory(graph);
}

void tutti_device_push_fn(tutti_graph *graph, tutti_device_fn *fn, void *context)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_DEVICE_FN);
    if (graph && !fn)
        tutti__poison(graph, TUTTI_INVALID,
                      "device scope: no function is given that names devices");
    if (scope) {
        scope->fn = fn;
        scope->context = context;
    }
}

void tutti_device_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_DEVICE, TUTTI_SCOPE_DEVICE_FN, "device");
}

void tutti__control_push(tutti_graph *graph, const char *what, int count, const tutti_sym *after)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_CONTROL);
    if (!scope)
        return;
    if (count < 0 || (count > 0 && !after)) {
        tutti__poison(graph, TUTTI_INVALID, "%s: %d are announced, and the array %s", what, count,
                      after ? "cannot have so many" : "is NULL");
        return;
    }
    scope->controls = tutti__arena_array(&graph->arena, (size_t)count + 1, sizeof *scope->controls);
    if (!scope->controls)
        lack_memory(graph);
    for (int i = 0; graph->error.status == TUTTI_OK && i < count; i++)
        if (tutti__sym_usable(graph, after[i], what, i) == TUTTI_OK)
            scope->controls[scope->control_count++] = after[i].node;
        else
            tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
}

/* Where a scope waits for many nodes, one waits for them all, and the others for that one. Not in a
 * trace, of which every group runs. */
void tutti_control_push(tutti_graph *graph, int count, const tutti_sym *after)
{
    enum { MANY = 32 };
    tutti__control_push(graph, "control dependency", count, after);
    tutti_scope *scope =
        graph && graph->scopes.count > 0 ? &graph->scopes.data[graph->scopes.count - 1] : NULL;
    if (!scope || graph->trace || scope->kind != TUTTI_SCOPE_CONTROL ||
        scope->control_count <= MANY)
        return;
    tutti_sym all = tutti__build(graph, tutti_op_find("group"), NULL, 0, NULL, 0, NULL);
    if (all.node) {
        scope->controls[0] = all.node;
        scope->control_count = 1;
    }
}

void tutti_control_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_CONTROL, TUTTI_SCOPE_CONTROL, "control");
}

void tutti_colocate_push(tutti_graph *graph, tutti_sym with)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_COLOCATE);
    if (!scope || graph->error.status != TUTTI_OK)
        return;
    if (tutti__sym_usable(graph, with, "colocation: the neighbour", -1) == TUTTI_OK)
        scope->colocate = with.node;
    else
        tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
}

void tutti_colocate_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_COLOCATE, TUTTI_SCOPE_COLOCATE, "colocation");
}

void tutti__region_push(tutti_graph *graph, uint32_t region, bool remat)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_REGION);
    if (!scope)
        return;
    scope->region = region ? region : graph->regions + 1;
    graph->regions = scope->region > graph->regions ? scope->region : graph->regions;
    scope->remat = remat;
}

void tutti__region_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_REGION, TUTTI_SCOPE_REGION, "recomputation");
}

void tutti_remat_push(tutti_graph *graph)
{
    tutti__region_push(graph, 0, true);
}

void tutti_remat_pop(tutti_graph *graph)
{
    tutti__region_pop(graph);
}

static void push_stage(tutti_graph *graph, int stage, bool exact)
{
    tutti_scope *scope = scope_push(graph, TUTTI_SCOPE_STAGE);
    if (!scope)
        return;
    if (stage < 0 || stage >= TUTTI_STAGES_MOST) {
        tutti__poison(graph, TUTTI_INVALID, "stage %d: stages are numbered from 0 to %d", stage,
                      TUTTI_STAGES_MOST - 1);
        return;
    }
    scope->stage = stage;
    scope->exact = exact;
}

void tutti_stage_push(tutti_graph *graph, int stage)
{
    push_stage(graph, stage, false);
}

void tutti__stage_push_exact(tutti_graph *graph, int stage)
{
    push_stage(graph, stage, true);
}

void tutti_stage_pop(tutti_graph *graph)
{
    pop(graph, TUTTI_SCOPE_STAGE, TUTTI_SCOPE_STAGE, "stage");
}

/* The scope's, or the last one of the values that it is made from. What is read of a variable
 * counts for none: weights may be shared by several stages. */
static void give_stage(const tutti_graph *graph, tutti_node *node)
{
    const tutti_scope *scope = innermost(graph, TUTTI_SCOPE_STAGE);
    node->stage = scope ? scope->stage : 0;
    for (int i = 0; !(scope && scope->exact) && i < node->input_count; i++) {
        const tutti_node *from = node->inputs[i].node;
        if (!(from->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)) &&
            from->stage > node->stage)
            node->stage = from->stage;
    }
}

static void give_region(const tutti_graph *graph, tutti_node *node)
{
    for (size_t i = 0; i < graph->scopes.count && !node->remat; i++)
        if (graph->scopes.data[i].kind == TUTTI_SCOPE_REGION) {
            node->region = graph->scopes.data[i].region;
            node->remat = graph->scopes.data[i].remat;
        }
}

/* "prefix", "base", "_" and the number; by hand, since a tape names every node of every step. */
static const char *numbered(tutti_arena *arena, const char *prefix, const char *base, uint32_t id)
{
    char digits[12], *digit = digits + sizeof digits;
    size_t before = strlen(prefix), middle = strlen(base);
    *--digit = '\0';
    do
        *--digit = (char)('0' + id % 10);
    while ((id /= 10) > 0);
    *--digit = '_';
    char *name = tutti__arena_take(arena, before + middle + sizeof digits);
    if (!name)
        return NULL;
    memcpy(name, prefix, before);
    memcpy(name + before, base, middle);
    memcpy(name + before + middle, digit, (size_t)(digits + sizeof digits - digit));
    return name;
}

/* What could not be written is not built. */
static tutti_status check_length(const char *name)
{
    size_t size = name ? strlen(name) : 0;
    if (size <= TUTTI_GRAPH_MAX_STRING)
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_INVALID,
        "with the scopes around it its name '%.60s\u2026' has %zu characters, at most "
        "%d are possible",
        name, size, TUTTI_GRAPH_MAX_STRING);
}

/* A name of its own in the graph. */
static tutti_status find_name(tutti_graph *graph, tutti_node *node, const char *full)
{
    node->name = full;
    if (!full || !tutti__map_get(&graph->by_name, full))
        return TUTTI_OK;
    unsigned *number = tutti__map_get(&graph->taken, full);
    if (!number) {
        number = tutti__arena_take(&graph->arena, sizeof *number);
        if (!number)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a name");
        TUTTI_TRY(tutti__map_set(&graph->taken, full, number));
    }
    while (node->name && tutti__map_get(&graph->by_name, node->name))
        node->name = tutti__arena_format(&graph->arena, "%s_%u", full, ++*number);
    return TUTTI_OK;
}

static tutti_status give_name(tutti_graph *graph, tutti_node *node, const char *wished)
{
    const char *prefix = tutti__scope_prefix(graph);
    if (wished && wished[0])
        TUTTI_TRY(check_name("name", wished));
    const char *base = wished && wished[0] ? wished : node->op->name;
    if (graph->trace && !(node->op->flags & TUTTI_OP_HANDLE)) {
        node->name = numbered(&graph->arena, prefix, base, node->id);
        return TUTTI_OK;
    }
    TUTTI_TRY(find_name(graph, node, tutti__arena_format(&graph->arena, "%s%s", prefix, base)));
    return check_length(node->name);
}

bool tutti__scope_next_name(const tutti_graph *graph, const char *op, char *text, size_t size)
{
    const char *prefix = tutti__scope_prefix(graph);
    int used = snprintf(text, size, "%s%s", prefix, op);
    const unsigned *number =
        used >= 0 && (size_t)used < size ? tutti__map_get(&graph->taken, text) : NULL;
    for (unsigned next = number ? *number : 0;
         used >= 0 && (size_t)used < size && tutti__map_get(&graph->by_name, text);)
        used = snprintf(text, size, "%s%s_%u", prefix, op, ++next);
    return used >= 0 && (size_t)used < size;
}

/* Static scopes merge inward; functions are asked from the outermost in. */
static tutti_status give_device(tutti_graph *graph, tutti_node *node)
{
    tutti_device_name merged = {.replica = -1, .task = -1, .index = -1}, inner;
    bool any = false;
    char text[TUTTI_DEVICE_TEXT];
    node->device = "";
    for (size_t i = 0; i < graph->scopes.count; i++) {
        const tutti_scope *scope = &graph->scopes.data[i];
        const char *wish = scope->kind == TUTTI_SCOPE_DEVICE ? scope->text : NULL;
        if (scope->kind == TUTTI_SCOPE_DEVICE_FN)
            wish = scope->fn(node, scope->context);
        if (!wish || !wish[0])
            continue;
        TUTTI_TRY(tutti_device_parse(wish, &inner));
        merged = tutti_device_merge(&merged, &inner);
        any = true;
    }
    if (any)
        node->device = tutti__arena_string(&graph->arena, tutti_device_text(&merged, text));
    return node->device ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a device name");
}

const char *tutti__scope_device(tutti_graph *graph, char text[TUTTI_DEVICE_TEXT])
{
    tutti_device_name merged = {.replica = -1, .task = -1, .index = -1}, inner;
    bool any = false;
    for (size_t i = 0; i < graph->scopes.count; i++) {
        const tutti_scope *scope = &graph->scopes.data[i];
        if (scope->kind != TUTTI_SCOPE_DEVICE || !scope->text || !scope->text[0] ||
            tutti_device_parse(scope->text, &inner) != TUTTI_OK)
            continue;
        merged = tutti_device_merge(&merged, &inner);
        any = true;
    }
    return any ? tutti_device_text(&merged, text) : "";
}

int tutti__scope_stage(const tutti_graph *graph)
{
    const tutti_scope *scope = innermost(graph, TUTTI_SCOPE_STAGE);
    return scope ? scope->stage : 0;
}

/* The input that takes its node along: a handle, else the first that is not there on every device;
 * NULL: none does. */
static const tutti_node *leading_input(const tutti_node *node)
{
    bool handles = (node->op->flags & TUTTI_OP_TAKES_HANDLE) != 0;
    for (int i = 0; handles && i < node->input_count; i++)
        if (tutti__edge_type(node->inputs[i])->handle)
            return node->inputs[i].node;
    for (int i = 0; !node->device[0] && !node->colocate && i < node->input_count; i++) {
        const tutti_node *input = node->inputs[i].node;
        if (!tutti__is(input, "constant") && !tutti__is(input, "parameter") &&
            !tutti__is(input, "placeholder"))
            return input;
    }
    return NULL;
}

const char **tutti__devices_by_graph(const tutti_graph *graph)
{
    const char **devices = calloc(graph->nodes.count + 1, sizeof *devices);
    for (size_t n = 0; devices && n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n], *leading = leading_input(node);
        devices[n] = leading ? devices[leading->id] : node->device;
    }
    return devices;
}

bool tutti__scope_has_device(const tutti_graph *graph)
{
    for (size_t i = 0; i < graph->scopes.count; i++)
        if (graph->scopes.data[i].kind == TUTTI_SCOPE_DEVICE ||
            graph->scopes.data[i].kind == TUTTI_SCOPE_DEVICE_FN)
            return true;
    return false;
}

/* Where a node stands by the graph alone, whatever a run feeds or leaves out; "": where the session
 * says. */
static const char *device_by_graph(const tutti_node *node)
{
    for (const tutti_node *next; (next = leading_input(node)) != NULL;)
        node = next;
    return node->device;
}

/* What stands beside another has no wish of its own. Where a variable lives is settled for good,
 * since runs that leave its neighbour out find the same value. */
static tutti_status stand_beside(tutti_graph *graph, tutti_node *node, const tutti_node *beside)
{
    node->device = tutti__arena_string(&graph->arena, device_by_graph(beside));
    node->colocate = tutti__is(node, "variable") ? NULL : beside;
    return node->device ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a device name");
}

tutti_status tutti__scope_apply(tutti_graph *graph, tutti_node *node, const char *wished_name)
{
    tutti__here_get(&node->file, &node->line);
    TUTTI_TRY(give_name(graph, node, wished_name));
    node->device = "";
    node->backward = graph->differentiated > 0;
    give_stage(graph, node);
    if (graph->scopes.count == 0)
        return TUTTI_OK;
    if (!node->backward)
        give_region(graph, node);
    TUTTI_TRY(give_device(graph, node));
    const tutti_node *beside = NULL;
    for (size_t i = 0; i < graph->scopes.count; i++) {
        const tutti_scope *scope = &graph->scopes.data[i];
        for (int c = 0; scope->kind == TUTTI_SCOPE_CONTROL && c < scope->control_count; c++)
            TUTTI_TRY(tutti__node_after(node, scope->controls[c]));
        if (scope->kind == TUTTI_SCOPE_COLOCATE && scope->colocate)
            beside = scope->colocate;
    }
    return beside ? stand_beside(graph, node, beside) : TUTTI_OK;
}

/* ---- scopes around several steps of a tape ---- */

char **tutti__scopes_lift(tutti_graph *graph)
{
    size_t count = graph->scopes.count;
    char **texts = count > 0 ? calloc(count, sizeof *texts) : NULL;
    for (size_t i = 0; i < count; i++) {
        tutti_scope *scope = &graph->scopes.data[i];
        if (texts && scope->text)
            texts[i] = strdup(scope->text);
        if (scope->colocate &&
            (!(scope->colocate->op->flags & TUTTI_OP_HANDLE) || scope->colocate->dead))
            scope->colocate = NULL;
        scope->text = NULL;
        scope->controls = NULL; /* what it waited for has run */
        scope->control_count = 0;
    }
    return texts;
}

void tutti__scopes_lay_down(tutti_graph *graph, char **texts)
{
    for (size_t i = 0; texts && i < graph->scopes.count; i++) {
        if (texts[i])
            graph->scopes.data[i].text = tutti__arena_string(&graph->arena, texts[i]);
        free(texts[i]);
    }
    free(texts);
}
