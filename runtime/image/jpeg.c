/* JPEG by libjpeg. */
#include "runtime/image/image.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

struct jpeg_decoder {
	struct jpeg_error_mgr err;      /* first, as libjpeg hands it back */
	struct jpeg_decompress_struct jpeg;
	jmp_buf jump;
	struct image_reader *r;
	ckr_status status;
};

static void
on_jpeg_error(j_common_ptr jpeg)
{
	struct jpeg_decoder *d = (struct jpeg_decoder *)(void *)jpeg->err;
	char message[JMSG_LENGTH_MAX], why[JMSG_LENGTH_MAX + 40];

	jpeg->err->format_message(jpeg, message);
	snprintf(why, sizeof(why), "cannot be read as JPEG: %s", message);
	d->status = image_error(d->r, why);
	longjmp(d->jump, 1);
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
read_jpeg_header(struct jpeg_decoder *d)
{
	struct jpeg_decompress_struct *j = &d->jpeg;

	jpeg_stdio_src(j, d->r->file);
	jpeg_read_header(j, TRUE);
	d->r->found = (struct image){ j->image_height, j->image_width,
		j->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3 };
	if (j->num_components != 1 && j->num_components != 3)
		return image_error(d->r, "expected a greyscale or RGB JPEG, "
		                   "found another number of channels (CMYK?)");
	return CKR_OK;
}

static ckr_status
read_jpeg_pixels(struct jpeg_decoder *d)
{
	struct jpeg_decompress_struct *j = &d->jpeg;
	const struct image *w = d->r->wanted;
	size_t wide = (size_t)w->width * w->channels;

	CKR_TRY(image_check_size(d->r));
	j->out_color_space = w->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_start_decompress(j);
	while (j->output_scanline < j->output_height) {
		JSAMPROW row = d->r->pixels + j->output_scanline * wide;

		jpeg_read_scanlines(j, &row, 1);
	}
	jpeg_finish_decompress(j);
	return CKR_OK;
}

/* What libjpeg refuses comes back here. */
static ckr_status
decode_jpeg(struct jpeg_decoder *d)
{
	ckr_status s;

	if (setjmp(d->jump))
		return d->status;
	jpeg_create_decompress(&d->jpeg);
	s = read_jpeg_header(d);
	if (s == CKR_OK && d->r->pixels)
		s = read_jpeg_pixels(d);
	return s;
}

bool
image_can_jpeg(void)
{
	return true;
}

ckr_status
image_jpeg(struct image_reader *r)
{
	struct jpeg_decoder *d = calloc(1, sizeof(*d));
	ckr_status s;

	if (!d)
		return err_set(r->e, CKR_ENOMEM, "out of memory");
	d->r = r;
	d->jpeg.err = jpeg_std_error(&d->err);
	d->err.error_exit = on_jpeg_error;
	d->err.emit_message = on_jpeg_message;
	s = decode_jpeg(d);
	jpeg_destroy_decompress(&d->jpeg);
	free(d);
	return s;
}
