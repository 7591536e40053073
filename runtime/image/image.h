/* Room image: image files as 8-bit pixels: binary PGM and PPM, and PNG and JPEG
 * if their libraries were found at build time.  Profiles, gamma and orientation
 * are ignored.
 *
 * in      an image file
 * out     its size, its pixels
 * must not know arrays, data sets and models
 */
#ifndef RUNTIME_IMAGE_IMAGE_H
#define RUNTIME_IMAGE_IMAGE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/err.h"

/* Channels: 1, grey, or 3, red, green and blue. */
struct image {
	uint32_t height, width, channels;
};

/* The size and channels of the image in a file. */
ckr_status image_probe(struct image *, const char *path, struct err *);
/* Read its pixels [height, width, channels]; fails unless the image has this
 * size.  Grey is expanded to three channels if so many are asked for. */
ckr_status image_read(const struct image *, const char *path,
                      unsigned char *pixels, struct err *);

/* ---- formats: one row each in image.c ---- */

/* An image being read. */
struct image_reader {
	FILE *file;                     /* at its beginning */
	const char *path;
	struct image found;
	const struct image *wanted;
	unsigned char *pixels;
	void *decoder;                  /* the format's own */
	jmp_buf failed;                 /* where image_throw goes */
	ckr_status status;
	struct err *e;
};

struct image_format {
	const char *name;
	const char *magic;              /* first bytes, `nmagic` of them */
	size_t nmagic;
	const char *missing;            /* how to build it in; NULL: it is */
	/* Set `found` from the header.  Then, if it has the size that is
	 * wanted, fill `pixels`.  close follows in any case. */
	ckr_status (*header)(struct image_reader *);
	ckr_status (*fill)(struct image_reader *);
	void (*close)(struct image_reader *);   /* NULL: nothing to do */
};

extern const struct image_format image_pnm, image_png, image_jpeg;

#define IMAGE_EXPECTED \
	"expected a PNG or JPEG image, or a binary PGM or PPM (P5, P6)"

ckr_status image_error(const struct image_reader *, const char *how);
/* End header or fill from within a library: "cannot be read as NAME: WHY". */
_Noreturn void image_throw(struct image_reader *, const char *name,
                           const char *why);

#endif
