/* What a process writes of a file, copied to host memory, so that a thread can
 * write it while steps change the tensors.
 *
 * The same puts are made twice: a first time to count bytes and ranges, so that
 * all memory is allocated before the first byte is copied.
 */
#include "runtime/files/inside.h"

#include <stdlib.h>
#include <string.h>

enum {
	COPY = 1 << 20,                 /* bytes that a thread copies at once */
	WRITTEN = 1 << 18               /* ... and writes at once */
};

struct file_range {
	uint64_t at, n;                 /* in the file */
};

void
staging_begin(struct staging *s, bool count)
{
	s->counting = count;
	s->used = 0;
	s->nrange = 0;
}

/* Ranges next to each other are one. */
static bool
add_range(struct staging *s, uint64_t at, uint64_t n)
{
	struct file_range *last, *grown;

	last = s->nrange ? &s->range[s->nrange - 1] : NULL;
	if (last && last->at + last->n == at) {
		last->n += n;
		return true;
	}
	if (s->nrange == s->most) {
		size_t most = s->most ? 2 * s->most : 64;

		grown = reallocarray(s->range, most, sizeof(*grown));
		if (!grown)
			return false;
		s->range = grown;
		s->most = most;
	}
	s->range[s->nrange++] = (struct file_range){ at, n };
	return true;
}

static void
copy(char *to, const char *from, uint64_t n, int threads)
{
	int64_t parts = (int64_t)((n + COPY - 1) / COPY);

#pragma omp parallel for schedule(static) num_threads(threads) if (parts > 1)
	for (int64_t i = 0; i < parts; i++) {
		uint64_t at = (uint64_t)i * COPY;

		memcpy(to + at, from + at, n - at < COPY ? n - at : COPY);
	}
}

ckr_status
staging_put(struct staging *s, uint64_t at, const void *x, uint64_t n,
            bool on_device, struct err *e)
{
	char *to;

	if (!n)
		return CKR_OK;
	if (!s->counting && n > s->size - s->used)
		return err_set(e, CKR_EARG, "internal: more is saved than was "
		               "counted");
	if (!add_range(s, at, n))
		return err_no_memory(e);
	to = s->counting ? NULL : s->bytes + s->used;
	s->used += n;
	if (to && on_device)
		s->device->call->copy_d2h_async(s->device, to, x, n);
	else if (to)
		copy(to, x, n, s->threads);
	return CKR_OK;
}

ckr_status
staging_reserve(struct staging *s, struct err *e)
{
	if (s->used <= s->size)
		return CKR_OK;
	device_free_pinned(s->device, s->bytes);
	s->size = 0;
	s->bytes = device_alloc_pinned(s->device, s->used);
	if (!s->bytes)
		return err_set(e, CKR_ENOMEM, "saving beside training needs "
		               "%llu bytes of host memory for a copy of "
		               "parameters and optimizer state, and they "
		               "cannot be allocated; try: without --save-async",
		               (unsigned long long)s->used);
	s->size = s->used;
	return CKR_OK;
}

ckr_status
staging_sync(struct staging *s, struct err *e)
{
	s->device->call->sync(s->device);
	return device_status(s->device, e);
}

ckr_status
staging_write(const struct staging *s, int fd, const char *path,
              struct pace *pace, struct err *e)
{
	const char *from = s->bytes;

	for (size_t i = 0; i < s->nrange; i++) {
		const struct file_range *r = &s->range[i];

		for (uint64_t at = 0, n; at < r->n; at += n, from += n) {
			n = r->n - at < WRITTEN ? r->n - at : WRITTEN;
			CKR_TRY(file_write(fd, path, from, n, r->at + at, e));
			pace_rest(pace, (double)n);
		}
	}
	return CKR_OK;
}

void
staging_free(struct staging *s)
{
	device_free_pinned(s->device, s->bytes);
	free(s->range);
	*s = (struct staging){ .bytes = NULL };
}
