/* survivors.c: after a verdict the processes that are left come to one version.
 *
 * A step's collectives stand before its commit, so processes differ by one commit at most: the last
 * message of the last collective may have reached some and not others. A healthy step sends nothing
 * for that. After a verdict the lowest rank that is left (the chief) opens a channel to each other
 * one, and per state:
 *
 *     all → chief     the version
 *     chief → all     the highest one; who gives its values, who gets them
 *     giver → chief   its values, where the chief has not got them
 *     chief → others  the values, to those that have an older version
 *     all → chief     the version, again
 *     chief → all     who holds the highest one now
 *
 * Values are swapped in by one commit when all of them have come, so that a process which is lost
 * meanwhile leaves nobody with half of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "cluster/channel.h"
#include "comm/comm.h"
#include "parallel/collectives/axis_groups.h"

static const tutti_param patience_param =
    TUTTI_PARAM("SURVIVE_MS", "10000",
                "milliseconds that processes which are left after a failure wait for each other, "
                "to come to one version of their variables");

enum { STATES = 16, MILLISECOND = 1000000, PATIENCE_MOST_MS = 3600000, CULPRIT_MS = 1500 };

typedef struct versions {
    uint64_t count, of[STATES];
} versions;

/* What the chief says of each state. */
typedef enum duty { DUTY_NONE, DUTY_GIVE, DUTY_GET } duty;
typedef struct duties {
    versions best;
    uint8_t duty[STATES];
} duties;

typedef struct outcome {
    versions best;
    tutti_ranks hold; /* it */
    tutti_ranks silent;
} outcome;

typedef struct survival {
    tutti_axis_groups *groups;
    tutti_membership *members;
    tutti_verdict verdict;
    int64_t until;
    tutti_channel **channels; /* [size]; the chief's, to those that answer */
    versions *all;            /* [size]; the chief's */
    outcome result;
} survival;

/* ---- bytes on a channel ---- */

static tutti_status survivors_wait(tutti_channel *channel, bool sends, int64_t until)
{
    const tutti_world *world = tutti__world();
    int64_t left = until - tutti__now_ns();
    tutti_wait wait = {tutti__channel_fd(channel), sends ? TUTTI_WAIT_WRITE : TUTTI_WAIT_READ, 0};
    if (left <= 0)
        return tutti_fail(TUTTI_DEADLINE, "no answer");
    (void)world->wait(world->self, &wait, 1, left < 100 * MILLISECOND ? left : 100 * MILLISECOND);
    return TUTTI_OK;
}

static tutti_status survivors_send(tutti_channel *channel, const void *data, size_t size,
                                   int64_t until)
{
    for (size_t sent = 0, done; sent < size; sent += done) {
        TUTTI_TRY(tutti__channel_send(channel, (const char *)data + sent, size - sent, &done));
        if (done == 0)
            TUTTI_TRY(survivors_wait(channel, true, until));
    }
    return TUTTI_OK;
}

static tutti_status survivors_recv(tutti_channel *channel, void *data, size_t size, int64_t until)
{
    for (size_t got = 0, done; got < size; got += done) {
        TUTTI_TRY(tutti__channel_recv(channel, (char *)data + got, size - got, &done));
        if (done == 0 && !tutti__channel_pending(channel))
            TUTTI_TRY(survivors_wait(channel, false, until));
    }
    return TUTTI_OK;
}

/* ---- the values of a state ---- */

typedef struct value_head {
    uint64_t name, bytes, lengths; /* sizes; lengths: of strings, else 0 */
} value_head;

enum { NAME_MOST = 4096 };

static size_t tensor_bytes(const tutti_tensor *tensor)
{
    return (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(tutti_tensor_dtype(tensor));
}

static tutti_status give_value(const tutti_version_value *value, tutti_channel *channel,
                               int64_t until)
{
    tutti_tensor *bytes = NULL, *lengths = NULL;
    if (value->variable->type.dtype == TUTTI_STRING)
        TUTTI_TRY(tutti__tensor_pack_strings(value->value, &bytes, &lengths));
    else
        TUTTI_TRY(tutti__tensor_to_host(value->value, &bytes));
    value_head head = {strlen(value->variable->name), tensor_bytes(bytes),
                       lengths ? tensor_bytes(lengths) : 0};
    tutti_status status = survivors_send(channel, &head, sizeof head, until);
    if (status == TUTTI_OK)
        status = survivors_send(channel, value->variable->name, head.name, until);
    if (status == TUTTI_OK)
        status = survivors_send(channel, tutti_tensor_data(bytes), head.bytes, until);
    if (status == TUTTI_OK && lengths)
        status = survivors_send(channel, tutti_tensor_data(lengths), head.lengths, until);
    tutti_tensor_release(bytes);
    tutti_tensor_release(lengths);
    return status;
}

static tutti_status give_state(tutti_state *state, tutti_channel *channel, int64_t until)
{
    tutti_version_values values;
    TUTTI_TRY(tutti__version_take(state, &values));
    uint64_t head[2] = {values.number, values.count};
    tutti_status status = survivors_send(channel, head, sizeof head, until);
    for (size_t i = 0; status == TUTTI_OK && i < values.count; i++)
        status = give_value(&values.list[i], channel, until);
    tutti__version_release(&values);
    return status;
}

static tutti_status get_tensor(tutti_channel *channel, const tutti_type *type, uint64_t bytes,
                               int64_t until, tutti_tensor **ret)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), type, &tensor));
    tutti_status status = tensor_bytes(tensor) == bytes
                              ? survivors_recv(channel, tutti_tensor_data(tensor), bytes, until)
                              : tutti_fail(TUTTI_CORRUPT, "a value of another size");
    if (status == TUTTI_OK)
        *ret = tensor;
    else
        tutti_tensor_release(tensor);
    return status;
}

static tutti_status get_strings(tutti_channel *channel, const tutti_type *type,
                                const value_head *head, int64_t until, tutti_tensor **ret)
{
    tutti_type plain = {.dtype = TUTTI_U8, .rank = 1, .dims = {(int64_t)head->bytes}},
               counts = *type;
    tutti_tensor *bytes, *lengths;
    counts.dtype = TUTTI_I64;
    TUTTI_TRY(get_tensor(channel, &plain, head->bytes, until, &bytes));
    tutti_status status = get_tensor(channel, &counts, head->lengths, until, &lengths);
    if (status == TUTTI_OK) {
        status = tutti__tensor_unpack_strings(bytes, lengths, ret);
        tutti_tensor_release(lengths);
    }
    tutti_tensor_release(bytes);
    return status;
}

static tutti_status get_value(tutti_state *state, tutti_channel *channel, int64_t until,
                              tutti_version_value *ret)
{
    value_head head;
    char name[NAME_MOST];
    TUTTI_TRY(survivors_recv(channel, &head, sizeof head, until));
    if (head.name >= sizeof name)
        return tutti_fail(TUTTI_CORRUPT, "a name of %llu bytes", (unsigned long long)head.name);
    TUTTI_TRY(survivors_recv(channel, name, head.name, until));
    name[head.name] = '\0';
    tutti_state_variable *variable = tutti__state_find(state, name);
    if (!variable)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no variable '%s' here", name);
    ret->variable = variable;
    return variable->type.dtype == TUTTI_STRING
               ? get_strings(channel, &variable->type, &head, until, &ret->value)
               : get_tensor(channel, &variable->type, head.bytes, until, &ret->value);
}

static tutti_status get_state(tutti_state *state, tutti_channel *channel, int64_t until)
{
    enum { VALUES_MOST = 1 << 24 };
    uint64_t head[2];
    TUTTI_TRY(survivors_recv(channel, head, sizeof head, until));
    tutti_version_values values = {.number = head[0]};
    values.list = head[1] < VALUES_MOST ? calloc(head[1] + 1, sizeof *values.list) : NULL;
    tutti_status status =
        values.list ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a version");
    while (status == TUTTI_OK && values.count < head[1]) {
        status = get_value(state, channel, until, &values.list[values.count]);
        values.count += status == TUTTI_OK;
    }
    if (status == TUTTI_OK)
        status = tutti__version_put(state, &values);
    tutti__version_release(&values);
    return status;
}

/* ---- versions ---- */

static versions own_versions(const survival *s)
{
    versions own = {.count = s->groups->states.count < STATES ? s->groups->states.count : STATES};
    for (size_t i = 0; i < own.count; i++)
        own.of[i] = tutti__state_version(s->groups->states.data[i]);
    return own;
}

/* Whether `a` has all that `best` has. */
static bool holds(const versions *a, const versions *best)
{
    for (size_t i = 0; i < best->count && i < STATES; i++)
        if (i >= a->count || a->of[i] != best->of[i])
            return false;
    return true;
}

static void do_duty(survival *s, tutti_channel *channel, const duties *given, tutti_status *status)
{
    for (size_t i = 0; i < given->best.count && i < STATES && *status == TUTTI_OK; i++)
        if (given->duty[i] != DUTY_NONE && i >= s->groups->states.count)
            *status = tutti_fail(TUTTI_CORRUPT, "there is no state %zu here", i);
        else if (given->duty[i] == DUTY_GIVE)
            *status = give_state(s->groups->states.data[i], channel, s->until);
        else if (given->duty[i] == DUTY_GET)
            *status = get_state(s->groups->states.data[i], channel, s->until);
}

/* ---- ranks that follow the chief ---- */

static tutti_status follow(survival *s, tutti_channel *channel)
{
    versions own = own_versions(s);
    duties given;
    outcome result;
    TUTTI_TRY(survivors_send(channel, &own, sizeof own, s->until));
    TUTTI_TRY(survivors_recv(channel, &given, sizeof given, s->until));
    tutti_status status = TUTTI_OK;
    do_duty(s, channel, &given, &status);
    TUTTI_TRY(status);
    own = own_versions(s);
    TUTTI_TRY(survivors_send(channel, &own, sizeof own, s->until));
    TUTTI_TRY(survivors_recv(channel, &result, sizeof result, s->until));
    s->result = result;
    return TUTTI_OK;
}

/* ---- the chief ---- */

static bool is_gone(const survival *s, int rank)
{
    return rank == s->verdict.rank && s->verdict.why != TUTTI_FAILURE_ABORTED &&
           s->verdict.why != TUTTI_FAILURE_BROKEN;
}

static void lose(survival *s, int rank)
{
    tutti__channel_close(s->channels[rank]);
    s->channels[rank] = NULL;
    s->all[rank] = (versions){0};
    tutti__ranks_add(&s->result.silent, rank);
}

/* The rank that failed, and says so itself, may be gone by now: it is not waited for long. */
static int64_t wait_for(const survival *s, int rank)
{
    int64_t soon = tutti__now_ns() + CULPRIT_MS * (int64_t)MILLISECOND;
    return rank == s->verdict.rank && soon < s->until ? soon : s->until;
}

/* The channel between this rank and another: lower ones call, which is waited for until `until`, or
 * until that one has ended. */
static tutti_status meet(const survival *s, int rank, int64_t until, tutti_channel **ret)
{
    const int64_t look_ns = 300 * (int64_t)MILLISECOND;
    for (;;) {
        int64_t soon = tutti__now_ns() + look_ns;
        bool waits = rank < s->members->rank;
        tutti_status status = tutti__channel_open(s->members, rank, TUTTI_CHANNEL_AFTER_VERDICT,
                                                  waits && soon < until ? soon : until, ret);
        if (status == TUTTI_OK || !waits || tutti__now_ns() >= until ||
            !tutti__channel_listens(s->members, rank))
            return status;
    }
}

static void call_all(survival *s)
{
    for (int r = 0; r < s->members->size; r++) {
        if (r == s->members->rank || is_gone(s, r))
            continue;
        if (meet(s, r, wait_for(s, r), &s->channels[r]) != TUTTI_OK)
            lose(s, r);
    }
    for (int r = 0; r < s->members->size; r++)
        if (s->channels[r] && survivors_recv(s->channels[r], &s->all[r], sizeof s->all[r],
                                             wait_for(s, r)) != TUTTI_OK)
            lose(s, r);
}

/* The lowest rank that has the highest version of a state. */
static int find_giver(const survival *s, size_t state, uint64_t *ret_version)
{
    int giver = s->members->rank;
    *ret_version = s->all[giver].of[state];
    for (int r = 0; r < s->members->size; r++)
        if (s->channels[r] && state < s->all[r].count && s->all[r].of[state] > *ret_version) {
            giver = r;
            *ret_version = s->all[r].of[state];
        }
    return giver;
}

static void give_orders(survival *s, const int *giver)
{
    for (int r = 0; r < s->members->size; r++) {
        duties given = {.best = s->result.best};
        for (size_t i = 0; i < given.best.count; i++)
            given.duty[i] = giver[i] == r                            ? DUTY_GIVE
                            : s->all[r].of[i] < s->result.best.of[i] ? DUTY_GET
                                                                     : DUTY_NONE;
        if (s->channels[r] &&
            survivors_send(s->channels[r], &given, sizeof given, s->until) != TUTTI_OK)
            lose(s, r);
    }
}

static void pass_values(survival *s, const int *giver)
{
    int own = s->members->rank;
    for (size_t i = 0; i < s->result.best.count; i++) {
        tutti_state *state = s->groups->states.data[i];
        if (giver[i] != own && s->channels[giver[i]] &&
            get_state(state, s->channels[giver[i]], s->until) != TUTTI_OK)
            lose(s, giver[i]);
        for (int r = 0; r < s->members->size; r++)
            if (r != giver[i] && s->channels[r] && s->all[r].of[i] < s->result.best.of[i] &&
                (tutti__state_version(state) != s->result.best.of[i] ||
                 give_state(state, s->channels[r], s->until) != TUTTI_OK))
                lose(s, r);
    }
}

static void conclude(survival *s)
{
    int own = s->members->rank;
    s->all[own] = own_versions(s);
    for (int r = 0; r < s->members->size; r++) {
        if (s->channels[r] &&
            survivors_recv(s->channels[r], &s->all[r], sizeof s->all[r], s->until) != TUTTI_OK)
            lose(s, r);
        if ((r == own || s->channels[r]) && holds(&s->all[r], &s->result.best))
            tutti__ranks_add(&s->result.hold, r);
    }
    for (int r = 0; r < s->members->size; r++)
        if (s->channels[r])
            (void)survivors_send(s->channels[r], &s->result, sizeof s->result, s->until);
}

static tutti_status lead(survival *s)
{
    int giver[STATES];
    size_t size = (size_t)s->members->size;
    s->channels = calloc(size, sizeof(tutti_channel *));
    s->all = calloc(size, sizeof *s->all);
    if (!s->channels || !s->all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu processes", size);
    s->result.best = s->all[s->members->rank] = own_versions(s);
    call_all(s);
    for (size_t i = 0; i < s->result.best.count; i++)
        giver[i] = find_giver(s, i, &s->result.best.of[i]);
    give_orders(s, giver);
    pass_values(s, giver);
    conclude(s);
    return TUTTI_OK;
}

/* ---- all ---- */

/* Lower ranks that are left lead; who waits for all of them in vain leads those above it. */
static tutti_status lead_or_follow(survival *s)
{
    int own = s->members->rank;
    for (int chief = 0; chief < own; chief++) {
        tutti_channel *channel;
        if (chief == s->verdict.rank || meet(s, chief, s->until, &channel) != TUTTI_OK)
            continue;
        tutti_status status = follow(s, channel);
        tutti__channel_close(channel);
        return status;
    }
    return lead(s);
}

/* The rank that failed by its own word follows, also where it is the lowest. */
static tutti_status follow_above(survival *s)
{
    tutti_channel *channel;
    int chief = s->members->rank == 0 ? 1 : 0;
    TUTTI_TRY(
        tutti__channel_open(s->members, chief, TUTTI_CHANNEL_AFTER_VERDICT, s->until, &channel));
    tutti_status status = follow(s, channel);
    tutti__channel_close(channel);
    return status;
}

static void write_ranks(const tutti_ranks *ranks, int size, tutti_text *text)
{
    int listed = 0;
    tutti__text_add(text, tutti__ranks_count(ranks, size) == 1 ? "rank" : "ranks");
    for (int r = 0; r < size && listed < 16; r++)
        if (tutti__ranks_have(ranks, r))
            tutti__text_add(text, listed++ ? ", %d" : " %d", r);
    if (tutti__ranks_count(ranks, size) > listed)
        tutti__text_add(text, ", ...");
}

static void write_versions(const versions *v, tutti_text *text)
{
    for (size_t i = 0; i < v->count; i++)
        tutti__text_add(text, i ? ", %llu" : "%llu", (unsigned long long)v->of[i]);
}

static tutti_status survivors_tell(const survival *s, tutti_status came, const tutti_error *cause)
{
    tutti_text text = {0};
    versions own = own_versions(s);
    int size = s->members->size;
    if (came == TUTTI_OK) {
        write_ranks(&s->result.hold, size, &text);
        tutti__text_add(&text, tutti__ranks_count(&s->result.hold, size) == 1 ? " holds version "
                                                                              : " hold version ");
        write_versions(&s->result.best, &text);
    }
    if (came != TUTTI_OK || !holds(&own, &s->result.best)) {
        tutti__text_add(&text, "%srank %d holds version ", text.size ? ", " : "", s->members->rank);
        write_versions(&own, &text);
        if (came != TUTTI_OK)
            tutti__text_add(&text, ", and the others could not be asked for theirs");
    }
    if (came == TUTTI_OK && tutti__ranks_count(&s->result.silent, size) > 0) {
        tutti__text_add(&text, "; not reached: ");
        write_ranks(&s->result.silent, size, &text);
    }
    tutti_status status =
        tutti_fail(cause->status, "%s; %s", cause->message, text.failed ? "" : text.data);
    tutti__text_free(&text);
    return status;
}

static tutti_status survivors_compare(survival *s, const tutti_error *cause)
{
    int64_t patience = 0;
    if (tutti__param_in(&patience_param, 0, PATIENCE_MOST_MS, &patience) != TUTTI_OK)
        patience = 10000;
    s->until = tutti__now_ns() + patience * MILLISECOND;
    tutti__membership_verdict(s->members, &s->verdict);
    bool alone = s->verdict.rank == s->members->rank;
    tutti_status came = alone && is_gone(s, s->verdict.rank)
                            ? tutti_fail(TUTTI_CLOSED, "the others have given it up")
                        : alone ? follow_above(s)
                                : lead_or_follow(s);
    for (int r = 0; s->channels && r < s->members->size; r++)
        tutti__channel_close(s->channels[r]);
    free(s->channels);
    free(s->all);
    return survivors_tell(s, came, cause);
}

/* The membership of groups whose verdict is there, or will be; else NULL. */
static tutti_membership *judged(const tutti_axis_groups *groups)
{
    const int64_t soon_ns = INT64_C(1500000000);
    tutti_membership *members = groups && groups->world ? groups->world->fabric->membership : NULL;
    if (!members || members->size < 2 || !tutti__membership_deciding(members) ||
        !tutti__membership_await_verdict(members, tutti__now_ns() + soon_ns))
        return NULL;
    return members;
}

tutti_status tutti__axis_groups_survive(tutti_axis_groups *groups, tutti_status status)
{
    tutti_error cause;
    tutti__error_capture(status, &cause);
    tutti_membership *members = judged(groups);
    if (!members)
        return tutti__error_restore(&cause);
    pthread_mutex_lock(&groups->surviving);
    survival s = {.groups = groups, .members = members};
    tutti__membership_verdict(members, &s.verdict);
    bool first =
        !groups->survived && groups->states.count > 0 && s.verdict.why != TUTTI_FAILURE_LAUNCHER;
    status = first ? survivors_compare(&s, &cause) : tutti__error_restore(&cause);
    groups->survived = true;
    pthread_mutex_unlock(&groups->surviving);
    return status;
}

tutti_status tutti__axis_groups_add_state(tutti_axis_groups *groups, tutti_state *state)
{
    pthread_mutex_lock(&groups->surviving);
    bool ok = TUTTI_VEC_PUSH(&groups->states, state);
    pthread_mutex_unlock(&groups->surviving);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
}

void tutti__axis_groups_remove_state(tutti_axis_groups *groups, tutti_state *state)
{
    tutti_error before;
    size_t kept = 0;
    if (groups->world && groups->world->fabric->membership &&
        tutti__membership_failed(groups->world->fabric->membership)) {
        tutti__error_capture(TUTTI_OK, &before);
        (void)tutti__axis_groups_survive(groups, TUTTI_CLOSED);
        tutti__error_restore(&before);
    }
    pthread_mutex_lock(&groups->surviving);
    for (size_t i = 0; i < groups->states.count; i++)
        if (groups->states.data[i] != state)
            groups->states.data[kept++] = groups->states.data[i];
    groups->states.count = kept;
    pthread_mutex_unlock(&groups->surviving);
}
