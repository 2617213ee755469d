/* worker_variables.c: variables, made shard by shard on their servers. */
#include "service/store/worker_inside.h"

#include "service/store/rule.h"

static void piece_name(const worker_variable *v, size_t i, char *text, size_t size)
{
    if (v->pieces.count > 1)
        snprintf(text, size, "%.150s/part_%zu", v->name, i);
    else
        snprintf(text, size, "%.150s", v->name);
}

/* The type of shard i as its server knows it. */
static tutti_type piece_type(const worker_variable *v, size_t i)
{
    return v->hashed ? v->type : tutti__store_partition_type(&v->type, &v->partition, (int64_t)i);
}

/* Bytes for placement: of keys without bound nobody knows them. */
static int64_t piece_bytes(const tutti_type *type)
{
    int64_t bytes, count = tutti_type_count(type);
    return count >= 0 && tutti__mul_size(count, (int64_t)tutti_dtype_size(type->dtype), &bytes)
               ? bytes
               : 0;
}

static tutti_status variable_place(tutti_store_worker *w, const tutti_store_variable_spec *spec,
                                   worker_variable *v)
{
    int64_t count;
    v->type = spec->type;
    v->hashed = spec->type.rank > 0 && spec->type.dims[0] == TUTTI_ANY;
    v->partition = (tutti_store_partition){0, 1};
    v->name = strdup(spec->name);
    if (!v->name)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", spec->name);
    if (!v->hashed)
        TUTTI_TRY(tutti__store_partition_parse(spec->partitioner ? spec->partitioner : "", &v->type,
                                               &v->partition));
    count = v->hashed ? (spec->pieces > 0 ? spec->pieces : 1) : v->partition.pieces;
    for (int64_t i = 0; i < count; i++)
        if (!TUTTI_VEC_PUSH(&v->pieces, ((worker_piece){.id = w->shards + (uint32_t)i})))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the shards of '%s'", spec->name);
    for (size_t i = 0; i < v->pieces.count; i++) {
        char name[TUTTI_STORE_TEXT];
        tutti_type type = piece_type(v, i);
        int slot;
        piece_name(v, i, name, sizeof name);
        TUTTI_TRY(tutti__store_placement_next(w->placement, name, piece_bytes(&type), &slot));
        v->pieces.data[i].slot = (uint32_t)slot;
    }
    w->shards += (uint32_t)count;
    return TUTTI_OK;
}

static void copy_word(char word[TUTTI_STORE_WORD], const char *text, const char *fallback)
{
    snprintf(word, TUTTI_STORE_WORD, "%s", text ? text : fallback);
}

static tutti_status create_piece(worker_batch *b, worker_variable *v, size_t i,
                                 const tutti_store_variable_spec *spec, tutti_tensor *value)
{
    tutti_type type = piece_type(v, i);
    tutti_store_message m = {.type = TUTTI_STORE_CREATE, .dtype = type.dtype};
    worker_request r = {.variable = v, .piece = &v->pieces.data[i]};
    void *graph = NULL;
    size_t size = 0;
    piece_name(v, i, m.text, sizeof m.text);
    copy_word(m.consistency, spec->consistency, "async");
    copy_word(m.nan, spec->nan, "");
    copy_word(m.rate, spec->rate, "");
    copy_word(m.rule, spec->rule, "graph");
    copy_word(m.initial, spec->initial, "");
    if (value) {
        TUTTI_TRY(tutti__store_worker_cut(v, value, i, &r.holds));
        m.data = tutti__store_worker_elements(r.holds);
    }
    tutti_type built = type;
    if (strcmp(m.rule, "hashed") == 0 && type.rank > 0)
        built.dims[0] = TUTTI_STORE_BLOCK_ROWS;
    tutti_status status =
        spec->build ? spec->build(spec->context, &built, &graph, &size) : TUTTI_OK;
    size_t dims = 8 * (size_t)type.rank;
    r.rows = status == TUTTI_OK ? malloc(dims + size + 1) : NULL;
    if (!r.rows) {
        tutti_tensor_release(r.holds);
        free(graph);
        return status != TUTTI_OK ? status
                                  : tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", v->name);
    }
    for (int d = 0; d < type.rank; d++)
        tutti__packed_put((uint64_t)type.dims[d], 8, r.rows + 8 * d);
    if (size > 0)
        memcpy(r.rows + dims, graph, size);
    free(graph);
    m.rows = (tutti_packed_data){r.rows, dims};
    m.graph = (tutti_packed_data){r.rows + dims, size};
    return tutti__store_worker_ask(b->worker, b, r, &m);
}

tutti_status tutti__store_worker_variable(tutti_store_worker *w,
                                          const tutti_store_variable_spec *spec,
                                          tutti_tensor *value, int *ret_variable)
{
    worker_variable *v = calloc(1, sizeof *v);
    worker_batch b;
    tutti_status status = v ? variable_place(w, spec, v)
                            : tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", spec->name);
    if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&w->variables, v))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", spec->name);
    if (status != TUTTI_OK) {
        tutti__store_worker_variable_free(v);
        return status;
    }
    status = tutti__store_worker_begin(&b, w);
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++)
        status = create_piece(&b, v, i, spec, value);
    status = tutti__store_worker_end(&b, tutti__store_worker_wait(&b, status));
    if (status == TUTTI_OK)
        *ret_variable = (int)w->variables.count - 1;
    return status;
}

int tutti__store_worker_shards(const tutti_store_worker *worker, int index)
{
    return (int)worker->variables.data[index]->pieces.count;
}
