/* groups_test.c: every collective along every set of axes of a mesh, over devices of one process
 * and of several, against a walk through the mesh. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { MOST = 8, AXES = 3, ROWS = 12, COLUMNS = 6 };

/* A mesh, and where its places are: a digit for each one's process, in which it is the next far
 * device. */
typedef struct scene {
    const char *mesh, *homes, *engine;
    int count, axis_count, sizes[AXES];
    char names[AXES][16];
    tutti_dtype dtype;
    bool deterministic;
    tutti_strategy *strategy; /* NULL: one process */
    int process;
    char devices[512], local[MOST][16];
} scene;

static scene scene_of(const char *mesh, const char *homes)
{
    scene s = {.mesh = mesh, .homes = homes, .count = (int)strlen(homes), .dtype = TUTTI_F32};
    for (const char *at = mesh; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        sscanf(at, "%15[a-z]=%d", s.names[s.axis_count], &s.sizes[s.axis_count]);
        s.axis_count++;
    }
    int next[10] = {0};
    for (int i = 0; i < s.count; i++) {
        size_t used = strlen(s.devices);
        snprintf(s.local[i], sizeof s.local[i], "far:%d", next[homes[i] - '0']++);
        snprintf(s.devices + used, sizeof s.devices - used, "%s/job:worker/task:%c/%s",
                 i > 0 ? "," : "", homes[i], s.local[i]);
    }
    return s;
}

static int coordinate(const scene *s, int place, int axis)
{
    for (int i = s->axis_count - 1; i > axis; i--)
        place /= s->sizes[i];
    return place % s->sizes[axis];
}

/* The group of a place along axes, by rank: those whose other coordinates are the same. */
static int members(const scene *s, const char *axes, int place, int *ret, int *ret_rank)
{
    int size = 0, along[AXES], count = 0;
    for (const char *at = axes; *at; at += strcspn(at, "*") + (strchr(at, '*') != NULL))
        for (int i = 0; i < s->axis_count; i++)
            if (strncmp(at, s->names[i], strlen(s->names[i])) == 0)
                along[count++] = i;
    for (int p = 0; p < s->count; p++) {
        int rank = 0, moved = 0;
        for (int i = 0; i < s->axis_count; i++) {
            bool free = false;
            for (int k = 0; k < count; k++)
                free = free || along[k] == i;
            moved += !free && coordinate(s, p, i) != coordinate(s, place, i);
        }
        for (int k = 0; k < count; k++)
            rank = rank * s->sizes[along[k]] + coordinate(s, p, along[k]);
        if (moved > 0)
            continue;
        ret[rank] = p;
        *ret_rank = p == place ? rank : *ret_rank;
        size++;
    }
    return size;
}

static double value(int place, int row, int column)
{
    return (place * 3 + row * 7 + column * 5) % 4 + 1;
}

/* ---- what a rank should have, element by element ---- */

enum {
    SUM,
    MEAN,
    MIN,
    MAX,
    GATHER0,
    GATHER1,
    SCATTER0,
    SCATTER1,
    BROADCAST,
    REDUCE,
    TURN,
    TURN_BACK,
    UNEVEN0,
    UNEVEN1,
    OPS
};

static int64_t share(int rank) /* along the uneven dimension: some ranks have nothing */
{
    return rank % 3;
}

static double reduced(const int *all, int size, int how, int row, int column)
{
    double sum = how == MIN ? INFINITY : how == MAX ? -INFINITY : 0;
    for (int r = 0; r < size; r++) {
        double v = value(all[r], row, column);
        sum = how == MIN ? fmin(sum, v) : how == MAX ? fmax(sum, v) : sum + v;
    }
    return how == MEAN ? sum / size : sum;
}

static double expected(int op, const int *all, int size, int rank, int row, int column)
{
    int before = 0, r = 0;
    switch (op) {
    case GATHER0:
        return value(all[row / ROWS], row % ROWS, column);
    case GATHER1:
        return value(all[column / COLUMNS], row, column % COLUMNS);
    case SCATTER0:
        return reduced(all, size, SUM, row + rank * ROWS / size, column);
    case SCATTER1:
        return reduced(all, size, MAX, row, column + rank * COLUMNS / size);
    case BROADCAST:
        return value(all[size - 1], row, column);
    case REDUCE:
        return rank == size - 1 ? reduced(all, size, SUM, row, column) : 0;
    case TURN: /* rows cut, columns joined */
        return value(all[column / COLUMNS], row + rank * ROWS / size, column % COLUMNS);
    case TURN_BACK:
        return value(all[row / ROWS], row % ROWS, column + rank * COLUMNS / size);
    case UNEVEN0:
        for (; row - before >= share(r); r++)
            before += (int)share(r);
        return value(all[r], row - before, column);
    case UNEVEN1:
        for (; column - before >= share(r); r++)
            before += (int)share(r);
        return value(all[r], row, column - before);
    default:
        return reduced(all, size, op, row, column);
    }
}

static tutti_sym uneven(tutti_graph *g, tutti_sym x, const char *axes, int size, int rank, int dim)
{
    int64_t counts[MOST];
    for (int r = 0; r < size; r++)
        counts[r] = share(r);
    tutti_sym part = tutti_slice(
        x, .end = TUTTI_INDEX(dim == 0 ? share(rank) : ROWS, dim == 1 ? share(rank) : COLUMNS));
    tutti_attr attrs[] = {TUTTI_STR("axis", axes), TUTTI_INT("size", size), TUTTI_INT("dim", dim),
                          TUTTI_INTS("counts", size, counts)};
    return tutti_apply_op(g, "all_gather", 1, &part, 4, attrs);
}

static tutti_sym build(tutti_graph *g, int op, tutti_sym x, const char *axes, int size, int rank)
{
    switch (op) {
    case GATHER0:
    case GATHER1:
        return tutti_all_gather(x, axes, size, op - GATHER0);
    case SCATTER0:
        return tutti_reduce_scatter(x, axes, size, 0, TUTTI_SUM);
    case SCATTER1:
        return tutti_reduce_scatter(x, axes, size, 1, TUTTI_MAX);
    case BROADCAST:
        return tutti_broadcast(x, axes, size, size - 1);
    case REDUCE:
        return tutti_reduce(x, axes, size, size - 1, TUTTI_SUM);
    case TURN:
        return tutti_all_to_all(x, axes, size, 0, 1);
    case TURN_BACK:
        return tutti_all_to_all(x, axes, size, 1, 0);
    case UNEVEN0:
    case UNEVEN1:
        return uneven(g, x, axes, size, rank, op - UNEVEN0);
    default:
        return tutti_all_reduce(x, axes, size, (tutti_reduction)op);
    }
}

static bool possible(const scene *s, int op, int size)
{
    bool columns = op == SCATTER1 || op == TURN_BACK, rows = op == SCATTER0 || op == TURN;
    return !(op == MEAN && !tutti_dtype_is_float(s->dtype)) && !(columns && COLUMNS % size != 0) &&
           !(rows && ROWS % size != 0);
}

/* ---- one run of all operators along all axes ---- */

enum { SETS = 6, PARTS = MOST * OPS * SETS };

typedef struct part {
    const char *axes;
    int place, op, size, rank, all[MOST];
    tutti_tensor *value;
} part;

static tutti_status check_part(const scene *s, const part *p)
{
    int64_t columns = tutti_tensor_dims(p->value)[1];
    for (int64_t i = 0; i < tutti_tensor_count(p->value); i++) {
        double got = tutti_tensor_get(p->value, i),
               want = expected(p->op, p->all, p->size, p->rank, (int)(i / columns),
                               (int)(i % columns));
        if (fabs(got - want) > (p->op == MEAN ? 0.02 : 0))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s along %s, operation %d, place %d: %g, not %g",
                              s->mesh, p->axes, p->op, p->place, got, want);
    }
    return TUTTI_OK;
}

static void add_place(const scene *s, tutti_graph *g, const char *const *axes, int place,
                      tutti_feed *feed, part *parts, tutti_fetch *fetches, int *count)
{
    tutti_type type = tutti_type_make(s->dtype, 2, (int64_t[]){ROWS, COLUMNS});
    tutti_device_push(g, s->local[place]);
    feed->sym = (tutti_placeholder)(g, type);
    CHECK_OK(tutti_tensor_create(s->dtype, 2, type.dims, &feed->value));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        tutti_tensor_set(feed->value, i, value(place, i / COLUMNS, i % COLUMNS));
    for (; *axes; axes++)
        for (int op = 0; op < OPS; op++) {
            part *p = &parts[*count];
            *p = (part){.axes = *axes, .place = place, .op = op};
            p->size = members(s, *axes, place, p->all, &p->rank);
            if (possible(s, op, p->size))
                fetches[(*count)++] =
                    (tutti_fetch){build(g, op, feed->sym, *axes, p->size, p->rank), &p->value};
        }
    tutti_device_pop(g);
}

static tutti_status run_axes(const scene *s, const char *const *axes)
{
    tutti_graph *g;
    tutti_session *session;
    static part parts[PARTS];
    static tutti_fetch fetches[PARTS];
    tutti_feed feeds[MOST];
    int count = 0, fed = 0;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(tutti_session_open(&session, g, .deadline_seconds = 30, .mesh = s->mesh,
                                 .mesh_devices = s->devices, .strategy = s->strategy,
                                 .deterministic = s->deterministic));
    for (int place = 0; place < s->count; place++)
        if (s->homes[place] - '0' == s->process)
            add_place(s, g, axes, place, &feeds[fed++], parts, fetches, &count);
    tutti_status status = TUTTI_OK;
    for (int round = 0; round < 2 && status == TUTTI_OK; round++) {
        status = tutti_run(session, .feed = {fed, feeds}, .fetch = {count, fetches});
        for (int i = 0; status == TUTTI_OK && i < count; i++) {
            status = check_part(s, &parts[i]);
            tutti_tensor_release(parts[i].value);
        }
    }
    for (int i = 0; i < fed; i++)
        tutti_tensor_release(feeds[i].value);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return status;
}

static tutti_status run_scene(tutti_strategy *strategy, void *context)
{
    static const char *const of_two[] = {"a", "b", "a*b", "b*a", NULL}, *const of_three[] = {
                                                                            "a",   "b",   "c",
                                                                            "a*c", "c*b", "a*b*c",
                                                                            NULL};
    scene s = *(scene *)context;
    s.strategy = strategy;
    s.process = strategy ? tutti_strategy_rank(strategy) : 0;
    return run_axes(&s, s.axis_count == 2 ? of_two : of_three);
}

static void run_workers(scene s, int processes)
{
    static const char *const engines[] = {"shm", "tcp"};
    for (int e = 0; e < 2; e++)
        tutti__test_workers(processes, TUTTI_OPTIONS(tutti_strategy_options, .engine = engines[e]),
                            run_scene, &s);
}

static const tutti_dtype types[] = {TUTTI_F32, TUTTI_F64, TUTTI_BF16, TUTTI_F16,
                                    TUTTI_I32, TUTTI_I64, TUTTI_I8};

TUTTI_TEST(groups_of_one_process)
{
    scene two = scene_of("a=2,b=3", "000000"), three = scene_of("a=2,b=2,c=2", "00000000");
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        two.dtype = three.dtype = types[t];
        CHECK_OK(run_scene(NULL, &two));
    }
    CHECK_OK(run_scene(NULL, &three));
    three.deterministic = true;
    CHECK_OK(run_scene(NULL, &three));
}

TUTTI_TEST(groups_of_two_processes)
{
    run_workers(scene_of("a=2,b=2", "0011"), 2); /* rows in one process, columns between them */
    run_workers(scene_of("a=2,b=2", "0101"), 2);
    run_workers(scene_of("a=2,b=2", "0110"), 2);
    scene s = scene_of("a=2,b=2", "0001"); /* one has three */
    s.dtype = TUTTI_F64;
    run_workers(s, 2);
    s = scene_of("a=3,b=2", "010010");
    s.dtype = TUTTI_I32;
    run_workers(s, 2);
    s.dtype = TUTTI_BF16;
    s.deterministic = true;
    run_workers(s, 2);
}

TUTTI_TEST(groups_of_two_processes_and_three_axes)
{
    run_workers(scene_of("a=2,b=2,c=2", "00001111"), 2);
    run_workers(scene_of("a=2,b=2,c=2", "01101001"), 2);
}

TUTTI_TEST(groups_of_four_processes)
{
    run_workers(scene_of("a=2,b=2", "0123"), 4);
    run_workers(scene_of("a=2,b=2,c=2", "00112233"), 4);
    run_workers(scene_of("a=2,b=2,c=2", "03210123"), 4);
}
