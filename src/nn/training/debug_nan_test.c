/* debug_nan_test.c: --debug-nan names what made the first NaN or infinity, of which inputs. */
#include <math.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_sym shrink(tutti_layer_call *call)
{
    return tutti_log(tutti_sub(call->inputs[0], 1));
}
static const tutti_layer_kind shrink_kind = {.struct_size = sizeof(tutti_layer_kind),
                                             .name = "test.shrink",
                                             .settings_size = sizeof(tutti_layer_settings),
                                             .call = shrink};

/* Of the devices here the CPU looks. */
static void look_on_cpu(void)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    CHECK_OK(tutti__param_set("DEBUG_NAN", "1"));
}

TUTTI_TEST(fit_names_the_layer_that_made_a_nan)
{
    look_on_cpu();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, 1}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, 1}, &y));
    tutti_model *m = tutti_sequential(job, tutti_layer_custom(&shrink_kind, NULL), tutti_dense(1));
    tutti_compile(m, .loss = tutti_mse());
    CHECK(tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), 4), .quiet = true) == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "test.shrink");
    CHECK_CONTAINS(tutti_error_message(), "makes NaN");
    CHECK_CONTAINS(tutti_error_message(), "input 0: ");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_close(job);
}

TUTTI_TEST(loops_by_hand_name_the_gradient_that_made_an_infinity)
{
    look_on_cpu();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m =
        tutti_sequential(job, tutti_dense(1, .kernel_initializer = "zeros", .name = "flat"));
    tutti_eager *e = tutti_model_eager(m);
    tutti_tensor *x_;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 1}, &x_));
    TUTTI_STEP(e) {
        tutti_sym loss;
        TUTTI_TAPE(tape, e)
            loss = tutti_sum(tutti_sqrt(tutti_apply(m, tutti_eager_feed(e, x_))));
        tutti_tape_minimize(&tape, tutti_sgd(0.1), loss, m);
    }
    CHECK(tutti_eager_check(e) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "makes");
    tutti_tensor_release(x_);
    tutti_close(job);
}

TUTTI_TEST(masks_of_infinities_are_no_mistake)
{
    look_on_cpu();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m =
        tutti_sequential(job, tutti_embedding(5, 4, .mask_zero = true),
                         tutti_transformer_block(2, 8), tutti_global_max_pool1d(), tutti_dense(1));
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){2, 3}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 1}, &y));
    tutti_tensor_set_int(x, 0, 3);
    tutti_compile(m, .loss = tutti_mse());
    CHECK(tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), 2), .epochs = 2,
                    .quiet = true) != NULL);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}
