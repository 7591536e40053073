/* Detection of image formats by magic numbers, and a decoder of PGM and PPM. */
#include "runtime/image/image.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/file.h"

enum { MOST_BYTES = 1 << 28 };

ckr_status
image_error(const struct image_reader *r, const char *how)
{
	char text[NAME_TEXT];

	return err_set(r->e, CKR_EFORMAT, "%s: %s", r->path,
	               err_name(text, sizeof(text), how));
}

ckr_status
image_check_size(const struct image_reader *r)
{
	const struct image *f = &r->found, *w = r->wanted;

	if (f->height == w->height && f->width == w->width
	    && f->channels <= w->channels)
		return CKR_OK;
	return err_set(r->e, CKR_EFORMAT, "%s: expected an image of %ux%ux%u "
	               "(height, width, channels) like the first one, found "
	               "%ux%ux%u; images are not cropped or resized", r->path,
	               w->height, w->width, w->channels, f->height, f->width,
	               f->channels);
}

/* ---- PGM, PPM ---- */

/* A number of the header, behind blanks and comments; 0: none, or too large. */
static uint32_t
header_number(FILE *f)
{
	uint32_t x = 0;
	int c = getc(f);

	while (isspace(c) || c == '#') {
		if (c == '#')
			while (c != '\n' && c != EOF)
				c = getc(f);
		c = getc(f);
	}
	for (; isdigit(c) && x < 1 << 16; c = getc(f))
		x = x * 10 + (uint32_t)(c - '0');
	/* one blank ends it, the last one before the pixels, too */
	return isspace(c) && x < 1 << 16 ? x : 0;
}

static ckr_status
read_pnm(struct image_reader *r, bool grey)
{
	struct image *m = &r->found;
	size_t n;

	fseek(r->file, 2, SEEK_SET);
	m->width = header_number(r->file);
	m->height = header_number(r->file);
	m->channels = grey ? 1 : 3;
	if (!m->width || !m->height)
		return image_error(r, "the PGM or PPM header has no size");
	if (header_number(r->file) != 255)
		return image_error(r, "expected pixel values from 0 to 255");
	if (!r->pixels)
		return CKR_OK;
	CKR_TRY(image_check_size(r));
	n = (size_t)m->width * m->height * m->channels;
	if (fread(r->pixels, 1, n, r->file) != n)
		return image_error(r, "ends early");
	for (size_t i = n; m->channels < r->wanted->channels && i-- > 0;)
		memset(r->pixels + 3 * i, r->pixels[i], 3);
	return CKR_OK;
}

/* ---- any ---- */

static ckr_status
read_any(struct image_reader *r)
{
	unsigned char head[8] = { 0 };
	size_t n = fread(head, 1, sizeof(head), r->file);

	rewind(r->file);
	if (n > 2 && head[0] == 'P' && (head[1] == '5' || head[1] == '6')
	    && (isspace(head[2]) || head[2] == '#'))
		return read_pnm(r, head[1] == '5');
	if (!memcmp(head, "\x89PNG\r\n\x1a\n", 8))
		return image_png(r);
	if (!memcmp(head, "\xff\xd8\xff", 3) && head[3] >= 0xc0)
		return image_jpeg(r);
	return image_error(r, "expected a PNG or JPEG image, or a binary PGM "
	                   "or PPM (P5, P6)");
}

static ckr_status
open_and_read(struct image_reader *r)
{
	uint64_t size;
	ckr_status s;
	int fd;

	CKR_TRY(file_open(r->path, &fd, &size, r->e));
	r->file = fdopen(fd, "rb");
	if (!r->file) {
		close(fd);
		return err_set(r->e, CKR_ENOMEM, "out of memory");
	}
	s = read_any(r);
	fclose(r->file);
	return s;
}

ckr_status
image_probe(struct image *m, const char *path, struct err *e)
{
	struct image_reader r = { .path = path, .e = e };

	CKR_TRY(open_and_read(&r));
	*m = r.found;
	if ((uint64_t)m->width * m->height > MOST_BYTES / 3)
		return image_error(&r, "the image has more than 89478485 "
		                   "pixels");
	return CKR_OK;
}

ckr_status
image_read(const struct image *m, const char *path, unsigned char *pixels,
           struct err *e)
{
	struct image_reader r = { .path = path, .e = e, .wanted = m,
	                          .pixels = pixels };

	return open_and_read(&r);
}
