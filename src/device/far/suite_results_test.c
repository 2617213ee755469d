/* suite_results_test.c: what can be fetched, alone and together; see suite.h. */
#include "base/test.h"
#include "device/far/suite.h"

void tutti__suite_results(const char *device)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = tutti__suite_numbers(1, 2, (int64_t[]){2, 6}),
                 *fixed = tutti__suite_numbers(2, 1, (int64_t[]){6});
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 6), c = tutti_constant(g, fixed);
    tutti_sym y = tutti_mul(x, c), flat = tutti_reshape(y, -1), z = tutti_sum(tutti_exp(y)),
              view = tutti_reshape(x, 3, 4);
    tutti_sym v = tutti_variable(g, tutti_tensor_init(fixed), .name = "v"),
              big = tutti_concatenate(TUTTI_SYMS(y, tutti_neg(x)), .axis = 1);
    tutti_sym syms[] = {x, c, y, flat, z, view, v, big, y};
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *all[TUTTI_COUNT(syms)];
    tutti_fetch fetches[TUTTI_COUNT(syms)];
    tutti_run_options options = {.struct_size = sizeof options, .feed = TUTTI_FEED({x, fed})};
    for (unsigned subset = 1; subset < 1u << TUTTI_COUNT(syms); subset = subset * 3 + 1) {
        int count = 0;
        for (size_t i = 0; i < TUTTI_COUNT(syms); i++)
            if (subset & 1u << i) {
                fetches[count] = (tutti_fetch){syms[i], &all[count]};
                count++;
            }
        options.fetch.count = count;
        options.fetch.list = fetches;
        CHECK_OK(tutti_run_with(s, &options));
        for (int i = 0; i < count; i++) {
            tutti_tensor *alone = NULL;
            CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}),
                               .fetch = TUTTI_FETCH({fetches[i].sym, &alone})));
            tutti__suite_same(all[i], alone, 0);
            tutti_tensor_release(alone);
        }
        for (int i = 0; i < count; i++) {
            if (fetches[i].sym.node == c.node || fetches[i].sym.node == v.node)
                tutti__suite_same(all[i], fixed, 0);
            if (fetches[i].sym.node == x.node)
                tutti__suite_same(all[i], fed, 0);
            tutti_tensor_release(all[i]);
        }
    }
    tutti_tensor_release(fed);
    tutti_tensor_release(fixed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
