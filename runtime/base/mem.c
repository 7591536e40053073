/* Memory: one anonymous mapping for what lives as long as the model, one for
 * the arena.
 *
 * Fresh pages cost nine times what rewriting them does, so both are touched
 * at the start, by all threads, each its own part.  Large pages are left to
 * the user (a first touch with MADV_HUGEPAGE was measured slower).
 */
#include "runtime/base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/support/hash.h"

enum { TOUCH = 1 << 21, ALIGN = 64 };

ckr_status
block_map(struct block *b, uint64_t size, bool paint, bool at_end,
          int threads, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), body;
	int64_t parts;

	*b = (struct block){ .size = size };
	if (!size)
		return CKR_OK;
	if (size > (uint64_t)1 << 46)
		return err_set(e, CKR_ENOMEM,
		               "cannot allocate %llu bytes of memory",
		               (unsigned long long)size);
	body = (size + page - 1) / page * page;
	b->mapped = body + page;
	b->map = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->map == MAP_FAILED) {
		*b = (struct block){ .p = NULL };
		return err_set(e, CKR_ENOMEM, "cannot allocate %llu bytes of "
		               "memory: %m", (unsigned long long)size);
	}
	mprotect((char *)b->map + body, page, PROT_NONE);
	b->p = b->map;
	if (at_end)
		b->p += (body - size) / ALIGN * ALIGN;
	b->painted = paint;
	parts = (int64_t)((size + TOUCH - 1) / TOUCH);
#pragma omp parallel for schedule(static) num_threads(threads)
	for (int64_t i = 0; i < parts; i++) {
		uint64_t at = (uint64_t)i * TOUCH;

		memset(b->p + at, paint ? BLOCK_PAINT : 0,
		       size - at < TOUCH ? size - at : TOUCH);
	}
	return CKR_OK;
}

void
block_forget(const struct block *b, uint64_t from, uint64_t to)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t base = (uintptr_t)b->p % page;

	from = (base + from + page - 1) / page * page;
	to = (base + to) / page * page;
	if (from < to)
		madvise(b->p - base + from, to - from, MADV_DONTNEED);
}

void
block_unmap(struct block *b)
{
	if (b->map)
		munmap(b->map, b->mapped);
	*b = (struct block){ .p = NULL };
}

uint64_t
block_touched(const struct block *b)
{
	uint64_t n = b->size;

	if (!b->painted)
		return n;
	while (n && b->p[n - 1] == BLOCK_PAINT)
		n--;
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* From smaps_rollup, which walks the page tables: the counters of
 * /proc/self/status lag behind by some pages per processor. */
uint64_t
mem_anonymous(void)
{
	char buf[4096], *line;
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	line = strstr(buf, "\nAnonymous:");
	return line ? strtoull(line + 11, NULL, 10) * 1024 : 0;
}

void *
mem_append(void *list, size_t n, size_t size)
{
	return n & (n - 1) ? list : reallocarray(list, n ? 2 * n : 1, size);
}

uint64_t
mem_hash(uint64_t h, const void *data, uint64_t n)
{
	const unsigned char *p = data;
	uint64_t x;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&x, p, 8);
		h = hash_number(h, x);
	}
	x = 0;
	memcpy(&x, p, n);
	return hash_number(h, x + n);
}
