/* worker_named.c: a variable's value, slots and counters by name: got, and put whatever was there.
 */
#include "service/store/worker_inside.h"

#include "service/store/rule.h"

/* What was got so far: of a variable in shards, those that are cut as it is are put together. */
struct named_list {
    TUTTI_VEC(tutti_store_named) all;
};
typedef struct named_list named_list;

static void free_names(named_list *list)
{
    for (size_t i = 0; i < list->all.count; i++) {
        free(list->all.data[i].name);
        tutti_tensor_release(list->all.data[i].tensor);
    }
    TUTTI_VEC_FREE(&list->all);
}

static tutti_store_named *find_named(named_list *list, const char *name)
{
    for (size_t i = 0; i < list->all.count; i++)
        if (strcmp(list->all.data[i].name, name) == 0)
            return &list->all.data[i];
    return NULL;
}

static tutti_status put_slice(const worker_variable *v, size_t i, tutti_tensor *whole,
                              tutti_tensor *part)
{
    int64_t begin = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i);
    int64_t end = tutti__store_partition_begin(&v->type, &v->partition, (int64_t)i + 1);
    tutti_tensor *view = NULL;
    TUTTI_TRY(tutti_tensor_slice(whole, v->partition.axis, begin, end - begin, 1, &view));
    tutti_status status = tutti_tensor_copy(view, part);
    tutti_tensor_release(view);
    return status;
}

/* Takes the tensor over. */
static tutti_status add_named(named_list *list, const worker_variable *v, size_t i,
                              const char *name, tutti_tensor *tensor)
{
    tutti_type piece = tutti__store_partition_type(&v->type, &v->partition, (int64_t)i);
    bool cut = v->partition.pieces > 1 && tutti_type_equal(&piece, tutti_tensor_type(tensor));
    tutti_store_named *known = find_named(list, name);
    tutti_status status = TUTTI_OK;
    if (!known) {
        tutti_store_named made = {.name = strdup(name)};
        if (cut)
            status = tutti_tensor_create(v->type.dtype, v->type.rank, v->type.dims, &made.tensor);
        else
            made.tensor = tutti_tensor_retain(tensor);
        if (status == TUTTI_OK && (!made.name || !TUTTI_VEC_PUSH(&list->all, made)))
            status = tutti_fail(TUTTI_NO_MEMORY, "no memory for what '%s' has", v->name);
        if (status != TUTTI_OK) {
            free(made.name);
            tutti_tensor_release(made.tensor);
        }
        known = find_named(list, name);
    }
    if (status == TUTTI_OK && cut)
        status = put_slice(v, i, known->tensor, tensor);
    tutti_tensor_release(tensor);
    return status;
}

tutti_status tutti__store_worker_take_got(worker_request *r, const tutti_store_message *answer)
{
    saved_reader in = {answer->data.bytes, answer->data.bytes + answer->data.size, false};
    size_t count = saved_get_count(&in, 24), index = (size_t)(r->piece - r->variable->pieces.data);
    for (size_t i = 0; i < count; i++) {
        char name[TUTTI_STORE_NAME];
        tutti_tensor *tensor;
        TUTTI_TRY(tutti__store_named_get(&in, name, &tensor));
        TUTTI_TRY(add_named(r->names, r->variable, index, name, tensor));
    }
    return TUTTI_OK;
}

tutti_status tutti__store_worker_get(tutti_store_worker *w, int index, tutti_store_named_fn *each,
                                     void *context)
{
    worker_variable *v = w->variables.data[index];
    named_list list = {0};
    worker_batch b;
    tutti_status status = tutti__store_worker_begin(&b, w);
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++) {
        worker_piece *p = &v->pieces.data[i];
        tutti_store_message m = {.type = TUTTI_STORE_GET, .clock = p->clock};
        worker_request r = {.variable = v, .piece = p, .names = &list};
        status = tutti__store_worker_ask(w, &b, r, &m);
    }
    status = tutti__store_worker_end(&b, tutti__store_worker_wait(&b, status));
    for (size_t i = 0; status == TUTTI_OK && i < list.all.count; i++)
        status = each(context, list.all.data[i].name, list.all.data[i].tensor);
    free_names(&list);
    return status;
}

/* What shard i gets of these, as bytes that the request holds. */
static tutti_status write_names(const worker_variable *v, size_t i, int count,
                                const tutti_store_named *names, tutti_text *out)
{
    saved_put(out, (uint64_t)count);
    for (int n = 0; n < count; n++) {
        tutti_tensor *part = NULL;
        bool cut = tutti_type_equal(tutti_tensor_type(names[n].tensor), &v->type);
        TUTTI_TRY(cut ? tutti__store_worker_cut(v, names[n].tensor, i, &part)
                      : tutti_tensor_contiguous(names[n].tensor, &part));
        tutti__store_named_put(out, names[n].name, part);
        tutti_tensor_release(part);
    }
    return out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to put '%s'", v->name) : TUTTI_OK;
}

tutti_status tutti__store_worker_put(tutti_store_worker *w, int index, int count,
                                     const tutti_store_named *names)
{
    worker_variable *v = w->variables.data[index];
    worker_batch b;
    tutti_status status = tutti__store_worker_begin(&b, w);
    for (size_t i = 0; status == TUTTI_OK && i < v->pieces.count; i++) {
        tutti_text text = {0};
        status = write_names(v, i, count, names, &text);
        if (status != TUTTI_OK) {
            tutti__text_free(&text);
            break;
        }
        worker_request r = {
            .variable = v, .piece = &v->pieces.data[i], .rows = (uint8_t *)text.data};
        tutti_store_message m = {.type = TUTTI_STORE_PUT,
                                 .number = ++w->puts,
                                 .data = {(const uint8_t *)text.data, text.size}};
        status = tutti__store_worker_ask(w, &b, r, &m);
    }
    return tutti__store_worker_end(&b, tutti__store_worker_wait(&b, status));
}
