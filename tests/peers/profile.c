/* profile.c: the library's side of tests/peers/profile_check.py: a small training with a profile.
 *
 *     profile FOLDER
 *
 * Writes FOLDER/plugins/profile/<time>/<host>.xplane.pb. */
#include <stdio.h>

#include <tutti/tutti.h>

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    if (argc != 2)
        return fprintf(stderr, "usage: profile FOLDER\n"), 2;
    tutti_dataset *data = tutti_batch(tutti_mnist(job, "train"), 64);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(28, 28, 1),
                                      tutti_conv2d(8, 3, .activation = TUTTI_RELU, .name = "conv"),
                                      tutti_flatten(), tutti_dense(10, .name = "out"));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_fit(m, data, .epochs = 1, .steps_per_epoch = 20, .quiet = true,
              .callbacks = TUTTI_LIST(tutti_tensorboard(argv[1], .profile = true)));
    return tutti_close(job);
}
