/* Room image: image files as 8-bit pixels: binary PGM and PPM, and PNG and JPEG
 * if their libraries were found at build time.  Profiles, gamma and orientation
 * are ignored.
 *
 * in      an image file
 * out     its size, its pixels
 * unaware of arrays, data sets and models
 */
#ifndef RUNTIME_IMAGE_IMAGE_H
#define RUNTIME_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/err.h"

/* Channels: 1, grey, or 3, red, green and blue. */
struct image {
	uint32_t height, width, channels;
};

/* Whether this build can read these formats. */
bool image_can_png(void);
bool image_can_jpeg(void);
/* The size and channels of the image in a file. */
ckr_status image_probe(struct image *, const char *path, struct err *);
/* Read its pixels [height, width, channels]; fails unless the image has this
 * size.  Grey is expanded to three channels if so many are asked for. */
ckr_status image_read(const struct image *, const char *path,
                      unsigned char *pixels, struct err *);

/* ---- for the readers of the formats ---- */

/* An image being read.  Readers set `found` from the header and, after
 * image_check_size, fill `pixels` unless that is NULL. */
struct image_reader {
	FILE *file;                     /* at its beginning */
	const char *path;
	struct image found;
	const struct image *wanted;
	unsigned char *pixels;
	struct err *e;
};

/* Fails unless `found` is `wanted`. */
ckr_status image_check_size(const struct image_reader *);
ckr_status image_error(const struct image_reader *, const char *how);
ckr_status image_png(struct image_reader *);
ckr_status image_jpeg(struct image_reader *);

#endif
