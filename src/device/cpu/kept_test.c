#include "device/cpu/kept.h"

#include "base/test.h"

static int made;

static void count_up(const void *context, tutti_pool *pool, tutti_tensor *source, float *to)
{
    (void)context;
    (void)pool;
    (void)source;
    made++;
    for (int i = 0; i < 4; i++)
        to[i] = (float)i;
}

TUTTI_TEST(kept_forms_are_shared_and_go_with_the_last_holder)
{
    tutti_tensor *source, *other;
    tutti_kept *a, *b, *c, *d;
    int before = tutti__kept_count();
    made = 0;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &source));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &other));
    CHECK_OK(tutti__kept_take(source, "panels", 4, &a));
    CHECK_OK(tutti__kept_take(source, "panels", 4, &b));
    CHECK(a == b);
    CHECK_INT(made, 0); /* nobody has asked for the floats */
    CHECK(tutti__kept_data(a, count_up, NULL, NULL, NULL) ==
          tutti__kept_data(b, count_up, NULL, NULL, NULL));
    CHECK_INT(made, 1);
    CHECK_OK(tutti__kept_take(source, "rows", 4, &c));
    CHECK_OK(tutti__kept_take(other, "panels", 4, &d));
    CHECK(a != c && a != d);
    CHECK(tutti__kept_data(c, count_up, NULL, NULL, NULL) !=
          tutti__kept_data(d, count_up, NULL, NULL, NULL));
    CHECK_INT(made, 3);
    CHECK(tutti__kept_data(a, count_up, NULL, NULL, NULL)[3] == 3);
    CHECK(tutti__kept_data(NULL, count_up, NULL, NULL, NULL) == NULL);
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

TUTTI_TEST(kept_forms_are_made_in_the_room_of_the_first_run)
{
    tutti_tensor *source;
    tutti_kept *kept;
    float room[4] = {0};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &source));
    CHECK_OK(tutti__kept_take(source, "panels", 4, &kept));
    made = 0;
    CHECK(tutti__kept_data(kept, count_up, NULL, NULL, room) == room);
    CHECK(room[3] == 3);
    room[3] = 0; /* the room is others' by now */
    const float *data = tutti__kept_data(kept, count_up, NULL, NULL, room);
    CHECK(data != room && data[3] == 3 && room[3] == 0);
    CHECK_INT(made, 2);
    CHECK(tutti__kept_data(kept, count_up, NULL, NULL, room) == data);
    CHECK_INT(made, 2);
    CHECK_INT((int)tutti__kept_room(4), 0);
    CHECK_INT((int)tutti__kept_room((1 << 16) + 1), (1 << 18) + 64);
    tutti__kept_give(kept);
    tutti_tensor_release(source);
}

/* Many enough that several of them share a list, given in another order than taken. */
TUTTI_TEST(kept_forms_of_many_sources_are_told_apart)
{
    enum { SOURCES = 20000 };
    static tutti_tensor *sources[SOURCES];
    static tutti_kept *kept[SOURCES];
    int before = tutti__kept_count();
    for (int i = 0; i < SOURCES; i++) {
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &sources[i]));
        CHECK_OK(tutti__kept_take(sources[i], "panels", 1, &kept[i]));
    }
    CHECK_INT(tutti__kept_count() - before, SOURCES);
    for (int step = 7, i = 0, n = 0; n < SOURCES; n++, i = (i + step) % SOURCES) {
        tutti_kept *again;
        CHECK_OK(tutti__kept_take(sources[i], "panels", 1, &again));
        CHECK(again == kept[i]);
        tutti__kept_give(again);
        tutti__kept_give(kept[i]);
        tutti_tensor_release(sources[i]);
        CHECK_INT(tutti__kept_count() - before, SOURCES - 1 - n);
    }
}
