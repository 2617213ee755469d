/* container.h: the few containers the house uses: a growing array, a string map, a text buffer. */
#ifndef TUTTI_BASE_CONTAINER_H
#define TUTTI_BASE_CONTAINER_H

#include "base/status.h"

/* Growing array: declare `TUTTI_VEC(tutti_node *) nodes = {0};`, then push and index `.data`. */
#define TUTTI_VEC(type)                                                                            \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t count, capacity;                                                                    \
    }
/* Makes room for one more element; false when out of memory (the vector is unchanged). */
#define TUTTI_VEC_RESERVE_ONE(vec)                                                                 \
    tutti__vec_grow((void **)&(vec)->data, (vec)->count, &(vec)->capacity, sizeof *(vec)->data)
/* Appends; evaluates to true on success. */
#define TUTTI_VEC_PUSH(vec, value)                                                                 \
    (TUTTI_VEC_RESERVE_ONE(vec) ? ((vec)->data[(vec)->count++] = (value), true) : false)
#define TUTTI_VEC_FREE(vec)                                                                        \
    (tutti__vec_free((void **)&(vec)->data), (vec)->count = 0, (vec)->capacity = 0)
bool tutti__vec_grow(void **data, size_t count, size_t *capacity, size_t element_size);
void tutti__vec_free(void **data);

/* Map from string to pointer; keys are copied. A zeroed struct is an empty map. Iteration order is
 * insertion order: entries[0 .. count). */
typedef struct tutti_map_entry {
    char *key;
    void *value;
    uint64_t hash;
} tutti_map_entry;
typedef struct tutti_map {
    tutti_map_entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* open addressing, index + 1 into entries, 0 empty */
    size_t slot_count;
} tutti_map;
void *tutti__map_get(const tutti_map *map, const char *key); /* NULL when absent */
/* Adds or replaces; fails only for lack of memory. */
tutti_status tutti__map_set(tutti_map *map, const char *key, void *value);
void tutti__map_free(tutti_map *map); /* values are the caller's */

/* Growing text/bytes buffer; data is always NUL-terminated once non-NULL. Out of memory is sticky.
 */
typedef struct tutti_text {
    char *data;
    size_t size, capacity;
    bool failed;
} tutti_text;
void tutti__text_add(tutti_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tutti__text_bytes(tutti_text *text, const void *data, size_t size);
void tutti__text_free(tutti_text *text);

/* 64-bit hash, and mixing one more word into a hash. Stable between runs and machines. */
uint64_t tutti__hash_bytes(uint64_t seed, const void *data, size_t size);
uint64_t tutti__hash_string(uint64_t seed, const char *text); /* NULL hashes as "" */

/* For either argument fixed this is a bijection in the other (splitmix64's finaliser). */
static inline uint64_t tutti__hash_mix(uint64_t seed, uint64_t word)
{
    uint64_t x = (seed ^ (word * UINT64_C(0x9e3779b97f4a7c15))) + UINT64_C(0x632be59bd9b4e019);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* a * b and a + b with overflow check: false when the result does not fit. */
static inline bool tutti__mul_size(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}
static inline bool tutti__add_size(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

#endif
