/* journal.c: see journal.h. The file begins with a mark; a new mark replaces it. */
#include "service/coordinator/journal.h"

#include <inttypes.h>
#include <stdlib.h>

static const uint64_t journal_magic = UINT64_C(0x314c4e524a545454); /* "TTTJRNL1" */
enum { RECORD_MARK = 1, RECORD_DONE = 2 };
#define JOURNAL_MOST_BYTES ((size_t)1 << 32)

void tutti__closure_outcome_free(tutti_closure_outcome *outcome)
{
    free(outcome->text);
    free(outcome->results);
    *outcome = (tutti_closure_outcome){0};
}

tutti_status tutti__closure_outcome_make(tutti_status status, const char *text, const void *results,
                                         size_t size, tutti_closure_outcome *ret)
{
    tutti_closure_outcome made = {.status = status, .size = size};
    made.text = strdup(text ? text : "");
    made.results = malloc(size + 1);
    if (!made.text || !made.results) {
        tutti__closure_outcome_free(&made);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for what came of a closure");
    }
    if (size > 0)
        memcpy(made.results, results, size);
    *ret = made;
    return TUTTI_OK;
}

static void forget_done(tutti_journal *j)
{
    for (size_t i = 0; i < j->done.count; i++)
        tutti__closure_outcome_free(&j->done.data[i].outcome);
    j->done.count = 0;
}

/* ---- to bytes ---- */

static void put_mark(const tutti_journal *j, tutti_text *out)
{
    saved_put(out, RECORD_MARK);
    saved_put(out, journal_magic);
    saved_put(out, j->store);
    saved_put(out, (uint64_t)j->position);
    saved_put(out, j->next);
    saved_put(out, j->next_key);
    saved_put_bytes(out, j->state, j->state_bytes);
}

static void put_done(const tutti_journal_entry *e, tutti_text *out)
{
    saved_put(out, RECORD_DONE);
    saved_put(out, e->number);
    saved_put(out, e->hash);
    saved_put(out, (uint64_t)(int64_t)e->outcome.status);
    saved_put_bytes(out, e->outcome.text, strlen(e->outcome.text));
    saved_put_bytes(out, e->outcome.results, e->outcome.size);
}

/* The bytes, their number before them and their hash behind. */
static tutti_status frame_record(const tutti_text *body, tutti_text *out)
{
    saved_put_bytes(out, body->data, body->size);
    saved_put(out, tutti__hash_bytes(0, body->data, body->size));
    return body->failed || out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for the journal")
                                       : TUTTI_OK;
}

static tutti_status append(tutti_journal *j, const tutti_text *record)
{
    const tutti_world *w = tutti__world();
    if (!j->path)
        return TUTTI_OK;
    if (!j->file)
        TUTTI_TRY(w->open_file(w->self, j->path, TUTTI_FILE_APPEND, &j->file, &j->size));
    TUTTI_TRY(w->write_at(w->self, j->file, j->size, record->data, record->size));
    j->size += (int64_t)record->size;
    return TUTTI_OK;
}

/* The whole file anew: what is remembered, and nothing else. */
static tutti_status rewrite(tutti_journal *j)
{
    const tutti_world *w = tutti__world();
    tutti_text body = {0}, file = {0};
    if (!j->path)
        return TUTTI_OK;
    if (j->file)
        TUTTI_TRY(w->close_file(w->self, j->file, true));
    j->file = NULL;
    put_mark(j, &body);
    tutti_status status = frame_record(&body, &file);
    for (size_t i = 0; status == TUTTI_OK && i < j->done.count; i++) {
        tutti__text_free(&body);
        put_done(&j->done.data[i], &body);
        status = frame_record(&body, &file);
    }
    if (status == TUTTI_OK)
        status = w->write_file(w->self, j->path, file.data, file.size);
    tutti__text_free(&body);
    tutti__text_free(&file);
    return status;
}

/* ---- and back ---- */

static tutti_status keep_state(tutti_journal *j, const void *state, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of servers", size);
    if (size > 0)
        memcpy(copy, state, size);
    free(j->state);
    j->state = copy;
    j->state_bytes = size;
    return TUTTI_OK;
}

static tutti_status read_mark(tutti_journal *j, saved_reader *in)
{
    if (saved_get(in) != journal_magic)
        return tutti_fail(TUTTI_CORRUPT, "%s is no journal of a coordinator; name another file",
                          j->path);
    j->store = saved_get(in);
    j->position = (int64_t)saved_get(in);
    j->next = saved_get(in);
    j->next_key = saved_get(in);
    tutti_packed_data state = saved_get_bytes(in);
    return in->bad ? tutti_fail(TUTTI_CORRUPT, "%s is of another version of tutti", j->path)
                   : keep_state(j, state.bytes, state.size);
}

static tutti_status insert_done(tutti_journal *j, const tutti_journal_entry *e)
{
    if (!TUTTI_VEC_RESERVE_ONE(&j->done))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the journal");
    size_t at = j->done.count++;
    for (; at > 0 && j->done.data[at - 1].number > e->number; at--)
        j->done.data[at] = j->done.data[at - 1];
    j->done.data[at] = *e;
    return TUTTI_OK;
}

static tutti_status read_done(tutti_journal *j, saved_reader *in)
{
    tutti_journal_entry e = {.number = saved_get(in), .hash = saved_get(in)};
    tutti_status status = (tutti_status)(int64_t)saved_get(in);
    tutti_packed_data text = saved_get_bytes(in), results = saved_get_bytes(in);
    if (in->bad || tutti__journal_find(j, e.number))
        return TUTTI_OK;
    char *words = malloc(text.size + 1);
    if (!words)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the journal");
    if (text.size > 0)
        memcpy(words, text.bytes, text.size);
    words[text.size] = '\0';
    tutti_status made =
        tutti__closure_outcome_make(status, words, results.bytes, results.size, &e.outcome);
    free(words);
    TUTTI_TRY(made);
    made = insert_done(j, &e);
    if (made != TUTTI_OK)
        tutti__closure_outcome_free(&e.outcome);
    return made;
}

static tutti_status read_records(tutti_journal *j, const uint8_t *data, size_t size)
{
    saved_reader in = {data, data + size, false};
    bool first = true;
    while (in.at < in.end) {
        tutti_packed_data body = saved_get_bytes(&in);
        uint64_t hash = saved_get(&in);
        if (in.bad || hash != tutti__hash_bytes(0, body.bytes, body.size))
            break; /* cut short when the coordinator was killed */
        saved_reader record = {body.bytes, body.bytes + body.size, false};
        uint64_t kind = saved_get(&record);
        if (first != (kind == RECORD_MARK))
            return tutti_fail(TUTTI_CORRUPT, "%s is no journal of a coordinator; name another file",
                              j->path);
        TUTTI_TRY(first ? read_mark(j, &record) : read_done(j, &record));
        first = false;
    }
    return first ? tutti_fail(TUTTI_CORRUPT, "%s is no journal of a coordinator; name another file",
                              j->path)
                 : TUTTI_OK;
}

tutti_status tutti__journal_open(const char *path, tutti_journal *ret_journal)
{
    const tutti_world *w = tutti__world();
    tutti_journal made = {.path = path ? strdup(path) : NULL, .next = 1};
    void *data = NULL;
    size_t size = 0;
    if (path && !made.path)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the journal %s", path);
    tutti_status status =
        path ? w->read_file(w->self, path, JOURNAL_MOST_BYTES, &data, &size) : TUTTI_NOT_FOUND;
    if (status == TUTTI_OK)
        status = read_records(&made, data, size);
    else if (status == TUTTI_NOT_FOUND)
        status = TUTTI_OK;
    free(data);
    if (status == TUTTI_OK) /* without what was cut short */
        status = rewrite(&made);
    if (status == TUTTI_OK)
        *ret_journal = made;
    else
        tutti__journal_close(&made);
    return status;
}

void tutti__journal_close(tutti_journal *j)
{
    const tutti_world *w = tutti__world();
    if (j->file)
        w->close_file(w->self, j->file, true);
    forget_done(j);
    TUTTI_VEC_FREE(&j->done);
    free(j->path);
    free(j->state);
    *j = (tutti_journal){0};
}

tutti_status tutti__journal_of_store(tutti_journal *j, uint64_t store)
{
    if (j->store == store)
        return TUTTI_OK;
    forget_done(j);
    j->store = store;
    return rewrite(j);
}

tutti_status tutti__journal_done(tutti_journal *j, uint64_t number, uint64_t hash,
                                 const tutti_closure_outcome *outcome)
{
    tutti_journal_entry e = {.number = number, .hash = hash};
    tutti_text body = {0}, record = {0};
    TUTTI_TRY(tutti__closure_outcome_make(outcome->status, outcome->text, outcome->results,
                                          outcome->size, &e.outcome));
    put_done(&e, &body);
    tutti_status status = frame_record(&body, &record);
    if (status == TUTTI_OK)
        status = append(j, &record);
    if (status == TUTTI_OK)
        status = insert_done(j, &e);
    if (status != TUTTI_OK)
        tutti__closure_outcome_free(&e.outcome);
    tutti__text_free(&body);
    tutti__text_free(&record);
    return status;
}

const tutti_journal_entry *tutti__journal_find(const tutti_journal *j, uint64_t number)
{
    size_t from = 0, to = j->done.count;
    while (from < to) {
        size_t at = from + (to - from) / 2;
        if (j->done.data[at].number < number)
            from = at + 1;
        else
            to = at;
    }
    return from < j->done.count && j->done.data[from].number == number ? &j->done.data[from] : NULL;
}

tutti_status tutti__journal_mark(tutti_journal *j, int64_t position, uint64_t next,
                                 uint64_t next_key, const void *state, size_t state_bytes)
{
    TUTTI_TRY(keep_state(j, state, state_bytes));
    forget_done(j);
    j->position = position;
    j->next = next;
    j->next_key = next_key;
    return rewrite(j);
}
