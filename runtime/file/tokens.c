/* Tokens: plain little-endian integers, or integers after the header of llm.c's
 * scripts: 256 integers of 32 bits, of which the first is a magic number, the
 * second a version and the third the number of tokens. */
#include <stdlib.h>

#include "runtime/file/array.h"

enum { HEADER = 1024 };

static const struct token_header {
	uint32_t magic, version;
	uint8_t dtype;
} headers[] = {
	{ 20240520, 1, CKR_U16 },       /* of GPT-2 */
	{ 20240801, 7, CKR_U32 },       /* of Llama 3 */
};

static uint32_t
le4(const unsigned char *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16
	       | (uint32_t)p[1] << 8 | p[0];
}

static const struct token_header *
find_token_header(const unsigned char head[8])
{
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (le4(head) == headers[i].magic
		    && le4(head + 4) == headers[i].version)
			return &headers[i];
	return NULL;
}

bool
tokens_begin(const unsigned char head[8])
{
	return find_token_header(head) != NULL;
}

static ckr_status
set_token_array(struct array_file *f, uint8_t dtype, uint64_t at, uint64_t n,
                struct err *e)
{
	f->v = calloc(1, sizeof(*f->v));
	if (!f->v)
		return err_set(e, CKR_ENOMEM, "out of memory");
	f->n = 1;
	f->v[0] = (struct array){ .name = "", .dtype = dtype, .rank = 1,
		.dim = { (int64_t)n }, .nelem = n,
		.nbytes = n * dtype_row[dtype].nbytes, .at = at };
	return CKR_OK;
}

ckr_status
tokens_read_header(struct array_file *f, struct err *e)
{
	unsigned char head[12];
	const struct token_header *k;
	uint64_t n, room;

	if (f->size < HEADER)
		return err_set(e, CKR_EFORMAT, "%s: the token header is cut "
		               "off", f->path);
	CKR_TRY(file_read(f->fd, f->path, head, sizeof(head), 0, e));
	k = find_token_header(head);
	n = le4(head + 8);
	room = (f->size - HEADER) / dtype_row[k->dtype].nbytes;
	if (n != room || (f->size - HEADER) % dtype_row[k->dtype].nbytes)
		return err_set(e, CKR_EFORMAT, "%s: the header says %llu "
		               "tokens, but the file holds %llu; it may be cut "
		               "off", f->path, (unsigned long long)n,
		               (unsigned long long)room);
	return set_token_array(f, k->dtype, HEADER, n, e);
}

ckr_status
tokens_bare(struct array_file *f, uint8_t dtype, struct err *e)
{
	uint64_t size = dtype_row[dtype].nbytes;

	if (f->size % size)
		return err_set(e, CKR_EFORMAT, "%s: %llu bytes are not a whole "
		               "number of %s tokens", f->path,
		               (unsigned long long)f->size,
		               dtype_row[dtype].text);
	return set_token_array(f, dtype, 0, f->size / size, e);
}
