/* worker_push.c: gradients of variables, or of rows. */
#include "service/store/worker_inside.h"

/* `closure` 0: by this worker's step. txn 0: not atomic. `heard`: somebody waits for the answer. */
typedef struct push_kind {
    uint64_t closure, txn;
    bool heard;
} push_kind;

static tutti_store_message push_message(const worker_piece *p, push_kind kind, double rate)
{
    return (tutti_store_message){.type = kind.txn ? TUTTI_STORE_PREPARE : TUTTI_STORE_PUSH,
                                 .step = kind.closure ? kind.closure : p->clock,
                                 .version = p->version,
                                 .number = kind.txn,
                                 .factor = 1,
                                 .learning_rate = rate};
}

static tutti_status push_dense(worker_batch *b, worker_variable *v, size_t i,
                               const tutti_store_push *push, push_kind kind)
{
    worker_piece *p = &v->pieces.data[i];
    tutti_store_message m = push_message(p, kind, push->rate);
    worker_request r = {.variable = v, .piece = p, .counts = kind.closure == 0};
    m.form = push->gradient ? TUTTI_STORE_DENSE : TUTTI_STORE_NOTHING;
    if (push->gradient) {
        TUTTI_TRY(tutti__store_worker_cut(v, push->gradient, i, &r.holds));
        m.data = tutti__store_worker_elements(r.holds);
    }
    return tutti__store_worker_ask(b->worker, kind.heard ? b : NULL, r, &m);
}

/* The rows of one shard, one behind the other. */
static tutti_status push_rows(worker_batch *b, worker_variable *v, size_t i,
                              const tutti_store_push *push, push_kind kind)
{
    size_t size = tutti__store_worker_row_bytes(&v->type);
    worker_request r = {.variable = v, .piece = &v->pieces.data[i], .counts = kind.closure == 0};
    tutti_type type = v->type;
    tutti_tensor *flat = NULL;
    TUTTI_TRY(tutti__store_worker_rows_of(v, i, push->rows, &r));
    type.dims[0] = (int64_t)r.place_count;
    tutti_status status = tutti_tensor_contiguous(push->gradient, &flat);
    if (status == TUTTI_OK)
        status = tutti_tensor_create(type.dtype, type.rank, type.dims, &r.holds);
    for (size_t at = 0; status == TUTTI_OK && at < r.place_count; at++)
        memcpy((char *)tutti_tensor_data(r.holds) + at * size,
               (const char *)tutti_tensor_data(flat) + (size_t)r.places[at] * size, size);
    tutti_tensor_release(flat);
    if (status != TUTTI_OK) {
        free(r.rows);
        free(r.places);
        return status;
    }
    tutti_store_message m = push_message(r.piece, kind, push->rate);
    m.form = r.place_count > 0 ? TUTTI_STORE_ROWS : TUTTI_STORE_NOTHING;
    m.rows = (tutti_packed_data){r.rows, 8 * r.place_count};
    m.data = (tutti_packed_data){tutti_tensor_data(r.holds), r.place_count * size};
    return tutti__store_worker_ask(b->worker, kind.heard ? b : NULL, r, &m);
}

static tutti_status check_gradient(const worker_variable *v, tutti_tensor *gradient)
{
    char is[TUTTI_TYPE_TEXT], given[TUTTI_TYPE_TEXT];
    if (!gradient || tutti_type_equal(tutti_tensor_type(gradient), &v->type))
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "variable '%s' is %s, its gradient %s", v->name,
                      tutti_type_text(&v->type, is),
                      tutti_type_text(tutti_tensor_type(gradient), given));
}

/* Everything is prepared: committed at slot 0, named by the slots that have a part of it. */
static tutti_status commit(worker_batch *b, int count, const tutti_store_push *pushes, uint64_t txn)
{
    tutti_store_worker *w = b->worker;
    size_t slots = w->client->view.slot_count, named = 0;
    bool *has = calloc(slots + 1, sizeof *has);
    worker_request r = {.rows = malloc(8 * slots + 1)};
    for (int i = 0; has && i < count; i++) {
        const worker_variable *v = w->variables.data[pushes[i].variable];
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
    return tutti__store_worker_ask(b->worker, b, r, &m);
}

static tutti_status check_push(const worker_variable *v, const tutti_store_push *push)
{
    return push->rows ? tutti__store_worker_check_rows(v, push->rows, push->gradient)
                      : check_gradient(v, push->gradient);
}

static tutti_status push_all(tutti_store_worker *w, push_kind kind, int count,
                             const tutti_store_push *pushes, int *ret_late)
{
    worker_batch b;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < count; i++)
        TUTTI_TRY(check_push(w->variables.data[pushes[i].variable], &pushes[i]));
    status = tutti__store_worker_begin(&b, w);
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        worker_variable *v = w->variables.data[pushes[i].variable];
        for (size_t s = 0; status == TUTTI_OK && s < v->pieces.count; s++)
            status = pushes[i].rows ? push_rows(&b, v, s, &pushes[i], kind)
                                    : push_dense(&b, v, s, &pushes[i], kind);
    }
    status = tutti__store_worker_wait(&b, status);
    if (status == TUTTI_OK && kind.txn)
        status = tutti__store_worker_wait(&b, commit(&b, count, pushes, kind.txn));
    if (status == TUTTI_OK && ret_late)
        *ret_late = b.late;
    return tutti__store_worker_end(&b, status);
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
    *ret = (push_kind){.txn = atomic ? ++w->txns : 0, .heard = true};
    if (!w->in_closure)
        return TUTTI_OK;
    if (w->closure == w->closure_end)
        return tutti_fail(TUTTI_INVALID,
                          "this closure pushes more often than it was scheduled for; schedule it "
                          "with .pushes as large as it needs");
    ret->closure = w->closure++ | TUTTI_STORE_CLOSURE;
    return TUTTI_OK;
}

tutti_status tutti__store_worker_push_each(tutti_store_worker *w, int count,
                                           const tutti_store_push *pushes, bool atomic)
{
    push_kind kind;
    TUTTI_TRY(next_kind(w, atomic, &kind));
    kind.heard = atomic || kind.closure != 0;
    return push_all(w, kind, count, pushes, NULL);
}

static tutti_status push_gradients(tutti_store_worker *w, push_kind kind, int count,
                                   const int *variables, tutti_tensor *const *gradients,
                                   int *ret_late)
{
    tutti_store_push *pushes = calloc((size_t)count + 1, sizeof *pushes);
    if (!pushes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to push %d gradients", count);
    for (int i = 0; i < count; i++)
        pushes[i] =
            (tutti_store_push){.variable = variables[i], .gradient = gradients[i], .rate = 1};
    kind.heard = true;
    tutti_status status = push_all(w, kind, count, pushes, ret_late);
    free(pushes);
    return status;
}

tutti_status tutti__store_worker_push(tutti_store_worker *w, int count, const int *variables,
                                      tutti_tensor *const *gradients, bool atomic, int *ret_late)
{
    push_kind kind;
    TUTTI_TRY(next_kind(w, atomic, &kind));
    return push_gradients(w, kind, count, variables, gradients, ret_late);
}

tutti_status tutti__store_worker_push_closure(tutti_store_worker *w, uint64_t closure, int count,
                                              const int *variables, tutti_tensor *const *gradients)
{
    push_kind kind = {.closure = closure | TUTTI_STORE_CLOSURE};
    return push_gradients(w, kind, count, variables, gradients, NULL);
}

tutti_status tutti__store_worker_push_rows(tutti_store_worker *w, int index, tutti_tensor *rows,
                                           tutti_tensor *gradient)
{
    tutti_store_push push = {.variable = index, .gradient = gradient, .rows = rows, .rate = 1};
    push_kind kind;
    TUTTI_TRY(next_kind(w, false, &kind));
    return push_all(w, kind, 1, &push, NULL);
}
