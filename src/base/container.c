/* container.c: growing array, string map, text buffer, hashes. */
#include "base/container.h"
#include "base/c_locale.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `data` is the address of a T * for an unknown T: it is read and written bytewise, since a void *
 * lvalue may not alias a T *. */
bool tutti__vec_grow(void **data, size_t count, size_t *capacity, size_t element_size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? 8 : *capacity, bytes;
    if (*capacity != 0 && __builtin_add_overflow(wanted, *capacity, &wanted))
        return false;
    if (__builtin_mul_overflow(wanted, element_size, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    void *memory;
    memcpy(&memory, data, sizeof memory);
    memory = realloc(memory, bytes);
    if (memory == NULL)
        return false;
    memcpy(data, &memory, sizeof memory);
    *capacity = wanted;
    return true;
}

void tutti__vec_free(void **data)
{
    void *memory;
    memcpy(&memory, data, sizeof memory);
    free(memory);
    memory = NULL;
    memcpy(data, &memory, sizeof memory);
}

/* Map. slot_count is 0 or a power of two and always more than 4/3 of count, so a probe ends. */

/* The slot that holds `key`, or the empty slot where it belongs. slot_count > 0. */
static size_t find_slot(const tutti_map *map, const char *key, uint64_t hash)
{
    size_t mask = map->slot_count - 1;
    for (size_t slot = (size_t)hash & mask;; slot = (slot + 1) & mask) {
        uint32_t index = map->slots[slot];
        if (index == 0)
            return slot;
        const tutti_map_entry *entry = &map->entries[index - 1];
        if (entry->hash == hash && strcmp(entry->key, key) == 0)
            return slot;
    }
}

static bool grow_slots(tutti_map *map)
{
    if ((map->count + 1) * 4 <= map->slot_count * 3)
        return true;
    size_t slot_count = map->slot_count == 0 ? 16 : map->slot_count * 2;
    if (map->count >= UINT32_MAX - 1)
        return false;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < map->count; i++) {
        size_t slot = (size_t)map->entries[i].hash & (slot_count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    return true;
}

void *tutti__map_get(const tutti_map *map, const char *key)
{
    if (map->count == 0)
        return NULL;
    uint32_t index = map->slots[find_slot(map, key, tutti__hash_string(0, key))];
    return index == 0 ? NULL : map->entries[index - 1].value;
}

tutti_status tutti__map_set(tutti_map *map, const char *key, void *value)
{
    uint64_t hash = tutti__hash_string(0, key);
    if (map->count > 0) {
        uint32_t index = map->slots[find_slot(map, key, hash)];
        if (index != 0) {
            map->entries[index - 1].value = value;
            return TUTTI_OK;
        }
    }
    size_t size = strlen(key) + 1;
    char *copy = malloc(size);
    if (copy == NULL || !grow_slots(map) ||
        !tutti__vec_grow((void **)&map->entries, map->count, &map->capacity,
                         sizeof *map->entries)) {
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for entry %zu of a map", map->count);
    }
    memcpy(copy, key, size);
    size_t slot = find_slot(map, key, hash);
    map->entries[map->count++] = (tutti_map_entry){.key = copy, .value = value, .hash = hash};
    map->slots[slot] = (uint32_t)map->count;
    return TUTTI_OK;
}

void tutti__map_free(tutti_map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].key);
    free(map->entries);
    free(map->slots);
    *map = (tutti_map){0};
}

/* Room for `more` bytes and a NUL beyond them. */
static bool text_reserve(tutti_text *text, size_t more)
{
    size_t need;
    if (text->failed || __builtin_add_overflow(text->size, more, &need) ||
        need >= PTRDIFF_MAX / 2) {
        text->failed = true;
        return false;
    }
    need++;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity * 2 > need ? text->capacity * 2 : need;
    if (capacity < 64)
        capacity = 64;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void tutti__text_bytes(tutti_text *text, const void *data, size_t size)
{
    if (!text_reserve(text, size))
        return;
    if (size > 0)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void tutti__text_add(tutti_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    locale_t before = tutti__c_locale_enter();
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    else if (text_reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    tutti__c_locale_leave(before);
    va_end(again);
}

void tutti__text_free(tutti_text *text)
{
    free(text->data);
    *text = (tutti_text){0};
}

/* Little-endian on every machine. */
static uint64_t load_word(const unsigned char *bytes, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    return le64toh(word);
}

uint64_t tutti__hash_bytes(uint64_t seed, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = tutti__hash_mix(seed, (uint64_t)size);
    size_t left = size;
    for (; left >= 8; left -= 8, bytes += 8)
        hash = tutti__hash_mix(hash, load_word(bytes, 8));
    return left == 0 ? hash : tutti__hash_mix(hash, load_word(bytes, left));
}

uint64_t tutti__hash_string(uint64_t seed, const char *text)
{
    return tutti__hash_bytes(seed, text, text == NULL ? 0 : strlen(text));
}
