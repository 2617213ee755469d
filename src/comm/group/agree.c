/* agree.c: whether all ranks will do the same. A hash over each beginning of the list makes the
 * first difference a matter of halving: log2 of the list's length small gathers, and none but one
 * where nothing differs. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/require.h"
#include "comm/comm.h"

/* What is shown of a text, with signs around it; of a long one, a window that moves along it. */
enum { TEXT_BYTES = 200, WINDOW = 190, SHOWN_BEFORE = 40 };

typedef struct agreement {
    tutti_comm *comm;
    const tutti_comm_call *call;
    const char *what, *const *operations;
    int64_t count, least; /* `least`: of all ranks */
    uint64_t *beginnings; /* [count + 1]: hash of the first i operations */
    uint64_t *all;        /* [ranks] room */
} agreement;

static uint64_t *hash_beginnings(const char *const *operations, int64_t count)
{
    int64_t bytes;
    if (count < 0 || !tutti__mul_size(count + 1, (int64_t)sizeof(uint64_t), &bytes))
        return NULL;
    uint64_t *beginnings = malloc((size_t)bytes);
    if (!beginnings)
        return NULL;
    beginnings[0] = 0x7475747469;
    for (int64_t i = 0; i < count; i++)
        beginnings[i + 1] = tutti__hash_string(tutti__hash_mix(beginnings[i], 1), operations[i]);
    return beginnings;
}

/* The first rank whose value differs from rank 0's; 0 when none does. Equal on all ranks. */
static tutti_status agree_gather(agreement *a, uint64_t value, int *ret_other)
{
    TUTTI_TRY(tutti_comm_all_gather(a->comm, &value, a->all, 1, TUTTI_I64, a->call));
    int other = 0;
    for (int r = a->comm->size - 1; r > 0; r--)
        other = a->all[r] != a->all[0] ? r : other;
    *ret_other = other;
    return TUTTI_OK;
}

/* How many operations at the start are the same everywhere. */
static tutti_status find_first(agreement *a, int64_t *ret_same)
{
    int64_t low = 0, high = a->least; /* beginnings of `low` are the same */
    int other;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        TUTTI_TRY(agree_gather(a, a->beginnings[middle], &other));
        if (other == 0)
            low = middle;
        else
            high = middle - 1;
    }
    *ret_same = low;
    return TUTTI_OK;
}

/* What a rank says of its first operation that differs, from byte `from` on: nothing beyond its
 * end. */
static void write_window(const agreement *a, int64_t same, size_t from, char *ret_text)
{
    const char *text = same < a->count ? a->operations[same] : "nothing more";
    const char *quote = same < a->count ? "'" : "";
    size_t length = strlen(text);
    memset(ret_text, 0, TEXT_BYTES);
    if (from <= length)
        snprintf(ret_text, TEXT_BYTES, "%s%s%s%s", quote, from > 0 ? "..." : "", text + from,
                 strlen(text + from) < WINDOW ? quote : "");
}

/* Everybody learns rank 0's text and that of the first rank with another one, around the place
 * where they begin to differ. */
static tutti_status differ(agreement *a, int64_t same)
{
    int ranks = a->comm->size, other = 0;
    char own[TEXT_BYTES], *texts = malloc((size_t)ranks * TEXT_BYTES);
    uint64_t hash = same < a->count ? tutti__hash_string(1, a->operations[same]) : 0;
    if (!texts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d texts", ranks);
    tutti_status status = agree_gather(a, hash, &other);
    const char *its = texts + (size_t)other * TEXT_BYTES;
    for (size_t from = 0; status == TUTTI_OK; from += WINDOW - SHOWN_BEFORE) {
        write_window(a, same, from, own);
        status = tutti_comm_all_gather(a->comm, own, texts, TEXT_BYTES, TUTTI_U8, a->call);
        if (status != TUTTI_OK || memcmp(its, texts, TEXT_BYTES) != 0 || its[0] == 0)
            break;
    }
    /* Who compares nothing sends something else. */
    for (int i = 0; status == TUTTI_OK && i < ranks * TEXT_BYTES; i++)
        texts[i] = texts[i] != 0 && !isprint((unsigned char)texts[i]) ? '?' : texts[i];
    if (status == TUTTI_OK) {
        char name[320];
        int member = a->comm->members[other];
        status = tutti_fail(
            TUTTI_INVALID,
            "%s has another %s than rank 0: operation %lld is %.*s there and %.*s on rank 0; do "
            "all ranks run the same program with the same options?",
            tutti__fabric_name(a->comm->fabric, member, name, sizeof name), a->what,
            (long long)same + 1, TEXT_BYTES, its, TEXT_BYTES, texts);
    }
    free(texts);
    return status;
}

static tutti_status agree_compare(agreement *a, uint64_t hash)
{
    int other;
    uint64_t whole = tutti__hash_mix(a->beginnings[a->count], hash);
    TUTTI_TRY(agree_gather(a, whole, &other));
    if (other == 0)
        return TUTTI_OK;
    int64_t same;
    a->least = a->count;
    TUTTI_TRY(
        tutti_comm_all_reduce(a->comm, &a->least, &a->least, 1, TUTTI_I64, TUTTI_MIN, a->call));
    TUTTI_TRY(find_first(a, &same));
    TUTTI_TRY(agree_gather(a, a->beginnings[a->count], &other));
    if (other != 0)
        return differ(a, same);
    TUTTI_TRY(agree_gather(a, hash, &other));
    char name[320];
    return tutti_fail(
        TUTTI_INVALID,
        "%s has another %s than rank 0, though its %lld operations have the same "
        "names (%016llx, not %016llx): do all ranks run the same version?",
        tutti__fabric_name(a->comm->fabric, a->comm->members[other], name, sizeof name), a->what,
        (long long)a->count, (unsigned long long)a->all[other], (unsigned long long)a->all[0]);
}

tutti_status tutti_comm_agree(tutti_comm *comm, const char *what, const char *const *operations,
                              int64_t count, uint64_t hash, const tutti_comm_call *given)
{
    TUTTI_REQUIRE(comm);
    TUTTI_REQUIRE(what);
    if (count > 0)
        TUTTI_REQUIRE(operations);
    tutti_comm_call full;
    if (count < 0)
        return tutti_fail(TUTTI_INVALID, "tutti_comm_agree of the %s: %lld operations", what,
                          (long long)count);
    TUTTI_TRY(tutti__call_full("tutti_comm_agree", given, &full));
    tutti_comm_call call = {.struct_size = sizeof call, .timeout = full.timeout, .label = what};
    if (full.request)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_comm_agree of the %s: it waits for all ranks; leave .request out",
                          what);
    agreement a = {.comm = comm,
                   .call = &call,
                   .what = what,
                   .operations = operations,
                   .count = count,
                   .beginnings = hash_beginnings(operations, count),
                   .all = malloc((size_t)comm->size * sizeof *a.all)};
    tutti_status status =
        a.beginnings && a.all
            ? agree_compare(&a, hash)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory to compare %lld operations", (long long)count);
    free(a.beginnings);
    free(a.all);
    return status;
}
