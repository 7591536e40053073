/* Random flips and shifts of images during training. */
#ifndef RUNTIME_DATA_AUGMENT_H
#define RUNTIME_DATA_AUGMENT_H

#include "runtime/file/array.h"

/* --augment; no flip and crop 0: images stay as they are. */
struct augmentation {
	bool flip;                      /* left to right, every second image */
	uint32_t crop;                  /* shift by at most so many pixels each
	                                 * way; what comes in is 0 */
};

/* How a row of an array is an image: extents, and distances in elements from
 * line to line, from pixel to pixel and from channel to channel. */
struct image_layout {
	uint64_t height, width, channels;
	uint64_t line, pixel, channel;
};

/* Parse "flip,crop=N": either or both. */
ckr_status augmentation_parse(struct augmentation *, const char *text,
                              struct err *);
/* The layout of rows of an array [samples, height, width] or of four dims; hwc:
 * channels are the last, chw: the first, neither: the axis of at most four,
 * if the other one has more.  False: rows are no images, or both would do. */
bool image_layout_find(struct image_layout *, const struct array *, bool hwc,
                       bool chw);
/* Write the image to `to`, moved by random numbers of (seed, visit). */
void augment_image(const struct augmentation *, const struct image_layout *,
                   uint64_t seed, uint64_t visit, const unsigned char *from,
                   unsigned char *to);

#endif
