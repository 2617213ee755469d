/* main.c: the command `tutti`. */
#include "tutti/base.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("tutti %s\n", tutti_version());
        return 0;
    }
    fprintf(stderr, "usage: tutti --version\n");
    return 2;
}
