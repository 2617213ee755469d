/* staleness.c: see staleness.h. */
#include "service/store/staleness.h"

#include <inttypes.h>

void tutti__store_staleness_add(tutti_store_staleness *s, uint64_t versions)
{
    s->counts[versions < TUTTI_STALENESS_COUNTED ? versions : TUTTI_STALENESS_COUNTED]++;
    s->gradients++;
    s->sum += (double)versions;
    if (versions > s->largest)
        s->largest = versions;
}

void tutti__store_staleness_join(tutti_store_staleness *s, const tutti_store_staleness *other)
{
    for (int i = 0; i <= TUTTI_STALENESS_COUNTED; i++)
        s->counts[i] += other->counts[i];
    s->gradients += other->gradients;
    s->sum += other->sum;
    if (other->largest > s->largest)
        s->largest = other->largest;
}

double tutti__store_staleness_mean(const tutti_store_staleness *s)
{
    return s->gradients > 0 ? s->sum / (double)s->gradients : 0;
}

void tutti__store_staleness_print(const tutti_store_staleness *s, tutti_text *text)
{
    tutti__text_add(text, "staleness of %" PRIu64 " gradients: mean %.1f, largest %" PRIu64 ";",
                    s->gradients, tutti__store_staleness_mean(s), s->largest);
    for (int i = 0; i <= TUTTI_STALENESS_COUNTED; i++)
        if (s->counts[i] > 0)
            tutti__text_add(text, " %d%s: %" PRIu64, i, i == TUTTI_STALENESS_COUNTED ? "+" : "",
                            s->counts[i]);
}

void tutti__store_staleness_save(const tutti_store_staleness *s, tutti_text *out)
{
    int used = 0;
    for (int i = 0; i <= TUTTI_STALENESS_COUNTED; i++)
        used = s->counts[i] > 0 ? i + 1 : used;
    saved_put(out, (uint64_t)used);
    for (int i = 0; i < used; i++)
        saved_put(out, s->counts[i]);
    saved_put(out, s->gradients);
    saved_put(out, s->largest);
    saved_put_number(out, s->sum);
}

void tutti__store_staleness_load(saved_reader *in, tutti_store_staleness *ret)
{
    size_t used = saved_get_count(in, 8);
    *ret = (tutti_store_staleness){0};
    in->bad = in->bad || used > TUTTI_STALENESS_COUNTED + 1;
    for (size_t i = 0; !in->bad && i < used; i++)
        ret->counts[i] = saved_get(in);
    ret->gradients = saved_get(in);
    ret->largest = saved_get(in);
    ret->sum = saved_get_number(in);
}

tutti_status tutti__store_rate_parse(const char *text, tutti_store_rate *ret)
{
    static const char *const names[] = {"none", "inverse", "distance"};
    for (int i = 0; i < (int)TUTTI_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0 || (i == 0 && text[0] == '\0')) {
            *ret = (tutti_store_rate)i;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_INVALID,
                      "there is no rule '%s' for the learning rate by staleness; there are: none, "
                      "inverse, distance",
                      text);
}
