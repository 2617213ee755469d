#include "device/cpu/kept.h"

#include "base/test.h"

static void count_up(void *context, float *to)
{
    ++*(int *)context;
    for (int i = 0; i < 4; i++)
        to[i] = (float)i;
}

TUTTI_TEST(kept_forms_are_shared_and_go_with_the_last_holder)
{
    tutti_tensor *source, *other;
    tutti_kept *a, *b, *c, *d;
    int made = 0, before = tutti__kept_count();
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &source));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &other));
    CHECK_OK(tutti__kept_take(source, "panels", 4, count_up, &made, &a));
    CHECK_OK(tutti__kept_take(source, "panels", 4, count_up, &made, &b));
    CHECK(a == b);
    CHECK_INT(made, 1);
    CHECK_OK(tutti__kept_take(source, "rows", 4, count_up, &made, &c));
    CHECK_OK(tutti__kept_take(other, "panels", 4, count_up, &made, &d));
    CHECK(a != c && a != d);
    CHECK_INT(made, 3);
    CHECK(tutti__kept_data(a)[3] == 3 && tutti__kept_data(NULL) == NULL);
    CHECK_INT(tutti__kept_count() - before, 3);
    tutti_tensor_release(source); /* what is kept of it holds it */
    tutti_tensor_release(other);
    tutti__kept_give(a);
    CHECK_INT(tutti__kept_count() - before, 3);
    tutti__kept_give(b);
    tutti__kept_give(c);
    tutti__kept_give(d);
    tutti__kept_give(NULL);
    CHECK_INT(tutti__kept_count() - before, 0);
}
