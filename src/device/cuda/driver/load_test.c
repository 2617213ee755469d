/* load_test.c: where libraries are looked for, and what is said when one is missing, damaged or too
 * old. No GPU and none of NVIDIA's libraries are needed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dladdr */
#endif
#include "device/cuda/driver/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "device/cuda/driver/folders.h"
#include "device/cuda/module.h"

typedef struct place {
    char folder[64], file[256];
} place;

/* A temporary folder, with `below` in it, which TUTTI_CUDA names; `file` is the path in that. */
static place make_place(const char *below, const char *file)
{
    place p;
    char command[512];
    strcpy(p.folder, "/tmp/tutti_cuda_XXXXXX");
    CHECK(mkdtemp(p.folder) != NULL);
    snprintf(command, sizeof command, "mkdir -p %s/%s", p.folder, below);
    CHECK_INT(system(command), 0);
    snprintf(p.file, sizeof p.file, "%s/%s/%s", p.folder, below, file);
    CHECK_OK(tutti__param_set("CUDA", p.folder));
    return p;
}

static void remove_place(const place *p)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", p->folder);
    CHECK_INT(system(command), 0);
    CHECK_OK(tutti__param_set("CUDA", NULL));
}

static tutti_status open_nvrtc(char *ret_path, size_t size)
{
    tutti_nvrtc functions;
    return tutti__cuda_open(&tutti__cuda_library_nvrtc, &functions, ret_path, size);
}

TUTTI_TEST(cuda_missing_library_names_places_and_package)
{
    char path[1024] = "untouched";
    place p = make_place("", "");
    CHECK_STATUS(open_nvrtc(path, sizeof path), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "NVRTC");
    CHECK_CONTAINS(tutti_error_message(), "libnvrtc.so.13 or libnvrtc.so.12");
    CHECK_CONTAINS(tutti_error_message(), p.folder);
    CHECK_CONTAINS(tutti_error_message(), "nvidia-cuda-nvrtc");
    CHECK_STR(path, "untouched");
    remove_place(&p);
}

TUTTI_TEST(cuda_damaged_library_is_told_in_the_linkers_words)
{
    char path[1024];
    place p = make_place("lib64", "libnvrtc.so.13");
    FILE *file = fopen(p.file, "w");
    CHECK(file != NULL &&
          fputs("no library at all, but long enough to have a head of one\n", file) > 0);
    fclose(file);
    CHECK_STATUS(open_nvrtc(path, sizeof path), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), p.file);
    remove_place(&p);
}

TUTTI_TEST(cuda_library_without_a_function_is_too_old)
{
    Dl_info about;
    char path[1024];
    if (!dladdr((void *)(uintptr_t)&fopen, &about) || !about.dli_fname ||
        !strstr(about.dli_fname, ".so"))
        SKIP("the C library is not a shared one");
    place p = make_place("nvidia/cuda_nvrtc/lib", "libnvrtc.so.12");
    CHECK_INT(symlink(about.dli_fname, p.file), 0);
    CHECK_STATUS(open_nvrtc(path, sizeof path), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "too old");
    CHECK_CONTAINS(tutti_error_message(), "nvrtcGetErrorString");
    remove_place(&p);
}

TUTTI_TEST(cuda_folders_are_toolkits_libraries_and_wheels)
{
    static const char *const layouts[] = {"", "lib", "lib64", "cublas/lib", "nvidia/cu13/lib"};
    for (size_t i = 0; i < TUTTI_COUNT(layouts); i++) {
        place p = make_place(layouts[i], "libx.so.1");
        tutti_cuda_folders folders;
        bool found = false;
        FILE *file = fopen(p.file, "w");
        CHECK(file != NULL);
        fclose(file);
        CHECK_OK(tutti__cuda_folders(false, &folders));
        for (size_t k = 0; k < folders.count; k++)
            found = found || (folders.paths[k][0] &&
                              tutti__cuda_folder_holds(folders.paths[k], "libx.so.1"));
        CHECK(found);
        tutti__cuda_folders_free(&folders);
        remove_place(&p);
    }
}

TUTTI_TEST(cuda_report_without_a_driver_is_one_line)
{
    tutti_text text = {0};
    const tutti_cu_driver *driver;
    if (tutti__cuda_driver(&driver) == TUTTI_OK)
        SKIP("this machine has NVIDIA's driver");
    CHECK_INT(tutti__cuda_report(&text), 0);
    CHECK_STR(text.data, "gpu         none: no NVIDIA driver (libcuda.so.1)\n");
    tutti__text_free(&text);
}

/* Without a GPU its libraries are not opened: a CPU job pays nothing. */
TUTTI_TEST_ALONE(cuda_module_opens_no_library_of_nvidias)
{
    const tutti_cuda_module *module;
    if (tutti__cuda_module(&module) != TUTTI_OK)
        SKIP("the module was not built");
    CHECK_INT(module->version, TUTTI_CUDA_MODULE_VERSION);
    CHECK(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) == NULL);
    CHECK(dlopen("libnvrtc.so.13", RTLD_NOLOAD | RTLD_LAZY) == NULL);
    CHECK(dlopen("libcublasLt.so.13", RTLD_NOLOAD | RTLD_LAZY) == NULL);
    tutti_text text = {0};
    (void)module->report(&text);
    CHECK_CONTAINS(text.data, "gpu");
    tutti__text_free(&text);
}
