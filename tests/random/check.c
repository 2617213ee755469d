/* check.c: a recipe in all ways, each against what reference kernels give. */
#include "check.h"

#include <stdio.h>
#include <string.h>

static run_worker workers[] = {
    {"two_threads", {"TUTTI_THREADS", "2", "TUTTI_TUNE", "0"}},
    {"one_thread", {"TUTTI_THREADS", "1", "TUTTI_TUNE", "0"}, .same_bits = true},
    {"three_threads", {"TUTTI_THREADS", "3", "TUTTI_TUNE", "0"}, .same_bits = true},
    {"avx2", {"TUTTI_ISA", "avx2", "TUTTI_THREADS", "2", "TUTTI_TUNE", "0"}},
    {"base", {"TUTTI_ISA", "base", "TUTTI_THREADS", "2", "TUTTI_TUNE", "0"}},
    {"unfused", {"TUTTI_FUSE", "0", "TUTTI_THREADS", "2", "TUTTI_TUNE", "0"}},
    {"devices", {"TUTTI_CPU_DEVICES", "3", "TUTTI_THREADS", "3", "TUTTI_TUNE", "0"}},
};
enum { WORKERS = sizeof workers / sizeof *workers };

void check_stop(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_stop(&workers[i]);
}

/* For f64, whose truth is rounded itself, and adds in a row what kernels add in a tree: more. */
static double epsilon_of(tutti_dtype dtype)
{
    return dtype == TUTTI_F64   ? 0x1p-49
           : dtype == TUTTI_F32 ? 0x1p-23
           : dtype == TUTTI_F16 ? 0x1p-10
                                : 0x1p-7;
}

static void free_truth(truth *t)
{
    results_free(&t->exact);
    results_free(&t->moved);
    results_free(&t->rounded);
}

static bool find_truth(random_recipe recipe, tutti_dtype dtype, truth *ret)
{
    *ret = (truth){.epsilon = epsilon_of(dtype)};
    run_reference(recipe, TUTTI_F64, 0, &ret->exact);
    run_reference(recipe, TUTTI_F64, dtype == TUTTI_F64 ? 0x1p-50 : 0x1p-21, &ret->moved);
    run_reference(recipe, dtype, 0, &ret->rounded);
    return ret->exact.status == TUTTI_OK && ret->moved.status == TUTTI_OK &&
           ret->rounded.status == TUTTI_OK && ret->exact.count == ret->rounded.count;
}

/* `pattern`: a name, or the beginning of one and '*'. */
static bool matches(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    bool begins = size > 0 && pattern[size - 1] == '*';
    return begins ? strncmp(pattern, name, size - 1) == 0 : strcmp(pattern, name) == 0;
}

/* Others must have its bits. `pattern`: others of that name; NULL: any. */
static bool is_model(const run_way *way, const char *pattern)
{
    for (const run_way *other = ways; other->name; other++)
        if (other->bits_of && strcmp(other->bits_of, way->name) == 0 &&
            (!pattern || matches(pattern, other->name)))
            return true;
    return false;
}

/* Which ways go with which workers: the first takes all on one CPU device, the others a session. */
static bool wanted(const options *o, random_recipe recipe, int w, const run_way *way)
{
    bool model = o->way && is_model(way, o->way);
    if (o->way ? !matches(o->way, way->name) && !model : way->named_only)
        return false;
    if (o->worker && strcmp(o->worker, workers[w].name) != 0 && !model)
        return false;
    if ((way->batched_only && !recipe_batched(recipe.seed)) ||
        (way->stateless && recipe_stateful(recipe.seed)))
        return false;
    bool spread = way->strategy != NULL, device = strcmp(workers[w].name, "devices") == 0;
    if (spread != device || (w > 0 && !device && way != &ways[0] &&
                             !(workers[w].same_bits && strcmp(way->name, "tape") == 0)))
        return false;
    if (!o->quick || o->way)
        return true;
    bool bits = way->bits_of || is_model(way, NULL); /* all of these or none */
    draws d = draws_of(recipe.seed, 55 + (uint64_t)w, bits ? 100 : (uint64_t)(way - ways));
    return (w == 0 && way == &ways[0]) || draw_below(&d, 9) == 0;
}

static bool say(finding *ret, random_recipe recipe, const run_way *way, run_worker *worker)
{
    ret->recipe = recipe;
    ret->way = way;
    ret->worker = worker;
    return ret->words[0] == '\0';
}

/* `model`: of the way whose bits others must have. */
static bool check_way(const options *o, random_recipe recipe, const run_way *way, const truth *t,
                      results *model, finding *ret)
{
    results first = {0};
    bool good = true, have = false;
    for (int w = 0; good && w < WORKERS; w++) {
        if (!wanted(o, recipe, w, way))
            continue;
        results given;
        worker_run(&workers[w], way, recipe, &given);
        if (given.status == TUTTI_TOO_LARGE && way->memory_limit > 0)
            ret->words[0] = '\0'; /* what it needs at least is more */
        else
            results_judge(t, &given, ret->words, sizeof ret->words);
        if (ret->words[0] == '\0' && way->bits_of && model->count > 0)
            results_same(model, &given, ret->words, sizeof ret->words);
        if (ret->words[0] == '\0' && workers[w].same_bits && have)
            results_same(&first, &given, ret->words, sizeof ret->words);
        good = say(ret, recipe, way, &workers[w]);
        if (is_model(way, NULL)) {
            results_free(model);
            *model = given;
        } else if (w == 0) {
            first = given;
            have = true;
        } else {
            results_free(&given);
        }
    }
    results_free(&first);
    return good;
}

bool check_recipe(const options *o, random_recipe recipe, finding *ret)
{
    truth t = {0};
    results model = {0};
    tutti_dtype dtype = TUTTI_NO_DTYPE;
    bool good = true;
    ret->words[0] = '\0';
    for (const run_way *way = ways; good && way->name; way++) {
        bool any = false;
        for (int w = 0; w < WORKERS; w++)
            any = any || wanted(o, recipe, w, way);
        if (!any)
            continue;
        if (dtype != way->dtype) {
            free_truth(&t);
            dtype = way->dtype;
            if (!find_truth(recipe, dtype, &t)) {
                snprintf(ret->words, sizeof ret->words, "the reference fails: %.250s %.250s",
                         t.exact.message, t.rounded.message);
                good = say(ret, recipe, way, &workers[0]);
                break;
            }
        }
        good = check_way(o, recipe, way, &t, &model, ret);
    }
    free_truth(&t);
    results_free(&model);
    return good;
}
