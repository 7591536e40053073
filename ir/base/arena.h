/* Room base: memory, messages, shapes, tables and files for all of ckc.
 *
 * in      nothing of ckc but runtime/support
 * out     arenas, diagnostics, shapes, hash tables, input and output files
 * must not know graphs
 *
 * This header: a bump allocator; everything in it is freed at once.
 *
 * Running out of memory ends the process here and nowhere else (exit 1, one
 * line on stderr).  Memory is zeroed and aligned to 16 bytes.
 */
#ifndef IR_BASE_ARENA_H
#define IR_BASE_ARENA_H

#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *);               /* NULL is allowed */
/* What b holds is of a from now on, and stays where it is; b is gone. */
void arena_join(Arena *a, Arena *b);
void *arena_alloc(Arena *, size_t nbytes);
/* Overflow of n * size counts as out of memory. */
void *arena_array(Arena *, size_t n, size_t size);
void *arena_copy(Arena *, const void *src, size_t nbytes);
char *arena_str(Arena *, const char *s);
char *arena_printf(Arena *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Grow an array that lives in the arena so that it holds at least `need`
 * elements; *cap is updated.  The old copy stays until arena_free. */
void *arena_grow(Arena *, void *old, size_t n, size_t *cap, size_t need,
                 size_t size);

#endif
