/* graphdef_fuzz.c: TensorFlow's graphs; what is accepted is sound, and can be written as one. */
#include "bridge/graphdef/graphdef.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_graphdef *def;
    tutti_graph *graph;
    tutti_onnx_ports ports;
    if (!went_well(tutti__graphdef_decode("input", data, size, &def)))
        return 0;
    promise(tutti_graph_create(&graph) == TUTTI_OK);
    if (went_well(tutti__graphdef_into_graph(def, graph, &ports))) {
        tutti_text text = {0};
        promise(tutti_graph_check(graph) == TUTTI_OK);
        promise(tutti_graph_verify(graph) == TUTTI_OK);
        promise(tutti__graphdef_encode(graph, &text) == TUTTI_OK);
        tutti__text_free(&text);
    }
    tutti__graphdef_free(def);
    tutti_graph_destroy(graph);
    return 0;
}
