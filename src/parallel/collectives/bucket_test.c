/* bucket_test.c: which sums travel together. */
#include <string.h>

#include "base/test.h"
#include "parallel/spmd/rewrite.h"
#include "tutti/ops.h"

static const tutti_node *bucket_along(const tutti_graph *g, const char *axes)
{
    const tutti_node *found = NULL;
    for (size_t n = 0; n < g->nodes.count; n++) {
        const tutti_node *node = g->nodes.data[n];
        if (!tutti__is(node, "all_reduce_many") || strcmp(tutti__str(node, "axis"), axes) != 0)
            continue;
        CHECK(!found);
        found = node;
    }
    CHECK(found);
    return found;
}

TUTTI_TEST(buckets_hold_sums_along_the_same_axes)
{
    static const char *const axes[] = {"data", "data*expert", "data", "data*expert", "model"};
    static const int sizes[] = {2, 6, 2, 6, 4};
    tutti_graph *g;
    tutti_spmd spmd = {.replicas = 24,
                       .local = 1,
                       .devices = (const char *const[]){"cpu:0"},
                       .bucket_bytes = 1 << 20};
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3);
    for (int i = 0; i < 5; i++) {
        tutti_sym sum = tutti_all_reduce(tutti_mul(x, i + 1), axes[i], sizes[i], TUTTI_SUM);
        CHECK_OK(tutti__graph_result(g, tutti__edge(sum)));
    }
    CHECK_OK(tutti_graph_check(g));
    for (size_t n = 0; n < g->nodes.count; n++)
        g->nodes.data[n]->device = "cpu:0"; /* as the rewrite says it */
    CHECK_OK(tutti__spmd_buckets(g, &spmd));
    CHECK_INT(bucket_along(g, "data")->output_count, 2);
    CHECK_INT(bucket_along(g, "data*expert")->output_count, 2);
    CHECK_INT(bucket_along(g, "model")->output_count, 1);
    for (int i = 0; i < 5; i++)
        CHECK_INT(tutti__int(bucket_along(g, axes[i]), "size"), sizes[i]);
    tutti_graph_destroy(g);
}
