/* param_groups.c: which settings hold for which weight: parameter groups, and the weights that
 * decay. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/glob.h"
#include "nn/optimizers/optimizer.h"
#include "ops/build.h"

static bool given(double number)
{
    return number != 0 || signbit(number);
}

static int group_count(const tutti_optimizer *o)
{
    return o->group_count < TUTTI_OPTIMIZER_GROUPS ? o->group_count : TUTTI_OPTIMIZER_GROUPS;
}

static bool names(const tutti_param_group *group, const char *weight)
{
    if (group->filter)
        return group->filter(weight, group->context);
    return group->pattern && tutti__glob_match(group->pattern, weight);
}

int tutti__param_group_of(const tutti_optimizer *optimizer, const tutti_node *variable)
{
    const char *weight = optimizer->group_count > 0 ? tutti__state_name(variable) : NULL;
    for (int i = 0; i < group_count(optimizer); i++)
        if (names(&optimizer->groups[i], weight))
            return i;
    return -1;
}

bool tutti__optimizer_freezes(const tutti_optimizer *optimizer, const tutti_node *variable)
{
    int group = tutti__param_group_of(optimizer, variable);
    return group >= 0 && optimizer->groups[group].frozen;
}

int tutti__optimizer_leave_frozen(const tutti_optimizer *optimizer, int count, tutti_sym *variables)
{
    int kept = 0;
    if (optimizer->group_count == 0)
        return count;
    for (int i = 0; i < count; i++)
        if (!tutti__optimizer_freezes(optimizer, variables[i].node))
            variables[kept++] = variables[i];
    return kept;
}

/* ---- settings of a group ---- */

tutti_clipping tutti__optimizer_clipping(const tutti_optimizer *o, int group)
{
    const tutti_param_group *g = group >= 0 ? &o->groups[group] : NULL;
    if (g && tutti__param_group_clips(g))
        return (tutti_clipping){fabs(g->clip_value), fabs(g->clip_norm), fabs(g->global_clip_norm)};
    return (tutti_clipping){o->clip_value, o->clip_norm, o->global_clip_norm};
}

bool tutti__param_group_clips(const tutti_param_group *group)
{
    return given(group->clip_value) || given(group->clip_norm) || given(group->global_clip_norm);
}

double tutti__param_group_factor(const tutti_param_group *group)
{
    return given(group->learning_rate_factor) ? fabs(group->learning_rate_factor) : 1;
}

void tutti__param_groups_resolve(tutti_optimizer *optimizer)
{
    for (int i = 0; i < group_count(optimizer); i++) {
        tutti_param_group *group = &optimizer->groups[i];
        if (!given(group->learning_rate) || given(group->learning_rate_factor) ||
            optimizer->schedule.def || !(optimizer->learning_rate > 0))
            continue; /* the check says what is wrong */
        group->learning_rate_factor = group->learning_rate / optimizer->learning_rate;
        group->learning_rate = 0;
    }
}

/* ---- which weights decay ---- */

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), e = strlen(ending);
    return n >= e && strcmp(text + n - e, ending) == 0;
}

static bool decays_matrices(const tutti_optimizer *optimizer)
{
    return optimizer->decay && strcmp(optimizer->decay, "matrices") == 0;
}

/* The variable whose value an edge has, as it is or in another precision; or NULL. */
static const tutti_node *variable_behind(tutti_edge edge)
{
    const tutti_node *node = edge.node;
    while (tutti__is(node, "read") || tutti__is(node, "cast") || tutti__is(node, "identity"))
        node = node->inputs[0].node;
    return tutti__is(node, "variable") ? node : NULL;
}

bool *tutti__optimizer_tables(const tutti_optimizer *optimizer, const tutti_graph *graph)
{
    bool *tables = calloc(graph->nodes.count + 1, sizeof *tables);
    for (size_t n = 0; tables && decays_matrices(optimizer) && n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        const tutti_node *table =
            !node->dead && tutti__is(node, "gather") ? variable_behind(node->inputs[0]) : NULL;
        if (table)
            tables[table->id] = true;
    }
    return tables;
}

double tutti__optimizer_decay(const tutti_optimizer *optimizer, int group,
                              const tutti_node *variable, const bool *tables)
{
    const char *weight = tutti__state_name(variable);
    if (group >= 0 && given(optimizer->groups[group].weight_decay))
        return fabs(optimizer->groups[group].weight_decay);
    if (decays_matrices(optimizer) &&
        (variable->types[0].rank < 2 || tables[variable->id] || ends_with(weight, "bias") ||
         ends_with(weight, "embeddings")))
        return 0;
    return optimizer->weight_decay;
}

/* ---- what is wrong with them ---- */

/* "group 2 ('*bias')". */
static const char *title(const tutti_optimizer *o, int i, char ret[200])
{
    const char *pattern = o->groups[i].pattern;
    if (pattern)
        snprintf(ret, 200, "parameter group %d ('%.150s')", i + 1, pattern);
    else
        snprintf(ret, 200, "parameter group %d (a function)", i + 1);
    return ret;
}

static bool is_number(double number)
{
    return isfinite(number) && number >= 0;
}

static const char *wrong_numbers(const tutti_param_group *g)
{
    bool lr = given(g->learning_rate), factor = given(g->learning_rate_factor);
    int clips = given(g->clip_value) + given(g->clip_norm) + given(g->global_clip_norm);
    if (!is_number(g->learning_rate) || !is_number(g->learning_rate_factor) ||
        !is_number(g->weight_decay) || !is_number(g->clip_value) || !is_number(g->clip_norm) ||
        !is_number(g->global_clip_norm))
        return "a rate, factor, decay or bound is negative or no number";
    if (lr && factor)
        return "both learning_rate and learning_rate_factor are given; one is enough";
    if (clips > 1)
        return "only one of clip_value, clip_norm and global_clip_norm may be given";
    if (!lr && !factor && clips == 0 && !given(g->weight_decay) && !g->frozen)
        return "changes nothing: 0 means the optimizer's setting; write TUTTI_ZERO for the number 0";
    return NULL;
}

static tutti_status check_group(const tutti_optimizer *o, int i)
{
    const tutti_param_group *g = &o->groups[i];
    char text[200];
    const char *wrong = wrong_numbers(g);
    if (!g->filter && (!g->pattern || !g->pattern[0]))
        wrong = "has no pattern and no filter";
    else if (g->filter && g->pattern)
        wrong = "has both a pattern and a filter; one is enough";
    else if (!wrong && given(g->learning_rate))
        wrong = o->schedule.def ? "has a learning_rate, which no schedule drives; give "
                                  ".learning_rate_factor, its part of the scheduled rate"
                                : "has a learning_rate, and the optimizer's is 0; give the "
                                  "optimizer one as well";
    return wrong ? tutti_fail(TUTTI_INVALID, "%s: %s: %s", o->name, title(o, i, text), wrong)
                 : TUTTI_OK;
}

/* Weights are what is no slot and no number of an optimizer. */
static bool is_weight(const tutti_optimizer *o, const tutti_node *node)
{
    const char *name;
    size_t length = strlen(o->name);
    if (node->dead || !tutti__is(node, "variable") || tutti__str(node, "slot_of")[0])
        return false;
    if (tutti__int(node, "trainable"))
        return true;
    name = tutti__state_name(node);
    return tutti_dtype_is_float(node->types[0].dtype) &&
           !(strncmp(name, o->name, length) == 0 && name[length] == '/') &&
           strncmp(name, "training/", 9) != 0 && strncmp(name, "loss_scale/", 11) != 0;
}

static tutti_status names_none(const tutti_optimizer *o, int i, const tutti_graph *graph)
{
    enum { SHOWN = 24 };
    tutti_text list = {0};
    char text[200];
    int count = 0;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!is_weight(o, node) || !tutti__int(node, "trainable"))
            continue;
        if (count++ < SHOWN)
            tutti__text_add(&list, "%s%s", count > 1 ? ", " : "", tutti__state_name(node));
    }
    if (count > SHOWN)
        tutti__text_add(&list, ", … (%d in all)", count);
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "%s: no weight belongs to %s; there are %s",
                                     o->name, title(o, i, text), list.data ? list.data : "none");
    tutti__text_free(&list);
    return status;
}

static tutti_status check_names(const tutti_optimizer *o, const tutti_graph *graph)
{
    bool named[TUTTI_OPTIMIZER_GROUPS] = {false}, first[TUTTI_OPTIMIZER_GROUPS] = {false};
    char text[200];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        bool taken = false;
        if (!is_weight(o, node))
            continue;
        for (int i = 0; i < o->group_count; i++) {
            if (!names(&o->groups[i], tutti__state_name(node)))
                continue;
            named[i] = true;
            first[i] = first[i] || !taken;
            taken = true;
        }
    }
    for (int i = 0; i < o->group_count; i++) {
        if (!named[i])
            return names_none(o, i, graph);
        if (!first[i])
            return tutti_fail(TUTTI_INVALID,
                              "%s: every weight of %s belongs to an earlier group, and the first "
                              "one counts; put it before them",
                              o->name, title(o, i, text));
    }
    return TUTTI_OK;
}

tutti_status tutti__param_groups_check(const tutti_optimizer *o, const tutti_graph *graph)
{
    if (o->decay && strcmp(o->decay, "all") != 0 && strcmp(o->decay, "matrices") != 0)
        return tutti_fail(TUTTI_INVALID, "%s: decay is \"all\" or \"matrices\", not '%s'", o->name,
                          o->decay);
    if (o->group_count < 0 || o->group_count > TUTTI_OPTIMIZER_GROUPS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: %d parameter groups are given, at most %d can be",
                          o->name, o->group_count, TUTTI_OPTIMIZER_GROUPS);
    for (int i = 0; i < o->group_count; i++)
        TUTTI_TRY(check_group(o, i));
    return o->group_count > 0 ? check_names(o, graph) : TUTTI_OK;
}

bool tutti__param_groups_same(const tutti_optimizer *a, const tutti_optimizer *b)
{
    const char *decay_a = a->decay ? a->decay : "all", *decay_b = b->decay ? b->decay : "all";
    if (a->group_count != b->group_count || strcmp(decay_a, decay_b) != 0)
        return false;
    for (int i = 0; i < group_count(a); i++) {
        const tutti_param_group *x = &a->groups[i], *y = &b->groups[i];
        double p[] = {x->learning_rate, x->learning_rate_factor, x->weight_decay, x->clip_value,
                      x->clip_norm,     x->global_clip_norm},
               q[] = {y->learning_rate, y->learning_rate_factor, y->weight_decay, y->clip_value,
                      y->clip_norm,     y->global_clip_norm};
        if (x->filter != y->filter || x->context != y->context || x->frozen != y->frozen ||
            strcmp(x->pattern ? x->pattern : "", y->pattern ? y->pattern : "") != 0 ||
            memcmp(p, q, sizeof p) != 0)
            return false;
    }
    return true;
}

tutti_status tutti__param_groups_keep(tutti_optimizer *optimizer, tutti_arena *arena)
{
    bool kept = true;
    if (optimizer->decay)
        kept = (optimizer->decay = tutti__arena_string(arena, optimizer->decay)) != NULL;
    for (int i = 0; kept && i < group_count(optimizer); i++)
        if (optimizer->groups[i].pattern)
            kept = (optimizer->groups[i].pattern =
                        tutti__arena_string(arena, optimizer->groups[i].pattern)) != NULL;
    return kept ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for parameter groups");
}
