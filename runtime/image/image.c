/* The table of image formats, told by their first bytes. */
#include "runtime/image/image.h"

#include <string.h>
#include <unistd.h>

#include "runtime/file/file.h"

enum { MOST_BYTES = 1 << 28 };

static const struct image_format *const formats[] = {
	&image_pnm, &image_png, &image_jpeg
};

static ckr_status
check_size(const struct image_reader *r)
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

/* What a library refuses comes back here. */
static ckr_status
decode_image(struct image_reader *r, const struct image_format *k)
{
	if (setjmp(r->failed))
		return r->status;
	CKR_TRY(k->header(r));
	if (!r->pixels)
		return CKR_OK;
	CKR_TRY(check_size(r));
	return k->fill(r);
}

static ckr_status
read_any(struct image_reader *r)
{
	const struct image_format *k = NULL;
	char head[8] = { 0 }, how[100];
	ckr_status s;

	(void)!fread(head, 1, sizeof(head), r->file);
	rewind(r->file);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!memcmp(head, formats[i]->magic, formats[i]->nmagic))
			k = formats[i];
	if (!k)
		return image_error(r, IMAGE_EXPECTED);
	if (k->missing) {
		snprintf(how, sizeof(how), "the image is %s, and %s", k->name,
		         k->missing);
		return image_error(r, how);
	}
	s = decode_image(r, k);
	if (k->close)
		k->close(r);
	return s;
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
		return err_no_memory(r->e);
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
