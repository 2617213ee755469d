/* worker.c: see worker.h. A call makes one request for each shard, then waits for all of them. */
#include "service/store/worker_inside.h"

static void request_free(worker_request *r)
{
    tutti_tensor_release(r->holds);
    free(r->rows);
    free(r->places);
    free(r);
}

size_t tutti__store_worker_row_bytes(const tutti_type *type)
{
    size_t bytes = tutti_dtype_size(type->dtype);
    for (int i = 1; i < type->rank; i++)
        bytes *= (size_t)type->dims[i];
    return bytes;
}

/* What was pulled goes where it belongs. */
static tutti_status put_pulled(worker_request *r, const tutti_store_message *answer)
{
    const tutti_type *type = &r->variable->type;
    tutti_tensor *part = NULL, *view = NULL;
    size_t size = tutti__store_worker_row_bytes(type);
    int axis = r->variable->partition.axis;
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
    if (axis == 0) { /* rows follow each other */
        if (answer->data.size > 0)
            memcpy((char *)tutti_tensor_data(r->into) + (size_t)r->begin * size, answer->data.bytes,
                   answer->data.size);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_tensor_from(shape.dtype, shape.rank, shape.dims, answer->data.bytes, &part));
    tutti_status status = tutti_tensor_slice(r->into, axis, r->begin, shape.dims[axis], 1, &view);
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(view, part);
    tutti_tensor_release(part);
    tutti_tensor_release(view);
    return status;
}

static tutti_status refused(const worker_request *r, const tutti_store_message *answer)
{
    static const tutti_status statuses[TUTTI_STORE_REASONS] = {
        [TUTTI_STORE_LOST] = TUTTI_CLOSED,       [TUTTI_STORE_FENCED] = TUTTI_CLOSED,
        [TUTTI_STORE_UNKNOWN] = TUTTI_NOT_FOUND, [TUTTI_STORE_FUTURE] = TUTTI_OUT_OF_RANGE,
        [TUTTI_STORE_FULL] = TUTTI_TOO_LARGE,    [TUTTI_STORE_NO_CLOCK] = TUTTI_UNSUPPORTED};
    tutti_status status = statuses[answer->reason] ? statuses[answer->reason] : TUTTI_INVALID;
    return tutti_fail(status, "variable '%s': %s", r->variable ? r->variable->name : "",
                      answer->text);
}

static void note_outcome(worker_request *r, const tutti_store_message *answer)
{
    uint64_t next = r->step + 1 > answer->clock ? r->step + 1 : answer->clock;
    if (r->counts && next > r->piece->clock)
        r->piece->clock = next;
    if (r->batch)
        r->batch->late += answer->verdict == TUTTI_STORE_LATE;
    else
        r->worker->late += answer->verdict == TUTTI_STORE_LATE;
}

static void keep_number(worker_batch *b, const tutti_store_message *answer)
{
    size_t count = tutti__store_row_count(answer);
    b->number = answer->version + 1;
    b->streams = calloc(count + 1, sizeof *b->streams);
    b->stream_count = b->streams ? count : 0;
    for (size_t i = 0; i < b->stream_count; i++)
        b->streams[i] = (uint64_t)tutti__store_row(answer, i);
}

/* What an answer means; for whom, says the request. */
static tutti_status take_answer(worker_request *r, const tutti_store_message *answer)
{
    if (answer->type == TUTTI_STORE_REFUSED && answer->reason == TUTTI_STORE_GONE) {
        r->batch->again = true;
    } else if (answer->type == TUTTI_STORE_REFUSED) {
        return refused(r, answer);
    } else if (answer->type == TUTTI_STORE_NUMBERED) {
        keep_number(r->batch, answer);
    } else if (answer->type == TUTTI_STORE_PULLED) {
        r->piece->version = answer->version;
        if (answer->clock > r->piece->clock)
            r->piece->clock = answer->clock;
        return put_pulled(r, answer);
    } else if (answer->type == TUTTI_STORE_PUSHED || answer->type == TUTTI_STORE_PREPARED) {
        note_outcome(r, answer);
    } else if (answer->type == TUTTI_STORE_GOT) {
        return tutti__store_worker_take_got(r, answer);
    } else if (answer->type == TUTTI_STORE_CREATED) {
        r->piece->version = answer->version;
    }
    return TUTTI_OK;
}

static void request_done(void *context, const tutti_store_message *answer)
{
    worker_request *r = context;
    worker_batch *b = r->batch;
    tutti_error *error = b ? &b->error : &r->worker->error;
    tutti_status status = take_answer(r, answer);
    if (status != TUTTI_OK && error->status == TUTTI_OK)
        tutti__error_capture(status, error);
    if (status != TUTTI_OK && !b && r->worker->waiting)
        *r->worker->waiting = true;
    if (b)
        b->done = --b->open == 0;
    else
        r->worker->settled = --r->worker->open == 0;
    request_free(r);
}

tutti_status tutti__store_worker_ask(tutti_store_worker *w, worker_batch *b, worker_request made,
                                     tutti_store_message *message)
{
    worker_request *r = malloc(sizeof *r);
    int *open = b ? &b->open : &w->open;
    bool *done = b ? &b->done : &w->settled;
    if (!r) {
        tutti_tensor_release(made.holds);
        free(made.rows);
        free(made.places);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a request to a parameter server");
    }
    *r = made;
    r->batch = b;
    r->worker = w;
    r->step = message->step;
    message->slot = made.piece ? made.piece->slot : 0;
    message->shard = made.piece ? made.piece->id : 0;
    ++*open;
    *done = false;
    tutti_status status = tutti__store_client_call(w->client, message, request_done, r,
                                                   w->drive.now(w->drive.context));
    if (status == TUTTI_OK && !b && made.counts) /* the next read is behind it */
        made.piece->clock = message->step + 1;
    if (status != TUTTI_OK) {
        *done = --*open == 0;
        request_free(r);
    }
    return status;
}

tutti_status tutti__store_worker_begin(worker_batch *b, tutti_store_worker *w)
{
    *b = (worker_batch){.worker = w, .done = true};
    w->drive.enter(w->drive.context);
    if (w->error.status == TUTTI_OK)
        return TUTTI_OK;
    tutti_error error = w->error;
    w->error.status = TUTTI_OK;
    return tutti__error_restore(&error);
}

tutti_status tutti__store_worker_wait(worker_batch *b, tutti_status asked)
{
    tutti_store_worker *w = b->worker;
    w->waiting = &b->done;
    tutti_status status = b->done ? TUTTI_OK : w->drive.wait(w->drive.context, &b->done);
    w->waiting = NULL;
    if (status == TUTTI_OK && b->open > 0 && w->error.status != TUTTI_OK) {
        tutti_error error = w->error;
        w->error.status = TUTTI_OK;
        status = tutti__error_restore(&error);
    }
    for (size_t i = w->client->calls.count; status != TUTTI_OK && i-- > 0;) {
        worker_request *r = w->client->calls.data[i].context;
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

tutti_status tutti__store_worker_settle(tutti_store_worker *w)
{
    worker_batch b;
    tutti_status status = tutti__store_worker_begin(&b, w);
    if (status == TUTTI_OK && !w->settled)
        status = w->drive.wait(w->drive.context, &w->settled);
    if (status == TUTTI_OK && w->error.status != TUTTI_OK) {
        tutti_error error = w->error;
        w->error.status = TUTTI_OK;
        status = tutti__error_restore(&error);
    }
    return tutti__store_worker_end(&b, status);
}

int tutti__store_worker_late(const tutti_store_worker *worker)
{
    return worker->late;
}

tutti_status tutti__store_worker_end(worker_batch *b, tutti_status status)
{
    free(b->streams);
    b->worker->drive.leave(b->worker->drive.context);
    return status;
}

tutti_status tutti__store_worker_cut(const worker_variable *v, tutti_tensor *whole, size_t i,
                                     tutti_tensor **ret)
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

tutti_packed_data tutti__store_worker_elements(const tutti_tensor *tensor)
{
    return (tutti_packed_data){tutti_tensor_data(tensor),
                               (size_t)tutti_tensor_count(tensor) *
                                   tutti_dtype_size(tutti_tensor_dtype(tensor))};
}

/* ---- opening ---- */

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
    worker->settled = true;
    worker->txns = worker->puts = (uint64_t)client->options.incarnation
                                  << 32; /* no other process's */
    *ret_worker = worker;
    return TUTTI_OK;
}

void tutti__store_worker_variable_free(worker_variable *v)
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
    for (size_t i = worker->client->calls.count; i-- > 0;)
        if (worker->client->calls.data[i].done == request_done) { /* nobody waits for them */
            request_free(worker->client->calls.data[i].context);
            worker->client->calls.count--;
            memmove(&worker->client->calls.data[i], &worker->client->calls.data[i + 1],
                    (worker->client->calls.count - i) * sizeof *worker->client->calls.data);
        }
    for (size_t i = 0; i < worker->variables.count; i++)
        tutti__store_worker_variable_free(worker->variables.data[i]);
    TUTTI_VEC_FREE(&worker->variables);
    free(worker);
}

/* ---- rows ---- */

static size_t piece_of_row(const worker_variable *v, int64_t row)
{
    if (v->hashed)
        return (size_t)(tutti__hash_mix(0x7475747469, (uint64_t)row) % v->pieces.count);
    return (size_t)tutti__store_partition_piece_of(&v->type, &v->partition, row);
}

tutti_status tutti__store_worker_check_rows(const worker_variable *v, tutti_tensor *rows,
                                            tutti_tensor *gradient)
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

tutti_status tutti__store_worker_rows_of(const worker_variable *v, size_t i, tutti_tensor *rows,
                                         worker_request *r)
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
