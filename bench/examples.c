/* examples.c: see examples.h. */
#include "bench/examples.h"

#include <stdio.h>
#include <string.h>
#include <trainable.h>

#include "cli/bench.h"

typedef int entry(int argc, char **argv);
#define DECLARE(name, line) entry tutti_example_##name;
TUTTI_EXAMPLES(DECLARE)
#undef DECLARE

static const tutti_bench_example examples[] = {
    {"softmax", tutti_example_softmax, 100, {0}},
    {"mnist", tutti_example_mnist, 64, {0}},
    {"tickets", tutti_example_tickets, 32, {0}},
    {"loop", tutti_example_loop, 64, {0}},
    {"cifar", tutti_example_cifar, 64, {0}},
    {"text", tutti_example_text, 32, {"--set", "blocks=4"}},
    {"resnet", tutti_example_resnet, 64, {"--steps-per-epoch", "1000"}},
    {"autoencoder", tutti_example_autoencoder, 128, {0}},
    {"queues", tutti_example_queues, 50, {0}, .between = true, .fed_aside = true},
    {"gan", tutti_example_gan, 256, {0}, .between = true, .warm = 10},
    {"agent", tutti_example_agent, 64, {0}, .between = true},
    {"encoder", tutti_example_encoder, 32, {0}},
    {"finetune", tutti_example_finetune, 64, {0}},
    {"vae", tutti_example_vae, 64, {0}},
    {"sort", tutti_example_sort, 32, {0}},
    {"gpt", tutti_example_gpt, 12, {0}},
};
#define EXAMPLES (sizeof examples / sizeof *examples)

const tutti_bench_example *tutti__bench_example_at(size_t index)
{
    return index < EXAMPLES ? &examples[index] : NULL;
}

const tutti_bench_example *tutti__bench_example(const char *name)
{
    for (size_t i = 0; i < EXAMPLES; i++)
        if (strcmp(examples[i].name, name) == 0)
            return &examples[i];
    tutti__complain("there is no example '%s' to measure; there are:", name);
    for (size_t i = 0; i < EXAMPLES; i++)
        fprintf(stderr, "  %-12s batch %lld\n", examples[i].name, (long long)examples[i].batch);
    return NULL;
}

int tutti__bench_example_run(const tutti_bench_example *example, const char *precision,
                             const tutti_stand_in *stand_in, int from, int argc, char **argv)
{
    char batch[32], name[32];
    const char *given[64];
    int count = 0;
    snprintf(name, sizeof name, "%s", example->name);
    snprintf(batch, sizeof batch, "%lld", (long long)stand_in->batch);
    given[count++] = name;
    given[count++] = "--quiet";
    given[count++] = "--batch";
    given[count++] = batch;
    if (precision) {
        given[count++] = "--precision";
        given[count++] = precision;
    }
    for (int i = 0; i < 2 && example->settings[i]; i++)
        given[count++] = example->settings[i];
    for (int i = from; i < argc && count < 63; i++)
        given[count++] = argv[i];
    given[count] = NULL;
    tutti__stand_in_set(stand_in);
    int code = example->run(count, (char **)given);
    tutti__stand_in_set(NULL);
    return code;
}
