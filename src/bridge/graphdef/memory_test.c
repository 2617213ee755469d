/* memory_test.c: wherever memory ends, it is not the frozen graph that is blamed. */
#include "base/shortage.h"
#include "bridge/graphdef/hand.h"

static tutti_status import(const tutti_text *text)
{
    tutti_graph *graph;
    tutti_onnx_ports ports;
    TUTTI_TRY(tutti_graph_create(&graph));
    tutti_status status = into_graph(text, graph, &ports);
    tutti_graph_destroy(graph);
    return status;
}

/* Each attempt comes further than the one before, until one succeeds. */
TUTTI_TEST(graphdef_without_memory_says_so)
{
    tutti__shortage_or_skip();
    tutti_text text = {0};
    put_placeholder(&text, "x", 4, (int64_t[]){1, 2, 2, 3});
    put_const(&text, "w", 1, 4, (int64_t[]){1, 2, 2, 2}, 8, (float[]){1, 0, 0, 1, 0, 0, 1, 0});
    put_const(&text, "b", 1, 1, (int64_t[]){2}, 2, (float[]){10, 20});
    put(&text, "conv", "Conv2D", "x w", "s:data_format=NCHW s:padding=VALID l:strides=1,1,1,1");
    put(&text, "sum", "BiasAdd", "conv b", "s:data_format=NCHW");
    put(&text, "y", "MaxPool", "sum",
        "s:data_format=NCHW s:padding=VALID l:ksize=1,1,2,1 l:strides=1,1,2,1");
    CHECK_OK(import(&text));
    int failures = 0;
    tutti_status status;
    tutti_shortage shortage = tutti__shortage_begin();
    do {
        status = import(&text);
        failures += status != TUTTI_OK;
    } while (status == TUTTI_NO_MEMORY && tutti__shortage_ease(&shortage));
    tutti__shortage_end(&shortage);
    if (status != TUTTI_NO_MEMORY) /* pieces that lie apart may be too small to the end */
        CHECK_OK(status);
    CHECK(failures > 2);
    tutti__text_free(&text);
}
