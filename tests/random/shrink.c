/* shrink.c: the smallest recipe that still fails in the same way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static bool still_fails(const options *o, finding *f, uint64_t dropped)
{
    options one = *o;
    finding found = {0};
    one.way = f->way->name;
    one.worker = f->worker->same_bits ? NULL : f->worker->name;
    if (check_recipe(&one, (random_recipe){f->recipe.seed, dropped}, &found) ||
        (strncmp(f->words, "failed", 6) == 0) != (strncmp(found.words, "failed", 6) == 0) ||
        (strncmp(f->words, "the ref", 7) == 0) != (strncmp(found.words, "the ref", 7) == 0))
        return false;
    *f = found;
    return true;
}

void shrink(const options *o, finding *f)
{
    int steps = recipe_steps(f->recipe.seed);
    for (int chunk = steps / 2; chunk >= 1; chunk /= 2)
        for (int first = steps - chunk; first > -chunk; first -= chunk) {
            int from = first < 0 ? 0 : first;
            uint64_t more = f->recipe.dropped | (((UINT64_C(1) << chunk) - 1) << from);
            if (more != f->recipe.dropped)
                still_fails(o, f, more);
        }
    for (int again = 0; again < 2; again++)
        for (int step = steps - 1; step >= 0; step--)
            if (!(f->recipe.dropped >> step & 1))
                still_fails(o, f, f->recipe.dropped | UINT64_C(1) << step);
}

void print_recipe(random_recipe recipe)
{
    builder *b = calloc(1, sizeof *b);
    char *text = NULL;
    if (b == NULL || tutti_graph_create(&b->graph) != TUTTI_OK)
        abort();
    b->recipe = recipe;
    b->dtype = TUTTI_F32;
    build(b);
    printf("  steps:");
    for (int i = 0; i < b->steps; i++)
        if (!(recipe.dropped >> i & 1))
            printf(" %s", b->names[i]);
    printf("\n");
    int lines = 0;
    if (tutti_graph_print(b->graph, &text) == TUTTI_OK)
        for (char *line = strtok(text, "\n"); line && lines < 60;
             line = strtok(NULL, "\n"), lines++)
            printf("    %.160s\n", line);
    free(text);
    tutti_graph_destroy(b->graph);
    free(b);
}
