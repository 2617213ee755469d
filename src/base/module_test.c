#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dladdr */
#endif
#include "base/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/params.h"
#include "base/test.h"

/* zlib under another name stands for a module. */
TUTTI_TEST(modules_are_found_in_the_folder_that_is_named)
{
    char folder[] = "/tmp/tutti-module-XXXXXX", path[64];
    Dl_info zlib;
    CHECK(mkdtemp(folder) != NULL);
    CHECK(dladdr((void *)(uintptr_t)zlibVersion, &zlib) != 0);
    snprintf(path, sizeof path, "%s/tutti_sample.so", folder);
    CHECK_INT(symlink(zlib.dli_fname, path), 0);
    CHECK(tutti__module_open("src/base/", "tutti_sample.so") == NULL);
    CHECK_OK(tutti__param_set("MODULES", folder));
    void *module = tutti__module_open("src/base/", "tutti_sample.so");
    CHECK(module != NULL);
    CHECK(dlsym(module, "zlibVersion") != NULL);
    CHECK(tutti__module_open("src/base/", "tutti_other.so") == NULL);
    dlclose(module);
    CHECK_OK(tutti__param_set("MODULES", NULL));
    unlink(path);
    rmdir(folder);
}
