/* elements_test.c: elements that are taken and put by fewer indices than there are, where how many
 * is known only when it runs. */
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *numbers(tutti_dtype dtype, int64_t rows, int64_t columns, int times, int below)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(dtype, 2, (int64_t[]){rows, columns}, &tensor));
    for (int i = 0; i < rows * columns; i++)
        tutti_tensor_set(tensor, i, i * times % below);
    return tensor;
}

/* dx and du of the sum of squares of what scatter_elements makes, with shapes known or not. */
static void differentiate(const char *device, const char *reduction, bool known, double *ret)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *given[] = {numbers(TUTTI_F64, 3, 5, 7, 11), numbers(TUTTI_I64, 2, 4, 5, 3),
                             numbers(TUTTI_F64, 2, 4, 3, 8)};
    tutti_tensor *dx, *du, *few;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym in[3];
    for (int i = 0; i < 3; i++) {
        const tutti_type *type = tutti_tensor_type(given[i]);
        in[i] = known ? (tutti_placeholder)(g, *type)
                      : tutti_placeholder(g, type->dtype, TUTTI_ANY, TUTTI_ANY);
    }
    tutti_sym y = tutti_scatter_elements(in[0], in[1], in[2], 0, reduction);
    tutti_sym taken = tutti_sum(tutti_square(tutti_gather_elements(in[0], in[1], 0)));
    tutti_sym loss = tutti_add(tutti_sum(tutti_square(y)), taken);
    tutti_sym grads[] = {tutti_gradient(loss, in[0]), tutti_gradient(loss, in[2])};
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s,
                       .feed = TUTTI_FEED({in[0], given[0]}, {in[1], given[1]}, {in[2], given[2]}),
                       .fetch = TUTTI_FETCH({grads[0], &dx}, {grads[1], &du}, {taken, &few})));
    for (int i = 0; i < 15; i++)
        ret[i] = tutti_tensor_get(dx, i);
    for (int i = 0; i < 8; i++)
        ret[15 + i] = tutti_tensor_get(du, i);
    ret[23] = tutti_tensor_get(few, 0);
    tutti_tensor_release(dx);
    tutti_tensor_release(du);
    tutti_tensor_release(few);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(given[i]);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(elements_by_fewer_indices_of_unknown_number)
{
    const char *devices[] = {"cpu:0", "whole:0"};
    const char *reductions[] = {"none", "add", "mul", "max", "min"};
    for (size_t d = 0; d < TUTTI_COUNT(devices); d++)
        for (size_t r = 0; r < TUTTI_COUNT(reductions); r++) {
            double known[24], unknown[24];
            differentiate(devices[d], reductions[r], true, known);
            differentiate(devices[d], reductions[r], false, unknown);
            for (int i = 0; i < 24; i++)
                if (known[i] == known[i]) /* the gradient of mul by 0 is none */
                    CHECK_NEAR(unknown[i], known[i], 1e-12);
        }
}
