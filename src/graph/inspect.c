/* inspect.c: values of a step by name; see inspect.h. */
#include "graph/inspect.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/log.h"
#include "base/params.h"
#include "base/require.h"

static const tutti_param names_param =
    TUTTI_PARAM("INSPECT", "", "values to print by their names, patterns with commas between");
static const tutti_param every_param =
    TUTTI_PARAM("INSPECT_EVERY", "100", "steps from one look at such values to the next");

typedef struct mark {
    tutti_edge edge;
    char *name;
    uint64_t runs; /* of sessions: in which it was computed */
    bool taken;    /* of a trace: it was asked for */
} mark;

typedef struct look {
    char *name;
    uint64_t runs;
    tutti_tensor *value; /* NULL: none yet */
} look;

struct tutti_inspection {
    TUTTI_VEC(mark) marks;
    TUTTI_VEC(look) looks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool warned; /* that nothing has such a name; or something had */

bool tutti__inspect_on(void)
{
    return tutti__param_text(&names_param)[0] != 0;
}

tutti_status tutti_inspect_names(const char *patterns, int64_t every)
{
    char text[32];
    if (every < 0)
        return tutti_fail(TUTTI_INVALID, "tutti_inspect_names: every %lld steps; needs 1 or more",
                          (long long)every);
    snprintf(text, sizeof text, "%lld", (long long)every);
    TUTTI_TRY(tutti__param_set("INSPECT_EVERY", every ? text : NULL));
    return tutti__param_set("INSPECT", patterns ? patterns : "");
}

/* ---- marks ---- */

static bool note(tutti_graph *graph, tutti_edge edge, const char *name)
{
    if (!graph->inspection && !(graph->inspection = calloc(1, sizeof *graph->inspection)))
        return false;
    mark made = {.edge = edge, .name = strdup(name)};
    if (made.name && TUTTI_VEC_PUSH(&graph->inspection->marks, made))
        return true;
    free(made.name);
    return false;
}

tutti_sym(tutti_inspect)(tutti_sym x, const char *name)
{
    tutti_graph *graph = tutti_sym_graph(x);
    if (!graph || tutti_graph_check(graph) != TUTTI_OK)
        return x;
    if (!name || !name[0])
        return tutti__poison(graph, TUTTI_INVALID, "tutti_inspect: the value needs a name");
    if (tutti__sym_usable(graph, x, "tutti_inspect: the value", -1) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
    tutti_edge seen = tutti__edge(x);
    bool ok = !x.node->types[x.index].handle || !tutti__is(x.node, "variable") ||
              tutti__handle_read(graph, seen, &seen) == TUTTI_OK;
    if (!ok)
        return TUTTI_NO_SYM; /* the graph knows why */
    pthread_mutex_lock(&lock);
    ok = seen.node->types[seen.index].handle || note(graph, seen, name);
    pthread_mutex_unlock(&lock);
    return ok ? x : tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for the name of a value");
}

bool tutti__inspect_mark_at(const tutti_graph *graph, size_t index, tutti_edge *ret_edge,
                            const char **ret_name)
{
    if (!graph->inspection || index >= graph->inspection->marks.count)
        return false;
    *ret_edge = graph->inspection->marks.data[index].edge;
    *ret_name = graph->inspection->marks.data[index].name;
    return true;
}

size_t tutti__inspect_count(const tutti_graph *graph)
{
    return graph->inspection ? graph->inspection->marks.count : 0;
}

tutti_status tutti__inspect_prefix(tutti_graph *graph, size_t first, const char *prefix)
{
    for (size_t i = first; i < tutti__inspect_count(graph); i++) {
        mark *m = &graph->inspection->marks.data[i];
        size_t size = strlen(prefix) + strlen(m->name) + 1;
        char *name = malloc(size);
        if (!name)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the name of a value");
        snprintf(name, size, "%s%s", prefix, m->name);
        free(m->name);
        m->name = name;
    }
    return TUTTI_OK;
}

void tutti__inspect_reset(tutti_graph *graph)
{
    tutti_inspection *all = graph->inspection;
    for (size_t i = 0; all && i < all->marks.count; i++)
        free(all->marks.data[i].name);
    if (all)
        all->marks.count = 0;
}

void tutti__inspection_free(tutti_inspection *inspection)
{
    if (!inspection)
        return;
    for (size_t i = 0; i < inspection->marks.count; i++)
        free(inspection->marks.data[i].name);
    for (size_t i = 0; i < inspection->looks.count; i++) {
        free(inspection->looks.data[i].name);
        tutti_tensor_release(inspection->looks.data[i].value);
    }
    TUTTI_VEC_FREE(&inspection->marks);
    TUTTI_VEC_FREE(&inspection->looks);
    free(inspection);
}

/* ---- what a run asks for ---- */

static look *find_look(tutti_inspection *all, const char *name)
{
    for (size_t i = 0; i < all->looks.count; i++)
        if (strcmp(all->looks.data[i].name, name) == 0)
            return &all->looks.data[i];
    return NULL;
}

static look *get_look(tutti_inspection *all, const char *name)
{
    look *found = find_look(all, name), made = {.name = strdup(name)};
    if (!found && made.name && TUTTI_VEC_PUSH(&all->looks, made))
        return &all->looks.data[all->looks.count - 1];
    free(made.name);
    return found;
}

/* Which nodes run: `live` by id. */
typedef struct walk {
    uint8_t *live;
    const tutti_node **stack;
    size_t count;
} walk;

static void reach(walk *w, const tutti_node *node)
{
    if (!w->live[node->id])
        w->stack[w->count++] = node;
    w->live[node->id] = 1;
}

static bool is_fed(const tutti_extract *asked, tutti_edge edge)
{
    for (int i = 0; i < asked->feed_count; i++)
        if (asked->feeds[i].node == edge.node && asked->feeds[i].index == edge.index)
            return true;
    return false;
}

static tutti_status find_live(const tutti_graph *graph, const tutti_extract *asked, uint8_t **ret)
{
    walk w = {.live = calloc(graph->nodes.count + 1, 1),
              .stack = calloc(graph->nodes.count + 1, sizeof(tutti_node *))};
    if (!w.live || !w.stack) {
        free(w.live);
        free(w.stack);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    }
    for (int i = 0; i < asked->fetch_count; i++)
        if (!is_fed(asked, asked->fetches[i]))
            reach(&w, asked->fetches[i].node);
    for (int i = 0; i < asked->target_count; i++)
        reach(&w, asked->targets[i]);
    while (w.count > 0) {
        const tutti_node *node = w.stack[--w.count];
        for (int i = 0; i < node->input_count; i++)
            if (!is_fed(asked, node->inputs[i]))
                reach(&w, node->inputs[i].node);
        for (int i = 0; i < node->control_count; i++)
            reach(&w, node->controls[i]);
    }
    free(w.stack);
    *ret = w.live;
    return TUTTI_OK;
}

/* One that was fed is as good as computed. */
static bool is_live(const mark *m, const uint8_t *live, const tutti_extract *asked, uint32_t first)
{
    if (asked)
        return live[m->edge.node->id] || is_fed(asked, m->edge);
    return !m->taken && m->edge.node->id >= first;
}

/* "scores", of the second in one step "scores_1". */
static char *number(const tutti_inspection *all, size_t index, const uint8_t *live,
                    const tutti_extract *asked)
{
    const char *name = all->marks.data[index].name;
    int before = 0;
    for (size_t i = 0; i < index; i++)
        before += (!live || is_live(&all->marks.data[i], live, asked, 0)) &&
                  strcmp(all->marks.data[i].name, name) == 0;
    size_t size = strlen(name) + 16;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, before ? "%s_%d" : "%s", name, before);
    return text;
}

static tutti_status want(tutti_graph *graph, size_t index, char *name, tutti_wanted_marks *ret)
{
    mark *m = &graph->inspection->marks.data[index];
    look *found = get_look(graph->inspection, name);
    uint64_t every = (uint64_t)tutti__param_int(&every_param);
    m->taken = true;
    if (!found) {
        free(name);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to look at values");
    }
    uint64_t step = graph->trace ? ++found->runs : ++m->runs;
    if (step > 1 && every > 1 && step % every != 0) {
        free(name);
        return TUTTI_OK;
    }
    if (TUTTI_VEC_PUSH(ret, ((tutti_wanted_mark){m->edge, step, name})))
        return TUTTI_OK;
    free(name);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to look at values");
}

/* Said once, when nothing has a name in so many runs: a first one may initialize, or restore. */
static void warn_of_no_marks(void)
{
    enum { RUNS = 10 };
    static int blind;
    pthread_mutex_lock(&lock);
    bool says = !warned && ++blind == RUNS;
    warned = warned || says;
    pthread_mutex_unlock(&lock);
    if (says)
        tutti__log_job(
            TUTTI_LOG_WARNING,
            "--inspect %s: no value has a name; mark one with tutti_inspect(x, \"name\")",
            tutti__param_text(&names_param));
}

/* Said once, of the first step that has values with names. */
static void warn_of_none(const char *names)
{
    if (warned || !names[0])
        return;
    warned = true;
    tutti__log_job(TUTTI_LOG_WARNING,
                   "--inspect %s: no value of this step has such a name; there are: %s",
                   tutti__param_text(&names_param), names);
}

static tutti_status choose(tutti_graph *graph, const uint8_t *live, const tutti_extract *asked,
                           uint32_t first, tutti_wanted_marks *ret)
{
    tutti_inspection *all = graph->inspection;
    char names[600] = "";
    size_t used = 0;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < all->marks.count; i++) {
        if (!is_live(&all->marks.data[i], live, asked, first))
            continue;
        char *name = number(all, i, live, asked);
        if (!name)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to look at values");
        if (tutti__glob_match(tutti__param_text(&names_param), name)) {
            warned = true;
            status = want(graph, i, name, ret);
            continue;
        }
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
        free(name);
    }
    warn_of_none(names);
    return status;
}

void tutti__inspect_free(tutti_wanted_marks *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        free(wanted->data[i].name);
    TUTTI_VEC_FREE(wanted);
}

static bool looks_at(const tutti_graph *graph)
{
    bool on = tutti__inspect_on();
    if (on && !graph->inspection)
        warn_of_no_marks();
    return on && graph->inspection;
}

tutti_status tutti__inspect_wanted(tutti_graph *graph, const tutti_extract *asked,
                                   tutti_wanted_marks *ret)
{
    uint8_t *live;
    if (!looks_at(graph))
        return TUTTI_OK;
    TUTTI_TRY(find_live(graph, asked, &live));
    pthread_mutex_lock(&lock);
    tutti_status status = choose(graph, live, asked, 0, ret);
    pthread_mutex_unlock(&lock);
    free(live);
    return status;
}

tutti_status tutti__inspect_wanted_since(tutti_graph *graph, uint32_t first,
                                         tutti_wanted_marks *ret)
{
    if (!looks_at(graph))
        return TUTTI_OK;
    pthread_mutex_lock(&lock);
    tutti_status status = choose(graph, NULL, NULL, first, ret);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- what was seen ---- */

static void print_numbers(tutti_tensor *value, char *ret, size_t size)
{
    enum { FIRST = 6 };
    int64_t count = tutti_tensor_count(value), finite = 0;
    double least = INFINITY, most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double each = tutti_tensor_get(value, i);
        if (!isfinite(each))
            continue;
        least = fmin(least, each);
        most = fmax(most, each);
        sum += each;
        finite++;
    }
    size_t used = 0;
    if (finite > 0)
        used = (size_t)snprintf(ret, size, ", min %g, mean %g, max %g", least, sum / (double)finite,
                                most);
    if (finite < count)
        used += (size_t)snprintf(ret + used, size - used, ", %lld not finite",
                                 (long long)(count - finite));
    for (int64_t i = 0; i < count && i < FIRST; i++)
        used += (size_t)snprintf(ret + used, size - used, "%s %.6g", i ? "" : ":",
                                 tutti_tensor_get(value, i));
    if (count > FIRST)
        snprintf(ret + used, size - used, " …");
}

static void print(const tutti_wanted_mark *wanted, tutti_tensor *value)
{
    char type[TUTTI_TYPE_TEXT], numbers[400] = "";
    if (tutti_tensor_dtype(value) != TUTTI_STRING)
        print_numbers(value, numbers, sizeof numbers);
    tutti__log_job(TUTTI_LOG_INFO, "inspect %s, step %llu: %s%s", wanted->name,
                   (unsigned long long)wanted->step,
                   tutti_type_text(tutti_tensor_type(value), type), numbers);
}

tutti_status tutti__inspect_seen(tutti_graph *graph, const tutti_wanted_mark *wanted,
                                 tutti_tensor *value, bool prints)
{
    if (prints && !tutti__log_quiet())
        print(wanted, value);
    pthread_mutex_lock(&lock);
    look *found = get_look(graph->inspection, wanted->name);
    if (found) {
        tutti_tensor_release(found->value);
        found->value = tutti_tensor_retain(value);
    }
    pthread_mutex_unlock(&lock);
    return found ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to look at values");
}

static tutti_status none_seen(const tutti_inspection *all, const char *name)
{
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; all && i < all->looks.count && used < sizeof names; i++)
        if (all->looks.data[i].value)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     all->looks.data[i].name);
    return tutti_fail(TUTTI_NOT_FOUND,
                      "tutti_inspected: no value '%s' was looked at; there are: %s (choose them "
                      "with --inspect or tutti_inspect_names before the step)",
                      name, names[0] ? names : "none");
}

tutti_status tutti_inspected(tutti_graph *graph, const char *name, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(graph);
    TUTTI_REQUIRE(name);
    TUTTI_REQUIRE(ret_value);
    pthread_mutex_lock(&lock);
    look *found = graph->inspection ? find_look(graph->inspection, name) : NULL;
    tutti_tensor *value = found && found->value ? tutti_tensor_retain(found->value) : NULL;
    tutti_status status = value ? TUTTI_OK : none_seen(graph->inspection, name);
    pthread_mutex_unlock(&lock);
    if (status == TUTTI_OK)
        *ret_value = value;
    return status;
}
