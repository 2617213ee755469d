/* graph_fuzz.c: hostile bytes for tutti_graph_deserialize, in two forms.
 *
 * Input that begins with the magic of a serialised graph is taken as one; size and checksum are
 * made right first, as an attacker would. Any other input names an operator and one of its samples,
 * whose graph is written and then patched: so every operator's shape rule meets attributes and
 * shapes that no builder would give it.
 *
 *     bytes 0, 1   operator: position in the table
 *     byte 2       sample
 *     then         patches of four bytes: where (2), how (1), with what (1)
 *
 * A graph that is accepted must keep all its promises and be written again as it was read. */
#include <stdlib.h>
#include <string.h>

#include "graph/serialize.h"
#include "ops/sample.h"
#include "tables/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void promise(bool kept)
{
    if (!kept)
        abort();
}

static void use(tutti_graph *graph)
{
    void *data = NULL, *again = NULL;
    size_t size = 0, again_size = 0;
    char *text = NULL, *dot = NULL;
    tutti_graph *second = NULL, *copy = NULL;
    promise(tutti_graph_verify(graph) == TUTTI_OK);
    promise(tutti_graph_serialize(graph, &data, &size) == TUTTI_OK);
    promise(tutti_graph_deserialize(data, size, &second) == TUTTI_OK);
    promise(tutti_graph_serialize(second, &again, &again_size) == TUTTI_OK);
    promise(size == again_size && memcmp(data, again, size) == 0);
    promise(tutti__graph_hash(graph) == tutti__graph_hash(second));
    promise(tutti_graph_print(graph, &text) == TUTTI_OK);
    promise(tutti_graph_dot(graph, &dot) == TUTTI_OK);
    promise(tutti__graph_copy(graph, &copy, NULL) == TUTTI_OK);
    promise(tutti__graph_hash(graph) == tutti__graph_hash(copy));
    promise(tutti__graph_prune(copy) == TUTTI_OK && tutti_graph_verify(copy) == TUTTI_OK);
    tutti_graph_destroy(second);
    tutti_graph_destroy(copy);
    free(data);
    free(again);
    free(text);
    free(dot);
}

static void read_graph(const uint8_t *data, size_t size)
{
    tutti_graph *graph = NULL;
    tutti_status status = tutti_graph_deserialize(data, size, &graph);
    promise((status == TUTTI_OK) == (graph != NULL));
    promise(status == TUTTI_OK || tutti_error_message()[0] != 0);
    if (graph)
        use(graph);
    tutti_graph_destroy(graph);
}

/* Right size and checksum. */
static void seal(uint8_t *data, size_t size)
{
    uint64_t payload = size - TUTTI_GRAPH_HEADER, checksum;
    memcpy(data + 16, &payload, 8);
    checksum = tutti__graph_checksum(data, size);
    memcpy(data + TUTTI_GRAPH_CHECKSUM, &checksum, 8);
}

static void patch(uint8_t *form, size_t size, const uint8_t *data, size_t left)
{
    for (; left >= 4; data += 4, left -= 4) {
        size_t at =
            TUTTI_GRAPH_HEADER + (size_t)(data[0] | data[1] << 8) % (size - TUTTI_GRAPH_HEADER);
        switch (data[2] % 4) {
        case 0:
            form[at] = data[3];
            break;
        case 1:
            form[at] = (uint8_t)(form[at] + data[3]);
            break;
        case 2: /* a word */
            for (size_t i = 0; i < 4 && at + i < size; i++)
                form[at + i] = i == 0 ? data[3] : 0;
            break;
        default: /* a large or negative number */
            for (size_t i = 0; i < 8 && at + i < size; i++)
                form[at + i] = i == data[3] % 8 ? (uint8_t)(data[3] >> 3) : data[3] & 128 ? 255 : 0;
        }
    }
}

static const char *sample_of(const tutti_op *op, unsigned index)
{
    unsigned count = 0;
    while (op->samples && op->samples[count])
        count++;
    return count == 0 ? NULL : op->samples[index % count];
}

static void read_patched_sample(const uint8_t *data, size_t size)
{
    size_t ops = 0;
    while (tutti__op_table[ops])
        ops++;
    const tutti_op *op = tutti__op_table[(size_t)(data[0] | data[1] << 8) % ops];
    const char *text = sample_of(op, data[2]);
    tutti_sample *sample = NULL;
    void *form = NULL;
    size_t form_size = 0;
    if (!text || tutti__sample_parse(op, text, 1, &sample) != TUTTI_OK)
        return;
    promise(tutti_graph_serialize(sample->graph, &form, &form_size) == TUTTI_OK);
    tutti__sample_free(sample);
    patch(form, form_size, data + 3, size - 3);
    seal(form, form_size);
    read_graph(form, form_size);
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= TUTTI_GRAPH_HEADER && memcmp(data, TUTTI_GRAPH_MAGIC, 8) == 0) {
        uint8_t *form = malloc(size);
        promise(form != NULL);
        memcpy(form, data, size);
        read_graph(form, size);
        seal(form, size);
        read_graph(form, size);
        free(form);
    } else if (size >= 3) {
        read_graph(data, size);
        read_patched_sample(data, size);
    }
    return 0;
}
