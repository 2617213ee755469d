/* testing.c: see testing.h. */
#include "service/store/testing.h"

#include <stdlib.h>

/* ---- plain and keys ---- */

typedef struct plain_rule {
    tutti_store_rule rule;
    tutti_tensor *value; /* replaced, never written: readers hold it */
} plain_rule;

extern const tutti_store_rule_kind store_rule_plain, store_rule_keys;

static tutti_status plain_open_as(const tutti_store_rule_kind *kind,
                                  const tutti_store_message *create, const tutti_type *type,
                                  tutti_store_rule **ret)
{
    plain_rule *r = calloc(1, sizeof *r);
    r->rule.kind = kind;
    CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &r->value));
    if (create->data.size > 0)
        memcpy(tutti_tensor_data(r->value), create->data.bytes, create->data.size);
    *ret = &r->rule;
    return TUTTI_OK;
}

static tutti_status plain_open(const tutti_store_message *create, const tutti_type *type,
                               tutti_store_rule **ret)
{
    return plain_open_as(&store_rule_plain, create, type, ret);
}

static tutti_status keys_open(const tutti_store_message *create, const tutti_type *type,
                              tutti_store_rule **ret)
{
    tutti_type none = tutti_type_make(TUTTI_I64, 2, (int64_t[]){0, 3});
    TUTTI_UNUSED(type);
    tutti_store_message empty = *create;
    empty.data.size = 0;
    return plain_open_as(&store_rule_keys, &empty, &none, ret);
}

static tutti_status plain_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    plain_rule *r = (void *)rule;
    const tutti_type *type = tutti_tensor_type(r->value);
    tutti_store_gradient dense = {0};
    const tutti_store_gradient *g = update->gradient;
    tutti_tensor *next = NULL, *gradient = NULL;
    if (g->form == TUTTI_STORE_ROWS) {
        TUTTI_TRY(tutti__store_gradient_dense(type, g, &dense));
        g = &dense;
    }
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, &next));
    TUTTI_TRY(tutti_tensor_from(type->dtype, type->rank, type->dims, g->data, &gradient));
    for (int64_t i = 0; i < tutti_tensor_count(next); i++)
        tutti_tensor_set(next, i,
                         tutti_tensor_get(r->value, i) -
                             update->factor * tutti_tensor_get(gradient, i));
    tutti_tensor_release(gradient);
    tutti_tensor_release(r->value);
    tutti__store_gradient_free(&dense);
    r->value = next;
    return TUTTI_OK;
}

static tutti_status keys_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    plain_rule *r = (void *)rule;
    int64_t before = tutti_tensor_dims(r->value)[0];
    int64_t dims[] = {before + (int64_t)update->count, 3};
    tutti_tensor *next = NULL;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 2, dims, &next));
    int64_t *to = tutti_tensor_data(next);
    memcpy(to, tutti_tensor_data(r->value), (size_t)before * 24);
    for (size_t i = 0; i < update->count; i++) {
        to[3 * ((size_t)before + i)] = (int64_t)update->version;
        to[3 * ((size_t)before + i) + 1] = (int64_t)update->keys[i].step;
        to[3 * ((size_t)before + i) + 2] = update->keys[i].contribution;
    }
    tutti_tensor_release(r->value);
    r->value = next;
    return TUTTI_OK;
}

static tutti_status plain_read(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                               tutti_tensor **ret)
{
    plain_rule *r = (void *)rule;
    TUTTI_UNUSED(rows);
    CHECK(all);
    *ret = tutti_tensor_retain(r->value);
    return TUTTI_OK;
}

static int64_t plain_bytes(const tutti_store_rule *rule)
{
    const plain_rule *r = (const void *)rule;
    return tutti_tensor_count(r->value) * (int64_t)tutti_dtype_size(tutti_tensor_dtype(r->value));
}

static tutti_status plain_save(tutti_store_rule *rule, tutti_text *out)
{
    plain_rule *r = (void *)rule;
    saved_put_bytes(out, tutti_tensor_data(r->value), (size_t)plain_bytes(rule));
    return TUTTI_OK;
}

static tutti_status plain_load(tutti_store_rule *rule, saved_reader *in)
{
    plain_rule *r = (void *)rule;
    tutti_packed_data data = saved_get_bytes(in);
    if (rule->kind == &store_rule_keys) {
        tutti_tensor_release(r->value);
        CHECK_OK(
            tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){(int64_t)data.size / 24, 3}, &r->value));
    }
    if (data.size != (size_t)plain_bytes(rule))
        in->bad = true;
    else if (data.size > 0)
        memcpy(tutti_tensor_data(r->value), data.bytes, data.size);
    return TUTTI_OK;
}

static void plain_close(tutti_store_rule *rule)
{
    plain_rule *r = (void *)rule;
    tutti_tensor_release(r->value);
    free(r);
}

/* Not in the first column: the table is the library's. */
#define RULE(name_, open_, apply_)                                                                 \
    {                                                                                              \
        .name = name_, .open = open_, .apply = apply_, .read = plain_read, .save = plain_save,     \
        .load = plain_load, .bytes = plain_bytes, .close = plain_close                             \
    }
const struct tutti_store_rule_kind store_rule_plain = RULE("plain", plain_open, plain_apply);
const struct tutti_store_rule_kind store_rule_keys = RULE("keys", keys_open, keys_apply);

const tutti_store_rule_kind *tutti__store_testing_rule(const char *name)
{
    return strcmp(name, "plain") == 0  ? &store_rule_plain
           : strcmp(name, "keys") == 0 ? &store_rule_keys
                                       : tutti__store_rule_find(name);
}

/* ---- jobs ---- */

static void worker_open(store_job *job, int w)
{
    tutti_store_drive drive = tutti__store_local_drive(job->local);
    CHECK_OK(tutti__store_worker_open(tutti__store_local_client(job->local, w), &drive,
                                      &job->placement[w], &job->worker[w]));
}

void store_job_open(store_job *job, const tutti_store_local_options *options)
{
    tutti_store_local_options o = *options;
    *job = (store_job){.workers = o.workers};
    if (!o.find)
        o.find = tutti__store_testing_rule;
    CHECK_OK(tutti__store_local_open(&o, &job->local));
    for (int w = 0; w < o.workers; w++) {
        CHECK_OK(tutti__store_placement_create("", NULL, NULL, o.servers, &job->placement[w]));
        worker_open(job, w);
    }
}

void store_job_close(store_job *job)
{
    for (int w = 0; w < job->workers; w++) {
        tutti__store_worker_close(job->worker[w]);
        tutti__store_placement_free(&job->placement[w]);
    }
    tutti__store_local_close(job->local);
}

int store_job_variable(store_job *job, const tutti_store_variable_spec *spec, tutti_tensor *value)
{
    int index = -1;
    for (int w = 0; w < job->workers; w++)
        CHECK_OK(tutti__store_worker_variable(job->worker[w], spec, value, &index));
    return index;
}

void store_job_rejoin(store_job *job, int w, int count,
                      const tutti_store_variable_spec *const *specs)
{
    int index, slots = job->placement[w].slots;
    tutti__store_worker_close(job->worker[w]);
    tutti__store_placement_free(&job->placement[w]);
    CHECK_OK(tutti__store_placement_create("", NULL, NULL, slots, &job->placement[w]));
    CHECK_OK(tutti__store_local_join_worker(job->local, w));
    worker_open(job, w);
    for (int i = 0; i < count; i++)
        CHECK_OK(tutti__store_worker_variable(job->worker[w], specs[i], NULL, &index));
}

tutti_tensor *store_vector(tutti_dtype dtype, int64_t count, const double *values)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(dtype, 1, &count, &tensor));
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tensor;
}

double store_get(store_job *job, int worker, int variable, int64_t element)
{
    tutti_tensor *value = NULL;
    CHECK_OK(tutti__store_worker_pull(job->worker[worker], 1, &variable, false, &value));
    double number = tutti_tensor_get(value, element);
    tutti_tensor_release(value);
    return number;
}

tutti_status store_push(store_job *job, int worker, int variable, double gradient)
{
    tutti_tensor *one = store_vector(TUTTI_F64, 1, &gradient);
    tutti_status status =
        tutti__store_worker_push(job->worker[worker], 1, &variable, &one, false, NULL);
    tutti_tensor_release(one);
    return status;
}
