/* checkpoint_fuzz.c: the input is a file that a state is restored from; or the header of one, up to
 * the end of the line, and its data. Queues and variables are there before it, or come after it,
 * and what was restored can be saved. */
#include <string.h>

#include "fuzz.h"
#include "state/checkpoint.h"

static const tutti_queue_kind kinds[] = {TUTTI_QUEUE_FIFO, TUTTI_QUEUE_PRIORITY};

static void find_queue(tutti_state *state, const char *name, tutti_queue_kind kind)
{
    const tutti_type types[] = {tutti_type_make(TUTTI_I64, 0, NULL),
                                tutti_type_make(TUTTI_STRING, 1, (int64_t[]){TUTTI_ANY})};
    const tutti_queue_order order = {.kind = kind};
    tutti_queue *queue;
    if (!went_well(tutti__state_queue_ordered(state, name, 4, 2, types, &order, &queue)))
        return;
    if (tutti__queue_size(queue) > 0) {
        tutti_tensor *parts[2];
        promise(tutti__queue_dequeue(queue, TUTTI_QUEUE_FOREVER, parts) == TUTTI_OK);
        promise(tutti_tensor_dtype(parts[1]) == TUTTI_STRING);
        tutti_tensor_release(parts[0]);
        tutti_tensor_release(parts[1]);
    }
}

static void find_variable(tutti_state *state, const char *name, tutti_dtype dtype)
{
    tutti_type type = {.dtype = dtype, .rank = 1, .dims = {2}};
    tutti_state_variable *variable;
    tutti_piece *piece;
    if (went_well(tutti__state_variable(state, name, &type, NULL, false, &variable)))
        went_well(tutti__state_piece(state, variable, "cpu:0", tutti__host_memory(), &piece));
}

static void find_all(tutti_state *state, const char *queue, const char *variable,
                     const char *strings)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[8] = {queue[0], (char)('0' + i)};
        find_queue(state, name, kinds[i]);
    }
    find_variable(state, variable, TUTTI_F32);
    find_variable(state, strings, TUTTI_STRING);
}

static void restore(const tutti_safetensors *file)
{
    tutti_state *state;
    tutti_snapshot snapshot;
    promise(tutti__state_create(&state) == TUTTI_OK);
    find_all(state, "q", "w", "s");
    went_well(tutti__checkpoint_restore(file, state));
    find_all(state, "r", "v", "t");
    if (went_well(tutti__snapshot_take(state, &snapshot)))
        tutti__snapshot_release(&snapshot);
    tutti__state_destroy(state);
}

static void read_file(const uint8_t *data, size_t size)
{
    tutti_source *source = source_of(data, size);
    tutti_safetensors *file;
    if (went_well(tutti__safetensors_read(source, &file))) {
        restore(file);
        tutti__safetensors_close(file);
    }
    tutti__source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 && data[0] == '{' ? memchr(data, '\n', size) : NULL;
    if (!end) {
        read_file(data, size);
        return 0;
    }
    size_t header = (size_t)(end - data);
    uint8_t *made = malloc(size + 7);
    promise(made != NULL);
    tutti__put_u64(made, header);
    memcpy(made + 8, data, header);
    memcpy(made + 8 + header, end + 1, size - header - 1);
    read_file(made, size + 7);
    free(made);
    return 0;
}
