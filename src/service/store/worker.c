/* worker.c: see worker.h. A call makes one request for each shard, then waits for all of them. */
#include "service/store/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/store/rule.h"

/* A shard as this worker last heard of it. */
typedef struct piece {
    uint32_t id, slot;
    uint64_t clock, version;
} piece;

typedef struct variable {
    char *name;
    tutti_type type;
    tutti_store_partition partition;
    bool hashed; /* keys without bound: a piece by the key's hash */
    TUTTI_VEC(piece) pieces;
} variable;

struct tutti_store_worker {
    tutti_store_client *client;
    tutti_store_drive drive;
    tutti_store_placement *placement;
    TUTTI_VEC(variable *) variables;
    uint32_t shards;
    uint64_t txns;
    uint64_t closure, closure_end; /* the next key of a closure; none where they are equal */
    bool in_closure;
};

/* One call: requests under way, and the first refusal. */
typedef struct batch {
    tutti_store_worker *worker;
    int open, late;
    bool done, again; /* again: what was to be read is no longer kept */
    tutti_error error;
    uint64_t number; /* of the last atomic push, with `streams` */
    uint64_t *streams;
    size_t stream_count;
} batch;

/* One request, from malloc, freed when it is answered. */
typedef struct request {
    batch *batch;
    variable *variable;
    piece *piece;
    bool counts;         /* a push by this worker's step */
    tutti_tensor *holds; /* what the message points into */
    uint8_t *rows;       /* the same */
    tutti_tensor *into;  /* of a pull: borrowed */
    int64_t begin;       /* where along the axis */
    int64_t *places;     /* of rows: each one's place in `into`, or NULL */
    size_t place_count;
} request;

static void request_free(request *r)
{
    tutti_tensor_release(r->holds);
    free(r->rows);
    free(r->places);
    free(r);
}

static size_t row_bytes(const tutti_type *type)
{
    size_t bytes = tutti_dtype_size(type->dtype);
    for (int i = 1; i < type->rank; i++)
        bytes *= (size_t)type->dims[i];
    return bytes;
}

/* What was pulled goes where it belongs. */
static tutti_status put_pulled(request *r, const tutti_store_message *answer)
{
    const tutti_type *type = &r->variable->type;
    tutti_tensor *part = NULL, *view = NULL;
    size_t size = row_bytes(type);
    if (r->places) {
        if (answer->data.size != r->place_count * size)
            return tutti_fail(TUTTI_CORRUPT, "variable '%s': a server sent %zu bytes for %zu rows",
                              r->variable->name, answer->data.size, r->place_count);
        for (size_t i = 0; i < r->place_count; i++)
            memcpy((char *)tutti_tensor_data(r->into) + (size_t)r->places[i] * size,
                   answer->data.bytes + i * size, size);
        return TUTTI_OK;
    }
    size_t index = (size_t)(r->piece - r->variable->pieces.data);
    tutti_type shape = tutti__store_partition_type(type, &r->variable->partition, (int64_t)index);
    if (answer->data.size != (size_t)tutti_type_count(&shape) * tutti_dtype_size(shape.dtype))
        return tutti_fail(TUTTI_CORRUPT, "variable '%s': a server sent %zu bytes of shard %zu",
                          r->variable->name, answer->data.size, index);
    TUTTI_TRY(tutti_tensor_from(shape.dtype, shape.rank, shape.dims, answer->data.bytes, &part));
    tutti_status status =
        shape.rank == 0 ? (view = tutti_tensor_retain(r->into), TUTTI_OK)
                        : tutti_tensor_slice(r->into, r->variable->partition.axis, r->begin,
                                             shape.dims[r->variable->partition.axis], 1, &view);
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(view, part);
    tutti_tensor_release(part);
    tutti_tensor_release(view);
    return status;
}

static tutti_status refused(const request *r, const tutti_store_message *answer)
{
    static const tutti_status statuses[TUTTI_STORE_REASONS] = {
        [TUTTI_STORE_LOST] = TUTTI_CLOSED,       [TUTTI_STORE_FENCED] = TUTTI_CLOSED,
        [TUTTI_STORE_UNKNOWN] = TUTTI_NOT_FOUND, [TUTTI_STORE_FUTURE] = TUTTI_OUT_OF_RANGE,
        [TUTTI_STORE_FULL] = TUTTI_TOO_LARGE,    [TUTTI_STORE_NO_CLOCK] = TUTTI_UNSUPPORTED};
    tutti_status status = statuses[answer->reason] ? statuses[answer->reason] : TUTTI_INVALID;
    return tutti_fail(status, "variable '%s': %s", r->variable ? r->variable->name : "",
                      answer->text);
}

static void note_outcome(request *r, const tutti_store_message *answer)
{
    if (r->counts) {
        uint64_t own = r->piece->clock + 1;
        r->piece->clock = own > answer->clock ? own : answer->clock;
    }
    r->batch->late += answer->verdict == TUTTI_STORE_LATE;
}

static void keep_number(batch *b, const tutti_store_message *answer)
{
    size_t count = tutti__store_row_count(answer);
    b->number = answer->version + 1;
    b->streams = calloc(count + 1, sizeof *b->streams);
    b->stream_count = b->streams ? count : 0;
    for (size_t i = 0; i < b->stream_count; i++)
        b->streams[i] = (uint64_t)tutti__store_row(answer, i);
}

static void request_done(void *context, const tutti_store_message *answer)
{
    request *r = context;
    batch *b = r->batch;
    tutti_status status = TUTTI_OK;
    if (answer->type == TUTTI_STORE_REFUSED && answer->reason == TUTTI_STORE_GONE) {
        b->again = true;
    } else if (answer->type == TUTTI_STORE_REFUSED) {
        status = refused(r, answer);
    } else if (answer->type == TUTTI_STORE_NUMBERED) {
        keep_number(b, answer);
    } else if (answer->type == TUTTI_STORE_PULLED) {
        status = put_pulled(r, answer);
        r->piece->version = answer->version;
        if (answer->clock > r->piece->clock)
            r->piece->clock = answer->clock;
    } else if (answer->type == TUTTI_STORE_PUSHED || answer->type == TUTTI_STORE_PREPARED) {
        note_outcome(r, answer);
    } else if (answer->type == TUTTI_STORE_CREATED) {
        r->piece->version = answer->version;
    }
    if (status != TUTTI_OK && b->error.status == TUTTI_OK)
        tutti__error_capture(status, &b->error);
    b->done = --b->open == 0;
    request_free(r);
}

/* Sends a request, which takes `made` over in every case. */
static tutti_status ask(batch *b, request made, tutti_store_message *message)
{
    tutti_store_worker *w = b->worker;
    request *r = malloc(sizeof *r);
    if (!r) {
        tutti_tensor_release(made.holds);
        free(made.rows);
        free(made.places);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a request to a parameter server");
    }
    *r = made;
    r->batch = b;
    message->slot = made.piece ? made.piece->slot : 0;
    message->shard = made.piece ? made.piece->id : 0;
    b->open++;
    b->done = false;
    tutti_status status = tutti__store_client_call(w->client, message, request_done, r,
                                                   w->drive.now(w->drive.context));
    if (status != TUTTI_OK) {
        b->open--;
        request_free(r);
    }
    return status;
}

static void batch_begin(batch *b, tutti_store_worker *w)
{
    *b = (batch){.worker = w, .done = true};
    w->drive.enter(w->drive.context);
}

/* Waits for what was asked. When that fails, answers that are still to come find nobody. */
static tutti_status batch_wait(batch *b, tutti_status asked)
{
    tutti_store_worker *w = b->worker;
    tutti_status status = b->done ? TUTTI_OK : w->drive.wait(w->drive.context, &b->done);
    for (size_t i = w->client->calls.count; status != TUTTI_OK && i-- > 0;) {
        request *r = w->client->calls.data[i].context;
        if (r->batch == b) {
            request_free(r);
            w->client->calls.count--;
            memmove(&w->client->calls.data[i], &w->client->calls.data[i + 1],
                    (w->client->calls.count - i) * sizeof *w->client->calls.data);
        }
    }
    if (asked != TUTTI_OK)
        return asked;
    if (status == TUTTI_OK && b->error.status != TUTTI_OK)
        return tutti__error_restore(&b->error);
    return status;
}

static tutti_status batch_end(batch *b, tutti_status status)
{
    free(b->streams);
    b->worker->drive.leave(b->worker->drive.context);
    return status;
}

/* ---- variables ---- */

tutti_status tutti__store_worker_open(tutti_store_client *client, const tutti_store_drive *drive,
                                      tutti_store_placement *placement,
                                      tutti_store_worker **ret_worker)
{
    tutti_store_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a worker of parameter servers");
    worker->client = client;
    worker->drive = *drive;
    worker->placement = placement;
    *ret_worker = worker;
    return TUTTI_OK;
}

static void variable_free(variable *v)
{
    if (!v)
        return;
    free(v->name);
    TUTTI_VEC_FREE(&v->pieces);
    free(v);
}

void tutti__store_worker_close(tutti_store_worker *worker)
{
    if (!worker)
        return;
    for (size_t i = 0; i < worker->variables.count; i++)
        variable_free(worker->variables.data[i]);
    TUTTI_VEC_FREE(&worker->variables);
    free(worker);
}

static void piece_name(const variable *v, size_t i, char *text, size_t size)
{
    if (v->pieces.count > 1)
        snprintf(text, size, "%.150s/part_%zu", v->name, i);
    else
        snprintf(text, size, "%.150s", v->name);
}

/* The type of shard i as its server knows it. */
static tutti_type piece_type(const variable *v, size_t i)
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
                                   variable *v)
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
        if (!TUTTI_VEC_PUSH(&v->pieces, ((piece){.id = w->shards + (uint32_t)i})))
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

/* A contiguous part of a tensor, for shard i. */
static tutti_status cut(const variable *v, tutti_tensor *whole, size_t i, tutti_tensor **ret)
{
    tutti_tensor *view = NULL;
    if (v->partition.pieces == 1)
        return tutti_tensor_contiguous(whole, ret);
    int64_t begin = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i);
    int64_t end = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i + 1);
    TUTTI_TRY(tutti_tensor_slice(whole, v->partition.axis, begin, end - begin, 1, &view));
    tutti_status status = tutti_tensor_contiguous(view, ret);
    tutti_tensor_release(view);
    return status;
}

static tutti_packed_data elements_of(const tutti_tensor *tensor)
{
    return (tutti_packed_data){tutti_tensor_data(tensor),
                               (size_t)tutti_tensor_count(tensor) *
                                   tutti_dtype_size(tutti_tensor_dtype(tensor))};
}

static void copy_word(char word[TUTTI_STORE_WORD], const char *text, const char *fallback)
{
    snprintf(word, TUTTI_STORE_WORD, "%s", text ? text : fallback);
}

static tutti_status create_piece(batch *b, variable *v, size_t i,
                                 const tutti_store_variable_spec *spec, tutti_tensor *value)
{
    tutti_type type = piece_type(v, i);
    tutti_store_message m = {.type = TUTTI_STORE_CREATE, .dtype = type.dtype};
    request r = {.variable = v, .piece = &v->pieces.data[i]};
    void *graph = NULL;
    size_t size = 0;
    piece_name(v, i, m.text, sizeof m.text);
    copy_word(m.consistency, spec->consistency, "async");
    copy_word(m.nan, spec->nan, "");
    copy_word(m.rate, spec->rate, "");
    copy_word(m.rule, spec->rule, "graph");
    copy_word(m.initial, spec->initial, "");
    if (value) {
        TUTTI_TRY(cut(v, value, i, &r.holds));
        m.data = elements_of(r.holds);
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
    return ask(b, r, &m);
}

tutti_status tutti__store_worker_variable(tutti_store_worker *w,
                                          const tutti_store_variable_spec *spec,
                                          tutti_tensor *value, int *ret_variable)
{
    variable *v = calloc(1, sizeof *v);
    batch b;
    tutti_status status = v ? variable_place(w, spec, v)
                            : tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", spec->name);
    if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&w->variables, v))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", spec->name);
    if (status != TUTTI_OK) {
        variable_free(v);
        return status;
    }
    batch_begin(&b, w);
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++)
        status = create_piece(&b, v, i, spec, value);
    status = batch_end(&b, batch_wait(&b, status));
    if (status == TUTTI_OK)
        *ret_variable = (int)w->variables.count - 1;
    return status;
}

int tutti__store_worker_shards(const tutti_store_worker *worker, int index)
{
    return (int)worker->variables.data[index]->pieces.count;
}

/* ---- pulling ---- */

static tutti_status pull_piece(batch *b, variable *v, size_t i, tutti_tensor *into)
{
    piece *p = &v->pieces.data[i];
    tutti_store_message m = {.type = TUTTI_STORE_PULL,
                             .form = TUTTI_STORE_DENSE,
                             .clock = p->clock,
                             .number = b->number,
                             .after = p->slot < b->stream_count ? b->streams[p->slot] : 0};
    request r = {.variable = v,
                 .piece = p,
                 .into = into,
                 .begin = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i)};
    return ask(b, r, &m);
}

/* Once; *ret_again: what one server had is no longer kept. */
static tutti_status pull_once(tutti_store_worker *w, int count, const int *variables, bool atomic,
                              tutti_tensor **values, bool *ret_again)
{
    batch b;
    tutti_status status = TUTTI_OK;
    batch_begin(&b, w);
    if (atomic) {
        tutti_store_message m = {.type = TUTTI_STORE_NUMBER};
        status = batch_wait(&b, ask(&b, (request){0}, &m));
    }
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        variable *v = w->variables.data[variables[i]];
        for (size_t s = 0; status == TUTTI_OK && s < v->pieces.count; s++)
            status = pull_piece(&b, v, s, values[i]);
    }
    status = batch_end(&b, batch_wait(&b, status));
    *ret_again = b.again;
    return status;
}

tutti_status tutti__store_worker_pull(tutti_store_worker *w, int count, const int *variables,
                                      bool atomic, tutti_tensor **ret_values)
{
    tutti_tensor **values = calloc((size_t)count + 1, sizeof *values);
    tutti_status status =
        values ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for %d variables", count);
    bool again = true;
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        const tutti_type *type = &w->variables.data[variables[i]]->type;
        status = tutti_type_is_static(type)
                     ? tutti_tensor_create(type->dtype, type->rank, type->dims, &values[i])
                     : tutti_fail(TUTTI_INVALID, "variable '%s' has keys without bound: pull rows",
                                  w->variables.data[variables[i]]->name);
    }
    while (status == TUTTI_OK && again)
        status = pull_once(w, count, variables, atomic, values, &again);
    for (int i = 0; values && i < count; i++) {
        if (status == TUTTI_OK)
            ret_values[i] = values[i];
        else
            tutti_tensor_release(values[i]);
    }
    free(values);
    return status;
}

/* ---- pushing ---- */

/* `closure` 0: by this worker's step. txn 0: not atomic. */
typedef struct push_kind {
    uint64_t closure, txn;
} push_kind;

static tutti_status push_piece(batch *b, variable *v, size_t i, tutti_tensor *gradient,
                               push_kind kind)
{
    piece *p = &v->pieces.data[i];
    bool closure = kind.closure != 0;
    tutti_store_message m = {.type = kind.txn ? TUTTI_STORE_PREPARE : TUTTI_STORE_PUSH,
                             .form = gradient ? TUTTI_STORE_DENSE : TUTTI_STORE_NOTHING,
                             .step = closure ? kind.closure : p->clock,
                             .version = p->version,
                             .number = kind.txn,
                             .factor = 1};
    request r = {.variable = v, .piece = p, .counts = !closure};
    if (gradient) {
        TUTTI_TRY(cut(v, gradient, i, &r.holds));
        m.data = elements_of(r.holds);
    }
    return ask(b, r, &m);
}

static tutti_status check_gradient(const variable *v, tutti_tensor *gradient)
{
    char is[TUTTI_TYPE_TEXT], given[TUTTI_TYPE_TEXT];
    if (!gradient || tutti_type_equal(tutti_tensor_type(gradient), &v->type))
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "variable '%s' is %s, its gradient %s", v->name,
                      tutti_type_text(&v->type, is),
                      tutti_type_text(tutti_tensor_type(gradient), given));
}

/* Everything is prepared: committed at slot 0, named by the slots that have a part of it. */
static tutti_status commit(batch *b, int count, const int *variables, uint64_t txn)
{
    tutti_store_worker *w = b->worker;
    size_t slots = w->client->view.slot_count, named = 0;
    bool *has = calloc(slots + 1, sizeof *has);
    request r = {.rows = malloc(8 * slots + 1)};
    for (int i = 0; has && i < count; i++) {
        const variable *v = w->variables.data[variables[i]];
        for (size_t s = 0; s < v->pieces.count; s++)
            if (v->pieces.data[s].slot < slots)
                has[v->pieces.data[s].slot] = true;
    }
    for (size_t s = 0; has && r.rows && s < slots; s++)
        if (has[s])
            tutti__packed_put(s, 8, r.rows + 8 * named++);
    bool good = has && r.rows;
    free(has);
    if (!good) {
        free(r.rows);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an atomic push");
    }
    tutti_store_message m = {
        .type = TUTTI_STORE_COMMIT, .number = txn, .rows = {r.rows, 8 * named}};
    return ask(b, r, &m);
}

static tutti_status push_all(tutti_store_worker *w, push_kind kind, int count, const int *variables,
                             tutti_tensor *const *gradients, int *ret_late)
{
    batch b;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < count; i++)
        TUTTI_TRY(check_gradient(w->variables.data[variables[i]], gradients[i]));
    batch_begin(&b, w);
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        variable *v = w->variables.data[variables[i]];
        for (size_t s = 0; status == TUTTI_OK && s < v->pieces.count; s++)
            status = push_piece(&b, v, s, gradients[i], kind);
    }
    status = batch_wait(&b, status);
    if (status == TUTTI_OK && kind.txn)
        status = batch_wait(&b, commit(&b, count, variables, kind.txn));
    if (status == TUTTI_OK && ret_late)
        *ret_late = b.late;
    return batch_end(&b, status);
}

void tutti__store_worker_begin_closure(tutti_store_worker *w, uint64_t first_key, uint64_t keys)
{
    w->closure = first_key;
    w->closure_end = first_key + keys;
    w->in_closure = true;
}

void tutti__store_worker_end_closure(tutti_store_worker *w)
{
    w->in_closure = false;
}

/* By what the next push goes. */
static tutti_status next_kind(tutti_store_worker *w, bool atomic, push_kind *ret)
{
    *ret = (push_kind){.txn = atomic ? ++w->txns : 0};
    if (!w->in_closure)
        return TUTTI_OK;
    if (w->closure == w->closure_end)
        return tutti_fail(TUTTI_INVALID,
                          "this closure pushes more often than it was scheduled for; schedule it "
                          "with .pushes as large as it needs");
    ret->closure = w->closure++ | TUTTI_STORE_CLOSURE;
    return TUTTI_OK;
}

tutti_status tutti__store_worker_push(tutti_store_worker *w, int count, const int *variables,
                                      tutti_tensor *const *gradients, bool atomic, int *ret_late)
{
    push_kind kind;
    TUTTI_TRY(next_kind(w, atomic, &kind));
    return push_all(w, kind, count, variables, gradients, ret_late);
}

tutti_status tutti__store_worker_push_closure(tutti_store_worker *w, uint64_t closure, int count,
                                              const int *variables, tutti_tensor *const *gradients)
{
    push_kind kind = {.closure = closure | TUTTI_STORE_CLOSURE};
    return push_all(w, kind, count, variables, gradients, NULL);
}

/* ---- rows ---- */

static size_t piece_of_row(const variable *v, int64_t row)
{
    if (v->hashed)
        return (size_t)(tutti__hash_mix(0x7475747469, (uint64_t)row) % v->pieces.count);
    return (size_t)tutti__store_partition_piece_of(&v->type, &v->partition, row);
}

static tutti_status check_rows(const variable *v, tutti_tensor *rows, tutti_tensor *gradient)
{
    char text[TUTTI_TYPE_TEXT];
    if (v->type.rank < 1 || v->partition.axis != 0)
        return tutti_fail(TUTTI_INVALID, "variable '%s' is %s%s: it has no rows to pull or push",
                          v->name, tutti_type_text(&v->type, text),
                          v->partition.axis != 0 ? ", cut along another axis than its rows'" : "");
    if (tutti_tensor_dtype(rows) != TUTTI_I64 || tutti_tensor_rank(rows) != 1)
        return tutti_fail(TUTTI_INVALID, "variable '%s': rows are i64 [n], not %s", v->name,
                          tutti_type_text(tutti_tensor_type(rows), text));
    for (int64_t i = 0; i < tutti_tensor_count(rows); i++) {
        int64_t row = tutti_tensor_get_int(rows, i);
        if (row < 0 || (!v->hashed && row >= v->type.dims[0]))
            return tutti_fail(TUTTI_OUT_OF_RANGE, "variable '%s' is %s and has no row %" PRId64,
                              v->name, tutti_type_text(&v->type, text), row);
    }
    tutti_type wanted = v->type;
    wanted.dims[0] = tutti_tensor_count(rows);
    if (gradient && !tutti_type_equal(tutti_tensor_type(gradient), &wanted))
        return tutti_fail(TUTTI_INVALID, "variable '%s': the gradient of %" PRId64 " rows is %s",
                          v->name, tutti_tensor_count(rows),
                          tutti_type_text(tutti_tensor_type(gradient), text));
    return TUTTI_OK;
}

/* The rows of shard i: their numbers there, and their places in the call. */
static tutti_status rows_of_piece(const variable *v, size_t i, tutti_tensor *rows, request *r)
{
    int64_t count = tutti_tensor_count(rows);
    int64_t begin =
        v->hashed ? 0 : tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i);
    r->rows = malloc(8 * (size_t)count + 1);
    r->places = malloc(8 * (size_t)count + 1);
    if (!r->rows || !r->places) {
        free(r->rows);
        free(r->places);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %" PRId64 " rows", count);
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t row = tutti_tensor_get_int(rows, at);
        if (piece_of_row(v, row) != i)
            continue;
        tutti__packed_put((uint64_t)(row - begin), 8, r->rows + 8 * r->place_count);
        r->places[r->place_count++] = at;
    }
    return TUTTI_OK;
}

static tutti_status pull_rows_piece(batch *b, variable *v, size_t i, tutti_tensor *rows,
                                    tutti_tensor *into)
{
    request r = {.variable = v, .piece = &v->pieces.data[i], .into = into};
    TUTTI_TRY(rows_of_piece(v, i, rows, &r));
    tutti_store_message m = {.type = TUTTI_STORE_PULL,
                             .form = TUTTI_STORE_ROWS,
                             .clock = r.piece->clock,
                             .rows = {r.rows, 8 * r.place_count}};
    return ask(b, r, &m);
}

tutti_status tutti__store_worker_pull_rows(tutti_store_worker *w, int index, tutti_tensor *rows,
                                           tutti_tensor **ret_values)
{
    variable *v = w->variables.data[index];
    tutti_type type = v->type;
    tutti_tensor *values = NULL;
    batch b;
    TUTTI_TRY(check_rows(v, rows, NULL));
    type.dims[0] = tutti_tensor_count(rows);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &values));
    batch_begin(&b, w);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++)
        status = pull_rows_piece(&b, v, i, rows, values);
    status = batch_end(&b, batch_wait(&b, status));
    if (status == TUTTI_OK)
        *ret_values = values;
    else
        tutti_tensor_release(values);
    return status;
}

static tutti_status push_rows_piece(batch *b, variable *v, size_t i, tutti_tensor *rows,
                                    const uint8_t *elements, push_kind kind)
{
    size_t size = row_bytes(&v->type);
    request r = {.variable = v, .piece = &v->pieces.data[i], .counts = kind.closure == 0};
    tutti_type type = v->type;
    TUTTI_TRY(rows_of_piece(v, i, rows, &r));
    type.dims[0] = (int64_t)r.place_count;
    tutti_status status = tutti_tensor_create(type.dtype, type.rank, type.dims, &r.holds);
    if (status != TUTTI_OK) {
        free(r.rows);
        free(r.places);
        return status;
    }
    for (size_t at = 0; at < r.place_count; at++)
        memcpy((char *)tutti_tensor_data(r.holds) + at * size,
               elements + (size_t)r.places[at] * size, size);
    tutti_store_message m = {.type = TUTTI_STORE_PUSH,
                             .form = r.place_count > 0 ? TUTTI_STORE_ROWS : TUTTI_STORE_NOTHING,
                             .step = kind.closure ? kind.closure : r.piece->clock,
                             .version = r.piece->version,
                             .factor = 1,
                             .rows = {r.rows, 8 * r.place_count},
                             .data = {tutti_tensor_data(r.holds), r.place_count * size}};
    return ask(b, r, &m);
}

tutti_status tutti__store_worker_push_rows(tutti_store_worker *w, int index, tutti_tensor *rows,
                                           tutti_tensor *gradient)
{
    variable *v = w->variables.data[index];
    tutti_tensor *flat = NULL;
    batch b;
    push_kind kind;
    TUTTI_TRY(check_rows(v, rows, gradient));
    TUTTI_TRY(next_kind(w, false, &kind));
    TUTTI_TRY(tutti_tensor_contiguous(gradient, &flat));
    batch_begin(&b, w);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++)
        status = push_rows_piece(&b, v, i, rows, tutti_tensor_data(flat), kind);
    status = batch_end(&b, batch_wait(&b, status));
    tutti_tensor_release(flat);
    return status;
}
