/* shard_save.c: making a shard from a CREATE message; everything of it to bytes and back. */
#include <stdlib.h>

#include "service/store/shard.h"
#include "tables/store_rule_kind.h"

const tutti_store_rule_kind *tutti__store_rule_find(const char *name)
{
    for (const tutti_store_rule_kind *const *each = tutti__store_rule_kind_table; *each; each++)
        if (strcmp((*each)->name, name) == 0)
            return *each;
    return NULL;
}

static tutti_status read_type(const tutti_store_message *create, tutti_type *ret)
{
    int64_t dims[TUTTI_MAX_RANK], row = 1, bytes;
    size_t rank = tutti__store_row_count(create);
    bool good = rank <= TUTTI_MAX_RANK && create->dtype > 0 && create->dtype < TUTTI_DTYPE_END &&
                create->dtype != TUTTI_STRING;
    for (size_t i = 0; good && i < rank; i++) {
        dims[i] = tutti__store_row(create, i);
        good = (dims[i] >= 0 || (i == 0 && dims[i] == TUTTI_ANY)) &&
               (i == 0 || tutti__mul_size(row, dims[i], &row));
    }
    good = good && tutti__mul_size(row, (int64_t)tutti_dtype_size(create->dtype), &bytes) &&
           bytes < TUTTI_STORE_MOST_BYTES;
    if (!good)
        return tutti_fail(
            TUTTI_INVALID,
            "shard '%s': no type that a server holds; numbers, at most %d dimensions, "
            "rows of less than %d bytes",
            create->text, TUTTI_MAX_RANK, TUTTI_STORE_MOST_BYTES);
    *ret = tutti_type_make((tutti_dtype)create->dtype, (int)rank, dims);
    return TUTTI_OK;
}

static tutti_status read_nan(const char *text, tutti_store_nan *ret)
{
    static const char *const names[] = {"refuse", "skip", "accept"};
    for (int i = 0; i < (int)TUTTI_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0 || (i == 0 && text[0] == '\0')) {
            *ret = (tutti_store_nan)i;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_INVALID,
                      "nan=%s: what becomes of a gradient with NaN is refuse, skip or accept",
                      text);
}

/* Dense values must fit a message; rows that exist where they are touched need not. */
static tutti_status check_storage(const tutti_store_shard *shard, const tutti_store_rule_kind *kind,
                                  const tutti_store_message *create)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t count = tutti_type_count(&shard->type), bytes;
    if (kind->sparse)
        return shard->type.rank > 0
                   ? TUTTI_OK
                   : tutti_fail(TUTTI_INVALID, "shard '%s' is a scalar and has no rows",
                                create->text);
    if (count >= 0 &&
        tutti__mul_size(count, (int64_t)tutti_dtype_size(shard->type.dtype), &bytes) &&
        bytes < TUTTI_STORE_MOST_BYTES)
        return TUTTI_OK;
    return tutti_fail(TUTTI_TOO_LARGE,
                      "shard '%s' is %s; a shard has less than %d bytes: cut the variable by a "
                      "partitioner, or keep its rows where they are touched (rule 'hashed')",
                      create->text, tutti_type_text(&shard->type, text), TUTTI_STORE_MOST_BYTES);
}

static tutti_status shard_open(const tutti_store_message *create, tutti_store_find_rule *find,
                               tutti_store_shard *shard)
{
    const tutti_store_rule_kind *kind = find(create->rule);
    size_t used;
    TUTTI_TRY(read_type(create, &shard->type));
    TUTTI_TRY(read_nan(create->nan, &shard->nan));
    TUTTI_TRY(tutti__store_rate_parse(create->rate, &shard->rate));
    TUTTI_TRY(tutti__policy_open(create->consistency, &shard->policy));
    if (!kind)
        return tutti_fail(TUTTI_NOT_FOUND, "shard '%s': this server has no update rule '%s'",
                          create->text, create->rule);
    if (shard->type.rank > 0 && shard->type.dims[0] == TUTTI_ANY && !kind->sparse)
        return tutti_fail(TUTTI_INVALID,
                          "shard '%s' has rows without bound; its rule must be one "
                          "that keeps rows where they are touched",
                          create->text);
    TUTTI_TRY(check_storage(shard, kind, create));
    tutti_store_message spec = *create;
    spec.data = (tutti_packed_data){0};
    shard->id = create->shard;
    shard->spec_frame = malloc(tutti__store_message_size(&spec));
    if (!shard->spec_frame)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for shard '%s'", create->text);
    tutti__store_message_write(&spec, shard->spec_frame);
    TUTTI_TRY(tutti__store_message_read(shard->spec_frame, tutti__store_message_size(&spec),
                                        &shard->spec, &used));
    spec = shard->spec; /* whose graph stays */
    spec.data = create->data;
    return kind->open(&spec, &shard->type, &shard->rule);
}

tutti_status tutti__store_shard_create(const tutti_store_message *create,
                                       tutti_store_find_rule *find, tutti_store_shard **ret_shard)
{
    tutti_store_shard *shard = calloc(1, sizeof *shard);
    if (!shard)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for shard '%s'", create->text);
    tutti_status status = shard_open(create, find, shard);
    if (status == TUTTI_OK)
        *ret_shard = shard;
    else
        tutti__store_shard_free(shard);
    return status;
}

void tutti__store_shard_free(tutti_store_shard *shard)
{
    if (!shard)
        return;
    for (size_t i = 0; i < shard->held.count; i++)
        tutti__store_gradient_free(&shard->held.data[i].gradient);
    for (size_t i = 0; i < shard->prepared.count; i++)
        tutti__store_gradient_free(&shard->prepared.data[i].gradient);
    for (int i = 0; i < shard->image_count; i++)
        tutti_tensor_release(shard->images[i].value);
    TUTTI_VEC_FREE(&shard->held);
    TUTTI_VEC_FREE(&shard->prepared);
    tutti__policy_close(&shard->policy);
    if (shard->rule)
        shard->rule->kind->close(shard->rule);
    free(shard->spec_frame);
    free(shard);
}

tutti_status tutti__store_shard_same(const tutti_store_shard *shard,
                                     const tutti_store_message *create)
{
    const tutti_store_message *spec = &shard->spec;
    char text[2][TUTTI_TYPE_TEXT];
    tutti_type type;
    TUTTI_TRY(read_type(create, &type));
    if (strcmp(spec->text, create->text) != 0)
        return tutti_fail(TUTTI_INVALID,
                          "shard %u is '%s' here and '%s' to the sender; all "
                          "programs of a job make the same variables in the same order",
                          shard->id, spec->text, create->text);
    if (!tutti_type_equal(&shard->type, &type))
        return tutti_fail(TUTTI_INVALID, "shard '%s' is %s here and %s to the sender", spec->text,
                          tutti_type_text(&shard->type, text[0]), tutti_type_text(&type, text[1]));
    if (strcmp(spec->consistency, create->consistency) != 0 ||
        strcmp(spec->rule, create->rule) != 0 || strcmp(spec->nan, create->nan) != 0 ||
        strcmp(spec->rate, create->rate) != 0) /* slots in the graph may begin otherwise */
        return tutti_fail(TUTTI_INVALID,
                          "shard '%s' was made with another consistency (%s), "
                          "nan or rate than the sender's (%s); all programs of a job set "
                          "them alike",
                          spec->text, spec->consistency, create->consistency);
    return TUTTI_OK;
}

/* ---- saving ---- */

static void save_held(const tutti_store_held *held, tutti_text *out)
{
    saved_put(out, held->key.step);
    saved_put(out, held->key.contribution);
    saved_put(out, held->version);
    saved_put_number(out, held->factor);
    saved_put_number(out, held->learning_rate);
    saved_put(out, held->txn);
    saved_put(out, held->incarnation);
    tutti__store_gradient_save(&held->gradient, out);
}

static tutti_status load_held(const tutti_type *type, saved_reader *in, tutti_store_held *ret)
{
    tutti_store_held held = {0};
    held.key.step = saved_get(in);
    held.key.contribution = (uint32_t)saved_get(in);
    held.version = saved_get(in);
    held.factor = saved_get_number(in);
    held.learning_rate = saved_get_number(in);
    held.txn = saved_get(in);
    held.incarnation = (uint32_t)saved_get(in);
    TUTTI_TRY(tutti__store_gradient_load(type, in, &held.gradient));
    *ret = held;
    return TUTTI_OK;
}

static void save_policy(const tutti_policy *policy, tutti_text *out)
{
    saved_put(out, policy->version);
    saved_put(out, policy->begun);
    saved_put(out, policy->workers.count);
    for (size_t i = 0; i < policy->workers.count; i++) {
        const tutti_policy_worker *w = &policy->workers.data[i];
        saved_put(out, w->number);
        saved_put(out, (uint64_t)w->alive | (uint64_t)w->counts << 1);
        saved_put(out, w->clock);
        saved_put(out, w->verdict);
    }
}

static tutti_status load_policy(saved_reader *in, tutti_policy *policy)
{
    policy->version = saved_get(in);
    policy->begun = saved_get(in) != 0;
    size_t count = saved_get_count(in, 32);
    for (size_t i = 0; i < count && !in->bad; i++) {
        tutti_policy_worker *w = tutti__policy_worker(policy, (uint32_t)saved_get(in));
        if (!w)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu workers", count);
        uint64_t flags = saved_get(in);
        w->alive = flags & 1;
        w->counts = flags >> 1 & 1;
        w->clock = saved_get(in);
        w->verdict = (uint32_t)saved_get(in);
        in->bad = in->bad || w->verdict >= TUTTI_STORE_VERDICTS;
    }
    return TUTTI_OK;
}

static void save_images(const tutti_store_shard *shard, tutti_text *out)
{
    saved_put(out, shard->forgotten);
    saved_put(out, (uint64_t)shard->image_count);
    for (int i = 0; i < shard->image_count; i++) {
        const tutti_store_image *image = &shard->images[i];
        saved_put(out, image->before);
        saved_put(out, image->version);
        saved_put(out, (uint64_t)tutti_tensor_rank(image->value));
        for (int d = 0; d < tutti_tensor_rank(image->value); d++)
            saved_put(out, (uint64_t)tutti_tensor_dims(image->value)[d]);
        saved_put_bytes(out, tutti_tensor_data(image->value),
                        (size_t)tutti_tensor_count(image->value) *
                            tutti_dtype_size(shard->type.dtype));
    }
}

static tutti_status load_image(saved_reader *in, const tutti_store_shard *shard,
                               tutti_store_image *ret)
{
    tutti_store_image image = {.before = saved_get(in), .version = saved_get(in)};
    int64_t dims[TUTTI_MAX_RANK];
    size_t rank = saved_get_count(in, 8);
    in->bad = in->bad || rank > TUTTI_MAX_RANK;
    for (size_t i = 0; !in->bad && i < rank; i++)
        dims[i] = (int64_t)saved_get(in);
    tutti_packed_data data = saved_get_bytes(in);
    tutti_type type = tutti_type_make(shard->type.dtype, in->bad ? 0 : (int)rank, dims);
    int64_t bytes, count = tutti_type_count(&type);
    if (in->bad || count < 0 ||
        !tutti__mul_size(count, (int64_t)tutti_dtype_size(type.dtype), &bytes) ||
        (size_t)bytes != data.size)
        return tutti_fail(TUTTI_CORRUPT, "a saved value of shard '%s' is cut short",
                          shard->spec.text);
    TUTTI_TRY(tutti_tensor_from(type.dtype, type.rank, dims, data.bytes, &image.value));
    *ret = image;
    return TUTTI_OK;
}

static tutti_status load_images(saved_reader *in, tutti_store_shard *shard)
{
    shard->forgotten = saved_get(in);
    uint64_t count = saved_get(in);
    in->bad = in->bad || count > TUTTI_STORE_IMAGES;
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        TUTTI_TRY(load_image(in, shard, &shard->images[shard->image_count]));
        shard->image_count++;
    }
    return TUTTI_OK;
}

tutti_status tutti__store_shard_save(const tutti_store_shard *shard, tutti_text *out)
{
    const tutti_store_closures *c = &shard->closures;
    saved_put_bytes(out, shard->spec_frame, tutti__store_message_size(&shard->spec));
    save_policy(&shard->policy, out);
    saved_put(out, shard->held.count);
    for (size_t i = 0; i < shard->held.count; i++)
        save_held(&shard->held.data[i], out);
    saved_put(out, shard->prepared.count);
    for (size_t i = 0; i < shard->prepared.count; i++)
        save_held(&shard->prepared.data[i], out);
    save_images(shard, out);
    saved_put(out, c->below);
    for (size_t i = 0; i < TUTTI_COUNT(c->applied); i++) {
        saved_put(out, c->applied[i]);
        saved_put(out, c->skipped[i]);
    }
    tutti__store_staleness_save(&shard->staleness, out);
    saved_put(out, shard->late);
    saved_put(out, shard->skipped);
    saved_put(out, shard->failed);
    return shard->rule->kind->save(shard->rule, out);
}

static tutti_status load_gradients(saved_reader *in, tutti_store_shard *shard)
{
    for (int list = 0; list < 2; list++) {
        size_t count = saved_get_count(in, 64);
        for (size_t i = 0; i < count; i++) {
            tutti_store_held held;
            TUTTI_TRY(load_held(&shard->type, in, &held));
            if (list == 0 ? TUTTI_VEC_PUSH(&shard->held, held)
                          : TUTTI_VEC_PUSH(&shard->prepared, held))
                continue;
            tutti__store_gradient_free(&held.gradient);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu gradients", count);
        }
    }
    return TUTTI_OK;
}

static tutti_status shard_load_all(saved_reader *in, tutti_store_shard *shard)
{
    tutti_store_closures *c = &shard->closures;
    TUTTI_TRY(load_policy(in, &shard->policy));
    TUTTI_TRY(load_gradients(in, shard));
    TUTTI_TRY(load_images(in, shard));
    c->below = saved_get(in);
    for (size_t i = 0; i < TUTTI_COUNT(c->applied); i++) {
        c->applied[i] = saved_get(in);
        c->skipped[i] = saved_get(in);
    }
    tutti__store_staleness_load(in, &shard->staleness);
    shard->late = saved_get(in);
    shard->skipped = saved_get(in);
    shard->failed = saved_get(in);
    TUTTI_TRY(shard->rule->kind->load(shard->rule, in));
    return in->bad ? tutti_fail(TUTTI_CORRUPT, "saved shard '%s' is cut short or damaged",
                                shard->spec.text)
                   : TUTTI_OK;
}

tutti_status tutti__store_shard_load(saved_reader *in, tutti_store_find_rule *find,
                                     tutti_store_shard **ret_shard)
{
    tutti_packed_data frame = saved_get_bytes(in);
    tutti_store_message create;
    size_t used = 0;
    tutti_store_shard *shard = NULL;
    if (in->bad)
        return tutti_fail(TUTTI_CORRUPT, "a saved shard is cut short");
    TUTTI_TRY(tutti__store_message_read(frame.bytes, frame.size, &create, &used));
    if (used != frame.size || used == 0 || create.type != TUTTI_STORE_CREATE)
        return tutti_fail(TUTTI_CORRUPT, "a saved shard does not begin with what made it");
    TUTTI_TRY(tutti__store_shard_create(&create, find, &shard));
    tutti_status status = shard_load_all(in, shard);
    if (status == TUTTI_OK)
        *ret_shard = shard;
    else
        tutti__store_shard_free(shard);
    return status;
}
