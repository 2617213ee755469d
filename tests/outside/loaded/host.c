/* host.c: a program that loads what uses Tutti, and lets go of it, again and again: host PLUGIN. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int i = 0; i < 5; i++) {
        void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
        int (*use)(void) = NULL;
        if (plugin)
            *(void **)&use = dlsym(plugin, "use");
        if (!use || use() != 0) {
            fprintf(stderr, "%s\n", use ? "it failed" : dlerror());
            return 1;
        }
        dlclose(plugin);
        usleep(20000);
    }
    return 0;
}
