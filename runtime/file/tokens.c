/* Tokens after the header of llm.c's scripts: 256 integers of 32 bits, of which
 * the first is a magic number, the second a version and the third the number of
 * tokens. */
#include "runtime/file/format.h"
#include "runtime/support/number.h"

enum { HEADER = 1024 };

static const struct token_header {
	uint32_t magic, version;
	uint8_t dtype;
} headers[] = {
	{ 20240520, 1, CKR_U16 },       /* of GPT-2 */
	{ 20240801, 7, CKR_U32 },       /* of Llama 3 */
};

static const struct token_header *
find_token_header(const unsigned char head[8])
{
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (load_le(head, 4) == headers[i].magic
		    && load_le(head + 4, 4) == headers[i].version)
			return &headers[i];
	return NULL;
}

bool
tokens_begin(const unsigned char head[FORMAT_HEAD])
{
	return find_token_header(head) != NULL;
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
	n = load_le(head + 8, 4);
	room = (f->size - HEADER) / dtype_row[k->dtype].nbytes;
	if (n != room || (f->size - HEADER) % dtype_row[k->dtype].nbytes)
		return err_set(e, CKR_EFORMAT, "%s: the header says %llu "
		               "tokens, but the file holds %llu; it may be cut "
		               "off", f->path, (unsigned long long)n,
		               (unsigned long long)room);
	return array_alone(f, k->dtype, HEADER, n, e);
}
