#include "ir/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 * 1024, ALIGN = 16 };

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	/* payload follows, aligned */
};

struct Arena {
	struct arena_block *head;
};

static size_t
align_up(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static void *
die_out_of_memory(void)
{
	fputs("ckc: out of memory\n", stderr);
	exit(1);
}

Arena *
arena_new(void)
{
	Arena *a = calloc(1, sizeof *a);

	return a ? a : die_out_of_memory();
}

void
arena_free(Arena *a)
{
	if (!a)
		return;
	for (struct arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

void
arena_join(Arena *a, Arena *b)
{
	struct arena_block **end = &a->head;

	while (*end)
		end = &(*end)->next;
	*end = b->head;
	free(b);
}

/* zero: its bytes are. */
static struct arena_block *
block_new(size_t size, bool zero)
{
	size_t head = align_up(sizeof(struct arena_block));
	struct arena_block *b;

	if (size > SIZE_MAX - head)
		die_out_of_memory();
	b = zero ? calloc(1, head + size) : malloc(head + size);
	if (!b)
		die_out_of_memory();
	*b = (struct arena_block){ .size = size };
	return b;
}

/* zero: its bytes are; those of what is not large are in any case. */
static void *
alloc(Arena *a, size_t nbytes, bool zero)
{
	struct arena_block *b = a->head;
	size_t need;
	void *p;

	if (nbytes > SIZE_MAX / 2)
		die_out_of_memory();
	need = align_up(nbytes ? nbytes : 1);
	if (!b || b->size - b->used < need) {
		bool large = need > BLOCK / 4;

		b = block_new(large ? need : BLOCK - align_up(sizeof *b),
		              zero || !large);
		/* a large block is full at once and goes behind the current
		 * one, whose rest stays in use */
		if (a->head && large) {
			b->next = a->head->next;
			a->head->next = b;
		} else {
			b->next = a->head;
			a->head = b;
		}
	}
	p = (char *)b + align_up(sizeof *b) + b->used;
	b->used += need;
	return p;
}

void *
arena_alloc(Arena *a, size_t nbytes)
{
	return alloc(a, nbytes, true);
}

void *
arena_array(Arena *a, size_t n, size_t size)
{
	size_t nbytes;

	if (__builtin_mul_overflow(n, size, &nbytes))
		die_out_of_memory();
	return arena_alloc(a, nbytes);
}

void *
arena_copy(Arena *a, const void *src, size_t nbytes)
{
	void *p = alloc(a, nbytes, false);

	if (nbytes)
		memcpy(p, src, nbytes);
	return p;
}

char *
arena_str(Arena *a, const char *s)
{
	return arena_copy(a, s, strlen(s) + 1);
}

char *
arena_printf(Arena *a, const char *fmt, ...)
{
	va_list ap;
	int n;
	char *s;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void *
arena_grow(Arena *a, void *old, size_t n, size_t *cap, size_t need,
           size_t size)
{
	size_t newcap = *cap ? *cap : 16;
	void *p;

	if (need <= *cap)
		return old;
	while (newcap < need) {
		if (newcap > SIZE_MAX / 2)
			die_out_of_memory();
		newcap *= 2;
	}
	p = arena_array(a, newcap, size);
	if (n)
		memcpy(p, old, n * size);
	*cap = newcap;
	return p;
}
