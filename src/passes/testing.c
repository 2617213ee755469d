/* testing.c: graphs as expressions, and what they compute; see testing.h. */
#include "passes/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "graph/print.h"
#include "ops/reference.h"
#include "ops/sample.h"

/* ---- text ---- */

typedef struct printer {
    tutti_text *text;
    const char *line; /* between lines */
    int *uses;        /* by id */
    int *number;      /* by id: of t0, t1, …; -1 not printed yet */
    int numbers;
} printer;

static bool is_leaf(const tutti_node *node)
{
    return node->input_count == 0;
}

static int rank_among(const tutti_graph *graph, const tutti_node *node)
{
    int rank = 0;
    for (size_t i = 0; graph->nodes.data[i] != node; i++)
        rank += graph->nodes.data[i]->op == node->op;
    return rank;
}

static void print_graph(tutti_text *text, const tutti_graph *graph, const char *line);

static void print_attrs(printer *p, const tutti_node *node)
{
    const char *before = "{";
    for (int i = 0; i < node->attr_count; i++) {
        if (tutti__attr_is_default(node->op, &node->attrs[i]))
            continue;
        tutti__text_add(p->text, "%s", before);
        tutti__print_attr(p->text, node->op, &node->attrs[i]);
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH) {
            tutti__text_add(p->text, "=(");
            print_graph(p->text, node->attrs[i].value.graph, "; ");
            tutti__text_add(p->text, ")");
        }
        before = " ";
    }
    tutti__text_add(p->text, before[0] == '{' ? "" : "}");
}

static void print_node(printer *p, const tutti_node *node);

static void print_edge(printer *p, tutti_edge edge)
{
    const tutti_node *node = edge.node;
    if (!is_leaf(node) && p->number[node->id] >= 0)
        tutti__text_add(p->text, "t%d", p->number[node->id]);
    else
        print_node(p, node);
    if (node->output_count > 1)
        tutti__text_add(p->text, ":%u", edge.index);
}

static void print_node(printer *p, const tutti_node *node)
{
    if (tutti__is(node, "parameter")) {
        tutti__text_add(p->text, "p%d", (int)tutti__int(node, "index"));
        return;
    }
    if (tutti__is(node, "variable")) {
        tutti__text_add(p->text, "v%d", rank_among(node->graph, node));
        return;
    }
    if (tutti__is(node, "constant") && node->types[0].rank == 0) {
        tutti__text_add(p->text, "%g", tutti_tensor_get(node->attrs[0].value.tensor, 0));
        return;
    }
    tutti__text_add(p->text, "%s(", node->op->name);
    for (int i = 0; i < node->input_count; i++) {
        tutti__text_add(p->text, i > 0 ? ", " : "");
        print_edge(p, node->inputs[i]);
    }
    tutti__text_add(p->text, ")");
    print_attrs(p, node);
    for (int i = 0; i < node->control_count; i++) {
        tutti__text_add(p->text, " ^");
        print_edge(p, (tutti_edge){node->controls[i], 0});
    }
}

static void count_uses(printer *p, const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        p->number[n] = -1;
        for (int i = 0; i < node->input_count; i++)
            p->uses[node->inputs[i].node->id]++;
        for (int i = 0; i < node->control_count; i++)
            p->uses[node->controls[i]->id]++;
    }
    for (size_t i = 0; i < graph->results.count; i++)
        p->uses[graph->results.data[i].node->id]++;
    for (size_t i = 0; i < graph->targets.count; i++)
        p->uses[graph->targets.data[i]->id]++;
}

static void print_shared(printer *p, const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (is_leaf(node) || p->uses[n] < 2)
            continue;
        tutti__text_add(p->text, "t%d = ", p->numbers);
        print_node(p, node);
        tutti__text_add(p->text, "%s", p->line);
        p->number[n] = p->numbers++;
    }
}

static void print_graph(tutti_text *text, const tutti_graph *graph, const char *line)
{
    printer p = {.text = text,
                 .line = line,
                 .uses = calloc(graph->nodes.count + 1, sizeof *p.uses),
                 .number = calloc(graph->nodes.count + 1, sizeof *p.number)};
    CHECK(p.uses != NULL && p.number != NULL);
    count_uses(&p, graph);
    print_shared(&p, graph);
    for (size_t i = 0; i < graph->results.count; i++) {
        tutti__text_add(text, i > 0 ? ", " : "return ");
        print_edge(&p, graph->results.data[i]);
    }
    if (graph->results.count > 0 && graph->targets.count > 0)
        tutti__text_add(text, "%s", line);
    for (size_t i = 0; i < graph->targets.count; i++) {
        tutti__text_add(text, i > 0 ? ", " : "run ");
        print_edge(&p, (tutti_edge){graph->targets.data[i], 0});
    }
    free(p.uses);
    free(p.number);
}

const char *tutti__test_text(const tutti_graph *graph)
{
    static char text[8192];
    tutti_text out = {0};
    print_graph(&out, graph, "\n");
    CHECK(!out.failed && out.size < sizeof text);
    memcpy(text, out.data != NULL ? out.data : "", out.size + 1);
    tutti__text_free(&out);
    return text;
}

/* ---- values ---- */

/* Floats are multiples of 1/8, so that sums of a few are exact. */
static tutti_tensor *testing_draw(const tutti_type *type, uint64_t seed)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        uint32_t word = tutti__random_u32((tutti_random_key){seed, 1}, (uint64_t)i);
        if (tutti_dtype_is_float(type->dtype))
            tutti_tensor_set(tensor, i, ((int)(word % 33) - 16) / 8.0);
        else
            tutti_tensor_set_int(tensor, i, type->dtype == TUTTI_BOOL ? word % 2 : word % 4);
    }
    return tensor;
}

enum { MAX_FEEDS = 32, MAX_RESULTS = 64 };

/* Parameters and variables, each a function of its type and index. */
static void compute(const tutti_graph *graph, tutti_tensor **ret_values)
{
    tutti_reference_feed feeds[MAX_FEEDS] = {0};
    int count = 0;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        bool parameter = tutti__is(node, "parameter");
        if (!parameter && !tutti__is(node, "variable"))
            continue;
        CHECK(count < MAX_FEEDS);
        uint64_t seed = parameter ? 100 + (uint64_t)tutti__int(node, "index")
                                  : tutti__hash_string(7, tutti__str(node, "shared_name"));
        feeds[count++] = (tutti_reference_feed){{node, 0}, testing_draw(&node->types[0], seed)};
    }
    CHECK(graph->results.count <= MAX_RESULTS);
    CHECK_OK(tutti__reference_run(graph, count, feeds, (int)graph->results.count,
                                  graph->results.data, ret_values));
    for (int i = 0; i < count; i++)
        tutti_tensor_release(feeds[i].value);
}

static bool equal_floats(const tutti_tensor *a, const tutti_tensor *b)
{
    for (int64_t i = 0; i < tutti_tensor_count(a); i++) {
        double x = tutti_tensor_get(a, i), y = tutti_tensor_get(b, i);
        if (x != y && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

static void testing_compare(tutti_tensor *after, tutti_tensor *before, double tolerance)
{
    CHECK(tutti_type_equal(tutti_tensor_type(after), tutti_tensor_type(before)));
    if (tolerance == 0 && tutti_dtype_is_float(tutti_tensor_dtype(before)))
        CHECK(equal_floats(after, before));
    else if (tolerance == 0)
        CHECK(tutti_tensor_same(after, before));
    else
        CHECK_OK(tutti__tensor_near(after, before, tolerance, "after the pass"));
}

int tutti__test_passes(int count, const tutti_pass *const *passes,
                       const tutti_pass_context *context, tutti_graph *graph, const char *before,
                       const char *after, double tolerance)
{
    tutti_tensor *old_values[MAX_RESULTS], *new_values[MAX_RESULTS];
    int changes = 0;
    CHECK_OK(tutti_graph_check(graph));
    if (before != NULL)
        CHECK_STR(tutti__test_text(graph), before);
    compute(graph, old_values);
    for (int i = 0; i < count; i++)
        changes += tutti__test_rewrite(passes[i], context, graph);
    if (after != NULL)
        CHECK_STR(tutti__test_text(graph), after);
    compute(graph, new_values);
    for (size_t i = 0; i < graph->results.count; i++) {
        testing_compare(new_values[i], old_values[i], tolerance);
        tutti_tensor_release(old_values[i]);
        tutti_tensor_release(new_values[i]);
    }
    return changes;
}

int tutti__test_pass(const tutti_pass *pass, const tutti_pass_context *context, tutti_graph *graph,
                     const char *before, const char *after)
{
    return tutti__test_passes(1, &pass, context, graph, before, after, 0);
}

/* ---- graphs ---- */

tutti_graph *tutti__test_graph(void)
{
    tutti_graph *graph;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

tutti_sym tutti__test_input(tutti_graph *graph, int index, tutti_type type)
{
    tutti_sym sym = (tutti_parameter)(graph, index, type);
    CHECK(tutti_sym_ok(sym));
    return sym;
}

void tutti__test_result(tutti_sym sym)
{
    if (!tutti_sym_ok(sym))
        tutti__test_fail(__FILE__, __LINE__, "a mistake while building: %s", tutti_error_message());
    CHECK_OK(tutti__graph_result(tutti_sym_graph(sym), tutti__edge(sym)));
}

static const char *const unary[] = {"neg", "abs", "relu", "square", "tanh", "identity", "sign"};
static const char *const binary[] = {"add", "sub", "mul", "maximum", "minimum", "div"};
static const double numbers[] = {0, 1, 2, -1, 0.5, 3};

static tutti_sym random_leaf(tutti_graph *graph, tutti_random_key key, uint64_t i)
{
    double number = numbers[tutti__random_below(key, 4 * i + 1, TUTTI_COUNT(numbers))];
    switch (tutti__random_below(key, 4 * i + 2, 3)) {
    case 0:
        return tutti_fill(graph, TUTTI_F32, number, 4, 3);
    case 1:
        return tutti_fill(graph, TUTTI_F32, number, 3);
    default:
        return tutti_scalar(graph, TUTTI_F32, number);
    }
}

tutti_graph *tutti__test_random_graph(uint64_t seed, int nodes)
{
    enum { INPUTS = 4, MAX_NODES = 256 };
    tutti_graph *graph = tutti__test_graph();
    tutti_random_key key = {seed, 0};
    tutti_sym pool[MAX_NODES] = {
        tutti__test_input(graph, 0, TUTTI_TYPE(TUTTI_F32, 4, 3)),
        tutti__test_input(graph, 1, TUTTI_TYPE(TUTTI_F32, 3)),
        tutti__test_input(graph, 2, TUTTI_TYPE(TUTTI_F32, 4, 1)),
        tutti__test_input(graph, 3, TUTTI_TYPE(TUTTI_F32, 4, 3)),
    };
    CHECK(nodes + INPUTS <= MAX_NODES);
    for (uint64_t i = INPUTS; i < (uint64_t)nodes + INPUTS; i++) {
        uint64_t choice = tutti__random_below(key, 4 * i, 8);
        tutti_sym operands[2] = {pool[tutti__random_below(key, 4 * i + 1, i)],
                                 pool[tutti__random_below(key, 4 * i + 2, i)]};
        uint64_t pick = tutti__random_below(key, 4 * i + 3, 42);
        if (choice == 0)
            pool[i] = random_leaf(graph, key, i);
        else if (choice < 4)
            pool[i] = tutti_apply_op(graph, unary[pick % TUTTI_COUNT(unary)], 1, operands, 0, NULL);
        else
            pool[i] =
                tutti_apply_op(graph, binary[pick % TUTTI_COUNT(binary)], 2, operands, 0, NULL);
        if (i % 7 == 0)
            tutti__test_result(pool[i]);
    }
    tutti__test_result(pool[nodes + INPUTS - 1]);
    return graph;
}
