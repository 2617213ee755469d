#include "base/container.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

TUTTI_TEST(container_vector_grows)
{
    TUTTI_VEC(int) numbers = {0};
    for (int i = 0; i < 1000; i++)
        CHECK(TUTTI_VEC_PUSH(&numbers, i * i));
    CHECK_INT(numbers.count, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(numbers.data[i], i * i);
    TUTTI_VEC_FREE(&numbers);
    CHECK(numbers.data == NULL && numbers.count == 0 && numbers.capacity == 0);
    TUTTI_VEC_FREE(&numbers);
}

TUTTI_TEST(container_vector_refuses_overflow)
{
    void *data = NULL;
    size_t capacity = SIZE_MAX / 2 + 1;
    CHECK(!tutti__vec_grow(&data, capacity, &capacity, 1));
    capacity = 0;
    CHECK(!tutti__vec_grow(&data, 0, &capacity, SIZE_MAX / 4));
    CHECK(data == NULL && capacity == 0);
}

TUTTI_TEST(container_map_keeps_insertion_order)
{
    tutti_map map = {0};
    static int values[5000];
    char key[32];
    CHECK(tutti__map_get(&map, "k0") == NULL);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK_OK(tutti__map_set(&map, key, &values[i]));
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK(tutti__map_get(&map, key) == &values[i]);
        CHECK_STR(map.entries[i].key, key);
    }
    CHECK(tutti__map_get(&map, "k5000") == NULL);
    CHECK_OK(tutti__map_set(&map, "k7", &values[0]));
    CHECK(tutti__map_get(&map, "k7") == &values[0]);
    CHECK_INT(map.count, 5000);
    tutti__map_free(&map);
    CHECK(tutti__map_get(&map, "k7") == NULL);
}

TUTTI_TEST(container_text_grows)
{
    tutti_text text = {0};
    tutti__text_bytes(&text, NULL, 0);
    CHECK_STR(text.data, "");
    for (int i = 0; i < 100; i++)
        tutti__text_add(&text, "%d,", i % 10);
    CHECK_INT(text.size, 200);
    tutti__text_bytes(&text, "a\0b", 3);
    CHECK_INT(text.size, 203);
    CHECK(memcmp(text.data + 198, "9,a\0b", 6) == 0);
    tutti__text_bytes(&text, "", SIZE_MAX);
    CHECK(text.failed);
    tutti__text_add(&text, "more");
    CHECK_INT(text.size, 203);
    tutti__text_free(&text);
    CHECK(text.data == NULL && !text.failed);
}

/* The numbers are a promise: program hashes are compared between machines. */
TUTTI_TEST(container_hash_is_stable)
{
    CHECK(tutti__hash_mix(0, 0) == UINT64_C(0x6db6ca64564daeaa));
    CHECK(tutti__hash_string(1, "tutti: all together") == UINT64_C(0xe5424239e84346c9));
    CHECK(tutti__hash_string(5, NULL) == tutti__hash_string(5, ""));
    CHECK(tutti__hash_bytes(0, "a", 1) != tutti__hash_bytes(0, "a\0", 2));
    CHECK(tutti__hash_bytes(0, "ab", 2) != tutti__hash_bytes(1, "ab", 2));
    CHECK(tutti__hash_mix(1, 2) != tutti__hash_mix(2, 1));
}

TUTTI_TEST(container_sizes_are_checked)
{
    int64_t result = 0;
    CHECK(tutti__mul_size(1 << 20, 1 << 20, &result) && result == (int64_t)1 << 40);
    CHECK(!tutti__mul_size(INT64_MAX, 2, &result));
    CHECK(tutti__add_size(1, 2, &result) && result == 3);
    CHECK(!tutti__add_size(INT64_MAX, 1, &result));
}
