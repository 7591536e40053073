/* Binary PGM and PPM. */
#include "runtime/image/image.h"

#include <ctype.h>
#include <string.h>

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
read_pnm_header(struct image_reader *r)
{
	struct image *m = &r->found;
	char magic[3] = "";

	if (fread(magic, 1, 3, r->file) != 3
	    || (magic[1] != '5' && magic[1] != '6')
	    || !(isspace((unsigned char)magic[2]) || magic[2] == '#'))
		return image_error(r, IMAGE_EXPECTED);
	fseek(r->file, 2, SEEK_SET);
	m->channels = magic[1] == '5' ? 1 : 3;
	m->width = header_number(r->file);
	m->height = header_number(r->file);
	if (!m->width || !m->height)
		return image_error(r, "the PGM or PPM header has no size");
	return header_number(r->file) == 255 ? CKR_OK
	       : image_error(r, "expected pixel values from 0 to 255");
}

static ckr_status
read_pnm_pixels(struct image_reader *r)
{
	const struct image *m = &r->found;
	size_t n = (size_t)m->width * m->height * m->channels;

	if (fread(r->pixels, 1, n, r->file) != n)
		return image_error(r, "ends early");
	for (size_t i = n; m->channels < r->wanted->channels && i-- > 0;)
		memset(r->pixels + 3 * i, r->pixels[i], 3);
	return CKR_OK;
}

const struct image_format image_pnm = {
	.name = "PGM or PPM", .magic = "P", .nmagic = 1,
	.header = read_pnm_header, .fill = read_pnm_pixels,
};
