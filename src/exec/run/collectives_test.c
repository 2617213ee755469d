/* collectives_test.c: collectives and transfers between the devices of a process, against results
 * computed by hand. */
#include "base/params.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "tutti/tutti.h"

#define MOST 3

static const char *const two_cpus[] = {"cpu:0", "cpu:1"};
static const char *const three_far[] = {"far:0", "far:1", "far:2"};
static const char *const mixed[] = {"cpu:0", "far:0", "whole:0"};

typedef struct job {
    tutti_graph *graph;
    tutti_session *session;
    int size;
    const char *const *devices;
    tutti_sym x[MOST], y[MOST];
} job;

typedef tutti_sym collective(tutti_sym x, int64_t size, int option);

/* One collective on every device of an axis; device r has x = 10 r + (0, 1, ...) as [size, 2 size].
 */
static job start(int size, const char *const *devices, tutti_dtype dtype, collective *fn,
                 int option)
{
    job j = {.size = size, .devices = devices};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti_graph_create(&j.graph));
    CHECK_OK(tutti_session_open(&j.session, j.graph, .deadline_seconds = 10,
                                .mesh = mesh_axis("batch", size),
                                .mesh_devices = mesh_devices(size, devices)));
    for (int r = 0; r < size; r++)
        TUTTI_WITH_DEVICE(j.graph, devices[r]) {
            j.x[r] = (tutti_placeholder)(j.graph, TUTTI_TYPE(dtype, size, 2 * size));
            j.y[r] = fn(j.x[r], size, option);
        }
    CHECK_OK(tutti_graph_check(j.graph));
    return j;
}

static double element(int rank, int64_t i)
{
    return 10.0 * rank + (double)i;
}

static void run(job *j, tutti_dtype dtype, tutti_tensor **ret)
{
    tutti_feed feeds[MOST];
    tutti_fetch fetches[MOST];
    for (int r = 0; r < j->size; r++) {
        tutti_tensor *value;
        CHECK_OK(tutti_tensor_create(dtype, 2, (int64_t[]){j->size, 2 * j->size}, &value));
        for (int64_t i = 0; i < tutti_tensor_count(value); i++)
            tutti_tensor_set(value, i, element(r, i));
        feeds[r] = (tutti_feed){j->x[r], value};
        fetches[r] = (tutti_fetch){j->y[r], &ret[r]};
    }
    CHECK_OK(tutti_run(j->session, .feed = {j->size, feeds}, .fetch = {j->size, fetches}));
    for (int r = 0; r < j->size; r++)
        tutti_tensor_release(feeds[r].value);
}

static void end(job *j)
{
    tutti_session_close(j->session);
    tutti_graph_destroy(j->graph);
}

static tutti_sym all_reduce(tutti_sym x, int64_t size, int option)
{
    return tutti_all_reduce(x, "batch", size, (tutti_reduction)option);
}

static double reduced(int how, int size, int64_t i)
{
    double sum = 0, prod = 1;
    for (int r = 0; r < size; r++) {
        sum += element(r, i);
        prod *= element(r, i);
    }
    return how == TUTTI_SUM    ? sum
           : how == TUTTI_MEAN ? sum / size
           : how == TUTTI_MIN  ? element(0, i)
           : how == TUTTI_MAX  ? element(size - 1, i)
                               : prod;
}

static void check_all_reduce(int size, const char *const *devices, tutti_dtype dtype)
{
    for (int how = TUTTI_SUM; how <= TUTTI_PROD; how++) {
        if (how == TUTTI_MEAN && !tutti_dtype_is_float(dtype))
            continue;
        tutti_tensor *out[MOST];
        job j = start(size, devices, dtype, all_reduce, how);
        run(&j, dtype, out);
        for (int r = 0; r < size; r++) {
            for (int64_t i = 0; i < tutti_tensor_count(out[r]); i++)
                CHECK_NEAR(tutti_tensor_get(out[r], i), reduced(how, size, i),
                           1e-6 * (1 + reduced(how, size, i)));
            tutti_tensor_release(out[r]);
        }
        end(&j);
    }
}

TUTTI_TEST(collectives_all_reduce)
{
    check_all_reduce(2, two_cpus, TUTTI_F32);
    check_all_reduce(3, three_far, TUTTI_F32);
    check_all_reduce(3, mixed, TUTTI_F64);
    check_all_reduce(2, two_cpus, TUTTI_I32);
    check_all_reduce(3, three_far, TUTTI_I64);
}

static tutti_sym all_gather(tutti_sym x, int64_t size, int option)
{
    return tutti_all_gather(x, "batch", size, option);
}

static void check_all_gather(int size, const char *const *devices, int dim)
{
    tutti_tensor *out[MOST];
    job j = start(size, devices, TUTTI_F32, all_gather, dim);
    run(&j, TUTTI_F32, out);
    int64_t rows = size, columns = 2 * size;
    for (int r = 0; r < size; r++) {
        CHECK_INT(tutti_tensor_dims(out[r])[0], dim == 0 ? rows * size : rows);
        int64_t width = tutti_tensor_dims(out[r])[1];
        for (int64_t i = 0; i < tutti_tensor_count(out[r]); i++) {
            int64_t row = i / width, column = i % width;
            int from = (int)(dim == 0 ? row / rows : column / columns);
            CHECK_NEAR(tutti_tensor_get(out[r], i),
                       element(from, row % rows * columns + column % columns), 0);
        }
        tutti_tensor_release(out[r]);
    }
    end(&j);
}

TUTTI_TEST(collectives_all_gather)
{
    check_all_gather(2, two_cpus, 0);
    check_all_gather(3, three_far, 1);
    check_all_gather(3, mixed, -1);
}

static tutti_sym reduce_scatter(tutti_sym x, int64_t size, int option)
{
    return tutti_reduce_scatter(x, "batch", size, option, TUTTI_SUM);
}

static void check_reduce_scatter(int size, const char *const *devices, int dim)
{
    tutti_tensor *out[MOST];
    job j = start(size, devices, TUTTI_F32, reduce_scatter, dim);
    run(&j, TUTTI_F32, out);
    for (int r = 0; r < size; r++) {
        int64_t width = tutti_tensor_dims(out[r])[1];
        CHECK_INT(tutti_tensor_count(out[r]), 2 * size);
        for (int64_t i = 0; i < 2 * size; i++) {
            int64_t row = i / width + (dim == 0 ? r : 0),
                    column = i % width + (dim == 1 ? 2 * r : 0);
            CHECK_NEAR(tutti_tensor_get(out[r], i),
                       reduced(TUTTI_SUM, size, row * 2 * size + column), 1e-5);
        }
        tutti_tensor_release(out[r]);
    }
    end(&j);
}

TUTTI_TEST(collectives_reduce_scatter)
{
    check_reduce_scatter(2, two_cpus, 0);
    check_reduce_scatter(3, three_far, 1);
    check_reduce_scatter(3, mixed, 0);
}

static tutti_sym broadcast(tutti_sym x, int64_t size, int option)
{
    return tutti_broadcast(x, "batch", size, option);
}
static tutti_sym reduce(tutti_sym x, int64_t size, int option)
{
    return tutti_reduce(x, "batch", size, option, TUTTI_SUM);
}

static void check_rooted(int size, const char *const *devices, int root)
{
    tutti_tensor *out[MOST], *sum[MOST];
    job j = start(size, devices, TUTTI_F32, broadcast, root),
        k = start(size, devices, TUTTI_F32, reduce, root);
    run(&j, TUTTI_F32, out);
    run(&k, TUTTI_F32, sum);
    for (int r = 0; r < size; r++) {
        for (int64_t i = 0; i < tutti_tensor_count(out[r]); i++) {
            CHECK_NEAR(tutti_tensor_get(out[r], i), element(root, i), 0);
            CHECK_NEAR(tutti_tensor_get(sum[r], i), r == root ? reduced(TUTTI_SUM, size, i) : 0,
                       1e-5);
        }
        tutti_tensor_release(out[r]);
        tutti_tensor_release(sum[r]);
    }
    end(&j);
    end(&k);
}

TUTTI_TEST(collectives_with_a_root)
{
    check_rooted(2, two_cpus, 1);
    check_rooted(3, three_far, 0);
    check_rooted(3, mixed, 2);
}

static tutti_sym all_to_all(tutti_sym x, int64_t size, int option)
{
    return tutti_all_to_all(x, "batch", size, option / 2, option % 2);
}

static void check_all_to_all(int size, const char *const *devices, int split, int concat)
{
    tutti_tensor *out[MOST];
    job j = start(size, devices, TUTTI_F32, all_to_all, 2 * split + concat);
    run(&j, TUTTI_F32, out);
    int64_t dims[2] = {size, 2 * size}, piece[2] = {size, 2 * size};
    piece[split] /= size;
    for (int r = 0; r < size; r++) {
        int64_t width = tutti_tensor_dims(out[r])[1];
        for (int64_t i = 0; i < tutti_tensor_count(out[r]); i++) {
            int64_t at[2] = {i / width, i % width};
            int from = (int)(at[concat] / piece[concat]);
            at[concat] %= piece[concat];
            at[split] += r * piece[split];
            CHECK_NEAR(tutti_tensor_get(out[r], i), element(from, at[0] * dims[1] + at[1]), 0);
        }
        tutti_tensor_release(out[r]);
    }
    end(&j);
}

TUTTI_TEST(collectives_all_to_all)
{
    check_all_to_all(2, two_cpus, 0, 1);
    check_all_to_all(3, three_far, 1, 0);
    check_all_to_all(3, mixed, 0, 0);
    check_all_to_all(2, two_cpus, 1, 1);
}

/* What follows an all_reduce on one device is used on another before that one has come to its own.
 */
static void go_in_a_circle(const char *const *devices)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 5, .mesh = "batch=2",
                                .mesh_devices = mesh_devices(2, devices)));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), first = TUTTI_NO_SYM, use = TUTTI_NO_SYM,
              second = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, devices[1])
        first = tutti_all_reduce(x, "batch", 2, TUTTI_SUM);
    TUTTI_WITH_DEVICE(g, devices[0]) {
        use = tutti_square(first);
        second = tutti_all_reduce(tutti_square(x), "batch", 2, TUTTI_SUM);
    }
    tutti_tensor *in, *out[2];
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){3}, &in));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({use, &out[0]}, {second, &out[1]})));
    CHECK_NEAR(tutti_tensor_get(out[0], 0), 144, 1e-4);
    CHECK_NEAR(tutti_tensor_get(out[1], 0), 12, 1e-5);
    tutti_tensor_release(in);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(out[1]);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(collectives_do_not_wait_for_each_other_in_a_circle)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    go_in_a_circle(three_far);
    go_in_a_circle(two_cpus);
}

TUTTI_TEST(collectives_say_what_does_not_fit_the_mesh)
{
    tutti_graph *g;
    tutti_session *s, *bare;
    tutti_tensor *in, *out;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 0.5, .mesh = "batch=2",
                                .mesh_devices = mesh_devices(2, two_cpus)));
    CHECK_OK(tutti_session_open(&bare, g, .deadline_seconds = 0.5));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), wide = TUTTI_NO_SYM, alone = TUTTI_NO_SYM,
              elsewhere = TUTTI_NO_SYM, named = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(g, "cpu:0") {
        wide = tutti_all_reduce(x, "batch", 3, TUTTI_SUM);
        alone = tutti_all_reduce(x, "batch", 2, TUTTI_SUM);
        named = tutti_all_reduce(x, "model", 2, TUTTI_SUM);
    }
    TUTTI_WITH_DEVICE(g, "far:0")
        elsewhere = tutti_all_reduce(x, "batch", 2, TUTTI_SUM);
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){3}, &in));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({wide, &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "built for 3");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({named, &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "model");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({elsewhere, &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "not in the session's mesh");
    CHECK_STATUS(tutti_run(bare, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({alone, &out})),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({alone, &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "rank 1 on 'batch' (cpu:1) does not come to it");
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_session_close(bare);
    tutti_graph_destroy(g);
}

/* Of ranks that ask for different things nobody gets an answer. */
TUTTI_TEST(collectives_compare_what_ranks_ask_for)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *in, *out[2];
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 30, .mesh = "batch=2",
                                .mesh_devices = mesh_devices(2, three_far)));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), sum[2], root[2];
    for (int r = 0; r < 2; r++)
        TUTTI_WITH_DEVICE(g, three_far[r]) {
            sum[r] = tutti_all_reduce(x, "batch", 2, r ? TUTTI_SUM : TUTTI_MAX);
            root[r] = tutti_broadcast(x, "batch", 2, r);
        }
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){3}, &in));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                           .fetch = TUTTI_FETCH({sum[0], &out[0]}, {sum[1], &out[1]})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "differ in \"op\"");
    CHECK_CONTAINS(tutti_error_message(), "collectives_test.c:");
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                           .fetch = TUTTI_FETCH({root[0], &out[0]}, {root[1], &out[1]})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "differ in \"root\"");
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(collectives_end_with_the_first_error)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *in, *out[2];
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 30, .mesh = "batch=2",
                                .mesh_devices = mesh_devices(2, three_far)));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32), y[2], other = TUTTI_NO_SYM;
    for (int r = 0; r < 2; r++)
        TUTTI_WITH_DEVICE(g, three_far[r]) {
            tutti_sym mine = r == 0 ? x
                                    : tutti_apply_op(g, "check_numerics", 1, &x, 1,
                                                     &TUTTI_STR("message", "rank 1's part"));
            y[r] = tutti_all_reduce(mine, "batch", 2, TUTTI_SUM);
        }
    TUTTI_WITH_DEVICE(g, "cpu:0")
        other = tutti_square(y[1]); /* waits for what never comes */
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, &(float){__builtin_inff()}, &in));
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, in}),
                           .fetch = TUTTI_FETCH({y[0], &out[0]}, {other, &out[1]})),
                 TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "rank 1's part");
    tutti_tensor_release(in);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(recv_without_send_ends_at_the_deadline)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *out;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym lonely = tutti_recv(g, "lost", "far:1", TUTTI_TYPE(TUTTI_F32, 2));
    CHECK_STATUS(tutti_run(s, .fetch = TUTTI_FETCH({lonely, &out}), .deadline_seconds = 0.1),
                 TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "lost");
    CHECK_CONTAINS(tutti_error_message(), "far:1");
    CHECK_CONTAINS(tutti_error_message(), "is the send a target of this run?");
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Those of the other ranks are pruned, since nothing asks for them. */
TUTTI_TEST(a_collective_of_one_rank_alone_is_refused)
{
    tutti_tensor *value, *out;
    job j = start(2, two_cpus, TUTTI_F32, all_reduce, TUTTI_SUM);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 4}, &value));
    CHECK_STATUS(tutti_run(j.session, .feed = TUTTI_FEED({j.x[0], value}),
                           .fetch = TUTTI_FETCH({j.y[0], &out})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "rank 1 on 'batch' (cpu:1) does not come to it");
    CHECK_CONTAINS(tutti_error_message(), "is the all_reduce of each rank a fetch or a target");
    tutti_tensor_release(value);
    tutti_session_close(j.session);
    tutti_graph_destroy(j.graph);
}
