/* 17_vae.c: a variational autoencoder: digits from 8 random numbers.
 *
 *     ./17_vae                         on drawn digits
 *     ./17_vae --data DIR              on MNIST's files in DIR
 *     ./17_vae --set picture=FILE.png  new digits as a picture too
 *
 * Its two losses are shown apart: digit_loss, how far the drawn digit is from the given one, and
 * divergence, how far the code is from a normal distribution. The program fails (exit 1) when its
 * pixels are not near enough. At the end it draws digits that nobody gave it. */
#include <math.h>
#include <stdio.h>

#include <tutti/tutti.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CODE = 8, NEW = 3 };

/* A draw from the code's distribution, mean + deviation * noise; in inference its mean. Adds the
 * divergence from the normal distribution, a number an example, per pixel as the other loss is. */
static tutti_sym sample(tutti_layer_call *call)
{
    tutti_sym mean = call->inputs[0], log_variance = call->inputs[1];
    tutti_sym both = tutti_add(tutti_square(mean), tutti_exp(log_variance));
    tutti_sym each = tutti_sub(tutti_sub(both, log_variance), 1);
    tutti_sym divergence = tutti_sum(each, .axes = TUTTI_AXES(1));
    tutti_add_loss(tutti_mul(divergence, 0.5 / PIXELS), "divergence");
    tutti_add_metric(tutti_exp(tutti_mul(log_variance, 0.5)), "deviation");
    if (!call->training)
        return mean;
    tutti_type type = tutti_sym_type(mean);
    tutti_sym noise = tutti_random_normal(call->graph, 0, 1, type, .like = mean);
    return tutti_add(mean, tutti_mul(noise, tutti_exp(tutti_mul(log_variance, 0.5))));
}

static const tutti_layer_kind sample_kind = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "vae.sample",
    .doc = "sample(mean, log_variance): a draw from the normal distribution",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 2,
    .max_inputs = 2,
    .call = sample,
};

/* The image is the target too. */
static tutti_status mirror(void *context, tutti_element *element)
{
    (void)context;
    return tutti_element_set(element, 1, tutti_tensor_retain(element->tensors[0]));
}

static tutti_model *make_decoder(tutti_job *job)
{
    /* clang-format off */
    return tutti_sequential(job,
        tutti_input_shape(CODE),
        tutti_dense(128, .activation = TUTTI_RELU),
        tutti_dense(PIXELS, .activation = TUTTI_SIGMOID),
        tutti_reshape_layer(SIDE, SIDE, 1));
    /* clang-format on */
}

static tutti_model *make_vae(tutti_job *job, tutti_model *decoder)
{
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "image", TUTTI_F32, SIDE, SIDE, 1);
    tutti_sym h =
        tutti_call(tutti_dense(128, .activation = TUTTI_RELU), tutti_call(tutti_flatten(), x));
    tutti_sym mean = tutti_call(tutti_dense(CODE, .name = "mean"), h);
    tutti_sym log_variance = tutti_call(tutti_dense(CODE, .name = "log_variance"), h);
    tutti_sym code = tutti_call(tutti_layer_custom(&sample_kind, NULL), mean, log_variance);
    tutti_output(m, "digit", tutti_call(tutti_model_layer(decoder), code));
    return m;
}

static void show(const tutti_tensor *images)
{
    for (int row = 0; row < SIDE; row += 2) { /* a character is about twice as high as wide */
        for (int which = 0; which < NEW; which++)
            for (int column = 0; column < SIDE; column++) {
                double light = tutti_tensor_get(images, which * PIXELS + row * SIDE + column);
                putchar(" .:-=+*#%@"[(int)(9.99 * light)]);
            }
        putchar('\n');
    }
}

/* Images one under the other are one high image. */
static tutti_status save(const tutti_tensor *images, const char *path)
{
    tutti_tensor *all;
    int64_t dims[] = {NEW * SIDE, SIDE, 1};
    TUTTI_TRY(tutti_tensor_create(TUTTI_U8, 3, dims, &all));
    for (int64_t i = 0; i < NEW * PIXELS; i++)
        tutti_tensor_set(all, i, 255 * tutti_tensor_get(images, i));
    tutti_status status = tutti_png_save(path, all);
    tutti_tensor_release(all);
    return status;
}

/* Inside the whole model the decoder's weights are "<its name>/<name>": what was learnt there goes
 * into the decoder alone. */
static tutti_status take_weights(tutti_model *decoder, tutti_model *m)
{
    tutti_weight_info info;
    int count = tutti_weight_count(decoder);
    for (int i = 0; i < count; i++) {
        char name[300];
        tutti_tensor *value;
        TUTTI_TRY(tutti_weight_at(decoder, i, &info));
        snprintf(name, sizeof name, "%s/%s", tutti_model_name(decoder), info.name);
        TUTTI_TRY(tutti_get_weight(m, name, &value));
        tutti_status status = tutti_set_weight(decoder, info.name, value);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

/* Digits from codes that are drawn from the normal distribution (Box and Muller). */
static tutti_status draw(tutti_job *job, tutti_model *decoder)
{
    tutti_tensor *codes, *images;
    const char *path = tutti_flag_text(job, "picture", NULL);
    uint64_t state = 88172645463325252u;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){NEW, CODE}, &codes));
    for (int64_t i = 0; i < NEW * CODE; i++) {
        double u[2];
        for (int k = 0; k < 2; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            u[k] = ((double)(state >> 11) + 0.5) / 9007199254740992.0;
        }
        tutti_tensor_set(codes, i, sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
    }
    tutti_status status = tutti_predict_on_batch(decoder, 1, &codes, 1, &images);
    tutti_tensor_release(codes);
    TUTTI_TRY(status);
    if (!tutti_job_quiet(job))
        show(images);
    if (path)
        status = save(images, path);
    tutti_tensor_release(images);
    return status;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 128);
    tutti_dataset *train = tutti_map(tutti_shuffle(tutti_mnist(job, "train"), 0), mirror);
    tutti_dataset *test = tutti_batch(tutti_map(tutti_mnist(job, "test"), mirror), 500);
    tutti_model *decoder = make_decoder(job), *m = make_vae(job, decoder);
    tutti_compile(m, .optimizer = tutti_adam(), .loss = tutti_binary_cross_entropy(),
                  .metrics = "mse");
    const tutti_history *history =
        tutti_fit(m, tutti_batch(train, batch), .epochs = 5, .validation = test);
    double near = 1 - sqrt(tutti_history_get(history, "val_mse", -1));
    if (tutti_job_ok(job))
        tutti_job_fail(job, take_weights(decoder, m));
    if (tutti_job_ok(job))
        tutti_job_fail(job, draw(job, decoder));
    tutti_expect(job, "nearness of pixels", near, 0.80);
    return tutti_close(job);
}
