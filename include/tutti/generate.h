/* generate.h: language models that write: token by token, with a cache of keys and values.
 *
 *     tutti_tensor *tokens;
 *     tutti_generate(m, prompt, 100, &tokens, .temperature = 0.8, .top_k = 40);
 *
 * A model has one input, integers [batch, steps], and its first output is the scores of the token
 * that comes next, [batch, steps, vocabulary]. */
#ifndef TUTTI_GENERATE_H
#define TUTTI_GENERATE_H

#include "tutti/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- step by step ---- */

/* A model that is given a sequence in pieces and remembers what it needs of the earlier ones. */
typedef struct tutti_decoder tutti_decoder;

typedef struct tutti_decoder_options {
    size_t struct_size;
    int64_t batch; /* sequences side by side; 1 */
} tutti_decoder_options;
/* Opens one for sequences of up to `capacity` steps. Every layer must take steps one by one
 * (TUTTI_LAYER_EACH_STEP): attention that is causal keeps keys and values, others see a step at a
 * time. It has the weights that the model has now; the values are shared, not copied, on a device
 * whose memory is the host's. More steps than a layer has positions for are TUTTI_OUT_OF_RANGE. One
 * thread at a time may use it; the model must outlive it. */
TUTTI_API tutti_status tutti_decoder_open_with(tutti_model *model, int64_t capacity,
                                               const tutti_decoder_options *options,
                                               tutti_decoder **ret_decoder);
/* tutti_decoder_open(&decoder, m, 1024), tutti_decoder_open(&decoder, m, 1024, .batch = 4) */
#define tutti_decoder_open(ret_decoder, model, ...)                                                \
    tutti_decoder_open_with((model), TUTTI_ONE_(tutti_decoder_options, __VA_ARGS__, ),             \
                            (ret_decoder))
TUTTI_API void tutti_decoder_close(tutti_decoder *decoder); /* NULL is fine */
/* The next steps [batch, steps, …] of the sequences. Gives the model's first output for the last of
 * them, [batch, …], the caller's to release. After a failure the sequences are as before. Steps
 * beyond the capacity are TUTTI_OUT_OF_RANGE. */
TUTTI_API tutti_status tutti_decoder_step(tutti_decoder *decoder, tutti_tensor *steps,
                                          tutti_tensor **ret_output);
/* Steps given so far; going back to fewer: what came after them is forgotten. */
TUTTI_API int64_t tutti_decoder_position(const tutti_decoder *decoder);
TUTTI_API tutti_status tutti_decoder_rewind(tutti_decoder *decoder, int64_t position);

/* ---- sampling ---- */

/* How a token is drawn from scores. */
typedef struct tutti_sample_options {
    size_t struct_size;
    double temperature; /* 1; scores are divided by it; TUTTI_ZERO: always the most likely token */
    int64_t top_k;      /* only the so many most likely tokens; 0: all */
    double top_p;       /* of these the most likely ones that have so much of the probability
                           together; 0: all */
    uint64_t seed;      /* 0: 1 */
} tutti_sample_options;
/* Draws one of `count` scores (logits): a function of the scores, the options and the number of the
 * draw. Of equal scores the first counts as more likely. INVALID where no score is a number. */
TUTTI_API tutti_status tutti_sample_token(int64_t count, const float *logits, uint64_t number,
                                          const tutti_sample_options *options, int64_t *ret_token);

/* How fast it went. */
typedef struct tutti_generate_report {
    int64_t prompt, tokens;         /* of each sequence: given, and made */
    double prompt_seconds, seconds; /* to the first token's scores; for all tokens after that */
} tutti_generate_report;

typedef struct tutti_generate_options {
    size_t struct_size;
    double temperature; /* as in tutti_sample_options */
    int64_t top_k;
    double top_p;
    uint64_t seed; /* 0: the job's */
    bool has_stop; /* a sequence ends behind the token `stop`, which then fills it up */
    int64_t stop;
    bool no_cache; /* all steps are computed again for each token: for models whose layers cannot
                      take steps one by one */
    /* Told of each step's tokens, one a sequence, as they are made; false ends it. */
    bool (*each)(void *context, int64_t count, const int32_t *tokens);
    void *context;
    tutti_generate_report *report; /* or NULL */
} tutti_generate_options;
/* Up to `count` tokens behind the prompt, integers [steps] or [batch, steps]: *ret_tokens, i32, is
 * the prompt and what was made, for the caller to release. Sequences are drawn independently: token
 * i of row r follows from the seed, i and r. With and without the cache scores agree up to
 * rounding. Ctrl-C ends it early. */
TUTTI_API tutti_status tutti_generate_with(tutti_model *model, tutti_tensor *prompt, int64_t count,
                                           const tutti_generate_options *options,
                                           tutti_tensor **ret_tokens);
#define tutti_generate(model, prompt, count, ...)                                                  \
    TUTTI_GENERATE_(model, prompt, count, __VA_ARGS__, )
#define TUTTI_GENERATE_(model, prompt, count, ret_tokens, ...)                                     \
    tutti_generate_with((model), (prompt), (count),                                                \
                        TUTTI_OPTIONS(tutti_generate_options, __VA_ARGS__), (ret_tokens))

#ifdef __cplusplus
}
#endif
#endif
