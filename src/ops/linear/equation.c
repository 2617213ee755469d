/* equation.c: the equation of an einsum, taken apart; see equation.h. */
#include "ops/linear/equation.h"

static const char names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz01234567";

/* What the parser knows while it reads. */
typedef struct {
    const tutti_op *op;
    const char *name, *text, *at;
} reader;

char tutti__label_name(int label)
{
    return names[label];
}

int tutti__term_axis(const tutti_term *term, int label)
{
    for (int i = 0; i < term->rank; i++)
        if (term->labels[i] == label)
            return i;
    return -1;
}

int tutti__term_count(const tutti_term *term, int label)
{
    int count = 0;
    for (int i = 0; i < term->rank; i++)
        count += term->labels[i] == label;
    return count;
}

uint64_t tutti__term_set(const tutti_term *term)
{
    uint64_t set = 0;
    for (int i = 0; i < term->rank; i++)
        set |= UINT64_C(1) << term->labels[i];
    return set;
}

tutti_term tutti__term_within(const tutti_term *term, uint64_t set)
{
    tutti_term found = {0};
    for (int i = 0; i < term->rank; i++)
        if (set >> term->labels[i] & 1)
            found.labels[found.rank++] = term->labels[i];
    return found;
}

tutti_term tutti__term_join(const tutti_term *first, const tutti_term *second)
{
    tutti_term both = *first;
    for (int i = 0; i < second->rank && both.rank < TUTTI_MAX_RANK; i++)
        both.labels[both.rank++] = second->labels[i];
    return both;
}

bool tutti__term_equal(const tutti_term *a, const tutti_term *b)
{
    return a->rank == b->rank && memcmp(a->labels, b->labels, (size_t)a->rank) == 0;
}

void tutti__term_text(const tutti_term *term, char *text)
{
    size_t used = strlen(text);
    for (int i = 0; i < term->rank; i++)
        text[used++] = names[term->labels[i]];
    text[used] = '\0';
}

/* What stands between two commas. The axes of "..." are counted from the last, so their labels are
 * known only with the rank of the operand. */
typedef struct {
    int before, after; /* labels on both sides of "..." */
    bool dots;
    uint8_t labels[2 * TUTTI_MAX_RANK];
} raw_term;

static tutti_status add_label(const reader *r, raw_term *term, char letter)
{
    const char *found = strchr(names, letter);
    if (found == NULL)
        return RULE_FAIL(
            r, TUTTI_INVALID,
            "equation '%s' holds '%c' at position %d; labels are letters, operands are "
            "separated by ',', the result by '->'",
            r->text, letter, (int)(r->at - r->text));
    if (term->before + term->after == TUTTI_MAX_RANK)
        return RULE_FAIL(r, TUTTI_INVALID, "equation '%s' has a term of more than %d labels",
                         r->text, TUTTI_MAX_RANK);
    term->labels[term->before + term->after] = (uint8_t)(found - names);
    if (term->dots)
        term->after++;
    else
        term->before++;
    return TUTTI_OK;
}

/* Reads up to ',', '->' or the end. */
static tutti_status read_term(reader *r, raw_term *ret)
{
    *ret = (raw_term){0};
    for (; *r->at != '\0' && *r->at != ',' && *r->at != '-'; r->at++) {
        if (*r->at == ' ')
            continue;
        if (strncmp(r->at, "...", 3) == 0 && !ret->dots) {
            ret->dots = true;
            r->at += 2;
            continue;
        }
        TUTTI_TRY(add_label(r, ret, *r->at));
    }
    return TUTTI_OK;
}

/* Writes the labels of "...", of `dots` axes, between the others. */
static tutti_status place_dots(const reader *r, const raw_term *raw, int dots, tutti_term *ret)
{
    int rank = raw->before + raw->after + dots;
    if (rank > TUTTI_MAX_RANK)
        return RULE_FAIL(r, TUTTI_INVALID,
                         "equation '%s' has a result of %d dimensions, at most %d are possible",
                         r->text, rank, TUTTI_MAX_RANK);
    ret->rank = rank;
    for (int i = 0; i < raw->before; i++)
        ret->labels[i] = raw->labels[i];
    for (int i = 0; i < dots; i++)
        ret->labels[raw->before + i] = (uint8_t)(TUTTI_LABEL_DOTS + dots - 1 - i);
    for (int i = 0; i < raw->after; i++)
        ret->labels[raw->before + dots + i] = raw->labels[raw->before + i];
    return TUTTI_OK;
}

/* One operand; *dots grows to the most axes that a "..." stands for. */
static tutti_status read_operand(reader *r, int index, int rank, int *dots, tutti_term *ret)
{
    raw_term raw;
    TUTTI_TRY(read_term(r, &raw));
    int own = rank - raw.before - raw.after;
    if (own < 0 || (own > 0 && !raw.dots))
        return RULE_FAIL(r, TUTTI_INVALID,
                         "equation '%s' gives operand %d %d labels, but it has %d dimensions%s",
                         r->text, index, raw.before + raw.after, rank,
                         own > 0 ? "; '...' stands for those without a label" : "");
    *dots = own > *dots ? own : *dots;
    return place_dots(r, &raw, own, ret);
}

/* The axes of "...", then the labels that occur once, in order. */
static tutti_status imply_output(const reader *r, int dots, tutti_equation *equation)
{
    raw_term raw = {.dots = true};
    for (int label = 0; label < TUTTI_LABEL_DOTS; label++) {
        int count = 0;
        for (int i = 0; i < equation->operand_count; i++)
            count += tutti__term_count(&equation->operands[i], label);
        if (count == 1 && raw.after < TUTTI_MAX_RANK + 1)
            raw.labels[raw.after++] = (uint8_t)label;
    }
    return place_dots(r, &raw, dots, &equation->output);
}

static tutti_status read_output(reader *r, int dots, tutti_equation *equation)
{
    raw_term raw;
    if (*r->at == '\0')
        return imply_output(r, dots, equation);
    if (r->at[0] != '-' || r->at[1] != '>')
        return RULE_FAIL(
            r, TUTTI_INVALID,
            "equation '%s' does not fit its %d operands: needs %d terms separated by ',', then "
            "'->' and the result",
            r->text, equation->operand_count, equation->operand_count);
    r->at += 2;
    TUTTI_TRY(read_term(r, &raw));
    if (*r->at != '\0')
        return RULE_FAIL(r, TUTTI_INVALID, "equation '%s' goes on after its result", r->text);
    TUTTI_TRY(place_dots(r, &raw, raw.dots ? dots : 0, &equation->output));
    for (int i = 0; i < equation->output.rank; i++) {
        int label = equation->output.labels[i], count = 0;
        for (int j = 0; j < equation->operand_count; j++)
            count += tutti__term_count(&equation->operands[j], label);
        if (count == 0)
            return RULE_FAIL(r, TUTTI_INVALID,
                             "equation '%s' has label '%c' in the result but in no operand",
                             r->text, names[label]);
    }
    return TUTTI_OK;
}

tutti_status tutti__equation_parse(const tutti_op *op, const char *name, const char *text,
                                   int operand_count, const int *ranks, tutti_equation *ret)
{
    reader r = {op, name, text, text};
    tutti_equation equation = {.operand_count = operand_count};
    int dots = 0;
    if (operand_count > TUTTI_EINSUM_OPERANDS)
        return RULE_FAIL(&r, TUTTI_INVALID, "%d operands are given, at most %d are possible",
                         operand_count, TUTTI_EINSUM_OPERANDS);
    for (int i = 0; i < operand_count; i++) {
        TUTTI_TRY(read_operand(&r, i, ranks[i], &dots, &equation.operands[i]));
        if (i + 1 == operand_count)
            break;
        if (*r.at != ',')
            return RULE_FAIL(&r, TUTTI_INVALID, "equation '%s' has %d terms for %d operands", text,
                             i + 1, operand_count);
        r.at++;
    }
    TUTTI_TRY(read_output(&r, dots, &equation));
    *ret = equation;
    return TUTTI_OK;
}
