/* schedule_test.c: schedules against Keras' values and by hand. */
#include "nn/optimizers/schedule.h"

#include <math.h>

#include "base/test.h"

typedef struct point {
    int64_t step;
    double rate;
} point;

static void check(tutti_schedule schedule, int count, const point *points)
{
    CHECK_OK(tutti_schedule_check(&schedule));
    for (int i = 0; i < count; i++)
        CHECK_NEAR(tutti_schedule_at(&schedule, points[i].step), points[i].rate, 1e-9);
}
#define CHECK_RATES(schedule, ...)                                                                 \
    check(schedule, (int)(sizeof((point[]){__VA_ARGS__}) / sizeof(point)), (point[]){__VA_ARGS__})

/* Values printed by keras.optimizers.schedules 3.15 in double precision. */
TUTTI_TEST(schedules_agree_with_keras)
{
    CHECK_RATES(tutti_piecewise(.boundaries = {10, 20}, .values = {1, 0.5, 0.1}), {0, 1}, {9, 1},
                {10, 1}, {11, 0.5}, {20, 0.5}, {21, 0.1}, {1000, 0.1});
    CHECK_RATES(tutti_exponential_decay(.learning_rate = 0.1, .decay_steps = 10, .decay_rate = 0.5),
                {0, 0.1}, {5, 0.0707106781}, {10, 0.05}, {25, 0.0176776695});
    CHECK_RATES(tutti_exponential_decay(.learning_rate = 0.1, .decay_steps = 10, .decay_rate = 0.5,
                                        .staircase = true),
                {0, 0.1}, {9, 0.1}, {10, 0.05}, {25, 0.025});
    CHECK_RATES(tutti_inverse_decay(.learning_rate = 0.1, .decay_steps = 10), {0, 0.1}, {5, 0.08},
                {10, 0.0666666667}, {25, 0.0444444444});
    CHECK_RATES(tutti_inverse_decay(.learning_rate = 0.1, .decay_steps = 10, .staircase = true),
                {0, 0.1}, {9, 0.1}, {10, 0.0666666667}, {25, 0.05});
    CHECK_RATES(tutti_polynomial_decay(.learning_rate = 0.1, .decay_steps = 100, .end_rate = 0.01,
                                       .power = 2),
                {0, 0.1}, {25, 0.060625}, {50, 0.0325}, {100, 0.01}, {150, 0.01});
    CHECK_RATES(tutti_polynomial_decay(.learning_rate = 0.1, .decay_steps = 100, .end_rate = 0.01,
                                       .power = 0.5, .cycle = true),
                {0, 0.1}, {25, 0.0879422863}, {100, 0.01}, {101, 0.0733206128}, {150, 0.055},
                {250, 0.0467423461});
    CHECK_RATES(tutti_cosine_decay(.learning_rate = 0.1, .decay_steps = 100, .alpha = 0.1),
                {0, 0.1}, {25, 0.0868198052}, {50, 0.055}, {100, 0.01}, {200, 0.01});
    CHECK_RATES(tutti_cosine_decay(.learning_rate = 0.02, .decay_steps = 100, .alpha = 0.1,
                                   .warmup_target = 0.1, .warmup_steps = 10),
                {0, 0.02}, {5, 0.06}, {10, 0.1}, {60, 0.055}, {110, 0.01}, {200, 0.01});
    CHECK_RATES(tutti_cosine_decay(.learning_rate = 0.1, .decay_steps = 10, .restarts = true,
                                   .m_mul = 0.5, .alpha = 0.1),
                {0, 0.1}, {5, 0.055}, {9, 0.0122024568}, {10, 0.055}, {20, 0.0325},
                {29, 0.0102770123}, {30, 0.0325}, {50, 0.02125}, {69, 0.01003468}, {70, 0.02125},
                {75, 0.0211419172});
    CHECK_RATES(tutti_cosine_decay(.learning_rate = 0.1, .decay_steps = 10, .restarts = true,
                                   .t_mul = 1, .m_mul = 0.9),
                {0, 0.1}, {5, 0.05}, {10, 0.09}, {25, 0.0405}, {30, 0.0729});
}

static double halves(int64_t step, void *context)
{
    (*(int *)context)++;
    return step == 0 ? 1 : 1.0 / (double)(2 * step);
}

TUTTI_TEST(schedules_of_ours)
{
    int calls = 0;
    CHECK_RATES(tutti_custom_schedule(halves, &calls), {0, 1}, {1, 0.5}, {4, 0.125}, {-3, 1});
    CHECK_INT(calls, 4);
    CHECK_RATES(tutti_step_decay(.learning_rate = 0.8, .every = 3, .factor = 0.5), {0, 0.8},
                {2, 0.8}, {3, 0.4}, {8, 0.2}, {9, 0.1});
    /* Warm-up without a target begins at 0; with restarts the falls begin after it. */
    CHECK_RATES(tutti_cosine_decay(.learning_rate = 1, .decay_steps = 10, .warmup_steps = 4,
                                   .restarts = true, .t_mul = 1),
                {0, 0}, {1, 0.25}, {4, 1}, {9, 0.5}, {14, 1}, {19, 0.5});
    CHECK_RATES(
        tutti_polynomial_decay(.learning_rate = 1, .decay_steps = 4, .end_rate = TUTTI_ZERO),
        {0, 1}, {1, 0.75}, {4, 0}, {9, 0});
    tutti_schedule none = {0};
    CHECK_NEAR(tutti_schedule_at(&none, 3), 0, 0);
    CHECK_OK(tutti_schedule_check(&none));
}

static void check_refused(tutti_schedule schedule, const char *part)
{
    CHECK_STATUS(tutti_schedule_check(&schedule), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), part);
}

TUTTI_TEST(schedules_say_what_makes_no_sense)
{
    check_refused(tutti_cosine_decay(.learning_rate = 1), "decay_steps");
    check_refused(tutti_exponential_decay(.learning_rate = 1, .decay_steps = -1), "decay_steps");
    check_refused(tutti_step_decay(.learning_rate = 1), "every");
    check_refused(tutti_piecewise(.boundaries = {5, 5}, .values = {1, 2, 3}), "rise");
    check_refused(tutti_piecewise(.boundaries = {5}, .values = {1, 2, 3}), "one more value");
    check_refused(tutti_polynomial_decay(.learning_rate = NAN, .decay_steps = 1), "finite");
    check_refused(tutti_custom_schedule(NULL, NULL), "function");
}

static void check_trip(tutti_schedule schedule)
{
    tutti_setting settings[TUTTI_SCHEDULE_NUMBERS];
    int count = tutti__schedule_settings(&schedule, TUTTI_SCHEDULE_NUMBERS, settings);
    tutti_schedule again;
    CHECK_OK(tutti__schedule_make(schedule.def->name, count, settings, &again));
    CHECK_INT(again.count, schedule.count);
    for (int64_t step = 0; step < 300; step += 7)
        CHECK_NEAR(tutti_schedule_at(&again, step), tutti_schedule_at(&schedule, step), 0);
}

TUTTI_TEST(schedules_come_back_from_their_numbers)
{
    check_trip(tutti_piecewise(.boundaries = {10, 20}, .values = {1, 0.5, 0.1}));
    check_trip(tutti_piecewise(.values = {3}));
    check_trip(tutti_step_decay(.learning_rate = 0.8, .every = 3));
    check_trip(tutti_exponential_decay(.learning_rate = 0.1, .decay_steps = 10));
    check_trip(tutti_inverse_decay(.learning_rate = 0.1, .decay_steps = 10, .staircase = true));
    check_trip(tutti_polynomial_decay(.learning_rate = 0.1, .decay_steps = 100, .cycle = true));
    check_trip(tutti_cosine_decay(.learning_rate = 0.1, .decay_steps = 10, .restarts = true,
                                  .warmup_steps = 3));
    tutti_schedule s;
    double numbers[40] = {1, 2, 3};
    tutti_setting odd = {"colour", false, 1, numbers};
    CHECK_STATUS(tutti__schedule_make("step_decay", 1, &odd, &s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "colour");
    odd = (tutti_setting){"boundaries", true, 40, numbers};
    CHECK_STATUS(tutti__schedule_make("piecewise", 1, &odd, &s), TUTTI_INVALID);
    tutti_setting both[] = {{"boundaries", true, 2, numbers}, {"values", true, 2, numbers}};
    CHECK_STATUS(tutti__schedule_make("piecewise", 2, both, &s), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "one more");
    CHECK_STATUS(tutti__schedule_make("function", 0, NULL, &s), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti__schedule_make("lunar", 0, NULL, &s), TUTTI_NOT_FOUND);
}
