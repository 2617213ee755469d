/* testing_pass.c: the part of testing.h that runs passes. */
#include "passes/testing.h"

int tutti__test_rewrite(const tutti_pass *pass, const tutti_pass_context *context,
                        tutti_graph *graph)
{
    tutti_pass_context none = {0};
    int changes = -1;
    CHECK_OK(pass->run(graph, context != NULL ? context : &none, &changes));
    CHECK(changes >= 0);
    CHECK_OK(tutti_graph_verify(graph));
    return changes;
}

/* A device that runs the CPU's kernels; no pass looks at more of it. */
const tutti_pass_context *tutti__test_on_cpu(void)
{
    static const tutti_target target = {.name = "test", .kernels = "cpu"};
    static const tutti_device device = {.target = &target, .name = "test:0"};
    static const tutti_pass_context context = {.device = &device};
    return &context;
}

/* A target that compiles whole graphs. */
const tutti_pass_context *tutti__test_on_whole(void)
{
    static const tutti_target target = {.name = "test"};
    static const tutti_device device = {.target = &target, .name = "test:0"};
    static const tutti_pass_context context = {.device = &device};
    return &context;
}
