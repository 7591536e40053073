/* Decompression by zlib, in pieces: memory does not grow with the output. */
#include "runtime/file/packed.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/file/file.h"

/* Of RATIO bytes deflate makes one at best. */
enum { PIECE = 1 << 16, RATIO = 1032 };

struct inflater {
	z_stream z;
	const struct packed *p;
	int fd;                         /* of the file */
	const char *path;
	uint64_t read;                  /* bytes of p taken from it */
	bool ended;
	struct err *e;
	unsigned char in[PIECE], out[PIECE];
};

bool
packed_can(void)
{
	return true;
}

static ckr_status
damaged_array(const struct inflater *x, const char *how)
{
	char name[NAME_TEXT];

	return err_set(x->e, CKR_EFORMAT, "%s: array '%s' is damaged: %s",
	               x->path, err_name(name, sizeof(name), x->p->name), how);
}

static ckr_status
inflater_open(struct inflater **to, int fd, const char *path,
              const struct packed *p, struct err *e)
{
	struct inflater *x = calloc(1, sizeof(*x));

	*to = x;
	if (!x)
		return err_no_memory(e);
	x->fd = fd;
	x->path = path;
	x->p = p;
	x->e = e;
	if (p->size / RATIO > p->stored)
		return damaged_array(x,
		                     "its size is too large for its compressed "
		                     "data");
	/* without zlib's own header */
	if (inflateInit2(&x->z, -MAX_WBITS) != Z_OK)
		return err_no_memory(e);
	return CKR_OK;
}

static void
inflater_close(struct inflater *x)
{
	if (x)
		inflateEnd(&x->z);
	free(x);
}

/* Up to n more bytes into `to`; *got: how many, 0 at the end. */
static ckr_status
inflate_some(struct inflater *x, void *to, size_t n, size_t *got)
{
	x->z.next_out = to;
	x->z.avail_out = (uInt)n;
	while (x->z.avail_out && !x->ended) {
		uint64_t left = x->p->stored - x->read;
		int r;

		if (!x->z.avail_in && left) {
			x->z.avail_in = (uInt)(left < PIECE ? left : PIECE);
			x->z.next_in = x->in;
			CKR_TRY(file_read(x->fd, x->path, x->in, x->z.avail_in,
			                  x->p->at + x->read, x->e));
			x->read += x->z.avail_in;
		}
		r = inflate(&x->z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return err_no_memory(x->e);
		if (r == Z_BUF_ERROR)
			return damaged_array(x, "its data end early");
		if (r != Z_OK && r != Z_STREAM_END)
			return damaged_array(x, "its data cannot be "
			                     "decompressed");
		x->ended = r == Z_STREAM_END;
	}
	*got = n - x->z.avail_out;
	return CKR_OK;
}

ckr_status
packed_peek(int fd, const char *path, const struct packed *p, void *out,
            size_t n, struct err *e)
{
	struct inflater *x;
	size_t got = 0;
	ckr_status s = inflater_open(&x, fd, path, p, e);

	if (s == CKR_OK)
		s = inflate_some(x, out, n, &got);
	if (s == CKR_OK && got < n)
		s = damaged_array(x, "its data end early");
	inflater_close(x);
	return s;
}

/* All of it, one byte more being too many. */
static ckr_status
inflate_all(struct inflater *x, int to)
{
	uint32_t crc = 0;
	uint64_t done = 0;
	char how[80];

	for (size_t n = 1; n;) {
		CKR_TRY(inflate_some(x, x->out, PIECE, &n));
		if (n > x->p->size - done)
			return damaged_array(x, "it holds more bytes than its "
			                     "header says");
		CKR_TRY(file_write(to, x->path, x->out, n, done, x->e));
		crc = (uint32_t)crc32(crc, x->out, (uInt)n);
		done += n;
	}
	if (done < x->p->size)
		return damaged_array(x, "it holds fewer bytes than its header "
		                     "says");
	snprintf(how, sizeof(how), "its checksum is %08x, expected %08x", crc,
	         x->p->crc);
	return crc == x->p->crc ? CKR_OK : damaged_array(x, how);
}

ckr_status
packed_inflate(int fd, const char *path, struct packed *p, struct err *e)
{
	struct inflater *x;
	int to = -1;
	ckr_status s;

	if (p->fd >= 0)
		return CKR_OK;
	s = inflater_open(&x, fd, path, p, e);
	if (s == CKR_OK)
		s = temp_open(&to, p->size, path, e);
	if (s == CKR_OK)
		s = inflate_all(x, to);
	inflater_close(x);
	if (s == CKR_OK)
		p->fd = to;
	else if (to >= 0)
		close(to);
	return s;
}
