/* steps_sequence.c: embeddings, attention, recurrent networks with lengths. */
#include "builder.h"

static tutti_sym sequence(builder *b, tutti_sym x)
{
    x = with_rank(b, x, 3);
    if (!b->batched)
        x = at_most(b, x, 0, 6);
    return at_most(b, at_most(b, x, 1, 9), 2, 17);
}

static tutti_sym embedding(builder *b, tutti_sym x)
{
    if (b->fed_count > 20)
        return x;
    int64_t words = odd_size(b, 33), features = odd_size(b, 17);
    int64_t dims[2] = {b->batched ? TUTTI_ANY : odd_size(b, 9), odd_size(b, 9)};
    tutti_sym ids = feed(b, one_in(b, 2) ? TUTTI_I32 : TUTTI_I64, 2, dims, 0, (double)words);
    tutti_sym y = tutti_embedding_lookup(WEIGHT(b, 0, 0.8, words, features), ids);
    return tutti_add(y, tutti_mean(x));
}

static tutti_sym attention(builder *b, tutti_sym x)
{
    x = sequence(b, x);
    int64_t time = dim_of(x, 1), in = dim_of(x, 2), heads = 1 + below(b, 3), width = odd_size(b, 9);
    tutti_sym parts[3];
    for (int i = 0; i < 3; i++) {
        tutti_sym p = tutti_matmul(x, WEIGHT(b, 0, 0.4, in, heads * width));
        int64_t dims[4] = {b->batched ? TUTTI_ANY : dim_of(x, 0), time, heads, width};
        p = (tutti_reshape)(p, 4, dims);
        parts[i] = tutti_transpose(p, 0, 2, 1, 3);
    }
    tutti_sym mask = one_in(b, 3) ? WEIGHT(b, 0, 1, time, time) : TUTTI_NO_SYM;
    tutti_sym y =
        tutti_nn_attention(parts[0], parts[1], parts[2], .causal = one_in(b, 2), .mask = mask);
    y = tutti_transpose(y, 0, 2, 1, 3);
    int64_t dims[3] = {b->batched ? TUTTI_ANY : dim_of(x, 0), time, heads * width};
    y = (tutti_reshape)(y, 3, dims);
    return one_in(b, 2) ? tutti_add(x, tutti_matmul(y, WEIGHT(b, 0, 0.4, heads * width, in))) : y;
}

static tutti_sym recurrent(builder *b, tutti_sym x)
{
    x = sequence(b, x);
    if (dim_of(x, 1) < 1 || dim_of(x, 2) < 1 || b->fed_count > 20)
        return x;
    int64_t in = dim_of(x, 2), units = odd_size(b, 17), rows = dim_of(x, 0);
    tutti_sym h = tutti_matmul(tutti_slice(x, .end = TUTTI_INDEX(TUTTI_LAST, 1)),
                               WEIGHT(b, 0, 0.3, in, units));
    h = tutti_squeeze(h, 1);
    tutti_sym lengths = TUTTI_NO_SYM;
    if (one_in(b, 2)) {
        int64_t dims[1] = {b->batched ? TUTTI_ANY : rows};
        lengths =
            feed(b, one_in(b, 2) ? TUTTI_I32 : TUTTI_I64, 1, dims, 0, (double)dim_of(x, 1) + 1.5);
    }
    bool reverse = one_in(b, 3);
    tutti_sym y;
    switch (below(b, 3)) {
    case 0:
        y = tutti_nn_lstm(x, h, tutti_tanh(h), WEIGHT(b, 0, 0.4, in, 4 * units),
                          WEIGHT(b, 0, 0.4, units, 4 * units), WEIGHT(b, 0, 0.3, 4 * units),
                          .lengths = lengths, .reverse = reverse);
        break;
    case 1:
        y = tutti_nn_gru(x, h, WEIGHT(b, 0, 0.4, in, 3 * units),
                         WEIGHT(b, 0, 0.4, units, 3 * units), WEIGHT(b, 0, 0.3, 2, 3 * units),
                         .lengths = lengths, .reverse = reverse);
        break;
    default:
        y = tutti_nn_simple_rnn(x, h, WEIGHT(b, 0, 0.4, in, units), WEIGHT(b, 0, 0.4, units, units),
                                WEIGHT(b, 0, 0.3, units), .lengths = lengths, .reverse = reverse);
    }
    return one_in(b, 3) ? tutti_sym_output(y, 1) : y;
}

const step_kind sequence_steps[] = {
    {"embedding", embedding, 2},
    {"attention", attention, 3},
    {"recurrent", recurrent, 3},
    {0},
};
