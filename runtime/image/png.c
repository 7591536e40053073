/* PNG by libpng. */
#include "runtime/image/image.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

struct png_decoder {
	png_structp png;
	png_infop info;
	png_bytep *row;
};

static void
on_png_error(png_structp png, const char *message)
{
	image_throw(png_get_error_ptr(png), "PNG", message);
}

static void
on_png_warning(png_structp png, const char *message)
{
	(void)png;
	(void)message;
}

static ckr_status
read_png_header(struct image_reader *r)
{
	struct png_decoder *d = calloc(1, sizeof(*d));
	struct image *m = &r->found;
	int color;

	r->decoder = d;
	if (!d)
		return err_no_memory(r->e);
	d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_png_error,
	                                on_png_warning);
	d->info = d->png ? png_create_info_struct(d->png) : NULL;
	if (!d->info)
		return err_no_memory(r->e);
	png_init_io(d->png, r->file);
	png_read_info(d->png, d->info);
	color = png_get_color_type(d->png, d->info);
	m->width = png_get_image_width(d->png, d->info);
	m->height = png_get_image_height(d->png, d->info);
	m->channels = color & PNG_COLOR_MASK_COLOR ? 3 : 1;
	if (color & PNG_COLOR_MASK_ALPHA
	    || png_get_valid(d->png, d->info, PNG_INFO_tRNS))
		return image_error(r, "expected a PNG without an alpha "
		                   "channel, found a transparent image");
	if (png_get_bit_depth(d->png, d->info) > 8)
		return image_error(r, "expected 8-bit pixels, found 16-bit "
		                   "pixels");
	return CKR_OK;
}

static ckr_status
read_png_pixels(struct image_reader *r)
{
	struct png_decoder *d = r->decoder;
	size_t wide = (size_t)r->wanted->width * r->wanted->channels;

	png_set_expand(d->png);
	if (r->found.channels < r->wanted->channels)
		png_set_gray_to_rgb(d->png);
	png_set_interlace_handling(d->png);
	png_read_update_info(d->png, d->info);
	if (png_get_rowbytes(d->png, d->info) != wide)
		return image_error(r, "the row size does not match the header");
	d->row = calloc(r->wanted->height, sizeof(*d->row));
	if (!d->row)
		return err_no_memory(r->e);
	for (uint32_t i = 0; i < r->wanted->height; i++)
		d->row[i] = r->pixels + i * wide;
	png_read_image(d->png, d->row);
	png_read_end(d->png, NULL);
	return CKR_OK;
}

static void
close_png(struct image_reader *r)
{
	struct png_decoder *d = r->decoder;

	if (!d)
		return;
	png_destroy_read_struct(&d->png, &d->info, NULL);
	free(d->row);
	free(d);
}

const struct image_format image_png = {
	.name = "PNG", .magic = "\x89PNG\r\n\x1a\n", .nmagic = 8,
	.header = read_png_header,
	.fill = read_png_pixels, .close = close_png,
};
