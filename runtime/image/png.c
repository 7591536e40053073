/* PNG by libpng. */
#include "runtime/image/image.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

struct png_decoder {
	jmp_buf jump;
	char why[200];
	struct image_reader *r;
	png_structp png;
	png_infop info;
	png_bytep *row;
	ckr_status status;
};

static void
on_png_error(png_structp png, const char *message)
{
	struct png_decoder *d = png_get_error_ptr(png);

	snprintf(d->why, sizeof(d->why), "cannot be read as PNG: %s", message);
	d->status = image_error(d->r, d->why);
	longjmp(d->jump, 1);
}

static void
on_png_warning(png_structp png, const char *message)
{
	(void)png;
	(void)message;
}

static ckr_status
read_png_header(struct png_decoder *d)
{
	struct image *m = &d->r->found;
	int color;

	png_init_io(d->png, d->r->file);
	png_read_info(d->png, d->info);
	color = png_get_color_type(d->png, d->info);
	m->width = png_get_image_width(d->png, d->info);
	m->height = png_get_image_height(d->png, d->info);
	m->channels = color & PNG_COLOR_MASK_COLOR ? 3 : 1;
	if (color & PNG_COLOR_MASK_ALPHA
	    || png_get_valid(d->png, d->info, PNG_INFO_tRNS))
		return image_error(d->r, "expected a PNG without an alpha "
		                   "channel, found a transparent image");
	if (png_get_bit_depth(d->png, d->info) > 8)
		return image_error(d->r, "expected 8-bit pixels, found 16-bit "
		                   "pixels");
	return CKR_OK;
}

static ckr_status
read_png_pixels(struct png_decoder *d)
{
	struct image_reader *r = d->r;
	size_t wide = (size_t)r->wanted->width * r->wanted->channels;

	CKR_TRY(image_check_size(r));
	png_set_expand(d->png);
	if (r->found.channels < r->wanted->channels)
		png_set_gray_to_rgb(d->png);
	png_set_interlace_handling(d->png);
	png_read_update_info(d->png, d->info);
	if (png_get_rowbytes(d->png, d->info) != wide)
		return image_error(r, "the row size does not match the header");
	d->row = calloc(r->wanted->height, sizeof(*d->row));
	if (!d->row)
		return err_set(r->e, CKR_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < r->wanted->height; i++)
		d->row[i] = r->pixels + i * wide;
	png_read_image(d->png, d->row);
	png_read_end(d->png, NULL);
	return CKR_OK;
}

/* What libpng refuses comes back here. */
static ckr_status
decode_png(struct png_decoder *d)
{
	ckr_status s;

	if (setjmp(d->jump))
		return d->status;
	s = read_png_header(d);
	if (s == CKR_OK && d->r->pixels)
		s = read_png_pixels(d);
	return s;
}

bool
image_can_png(void)
{
	return true;
}

ckr_status
image_png(struct image_reader *r)
{
	struct png_decoder d = { .r = r };
	ckr_status s;

	d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_png_error,
	                               on_png_warning);
	d.info = d.png ? png_create_info_struct(d.png) : NULL;
	s = d.info ? decode_png(&d)
	           : err_set(r->e, CKR_ENOMEM, "out of memory");
	png_destroy_read_struct(&d.png, &d.info, NULL);
	free(d.row);
	return s;
}
