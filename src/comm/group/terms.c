/* terms.c: what all ranks of a cluster must have been opened with alike. Ranks that differ in it
 * would connect in other ways, or wait for other messages, and have other sums; so they compare it
 * before anything else, and all of them say who has what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/world.h"
#include "comm/comm.h"

/* As it travels. Texts are cut; `whole` is the hash of all of `all_reduce`. */
typedef struct terms {
    char engine[32], all_reduce[160];
    uint64_t whole;
    int64_t arena_bytes, silence_ms;
    int32_t streams, measure;
} terms;

static terms terms_of(const tutti_fabric *fabric, const tutti_comm_options *options)
{
    terms own;
    memset(&own, 0, sizeof own);
    snprintf(own.engine, sizeof own.engine, "%s", options->engine ? options->engine : "");
    snprintf(own.all_reduce, sizeof own.all_reduce, "%s",
             options->all_reduce ? options->all_reduce : "");
    own.whole = tutti__hash_string(0, options->all_reduce ? options->all_reduce : "");
    own.arena_bytes = options->arena_bytes;
    own.streams = options->streams;
    own.measure = options->measure;
    own.silence_ms = tutti__membership_silence(fabric->membership) / 1000000;
    return own;
}

static uint64_t hash_of(const terms *own)
{
    uint64_t hash = tutti__hash_mix(tutti__hash_string(0, own->engine), own->whole);
    hash = tutti__hash_mix(hash, (uint64_t)own->arena_bytes);
    hash = tutti__hash_mix(hash, (uint64_t)own->silence_ms);
    return tutti__hash_mix(hash, (uint64_t)own->streams << 1 | (uint64_t)own->measure);
}

static int first_of_machine(const tutti_membership *members, int rank)
{
    int first = 0;
    while (members->peers[first].machine != members->peers[rank].machine)
        first++;
    return first;
}

/* What a choice comes to among these machines: to name the only engine that fits, or none, is the
 * same. */
static const char *engine_of(const tutti_membership *members, const terms *each)
{
    int machines = 0;
    for (int r = 0; r < members->size; r++)
        machines += first_of_machine(members, r) == r;
    if (each->engine[0])
        return each->engine;
    return machines == 1 ? "shm" : machines == members->size ? "tcp" : "";
}

static const char *quoted(const char *text, char *ret_text, size_t size)
{
    snprintf(ret_text, size, text[0] ? "'%s'" : "not given", text);
    return ret_text;
}

static tutti_status differ(const tutti_fabric *fabric, const char *what, int other, int rank,
                           const char *there, const char *here)
{
    char name[2][320], value[2][200];
    return tutti_fail(TUTTI_INVALID,
                      "the %s must be the same on all ranks: it is %s on %s and %s on %s; give all "
                      "ranks the same, or none",
                      what, quoted(there, value[0], sizeof value[0]),
                      tutti__fabric_name(fabric, other, name[0], sizeof name[0]),
                      quoted(here, value[1], sizeof value[1]),
                      tutti__fabric_name(fabric, rank, name[1], sizeof name[1]));
}

static tutti_status differ_in_number(const tutti_fabric *fabric, const char *what, int other,
                                     int rank, int64_t there, int64_t here)
{
    char value[2][32];
    snprintf(value[0], sizeof value[0], "%lld", (long long)there);
    snprintf(value[1], sizeof value[1], "%lld", (long long)here);
    return differ(fabric, what, other, rank, value[0], value[1]);
}

/* The first difference, the same one on all ranks. Where `rank`'s memory lies matters to those of
 * its machine only. */
static tutti_status terms_compare(const tutti_fabric *fabric, const terms *all)
{
    const tutti_membership *members = fabric->membership;
    const char *engine = engine_of(members, &all[0]);
    for (int r = 1; r < fabric->size; r++)
        if (strcmp(engine_of(members, &all[r]), engine) != 0)
            return differ(fabric, "engine (.engine, TUTTI_ENGINE)", 0, r, all[0].engine,
                          all[r].engine);
    bool memory = strcmp(engine, "shm") == 0 || !engine[0];
    bool sockets = strcmp(engine, "tcp") == 0 || !engine[0];
    for (int r = 1; r < fabric->size; r++) {
        const terms *zero = &all[0], *each = &all[r];
        int near = first_of_machine(members, r);
        if (each->whole != zero->whole)
            return differ(fabric, "choice of algorithms (.all_reduce, TUTTI_ALL_REDUCE)", 0, r,
                          zero->all_reduce, each->all_reduce);
        if (sockets && each->streams != zero->streams)
            return differ_in_number(fabric, "number of connections (.streams)", 0, r, zero->streams,
                                    each->streams);
        if (memory && each->arena_bytes != all[near].arena_bytes)
            return differ_in_number(fabric, "size of the arena (.arena_bytes)", near, r,
                                    all[near].arena_bytes, each->arena_bytes);
        if (each->silence_ms != zero->silence_ms)
            return differ_in_number(fabric, "limit of silence (TUTTI_SILENCE_MS)", 0, r,
                                    zero->silence_ms, each->silence_ms);
        if (each->measure != zero->measure)
            return differ_in_number(fabric, "wish to measure (.measure)", 0, r, zero->measure,
                                    each->measure);
    }
    return TUTTI_OK;
}

/* All ranks' terms in full, and what is wrong with them. */
static tutti_status compare_in_full(const tutti_fabric *fabric, const terms *own,
                                    int64_t deadline_ns)
{
    terms *all = calloc((size_t)fabric->size, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the options of %d ranks", fabric->size);
    tutti_status status =
        tutti__membership_exchange(fabric->membership, own, sizeof *own, deadline_ns, all);
    for (int r = 0; status == TUTTI_OK && r < fabric->size; r++)
        all[r].engine[sizeof own->engine - 1] = all[r].all_reduce[sizeof own->all_reduce - 1] = 0;
    tutti_status differs = status == TUTTI_OK ? terms_compare(fabric, all) : TUTTI_OK;
    if (differs != TUTTI_OK) { /* nobody goes before all have heard: that would break links */
        tutti_error error;
        int64_t soon = tutti__now_ns() + 2000000000;
        tutti__error_capture(differs, &error);
        (void)tutti__membership_exchange(fabric->membership, own, sizeof *own,
                                         soon < deadline_ns ? soon : deadline_ns, all);
        status = tutti__error_restore(&error);
    }
    free(all);
    return status;
}

/* A hash first: rank 0 sends to each what it has from all, which is much for thousands. */
tutti_status tutti__comm_compare_terms(const tutti_fabric *fabric,
                                       const tutti_comm_options *options, int64_t deadline_ns)
{
    terms own = terms_of(fabric, options);
    uint64_t hash = hash_of(&own), *all = calloc((size_t)fabric->size, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the options of %d ranks", fabric->size);
    tutti_status status =
        tutti__membership_exchange(fabric->membership, &hash, sizeof hash, deadline_ns, all);
    bool same = true;
    for (int r = 1; r < fabric->size; r++)
        same = same && all[r] == all[0];
    free(all);
    return status != TUTTI_OK || same ? status : compare_in_full(fabric, &own, deadline_ns);
}
