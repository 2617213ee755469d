/* worker_pull.c: values of variables, or of rows. */
#include "service/store/worker_inside.h"

static tutti_status pull_piece(worker_batch *b, worker_variable *v, size_t i, tutti_tensor *into)
{
    worker_piece *p = &v->pieces.data[i];
    tutti_store_message m = {.type = TUTTI_STORE_PULL,
                             .form = TUTTI_STORE_DENSE,
                             .clock = p->clock,
                             .number = b->number,
                             .after = p->slot < b->stream_count ? b->streams[p->slot] : 0};
    worker_request r = {.variable = v,
                        .piece = p,
                        .into = into,
                        .begin = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i)};
    return tutti__store_worker_ask(b->worker, b, r, &m);
}

/* Once; *ret_again: what one server had is no longer kept. */
static tutti_status pull_once(tutti_store_worker *w, int count, const int *variables, bool atomic,
                              tutti_tensor **values, bool *ret_again)
{
    worker_batch b;
    tutti_status status = tutti__store_worker_begin(&b, w);
    if (atomic && status == TUTTI_OK) {
        tutti_store_message m = {.type = TUTTI_STORE_NUMBER};
        status =
            tutti__store_worker_wait(&b, tutti__store_worker_ask(w, &b, (worker_request){0}, &m));
    }
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        worker_variable *v = w->variables.data[variables[i]];
        for (size_t s = 0; status == TUTTI_OK && s < v->pieces.count; s++)
            status = pull_piece(&b, v, s, values[i]);
    }
    status = tutti__store_worker_end(&b, tutti__store_worker_wait(&b, status));
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

static tutti_status pull_rows_piece(worker_batch *b, worker_variable *v, size_t i,
                                    tutti_tensor *rows, tutti_tensor *into)
{
    worker_request r = {.variable = v, .piece = &v->pieces.data[i], .into = into};
    TUTTI_TRY(tutti__store_worker_rows_of(v, i, rows, &r));
    tutti_store_message m = {.type = TUTTI_STORE_PULL,
                             .form = TUTTI_STORE_ROWS,
                             .clock = r.piece->clock,
                             .rows = {r.rows, 8 * r.place_count}};
    return tutti__store_worker_ask(b->worker, b, r, &m);
}

tutti_status tutti__store_worker_pull_rows(tutti_store_worker *w, int index, tutti_tensor *rows,
                                           tutti_tensor **ret_values)
{
    worker_variable *v = w->variables.data[index];
    tutti_type type = v->type;
    tutti_tensor *values = NULL;
    worker_batch b;
    TUTTI_TRY(tutti__store_worker_check_rows(v, rows, NULL));
    type.dims[0] = tutti_tensor_count(rows);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &values));
    tutti_status status = tutti__store_worker_begin(&b, w);
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++)
        status = pull_rows_piece(&b, v, i, rows, values);
    status = tutti__store_worker_end(&b, tutti__store_worker_wait(&b, status));
    if (status == TUTTI_OK)
        *ret_values = values;
    else
        tutti_tensor_release(values);
    return status;
}
