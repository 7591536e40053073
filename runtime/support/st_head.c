#include "runtime/support/st_head.h"
#include "runtime/support/number.h"
#include "runtime/support/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void
st_head_tensor(FILE *f, const char *name, const char *dtype, int rank,
               const int64_t *dim, uint64_t from, uint64_t to)
{
	putc(',', f);
	utf8_json(f, name);
	fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
	for (int i = 0; i < rank; i++)
		fprintf(f, "%s%" PRId64, i ? "," : "", dim[i]);
	fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", from, to);
}

/* Text that a stream appends to.  open_memstream may lose characters without a
 * word when memory is short. */
struct head_text {
	char **text;
	size_t *n, cap;
};

static ssize_t
append_text(void *cookie, const char *from, size_t n)
{
	struct head_text *h = cookie;
	size_t cap = h->cap;
	char *text;

	while (cap - *h->n < n)
		cap = cap ? 2 * cap : 4096;
	text = cap == h->cap ? *h->text : realloc(*h->text, cap);
	if (!text)
		return 0;
	memcpy(text + *h->n, from, n);
	*h->text = text;
	*h->n += n;
	h->cap = cap;
	return (ssize_t)n;
}

static int
close_text(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *
st_head_open(char **text, size_t *n)
{
	const cookie_io_functions_t calls = { .write = append_text,
		.close = close_text };
	struct head_text *h = malloc(sizeof(*h));
	FILE *f;

	*text = NULL;
	*n = 0;
	if (!h)
		return NULL;
	*h = (struct head_text){ text, n, 0 };
	f = fopencookie(h, "w", calls);
	if (!f)
		free(h);
	return f;
}

bool
st_head_close(FILE *f, const size_t *n, size_t align)
{
	bool failed;

	putc('}', f);
	fflush(f);
	for (size_t k = *n; (k + 8) % align; k++)
		putc(' ', f);
	fflush(f);
	failed = ferror(f);
	return fclose(f) == 0 && !failed;
}

void
st_head_length(unsigned char length[8], uint64_t n)
{
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(n >> 8 * i);
}

uint64_t
st_head_size(const unsigned char length[8])
{
	return load_le(length, 8);
}

bool
st_head_begins(const unsigned char first[ST_HEAD_BEGINS])
{
	uint64_t n = st_head_size(first);

	return n >= 2 && n <= UINT32_MAX && first[8] == '{';
}
