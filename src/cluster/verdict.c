/* verdict.c: a verdict in words. */
#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "cluster/roster.h"

static void write_cause(const tutti_verdict *v, tutti_text *text)
{
    switch (v->why) {
    case TUTTI_FAILURE_CLOSED:
        tutti__text_add(text, " is gone: connection closed by host%s%s", v->reason[0] ? ", " : "",
                        v->reason);
        break;
    case TUTTI_FAILURE_SIGNAL:
        tutti__text_add(text, " was ended by signal %d (%s)", (int)v->detail,
                        strsignal((int)v->detail));
        break;
    case TUTTI_FAILURE_EXIT:
        tutti__text_add(text, " exited with code %d before the job was finished", (int)v->detail);
        break;
    case TUTTI_FAILURE_SILENT:
        tutti__text_add(text, " has not been heard for %.1f s: %s", (double)v->detail / 1000,
                        v->reason[0] ? v->reason
                                     : "stopped, without a network, or its machine is down");
        break;
    default:
        tutti__text_add(text, " was given up: %s", v->reason);
    }
}

/* "0-2, 5" */
static void write_ranks(const tutti_ranks *ranks, int size, tutti_text *text)
{
    const char *comma = "";
    int listed = 0;
    for (int r = 0; r < size; r++) {
        int first = r;
        while (r < size && tutti__ranks_have(ranks, r))
            r++;
        if (r == first)
            continue;
        if (listed++ == 16) {
            tutti__text_add(text, ", ...");
            return;
        }
        tutti__text_add(text, r - first > 1 ? "%s%d-%d" : "%s%d", comma, first, r - 1);
        comma = ", ";
    }
    if (listed == 0)
        tutti__text_add(text, "none");
}

/* Of a rank that ended before the writer had met all others nothing is known here: it may never
 * have joined, or rank 0's word that all have is still on its way. */
static void write_place(const tutti_verdict *v, tutti_text *text)
{
    if (v->host[0] && v->pid > 0)
        tutti__text_add(text, " (host %s, process %lld)", v->host, (long long)v->pid);
    else if (v->host[0])
        tutti__text_add(text, " (host %s)", v->host);
    else
        tutti__text_add(text, " (which was not met yet)");
}

/* The same behind words of the rank's own. */
static void write_place_behind(const tutti_verdict *v, tutti_text *text)
{
    if (v->host[0] && v->pid > 0)
        tutti__text_add(text, "; it was process %lld on host %s", (long long)v->pid, v->host);
    else if (v->host[0])
        tutti__text_add(text, "; it was on host %s", v->host);
}

static bool is_member(const tutti_verdict *v, int rank)
{
    return v->group == 0 || tutti__ranks_have(&v->members, rank);
}

static bool is_group_known(const tutti_verdict *v, int size)
{
    return v->group == 0 || tutti__ranks_count(&v->members, size) > 0;
}

static bool is_known_of_all(const tutti_verdict *v, int size)
{
    if (!is_group_known(v, size))
        return false;
    for (int r = 0; r < size; r++)
        if (is_member(v, r) && !tutti__ranks_have(&v->arrived, r) &&
            !tutti__ranks_have(&v->absent, r))
            return false;
    return true;
}

static void write_group(const tutti_verdict *v, int size, tutti_text *text)
{
    int members = tutti__ranks_count(&v->members, size);
    if (v->group != 0 && members > 0)
        tutti__text_add(text, " of a group of %d ranks", members);
    else if (v->group != 0)
        tutti__text_add(text, " of a group whose ranks are not known");
}

/* Who is missing can be told where it is known of all, and the group is known. */
static void write_operation(const tutti_verdict *v, int size, bool whole, tutti_text *text)
{
    tutti_ranks missing = {0};
    tutti__text_add(text, "; in %s number %llu", v->operation, (unsigned long long)v->sequence);
    write_group(v, size, text);
    tutti__text_add(text, "; %s: ", whole ? "arrived" : "known to have arrived");
    write_ranks(&v->arrived, size, text);
    if (!whole || !is_group_known(v, size))
        return;
    for (int r = 0; r < size; r++)
        if (!tutti__ranks_have(&v->arrived, r) && is_member(v, r))
            tutti__ranks_add(&missing, r);
    tutti__text_add(text, "; missing: ");
    write_ranks(&missing, size, text);
    if (v->why == TUTTI_FAILURE_BROKEN && v->detail == TUTTI_DEADLINE &&
        tutti__ranks_count(&missing, size) == 0)
        tutti__text_add(text, " (do all call it with the same sizes, type and root?)");
}

/* Who failed, and how; without what waited for it. */
static void write_failure(const tutti_verdict *v, tutti_text *text)
{
    if (v->rank < 0)
        tutti__text_add(text, "the launcher is gone%s%s", v->reason[0] ? ": " : "", v->reason);
    else if (v->why == TUTTI_FAILURE_BROKEN)
        tutti__text_add(text, "%s, says rank %d", v->reason, v->rank);
    else if (v->why == TUTTI_FAILURE_ABORTED) { /* as ranks of its own machine say it */
        tutti__text_add(text, "rank %d aborted: %s", v->rank, v->reason);
        write_place_behind(v, text);
    } else {
        tutti__text_add(text, "rank %d", v->rank);
        write_place(v, text);
        write_cause(v, text);
    }
}

void tutti__verdict_write(tutti_verdict *verdict, int size, int writer)
{
    tutti_text text = {0};
    bool during = verdict->operation[0] != '\0';
    bool whole = writer == 0 || is_known_of_all(verdict, size);
    write_failure(verdict, &text);
    if (verdict->training[0] != '\0')
        tutti__text_add(&text, "; %s", verdict->training);
    if (during)
        write_operation(verdict, size, whole, &text);
    else
        tutti__text_add(&text, "; no collective %s",
                        verdict->rank < 0 ? "was under way" : "waited for it");
    if (!whole)
        tutti__text_add(&text, " (as rank %d sees it: rank 0 cannot be asked)", writer);
    snprintf(verdict->text, sizeof verdict->text, "%s", text.failed ? "a rank failed" : text.data);
    tutti__text_free(&text);
}

size_t tutti__verdict_failure_size(const tutti_verdict *verdict)
{
    tutti_text text = {0};
    size_t whole = strlen(verdict->text);
    write_failure(verdict, &text);
    bool begins = !text.failed && text.size < whole && verdict->text[text.size] == ';' &&
                  memcmp(verdict->text, text.data, text.size) == 0;
    size_t size = begins ? text.size : whole; /* of another writer's words nothing is left out */
    tutti__text_free(&text);
    return size;
}

void tutti__verdict_waiting(const tutti_verdict *verdict, int size, char *ret_text, size_t room)
{
    tutti_text text = {0};
    tutti_ranks waiting = {0};
    for (int r = 0; r < size; r++)
        if (r != verdict->rank && tutti__ranks_have(&verdict->arrived, r))
            tutti__ranks_add(&waiting, r);
    int count = tutti__ranks_count(&waiting, size);
    if (verdict->operation[0] == '\0' || count == 0)
        tutti__text_add(&text, "no rank waited for it in a collective");
    else {
        tutti__text_add(&text, "waiting for it: rank%s ", count == 1 ? "" : "s");
        write_ranks(&waiting, size, &text);
        tutti__text_add(&text, ", in %s number %llu", verdict->operation,
                        (unsigned long long)verdict->sequence);
        write_group(verdict, size, &text);
    }
    if (verdict->training[0] != '\0')
        tutti__text_add(&text, "; %s", verdict->training);
    snprintf(ret_text, room, "%s", text.failed ? "" : text.data);
    tutti__text_free(&text);
}

void tutti__verdict_add(tutti_verdict *verdict, int size, const tutti_ranks *come,
                        const tutti_ranks *absent)
{
    bool known = is_group_known(verdict, size);
    for (int r = 0; r < size; r++) {
        if (known && !is_member(verdict, r))
            continue;
        if (tutti__ranks_have(come, r) && !tutti__ranks_have(&verdict->arrived, r)) {
            tutti__ranks_add(&verdict->arrived, r);
            verdict->arrived_count++;
        }
        if (tutti__ranks_have(absent, r))
            tutti__ranks_add(&verdict->absent, r);
    }
}
