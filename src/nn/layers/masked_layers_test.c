/* masked_layers_test.c: a row that a mask hides altogether gives no NaN, forward or backward. */
#include <math.h>

#include "nn/layers/layers_test.h"

/* Ids of which row 1 is padding only, through an embedding with a mask and these layers; trains on
 * them and predicts: every number is finite. */
static void check_hidden_row(tutti_layer *layer, tutti_layer *last)
{
    tutti_job *job = tutti_open(NULL, NULL);
    int64_t numbers[] = {3, 1, 2, 0, 0, 0, 0, 0};
    tutti_tensor *x = ids(DIMS(2, 4), numbers), *y, *got;
    tutti_model *m = tutti_sequential(job, tutti_embedding(5, 4, .mask_zero = true), layer);
    if (last)
        tutti_model_add(m, last);
    tutti_model_add(m, tutti_dense(1));
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse(), .metrics = "mae");
    bool sequences = !last && strstr(tutti_layer_kind_name(layer), "global") == NULL;
    CHECK_OK(sequences ? tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){2, 4, 1}, &y)
                       : tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 1}, &y));
    for (int step = 0; step < 2; step++) {
        tutti_logs logs;
        CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, &logs));
        for (int i = 0; i < logs.count; i++)
            CHECK(isfinite(logs.items[i].value));
    }
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &got));
    for (int64_t i = 0; i < tutti_tensor_count(got); i++)
        CHECK(isfinite(tutti_tensor_get(got, i)));
    tutti_tensor_release(got);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(pooling_over_a_hidden_row_gives_numbers)
{
    check_hidden_row(tutti_global_max_pool1d(), NULL);
    check_hidden_row(tutti_global_max_pool1d(.keepdims = true), tutti_flatten());
    check_hidden_row(tutti_global_average_pool1d(), NULL);
}

TUTTI_TEST(attention_and_recurrent_layers_over_a_hidden_row_give_numbers)
{
    check_hidden_row(tutti_transformer_block(2, 8), tutti_global_max_pool1d());
    check_hidden_row(tutti_transformer_block(2, 8, .use_causal_mask = true), NULL);
    check_hidden_row(tutti_lstm(3, .bidirectional = true, .return_sequences = true), NULL);
    check_hidden_row(tutti_gru(3, .return_sequences = true), tutti_flatten());
}

/* The steps that a value hides become 0, also where that value is no number to multiply by. */
TUTTI_TEST(masking_hides_infinite_steps)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_masking(.mask_value = -INFINITY),
                                      tutti_global_average_pool1d());
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){1, 2, 1}, &x));
    tutti_tensor_set(x, 0, 3);
    tutti_tensor_set(x, 1, -INFINITY);
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &y));
    CHECK_NEAR(tutti_tensor_get(y, 0), 3, 1e-6);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}
