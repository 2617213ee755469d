/* engine.c: which engine runs large products.
 *
 * "auto" is the standard. On CPUs with AVX-512 a library that is told the core type may be some 10
 * % ahead of the plain tiles, so the first of oneDNN and OpenBLAS that is installed competes with
 * them (matmul_tiles.c); on others, and where results must not depend on how a batch is cut, the
 * tiles are taken, which match the libraries there, need no package and are row-invariant.
 * TUTTI_GEMM names an engine instead. Libraries misjudge CPUs, so one that is named is timed
 * against the tiles once, when it is loaded; one that is far behind is kept, since the user asked
 * for it, and a warning is logged. */
#include "device/cpu/gemm/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/params.h"
#include "base/world.h"
#include "device/cpu/gemm/gemm.h"
#include "tables/gemm_engine.h"

static tutti_param gemm_param = TUTTI_PARAM(
    "GEMM", "auto", "engine of large matrix products: auto, plain, blis, onednn, openblas, cblas");

/* `lock` guards the states. An engine is loaded once; a failure is remembered with its message. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { MOST_ENGINES = 16 };
static struct {
    bool tried;
    tutti_error error;
} states[MOST_ENGINES];

static tutti_status unknown_engine(const char *name)
{
    return tutti_fail(TUTTI_NOT_FOUND,
                      "TUTTI_GEMM is '%s': needs auto, plain, blis, onednn, openblas or cblas",
                      name);
}

enum { PROBE = 128, PROBE_RUNS = 3 };

/* Nanoseconds of the best of a few products of PROBE x PROBE x PROBE. */
static int64_t probe(const tutti_gemm_plan *plan, const tutti_gemm *gemm, void *workspace)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i <= PROBE_RUNS; i++) {
        int64_t start = tutti__now_ns();
        tutti__gemm_run(plan, NULL, gemm, workspace);
        int64_t time = tutti__now_ns() - start;
        best = i > 0 && time < best ? time : best;
    }
    return best;
}

/* Logs a warning when the engine is less than half as fast as the plain tiles. */
static void check_speed(const tutti_gemm_engine *engine)
{
    tutti_gemm_plan plan = tutti__gemm_plan(PROBE, PROBE, PROBE, TUTTI_GEMM_PLAIN);
    size_t matrix = PROBE * PROBE, floats = 3 * matrix + tutti__gemm_workspace(&plan) / 4;
    float *memory = calloc(floats, sizeof(float));
    if (memory == NULL)
        return;
    tutti_gemm gemm = {.m = PROBE,
                       .n = PROBE,
                       .k = PROBE,
                       .a = memory,
                       .b = memory + matrix,
                       .c = memory + 2 * matrix,
                       .lda = PROBE,
                       .ldb = PROBE,
                       .ldc = PROBE};
    int64_t plain = probe(&plan, &gemm, memory + 3 * matrix);
    plan.engine = engine;
    int64_t library = probe(&plan, &gemm, NULL);
    free(memory);
    if (library > 2 * plain)
        tutti__log(
            TUTTI_LOG_WARNING,
            "matrix library %s needs %.1f times as long as the plain tiles: it misjudges this "
            "CPU; set TUTTI_GEMM=plain",
            engine->name, (double)library / (double)plain);
}

tutti_status tutti__gemm_engine_load(const char *name, const tutti_gemm_engine **ret_engine)
{
    int index = 0;
    while (tutti__gemm_engine_table[index] != NULL &&
           strcmp(tutti__gemm_engine_table[index]->name, name) != 0)
        index++;
    const tutti_gemm_engine *engine = tutti__gemm_engine_table[index];
    if (engine == NULL || index >= MOST_ENGINES)
        return unknown_engine(name);
    pthread_mutex_lock(&lock);
    if (!states[index].tried) {
        states[index].tried = true;
        tutti__error_capture(engine->load(), &states[index].error);
        if (states[index].error.status == TUTTI_OK)
            check_speed(engine);
    }
    pthread_mutex_unlock(&lock);
    if (states[index].error.status != TUTTI_OK)
        return tutti__error_restore(&states[index].error);
    *ret_engine = engine;
    return TUTTI_OK;
}

/* The library for this CPU, when one is installed. Whether it is there says no error. */
static void pick(const tutti_gemm_engine **ret_engine)
{
    static const char *const order[] = {"onednn", "openblas"};
    tutti_error before;
    *ret_engine = NULL;
    if (!tutti__cpu()->avx512)
        return;
    tutti__error_capture(TUTTI_INTERNAL, &before);
    for (size_t i = 0; i < TUTTI_COUNT(order) && *ret_engine == NULL; i++)
        if (tutti__gemm_engine_load(order[i], ret_engine) != TUTTI_OK)
            *ret_engine = NULL;
    tutti__error_restore(&before);
}

bool tutti__gemm_engine_auto(void)
{
    return strcmp(tutti__param_text(&gemm_param), "auto") == 0;
}

tutti_status tutti__gemm_engine(bool automatic, const tutti_gemm_engine **ret_engine)
{
    const char *name = tutti__param_text(&gemm_param);
    if (tutti__gemm_engine_auto()) {
        *ret_engine = NULL;
        if (automatic)
            pick(ret_engine);
        return TUTTI_OK;
    }
    if (strcmp(name, "plain") == 0 || name[0] == '\0') {
        *ret_engine = NULL;
        return TUTTI_OK;
    }
    return tutti__gemm_engine_load(name, ret_engine);
}
