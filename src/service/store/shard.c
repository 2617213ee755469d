/* shard.c: how pushes become updates. shard_save.c makes and saves shards. */
#include "service/store/shard.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_closure(uint64_t step)
{
    return (step & TUTTI_STORE_CLOSURE) != 0;
}

static uint64_t closure_of(uint64_t step)
{
    return step & ~TUTTI_STORE_CLOSURE;
}

static uint64_t closure_bit(uint64_t closure, size_t *ret_word)
{
    *ret_word = closure % TUTTI_STORE_CLOSURE_WINDOW / 64;
    return UINT64_C(1) << closure % 64;
}

bool tutti__store_shard_knows(const tutti_store_shard *shard, uint64_t step, uint32_t contribution,
                              uint32_t *ret_verdict)
{
    const tutti_store_closures *c = &shard->closures;
    if (!is_closure(step)) {
        const tutti_policy_worker *worker = tutti__policy_find(&shard->policy, contribution);
        if (!worker || step >= worker->clock)
            return false;
        *ret_verdict = step + 1 == worker->clock ? worker->verdict : TUTTI_STORE_KNOWN;
        return true;
    }
    size_t word;
    uint64_t bit = closure_bit(closure_of(step), &word);
    if (closure_of(step) < c->below) {
        *ret_verdict = TUTTI_STORE_KNOWN;
        return true;
    }
    if (closure_of(step) - c->below >= TUTTI_STORE_CLOSURE_WINDOW || !(c->applied[word] & bit))
        return false;
    *ret_verdict = c->skipped[word] & bit    ? TUTTI_STORE_SKIPPED
                   : shard->policy.by->ready ? TUTTI_STORE_HELD
                                             : TUTTI_STORE_APPLIED;
    return true;
}

static tutti_store_reason check_closure(const tutti_store_shard *shard, uint64_t step)
{
    if (!is_closure(step))
        return TUTTI_STORE_NO_REASON;
    if (shard->policy.by->clocked) {
        tutti_fail(
            TUTTI_UNSUPPORTED,
            "shard '%s': consistency %s goes by steps, which closures have none of; schedule "
            "closures under consistency=async or softsync",
            shard->spec.text, shard->policy.by->name);
        return TUTTI_STORE_NO_CLOCK;
    }
    if (closure_of(step) < shard->closures.below + TUTTI_STORE_CLOSURE_WINDOW)
        return TUTTI_STORE_NO_REASON;
    tutti_fail(
        TUTTI_OUT_OF_RANGE,
        "shard '%s': closure %" PRIu64 " is more than %d ahead of the first that is not done "
        "(%" PRIu64 ")",
        shard->spec.text, closure_of(step), TUTTI_STORE_CLOSURE_WINDOW, shard->closures.below);
    return TUTTI_STORE_NO_CLOCK;
}

tutti_store_reason tutti__store_shard_check(const tutti_store_shard *shard,
                                            const tutti_store_message *push)
{
    const char *name = shard->spec.text;
    if (tutti__store_gradient_fits(name, &shard->type, push) != TUTTI_OK)
        return TUTTI_STORE_SHAPE;
    if (push->form == TUTTI_STORE_DENSE && shard->rule->kind->sparse) {
        tutti_fail(TUTTI_INVALID, "shard '%s' exists row by row, so a push of it is rows", name);
        return TUTTI_STORE_SHAPE;
    }
    tutti_store_reason reason = check_closure(shard, push->step);
    if (reason != TUTTI_STORE_NO_REASON)
        return reason;
    bool future = push->version > shard->policy.version ||
                  shard->policy.by->arrive(&shard->policy, push->step) == TUTTI_POLICY_FUTURE;
    if (future) {
        tutti_fail(TUTTI_OUT_OF_RANGE,
                   "shard '%s' is at version %" PRIu64 "; a push of step %" PRIu64
                   " from version %" PRIu64 " cannot have read it: pull anew",
                   name, shard->policy.version, push->step, push->version);
        return TUTTI_STORE_FUTURE;
    }
    if (shard->nan != TUTTI_STORE_NAN_REFUSE || tutti__store_gradient_is_finite(&shard->type, push))
        return TUTTI_STORE_NO_REASON;
    tutti_fail(TUTTI_INVALID,
               "shard '%s': the gradient of step %" PRIu64 " by worker %" PRIu32
               " holds NaN or infinity; it was refused (nan=skip drops such ones, nan=accept takes "
               "them)",
               name, push->step, push->contribution);
    return TUTTI_STORE_NAN;
}

/* ---- updates ---- */

static double shard_factor(const tutti_store_shard *shard, const tutti_store_held *held)
{
    uint64_t staleness = shard->policy.version - held->version;
    bool inverse = shard->rate == TUTTI_STORE_RATE_INVERSE && staleness > 0;
    return inverse ? held->factor / (double)staleness : held->factor;
}

/* The present version's gradients: one update. */
static tutti_status shard_update(tutti_store_shard *shard, size_t count, tutti_store_held *list)
{
    const tutti_store_gradient **gradients = calloc(count, sizeof *gradients);
    double *weights = calloc(count, sizeof *weights);
    tutti_store_key *keys = calloc(count, sizeof *keys);
    tutti_store_gradient mean = {0};
    tutti_status status = gradients && weights && keys
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu gradients", count);
    double factors = 0, staleness = 0, rates = 0;
    size_t moving = 0;
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        if (list[i].gradient.form == TUTTI_STORE_NOTHING)
            continue;
        uint64_t age = shard->policy.version - list[i].version;
        tutti__store_staleness_add(&shard->staleness, age);
        gradients[moving] = &list[i].gradient;
        weights[moving] = shard_factor(shard, &list[i]);
        keys[moving] = list[i].key;
        rates += list[i].learning_rate;
        factors += weights[moving++];
        staleness += (double)age;
    }
    const tutti_store_gradient *whole = moving > 0 ? gradients[0] : NULL;
    if (status == TUTTI_OK && moving > 1) {
        status = tutti__store_gradient_mean(&shard->type, moving, gradients, weights, &mean);
        whole = &mean;
    }
    if (status == TUTTI_OK && moving > 0)
        status = shard->rule->kind->apply(
            shard->rule,
            &(tutti_store_update){.gradient = whole,
                                  .factor = factors / (double)moving * (rates / (double)moving),
                                  .staleness = staleness / (double)moving,
                                  .version = shard->policy.version,
                                  .count = moving,
                                  .keys = keys});
    shard->failed += status != TUTTI_OK ? moving : 0;
    shard->policy.version++;
    tutti__store_gradient_free(&mean);
    free(gradients);
    free(weights);
    free(keys);
    return status;
}

static void held_clear(tutti_store_shard *shard)
{
    for (size_t i = 0; i < shard->held.count; i++)
        tutti__store_gradient_free(&shard->held.data[i].gradient);
    shard->held.count = 0;
}

/* All updates for which enough is held. The first failure counts. */
static tutti_status shard_settle(tutti_store_shard *shard)
{
    const tutti_consistency *by = shard->policy.by;
    tutti_status status = TUTTI_OK;
    tutti_error first;
    while (by->ready && shard->held.count > 0 &&
           by->ready(&shard->policy, (int64_t)shard->held.count)) {
        tutti_status each = shard_update(shard, shard->held.count, shard->held.data);
        if (each != TUTTI_OK && status == TUTTI_OK)
            tutti__error_capture(status = each, &first);
        held_clear(shard);
    }
    return status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&first);
}

static tutti_status held_insert(tutti_store_shard *shard, const tutti_store_held *held)
{
    if (!TUTTI_VEC_RESERVE_ONE(&shard->held))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a gradient of '%s'", shard->spec.text);
    size_t at = shard->held.count++;
    for (; at > 0; at--) {
        const tutti_store_key *before = &shard->held.data[at - 1].key;
        if (before->contribution < held->key.contribution ||
            (before->contribution == held->key.contribution && before->step <= held->key.step))
            break;
        shard->held.data[at] = shard->held.data[at - 1];
    }
    shard->held.data[at] = *held;
    return TUTTI_OK;
}

/* The key is known from now on. */
static tutti_status shard_note(tutti_store_shard *shard, const tutti_store_key *key,
                               uint32_t verdict)
{
    if (is_closure(key->step)) {
        size_t word;
        uint64_t bit = closure_bit(closure_of(key->step), &word);
        shard->closures.applied[word] |= bit;
        shard->closures.skipped[word] |= verdict == TUTTI_STORE_SKIPPED ? bit : 0;
        return TUTTI_OK;
    }
    tutti_policy_worker *worker = tutti__policy_worker(&shard->policy, key->contribution);
    if (!worker)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for worker %" PRIu32, key->contribution);
    worker->counts = worker->counts || worker->alive;
    worker->clock = key->step + 1;
    worker->verdict = verdict;
    return TUTTI_OK;
}

/* Takes the gradient over. */
static tutti_status shard_arrive(tutti_store_shard *shard, tutti_store_held *held, bool skipped,
                                 uint32_t *ret_verdict)
{
    tutti_policy *policy = &shard->policy;
    tutti_policy_arrival arrival = policy->by->arrive(policy, held->key.step);
    uint32_t verdict = skipped                         ? TUTTI_STORE_SKIPPED
                       : arrival == TUTTI_POLICY_LATE  ? TUTTI_STORE_LATE
                       : arrival == TUTTI_POLICY_APPLY ? TUTTI_STORE_APPLIED
                                                       : TUTTI_STORE_HELD;
    tutti_status status = shard_note(shard, &held->key, verdict);
    shard->late += arrival == TUTTI_POLICY_LATE;
    shard->skipped += skipped;
    if (status == TUTTI_OK && arrival == TUTTI_POLICY_HOLD) {
        status = held_insert(shard, held);
        if (status == TUTTI_OK)
            *held = (tutti_store_held){0};
    } else if (status == TUTTI_OK && arrival == TUTTI_POLICY_APPLY) {
        if (policy->by->share)
            tutti__store_gradient_scale(&shard->type, &held->gradient, policy->by->share(policy));
        status = shard_update(shard, 1, held);
    }
    tutti__store_gradient_free(&held->gradient);
    if (status == TUTTI_OK)
        status = shard_settle(shard);
    *ret_verdict = verdict;
    return status;
}

/* A gradient that is not a number is none, where the policy is to skip such ones. */
static tutti_status shard_take(const tutti_store_shard *shard, const tutti_store_message *push,
                               tutti_store_held *ret)
{
    /* Checked before, but for what a leader sends to its replica. */
    TUTTI_TRY(tutti__store_gradient_fits(shard->spec.text, &shard->type, push));
    if (push->form == TUTTI_STORE_DENSE && shard->rule->kind->sparse)
        return tutti_fail(TUTTI_INVALID, "shard '%s' exists row by row", shard->spec.text);
    tutti_store_message nothing = {.form = TUTTI_STORE_NOTHING};
    bool skip =
        shard->nan == TUTTI_STORE_NAN_SKIP && !tutti__store_gradient_is_finite(&shard->type, push);
    tutti_store_held held = {.key = {push->step, push->contribution},
                             .version = push->version,
                             .factor = push->factor,
                             .learning_rate = push->learning_rate,
                             .txn = push->number,
                             .incarnation = push->incarnation};
    TUTTI_TRY(tutti__store_gradient_take(&shard->type, skip ? &nothing : push, &held.gradient));
    *ret = held;
    return TUTTI_OK;
}

static bool was_skipped(const tutti_store_held *held, const tutti_store_message *push)
{
    return held->gradient.form == TUTTI_STORE_NOTHING && push->form != TUTTI_STORE_NOTHING;
}

tutti_status tutti__store_shard_push(tutti_store_shard *shard, const tutti_store_message *push,
                                     uint32_t *ret_verdict)
{
    tutti_store_held held;
    if (tutti__store_shard_knows(shard, push->step, push->contribution, ret_verdict))
        return TUTTI_OK;
    TUTTI_TRY(shard_take(shard, push, &held));
    return shard_arrive(shard, &held, was_skipped(&held, push), ret_verdict);
}

/* ---- atomic pushes ---- */

tutti_status tutti__store_shard_prepare(tutti_store_shard *shard,
                                        const tutti_store_message *prepare)
{
    uint32_t verdict;
    tutti_store_held held;
    if (tutti__store_shard_knows(shard, prepare->step, prepare->contribution, &verdict))
        return TUTTI_OK;
    for (size_t i = 0; i < shard->prepared.count; i++) {
        tutti_store_held *each = &shard->prepared.data[i];
        if (each->txn == prepare->number && each->key.contribution == prepare->contribution) {
            each->incarnation = prepare->incarnation; /* a later process of the same worker */
            return TUTTI_OK;
        }
    }
    TUTTI_TRY(shard_take(shard, prepare, &held));
    if (TUTTI_VEC_PUSH(&shard->prepared, held))
        return TUTTI_OK;
    tutti__store_gradient_free(&held.gradient);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to prepare a push of '%s'", shard->spec.text);
}

/* What is read until then is kept, for readers that name an earlier number. */
static tutti_status shard_keep_image(tutti_store_shard *shard, uint64_t number)
{
    tutti_tensor *value = NULL;
    if (shard->rule->kind->sparse) { /* too large to keep */
        shard->forgotten = number;
        return TUTTI_OK;
    }
    TUTTI_TRY(shard->rule->kind->read(shard->rule, true, (tutti_packed_data){0}, &value));
    if (shard->image_count == TUTTI_STORE_IMAGES) {
        shard->forgotten = shard->images[0].before;
        tutti_tensor_release(shard->images[0].value);
        shard->image_count--;
        memmove(shard->images, shard->images + 1,
                (size_t)shard->image_count * sizeof *shard->images);
    }
    shard->images[shard->image_count++] = (tutti_store_image){number, shard->policy.version, value};
    return TUTTI_OK;
}

static tutti_store_held prepared_remove(tutti_store_shard *shard, size_t at)
{
    tutti_store_held held = shard->prepared.data[at];
    shard->prepared.count--;
    memmove(shard->prepared.data + at, shard->prepared.data + at + 1,
            (shard->prepared.count - at) * sizeof held);
    return held;
}

tutti_status tutti__store_shard_commit(tutti_store_shard *shard, uint64_t txn,
                                       uint32_t contribution, uint64_t number)
{
    for (size_t i = 0; i < shard->prepared.count; i++) {
        const tutti_store_held *each = &shard->prepared.data[i];
        uint32_t verdict;
        if (each->txn != txn || each->key.contribution != contribution)
            continue;
        tutti_store_held held = prepared_remove(shard, i);
        if (tutti__store_shard_knows(shard, held.key.step, contribution, &verdict)) {
            tutti__store_gradient_free(&held.gradient);
            return TUTTI_OK;
        }
        tutti_status status = shard_keep_image(shard, number);
        if (status != TUTTI_OK) {
            tutti__store_gradient_free(&held.gradient);
            return status;
        }
        return shard_arrive(shard, &held, false, &verdict);
    }
    return TUTTI_OK;
}

void tutti__store_shard_abort(tutti_store_shard *shard, uint32_t contribution, uint32_t incarnation)
{
    for (size_t i = shard->prepared.count; i-- > 0;) {
        const tutti_store_held *each = &shard->prepared.data[i];
        if (each->key.contribution == contribution && each->incarnation <= incarnation) {
            tutti_store_held held = prepared_remove(shard, i);
            tutti__store_gradient_free(&held.gradient);
        }
    }
}

tutti_status tutti__store_shard_members(tutti_store_shard *shard, int64_t count,
                                        const uint32_t *contributions)
{
    TUTTI_TRY(tutti__policy_members(&shard->policy, count, contributions));
    return shard_settle(shard);
}

void tutti__store_shard_finish(tutti_store_shard *shard, uint64_t below)
{
    tutti_store_closures *c = &shard->closures;
    if (below > c->below && below - c->below >= TUTTI_STORE_CLOSURE_WINDOW) {
        *c = (tutti_store_closures){.below = below};
        return;
    }
    for (; c->below < below; c->below++) {
        size_t word;
        uint64_t bit = closure_bit(c->below, &word);
        c->applied[word] &= ~bit;
        c->skipped[word] &= ~bit;
    }
}

/* ---- reading ---- */

static tutti_status image_rows(const tutti_store_shard *shard, tutti_tensor *image,
                               const tutti_store_message *pull, tutti_tensor **ret)
{
    tutti_type type = shard->type;
    type.dims[0] = (int64_t)tutti__store_row_count(pull);
    tutti_tensor *made = NULL;
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &made));
    size_t size = (size_t)tutti__store_row_elements(&type) * tutti_dtype_size(type.dtype);
    for (size_t i = 0; i < tutti__store_row_count(pull); i++)
        memcpy((char *)tutti_tensor_data(made) + i * size,
               (const char *)tutti_tensor_data(image) + (size_t)tutti__store_row(pull, i) * size,
               size);
    *ret = made;
    return TUTTI_OK;
}

static tutti_status check_pulled_rows(const tutti_store_shard *shard,
                                      const tutti_store_message *pull)
{
    char text[TUTTI_TYPE_TEXT];
    for (size_t i = 0; i < tutti__store_row_count(pull); i++) {
        int64_t row = tutti__store_row(pull, i);
        bool there = shard->type.rank > 0 && row >= 0 &&
                     (shard->type.dims[0] == TUTTI_ANY || row < shard->type.dims[0]);
        if (!there)
            return tutti_fail(TUTTI_OUT_OF_RANGE, "shard '%s' is %s and has no row %" PRId64,
                              shard->spec.text, tutti_type_text(&shard->type, text), row);
    }
    if (pull->form != TUTTI_STORE_ROWS && shard->rule->kind->sparse)
        return tutti_fail(TUTTI_INVALID,
                          "shard '%s' is %s, which exists row by row: say which rows are pulled",
                          shard->spec.text, tutti_type_text(&shard->type, text));
    return TUTTI_OK;
}

tutti_status tutti__store_shard_read(tutti_store_shard *shard, const tutti_store_message *pull,
                                     tutti_tensor **ret_value, uint64_t *ret_version)
{
    bool rows = pull->form == TUTTI_STORE_ROWS, named = pull->number > 0;
    uint64_t number = named ? pull->number - 1 : 0;
    TUTTI_TRY(check_pulled_rows(shard, pull));
    if (named && shard->forgotten > number)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "shard '%s' as of atomic push %" PRIu64 " is no longer kept: %s",
                          shard->spec.text, number,
                          shard->rule->kind->sparse ? "of rows there is only the present"
                                                    : "read all of them anew");
    for (int i = 0; named && i < shard->image_count; i++) {
        const tutti_store_image *image = &shard->images[i];
        if (image->before <= number)
            continue;
        *ret_version = image->version;
        if (rows)
            return image_rows(shard, image->value, pull, ret_value);
        *ret_value = tutti_tensor_retain(image->value);
        return TUTTI_OK;
    }
    *ret_version = shard->policy.version;
    return shard->rule->kind->read(shard->rule, !rows, pull->rows, ret_value);
}

int64_t tutti__store_shard_bytes(const tutti_store_shard *shard)
{
    int64_t bytes = shard->rule->kind->bytes(shard->rule);
    for (size_t i = 0; i < shard->held.count; i++)
        bytes += (int64_t)(shard->held.data[i].gradient.bytes +
                           8 * shard->held.data[i].gradient.row_count);
    for (size_t i = 0; i < shard->prepared.count; i++)
        bytes += (int64_t)(shard->prepared.data[i].gradient.bytes +
                           8 * shard->prepared.data[i].gradient.row_count);
    for (int i = 0; i < shard->image_count; i++)
        bytes += tutti_tensor_count(shard->images[i].value) *
                 (int64_t)tutti_dtype_size(shard->type.dtype);
    return bytes;
}
