/* main.c: the laboratory's program.
 *
 *     lab                 every check; the last line counts them
 *     lab NAME...         those whose name contains one of the words
 *     lab --compile       compiles every variant of every kernel for sm_80 and sm_90a; needs no GPU
 *     lab --report        what was found */
#include "device/cuda/compile/compile.h"
#include "device/cuda/compile/load.h"
#include "device/cuda/compile/source.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/lab/lab.h"

static bool wanted(const char *name, int argc, char **argv)
{
    bool any = argc <= 1;
    for (int i = 1; i < argc && !any; i++)
        any = strstr(name, argv[i]) != NULL;
    return any;
}

/* False when the device cannot be used any more: after a fault every call fails. */
static bool main_run(lab_bench *lab, const lab_check *check)
{
    lab->check = check->name;
    tutti_status status = check->run(lab);
    tutti_status after = TUTTI_CU(lab->on.device, cuStreamSynchronize(lab->on.stream));
    if (status != TUTTI_OK || after != TUTTI_OK)
        lab_pass(lab, false, "runs", "%s", tutti_error_message());
    for (int i = 0; i < lab->memory_count; i++)
        (void)lab->on.device->cu->cuMemFree(lab->memory[i]);
    lab->memory_count = 0;
    return after == TUTTI_OK;
}

static int compile_all(void)
{
    static const int chips[] = {80, 90};
    int failed = 0, count = 0;
    for (const tutti_cuda_source *const *source = tutti__cuda_sources(); *source; source++)
        for (const char *const *options = (*source)->variants; *options; options++)
            for (size_t i = 0; i < TUTTI_COUNT(chips); i++) {
                const tutti_cuda_job job = {(*source)->name, (*source)->text->text, *options,
                                            chips[i], NULL};
                void *cubin;
                size_t size;
                count++;
                if (tutti__cuda_compile(&job, &cubin, &size, NULL) == TUTTI_OK)
                    free(cubin);
                else
                    failed++, printf("FAIL %s\n", tutti_error_message());
            }
    printf("%d compiled, %d failed\n", count - failed, failed);
    return failed > 0;
}

static void main_report(void)
{
    tutti_text text = {0};
    tutti__cuda_report(&text);
    printf("%s", text.data ? text.data : "");
    tutti__text_free(&text);
}

int main(int argc, char **argv)
{
    static lab_bench own;
    tutti_cuda_device *device;
    if (argc > 1 && strcmp(argv[1], "--compile") == 0)
        return compile_all();
    main_report();
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        return 0;
    if (getenv("TUTTI_CACHE"))
        tutti__cuda_cache_folder(getenv("TUTTI_CACHE"));
    if (tutti__cuda_device_open(0, &device) != TUTTI_OK)
        return printf("SKIP no GPU to test on: %s\n", tutti_error_message()), 77;
    if (argc > 1 && strcmp(argv[1], "--any") == 0)
        return 0;
    own.on.device = device;
    if (TUTTI_CU(device, cuStreamCreate(&own.on.stream, TUTTI_CU_NON_BLOCKING)) != TUTTI_OK ||
        tutti__cuda_products_open(device, &own.products) != TUTTI_OK)
        return printf("FAIL %s\n", tutti_error_message()), 1;
    bool usable = true;
    for (int i = 0; i < lab_check_count && usable; i++)
        if (i == 0 || wanted(lab_checks[i].name, argc, argv))
            usable = main_run(&own, &lab_checks[i]);
    if (!usable)
        printf("the device is lost after this; name the checks behind it to run them\n");
    tutti__cuda_products_close(own.products);
    (void)device->cu->cuStreamDestroy(own.on.stream);
    tutti__cuda_device_close(device);
    printf("%d passed, %d failed\n", own.passed, own.failed);
    return own.failed > 0;
}
