/* summary_test.c: the table of layers takes time that is linear in their number. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"
#include "tutti/tutti.h"

enum { LAYERS = 1000 };

/* Before names were looked up it took 39 s of a release build; now half a second of a slow one. */
TUTTI_TEST(a_summary_of_many_layers_is_quick)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_layer **layers = calloc(LAYERS + 1, sizeof *layers);
    CHECK(layers != NULL);
    layers[0] = tutti_input_shape(2);
    for (int i = 1; i <= LAYERS; i++)
        layers[i] = tutti_dense(2);
    tutti_model *m = (tutti_sequential)(job, LAYERS + 1, layers);
    free(layers);
    int64_t start = tutti__now_ns();
    char *text = NULL;
    CHECK_OK(tutti_summary(m, 1, &text));
    CHECK((double)(tutti__now_ns() - start) * 1e-9 < 20);
    CHECK_CONTAINS(text, "dense_999 (dense)");
    CHECK_CONTAINS(text, "parameters 6000, trainable 6000");
    free(text);
    CHECK_INT(tutti_close(job), 0);
}

/* A layer that stands twice has its weights and work in its first row. */
TUTTI_TEST(a_shared_layer_counts_once_in_the_summary)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_layer *shared = tutti_dense(3, .name = "my/shared");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 3);
    tutti_output(m, "y", tutti_call(shared, tutti_call(shared, x)));
    char *text = NULL;
    CHECK_OK(tutti_build(m, TUTTI_F32, 3));
    CHECK_OK(tutti_summary(m, 1, &text));
    CHECK_CONTAINS(text, "parameters 12, trainable 12");
    const char *row = strstr(text, "my/shared (dense)");
    CHECK(row != NULL && strstr(row, " 12 ") != NULL);
    free(text);
    CHECK_INT(tutti_close(job), 0);
}
