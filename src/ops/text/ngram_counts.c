/* ngram_counts.c: how often each of a list of n-grams occurs in each row. */
#include "ops/text/strings.h"

#include <stdlib.h>

enum { ROWS, POOL, STARTS, COLUMNS };

/* x [tokens] or [rows, tokens]; pool: the n-grams one after the other, those of one token first;
 * starts i64: where in the pool those of 1, 2, … tokens begin; columns i64: the output's column of
 * each n-gram. x and pool are strings, i32 or i64. */
static tutti_status ngram_counts_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[ROWS];
    int64_t width = RULE_INT(node, "width"), dims[2] = {x->dims[0], width};
    if (x->rank < 1 || x->rank > 2 || x->dtype != node->inputs[POOL].dtype ||
        (x->dtype != TUTTI_STRING && x->dtype != TUTTI_I32 && x->dtype != TUTTI_I64))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "x is %s, needs [tokens] or [rows,tokens] of strings or integers like "
                         "the pool",
                         tutti_type_text(x, text));
    for (int i = POOL; i <= COLUMNS; i++)
        if (node->inputs[i].rank != 1 || (i > POOL && node->inputs[i].dtype != TUTTI_I64))
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs a list%s", i,
                             tutti_type_text(&node->inputs[i], text), i > POOL ? " of i64" : "");
    if (width < 1 || RULE_INT(node, "least") < 1 ||
        RULE_INT(node, "most") < RULE_INT(node, "least") || RULE_INT(node, "skip") < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "needs width >= 1, 1 <= least <= most, skip >= 0");
    return tutti__shape_output(node, 0, TUTTI_F32, x->rank, x->rank == 1 ? dims + 1 : dims);
}

typedef struct search {
    const tutti_kernel_call *call;
    const int64_t *starts, *columns;
    int64_t sizes, pool, grams, tokens, width;
} search;

static bool same(const tutti_view *x, int64_t i, const tutti_view *pool, int64_t j)
{
    if (x->dtype != TUTTI_STRING)
        return tutti_view_get_int(x, i) == tutti_view_get_int(pool, j);
    const tutti_string *a = (const tutti_string *)x->data + i;
    const tutti_string *b = (const tutti_string *)pool->data + j;
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, (size_t)a->size) == 0);
}

/* Adds the n-grams of n tokens, each `apart` after the one before, of one row. */
static void count_row(const search *s, int64_t row, int64_t n, int64_t apart, float *counts)
{
    const tutti_view *x = &s->call->inputs[ROWS], *pool = &s->call->inputs[POOL];
    int64_t begin = s->starts[n - 1], end = n < s->sizes ? s->starts[n] : s->pool, gram = 0;
    for (int64_t k = 0; k + 1 < n; k++)
        gram += (s->starts[k + 1] - s->starts[k]) / (k + 1);
    for (int64_t at = begin; at + n <= end; at += n, gram++)
        for (int64_t t = 0; t + (n - 1) * apart < s->tokens; t++) {
            bool all = true;
            for (int64_t k = 0; all && k < n; k++)
                all = same(x, row * s->tokens + t + k * apart, pool, at + k);
            counts[s->columns[gram]] += all ? 1 : 0;
        }
}

static tutti_status ngram_counts_check(const search *s)
{
    int64_t grams = 0;
    for (int64_t k = 0; k < s->sizes; k++) {
        int64_t end = k + 1 < s->sizes ? s->starts[k + 1] : s->pool;
        if (s->starts[k] < 0 || end < s->starts[k] || end > s->pool)
            return RULE_FAIL(s->call, TUTTI_INVALID, "start %lld is %lld, outside the pool",
                             (long long)k, (long long)s->starts[k]);
        grams += (end - s->starts[k]) / (k + 1);
    }
    if (grams != s->grams)
        return RULE_FAIL(s->call, TUTTI_INVALID, "%lld columns for %lld n-grams",
                         (long long)s->grams, (long long)grams);
    for (int64_t i = 0; i < grams; i++)
        if (s->columns[i] < 0 || s->columns[i] >= s->width)
            return RULE_FAIL(s->call, TUTTI_INVALID, "column %lld is not in [0, %lld)",
                             (long long)s->columns[i], (long long)s->width);
    return TUTTI_OK;
}

static tutti_status ngram_counts_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[ROWS];
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, skip = RULE_INT(call, "skip");
    int64_t least = RULE_INT(call, "least"), most = RULE_INT(call, "most");
    search s = {.call = call,
                .starts = call->inputs[STARTS].data,
                .columns = call->inputs[COLUMNS].data,
                .sizes = call->inputs[STARTS].dims[0],
                .pool = call->inputs[POOL].dims[0],
                .grams = call->inputs[COLUMNS].dims[0],
                .tokens = x->dims[x->rank - 1],
                .width = RULE_INT(call, "width")};
    float *y = call->outputs[0].data;
    TUTTI_TRY(ngram_counts_check(&s));
    memset(y, 0, (size_t)tutti_view_count(&call->outputs[0]) * sizeof *y);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t n = least; n <= most && n <= s.sizes; n++) {
            int64_t reach = n == 1 ? 1 : (s.tokens - 1) / (n - 1); /* farther apart none fits */
            for (int64_t apart = 1; apart <= reach && (n == 1 || apart - 1 <= skip); apart++)
                count_row(&s, row, n, apart, y + row * s.width);
        }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_ngram_counts;
tutti_sym tutti_ngram_counts_with(tutti_sym x, tutti_sym pool, tutti_sym starts, tutti_sym columns,
                                  const tutti_ngram_options *options)
{
    RULE_OPTIONS(tutti_ngram_options, o, options);
    return TUTTI_NARY(&tutti_op_ngram_counts, ((tutti_sym[]){x, pool, starts, columns}),
                      TUTTI_INT("least", o.least), TUTTI_INT("most", o.most),
                      TUTTI_INT("skip", o.skip), TUTTI_INT("width", o.width));
}

static const tutti_attr_spec attrs[] = {
    {"least", TUTTI_ATTR_INT, "1"},
    {"most", TUTTI_ATTR_INT, "1"},
    {"skip", TUTTI_ATTR_INT, "0"},
    {"width", TUTTI_ATTR_INT, NULL},
    {NULL},
};

static const char *const samples[] = {
    "string[2,3]{=a,b,a,b,c,a} string[4]{=a,b,a,b} i64[2]{=0,2} i64[3]{=0,1,2} | most=2 width=3",
    "i64[6]{=1,2,3,1,2,1} i64[4]{=1,2,2,3} i64[2]{=0,0} i64[2]{=0,1} | least=2 most=2 "
    "skip=9223372036854775807 width=2",
    "i64[6]{=1,2,3,1,2,1} i64[5]{=1,2,1,2,3} i64[2]{=0,1} i64[3]{=0,1,2} | least=2 most=2 skip=1 "
    "width=4",
    NULL,
};

const tutti_op tutti_op_ngram_counts = {
    .struct_size = sizeof(tutti_op),
    .name = "ngram_counts",
    .version = 1,
    .doc =
        "ngram_counts(x, pool, starts, columns; least, most, skip, width): y[row, column] = how often the column's n-gram is in the row, with at most skip tokens left out between its tokens",
    .category = "text",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = ngram_counts_infer,
    .cost = tutti__cost_move,
    .reference = ngram_counts_reference,
    .samples = samples,
};
