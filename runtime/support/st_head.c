#include "runtime/support/st_head.h"
#include "runtime/support/number.h"
#include "runtime/support/utf8.h"

#include <inttypes.h>

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

bool
st_head_close(FILE *f, const size_t *n, size_t align)
{
	putc('}', f);
	fflush(f);
	for (size_t k = *n; (k + 8) % align; k++)
		putc(' ', f);
	return fclose(f) == 0;
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
