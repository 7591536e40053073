/* JPEG by libjpeg. */
#include "runtime/image/image.h"

#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

struct jpeg_decoder {
	struct jpeg_error_mgr err;      /* first, as libjpeg hands it back */
	struct jpeg_decompress_struct jpeg;
	struct image_reader *r;
};

static void
on_jpeg_error(j_common_ptr jpeg)
{
	struct jpeg_decoder *d = (struct jpeg_decoder *)(void *)jpeg->err;
	char message[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, message);
	image_throw(d->r, "JPEG", message);
}

/* What is missing libjpeg fills with grey; that is no image.  Other oddities
 * do not change it. */
static void
on_jpeg_message(j_common_ptr jpeg, int level)
{
	int code = jpeg->err->msg_code;

	if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
		on_jpeg_error(jpeg);
}

static ckr_status
read_jpeg_header(struct image_reader *r)
{
	struct jpeg_decoder *d = calloc(1, sizeof(*d));
	struct jpeg_decompress_struct *j;

	r->decoder = d;
	if (!d)
		return err_no_memory(r->e);
	d->r = r;
	j = &d->jpeg;
	j->err = jpeg_std_error(&d->err);
	d->err.error_exit = on_jpeg_error;
	d->err.emit_message = on_jpeg_message;
	jpeg_create_decompress(j);
	jpeg_stdio_src(j, r->file);
	jpeg_read_header(j, TRUE);
	r->found = (struct image){ j->image_height, j->image_width,
		j->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3 };
	if (j->num_components != 1 && j->num_components != 3)
		return image_error(r, "expected a greyscale or RGB JPEG, "
		                   "found another number of channels (CMYK?)");
	return CKR_OK;
}

static ckr_status
read_jpeg_pixels(struct image_reader *r)
{
	struct jpeg_decoder *d = r->decoder;
	struct jpeg_decompress_struct *j = &d->jpeg;
	size_t wide = (size_t)r->wanted->width * r->wanted->channels;

	j->out_color_space = r->wanted->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_start_decompress(j);
	while (j->output_scanline < j->output_height) {
		JSAMPROW row = r->pixels + j->output_scanline * wide;

		jpeg_read_scanlines(j, &row, 1);
	}
	jpeg_finish_decompress(j);
	return CKR_OK;
}

static void
close_jpeg(struct image_reader *r)
{
	struct jpeg_decoder *d = r->decoder;

	if (d)
		jpeg_destroy_decompress(&d->jpeg);
	free(d);
}

const struct image_format image_jpeg = {
	.name = "JPEG", .magic = "\xff\xd8\xff", .nmagic = 3,
	.header = read_jpeg_header,
	.fill = read_jpeg_pixels, .close = close_jpeg,
};
