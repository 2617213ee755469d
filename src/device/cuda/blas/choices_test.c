#include "device/cuda/blas/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"

TUTTI_TEST(cuda_choices_are_kept_and_damaged_ones_ignored)
{
    const tutti_world *world = tutti__world();
    char folder[] = "/tmp/tutti_products_XXXXXX", path[128];
    tutti_cuda_choices choices = {0}, read = {0};
    void *text;
    size_t size;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/below/products.txt", folder);
    for (uint64_t i = 0; i < 3; i++) {
        tutti_cuda_choice choice = {.key = i * 77 + 1};
        for (uint64_t k = 0; k < 8; k++)
            choice.algorithm.data[k] = ~(i + k) * 0x123456789;
        CHECK_OK(tutti__cuda_choices_add(&choices, &choice));
        CHECK_OK(tutti__cuda_choices_add(&choices, &choice));
    }
    CHECK_INT(choices.count, 3);
    tutti__cuda_choices_read(&read, path);
    CHECK_INT(read.count, 0);
    CHECK_OK(tutti__cuda_choices_write(&choices, path));
    tutti__cuda_choices_read(&read, path);
    CHECK_INT(read.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const tutti_cuda_choice *found = tutti__cuda_choices_find(&read, choices.data[i].key);
        CHECK(found && memcmp(found, &choices.data[i], sizeof *found) == 0);
    }
    CHECK(tutti__cuda_choices_find(&read, 5) == NULL);
    CHECK_OK(world->read_file(world->self, path, 1 << 20, &text, &size));
    for (size_t i = 0; i < size; i++) {
        tutti_cuda_choices damaged = {0};
        ((char *)text)[i] ^= 2;
        FILE *file = fopen(path, "w");
        CHECK(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
        ((char *)text)[i] ^= 2;
        tutti__cuda_choices_read(&damaged, path);
        CHECK_INT(damaged.count, 0);
        tutti__cuda_choices_free(&damaged);
    }
    free(text);
    tutti__cuda_choices_free(&choices);
    tutti__cuda_choices_free(&read);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}
