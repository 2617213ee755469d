/* arena.c: a list of blocks; only the newest has room to give. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/recycle.h"

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 20 };

/* used <= size; both count bytes of `memory` and are multiples of ALIGNMENT. */
struct tutti_arena_block {
    struct tutti_arena_block *next;
    size_t size, used;
    alignas(ALIGNMENT) unsigned char memory[];
};
typedef struct tutti_arena_block block;

/* Blocks double with the arena, so that n bytes cost O(log n) system calls up to LARGEST_STEP. */
static block *add_block(tutti_arena *arena, size_t need)
{
    size_t size = arena->total < FIRST_BLOCK ? FIRST_BLOCK : arena->total;
    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    if (size < need)
        size = need;
    block *added = tutti__recycle_take(sizeof *added + size);
    if (added == NULL)
        return NULL;
    *added = (block){.next = arena->blocks, .size = size};
    arena->blocks = added;
    arena->total += sizeof *added + size;
    return added;
}

void *tutti__arena_take(tutti_arena *arena, size_t size)
{
    if (size > PTRDIFF_MAX - sizeof(block) - ALIGNMENT)
        return NULL;
    size_t need = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    block *from = arena->blocks;
    if (from == NULL || from->size - from->used < need)
        from = add_block(arena, need);
    if (from == NULL)
        return NULL;
    void *taken = from->memory + from->used;
    from->used += need;
    return memset(taken, 0, need);
}

void *tutti__arena_array(tutti_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return tutti__arena_take(arena, bytes);
}

char *tutti__arena_bytes(tutti_arena *arena, const void *data, size_t size)
{
    char *copy = size < SIZE_MAX ? tutti__arena_take(arena, size + 1) : NULL;
    if (copy != NULL && size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *tutti__arena_string(tutti_arena *arena, const char *text)
{
    return text == NULL ? NULL : tutti__arena_bytes(arena, text, strlen(text));
}

char *tutti__arena_format(tutti_arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    char few[256]; /* most texts are short, and written once */
    int length = vsnprintf(few, sizeof few, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : tutti__arena_take(arena, (size_t)length + 1);
    if (text != NULL && (size_t)length < sizeof few)
        memcpy(text, few, (size_t)length);
    else if (text != NULL)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

static block *largest_block(const tutti_arena *arena)
{
    block *largest = arena->blocks;
    for (block *b = arena->blocks; b != NULL; b = b->next)
        if (b->size > largest->size)
            largest = b;
    return largest;
}

static void free_all_but(tutti_arena *arena, const block *kept)
{
    for (block *b = arena->blocks, *next; b != NULL; b = next) {
        next = b->next;
        if (b != kept)
            tutti__recycle_give(b, sizeof *b + b->size);
    }
}

void tutti__arena_reset(tutti_arena *arena)
{
    block *kept = largest_block(arena);
    free_all_but(arena, kept);
    arena->blocks = kept;
    arena->total = 0;
    if (kept != NULL) {
        kept->next = NULL;
        kept->used = 0;
        arena->total = sizeof *kept + kept->size;
    }
}

void tutti__arena_free(tutti_arena *arena)
{
    free_all_but(arena, NULL);
    *arena = (tutti_arena){0};
}
