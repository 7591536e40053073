/* Image files as 8-bit pixels: binary PGM and PPM, and PNG and JPEG if their
 * libraries were found at build time.  Pixels are those of the file: profiles,
 * gamma and orientation are ignored. */
#ifndef RUNTIME_IMAGE_IMAGE_H
#define RUNTIME_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/err.h"

/* Channels: 1, grey, or 3, red, green and blue. */
struct image {
	uint32_t height, width, channels;
};

/* Whether this was built to read them. */
bool image_can_png(void);
bool image_can_jpeg(void);
/* What the file holds. */
ckr_status image_probe(struct image *, const char *path, struct err *);
/* Its pixels [height, width, channels], of exactly that size; grey ones become
 * three channels if so many are wanted. */
ckr_status image_read(const struct image *, const char *path,
                      unsigned char *pixels, struct err *);

/* ---- for the readers of the formats ---- */

/* An image that is read.  Readers fill found from the header and, if pixels is
 * not NULL, pixels after image_check_size. */
struct image_reader {
	FILE *file;                     /* at its beginning */
	const char *path;
	struct image found;
	const struct image *wanted;
	unsigned char *pixels;
	struct err *e;
};

/* That found is what is wanted. */
ckr_status image_check_size(const struct image_reader *);
ckr_status image_error(const struct image_reader *, const char *how);
ckr_status image_png(struct image_reader *);
ckr_status image_jpeg(struct image_reader *);

#endif
