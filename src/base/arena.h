/* arena.h: memory with one lifetime. Everything taken from an arena goes at once. Not thread-safe.
 */
#ifndef TUTTI_BASE_ARENA_H
#define TUTTI_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct tutti_arena {
    struct tutti_arena_block *blocks; /* newest first */
    size_t total;                     /* bytes held from the system */
} tutti_arena;

/* A zeroed struct is a valid empty arena. */

/* Zeroed memory aligned to 16 bytes, or NULL when the system has none. Size 0 gives a valid
 * pointer. */
void *tutti__arena_take(tutti_arena *arena, size_t size);
/* count * size with overflow check. */
void *tutti__arena_array(tutti_arena *arena, size_t count, size_t size);
char *tutti__arena_string(tutti_arena *arena, const char *text); /* NULL stays NULL */
char *tutti__arena_bytes(tutti_arena *arena, const void *data, size_t size);
char *tutti__arena_format(tutti_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Gives everything back but keeps the largest block for reuse. */
void tutti__arena_reset(tutti_arena *arena);
/* Gives everything back to the system. */
void tutti__arena_free(tutti_arena *arena);

#endif
