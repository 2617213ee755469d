/* doctor.c: `tutti doctor`: what this machine has, what is missing, and how to get it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/pool.h"
#include "cli/command.h"
#include "comm/fabric/engine.h"
#include "device/cpu/gemm/engine.h"
#include "device/cuda/module.h"
#include "nn/model/layer.h"
#include "parallel/strategies/strategy.h"
#include "program/kernel.h"
#include "program/target.h"
#include "tables/fabric_engine.h"
#include "tables/gemm_engine.h"
#include "tables/strategy_kind.h"
#include "tables/target.h"

#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

static const char usage[] =
    "usage: tutti doctor\n\n"
    "Says which CPU this is and what it can do, which devices and engines there are, which\n"
    "libraries for matrix products can be loaded and what core type they were told, which GPUs and\n"
    "libraries of NVIDIA's, and what is missing and how to get it. Exit code 0 also when optional\n"
    "parts are missing.\n";

static void show_cpu(void)
{
    const tutti_cpu *cpu = tutti__cpu();
    struct utsname system;
    if (uname(&system) == 0)
        printf("system      %s %s on %s\n", system.sysname, system.release, system.machine);
    printf("cpu         %s, %d of %ld granted\n", cpu->model, tutti__cpu_count(),
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("features   ");
    const struct {
        bool has;
        const char *name;
    } features[] = {
        {cpu->avx2, "avx2"},         {cpu->avx512, "avx512"}, {cpu->avx512_bf16, "avx512-bf16"},
        {cpu->amx_bf16, "amx-bf16"}, {cpu->neon, "neon"},     {cpu->sve, "sve"},
        {cpu->bf16, "bf16"},         {cpu->i8mm, "i8mm"}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (features[i].has)
            printf(" %s", features[i].name);
    printf("\ncaches      L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\n", (long long)cpu->l1_bytes / 1024,
           (long long)cpu->l2_bytes / 1024, (long long)cpu->l3_bytes / 1024);
}

static void show_devices(void)
{
    printf("devices    ");
    for (const tutti_target *const *target = tutti__target_table; *target; target++)
        printf(" %s", (*target)->name);
    printf("   (far and whole are for tests)\n");
    printf("strategies ");
    for (const tutti_strategy_kind *const *kind = tutti__strategy_kind_table; *kind; kind++)
        printf(" %s", (*kind)->name);
    printf("\n");
}

static int show_products(void)
{
    const tutti_gemm_engine *best = NULL;
    int missing = 0;
    tutti_status status = tutti__gemm_engine(true, &best);
    printf("products    %s%s\n",
           status != TUTTI_OK ? "error: "
           : best             ? best->name
                              : "own tiles",
           status != TUTTI_OK ? tutti_error_message() : "");
    const tutti_gemm_engine *loaded;
    /* First: cblas may be the same library, which would then be loaded without being told. */
    (void)tutti__gemm_engine_load("openblas", &loaded);
    for (const tutti_gemm_engine *const *engine = tutti__gemm_engine_table; *engine; engine++) {
        bool there = tutti__gemm_engine_load((*engine)->name, &loaded) == TUTTI_OK;
        char text[160] = "can be loaded";
        if (there && loaded->describe)
            loaded->describe(text, sizeof text);
        printf("  %-10s%s%s\n", (*engine)->name, there ? text : "missing: apt install ",
               there ? "" : (*engine)->package);
        missing += !there;
    }
    return missing;
}

/* NVIDIA's libraries and GPUs; one line where there are none. */
static int show_gpus(void)
{
    const tutti_cuda_module *module;
    tutti_text text = {0};
    if (tutti__cuda_module(&module) != TUTTI_OK) {
        printf("gpu         none: %s\n", tutti_error_message());
        return 0;
    }
    int missing = module->report(&text);
    printf("%s", text.data ? text.data : "");
    tutti__text_free(&text);
    return missing;
}

static void show_library(const char *what, const char *file, const char *package)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    printf("  %-10s%s%s\n", what, handle ? "found" : "missing: apt install ",
           handle ? "" : package);
    if (handle)
        dlclose(handle);
}

static int doctor_run(int argc, char **argv)
{
    (void)argv;
    if (argc != 1)
        return tutti__complain("doctor takes no arguments"), TUTTI_EXIT_USAGE;
    printf("tutti       %s, built by %s %s\n", tutti_version(), COMPILER, __VERSION__);
    show_cpu();
    show_devices();
    int missing = show_products() + show_gpus();
    printf("files\n");
    show_library("gzip", "libz.so.1", "zlib1g");
    show_library("PNG", "libpng16.so.16", "libpng16-16");
    show_library("JPEG", "libturbojpeg.so.0", "libturbojpeg0");
    printf("cluster\n");
    for (const tutti_fabric_engine *const *engine = tutti__fabric_engine_table; *engine; engine++)
        printf("  %-10s%s\n", (*engine)->name,
               !(*engine)->available || (*engine)->available() == TUTTI_OK ? "ready"
                                                                           : tutti_error_message());
    show_library("TLS", "libssl.so.3", "libssl3");
    if (missing > 0)
        printf("Nothing that training needs is missing; the libraries above are optional.\n");
    return TUTTI_EXIT_OK;
}

const tutti_command tutti_command_doctor = {
    .name = "doctor",
    .summary = "what this machine has, what is missing and how to get it",
    .usage = usage,
    .run = doctor_run,
};
