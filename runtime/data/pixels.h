/* 8-bit pixels as float inputs of a model: scaled, and transposed from one
 * layout to the other. */
#ifndef RUNTIME_DATA_PIXELS_H
#define RUNTIME_DATA_PIXELS_H

#include <stddef.h>

#include "runtime/file/array.h"

enum { MAX_CHANNELS = 16 };

/* What --normalize says, in units of the largest pixel. */
struct normalization {
	unsigned n;                     /* channels; 0: not given */
	float mean[MAX_CHANNELS], deviation[MAX_CHANNELS];
};

/* How a row of an array becomes a row of an input: distances in elements from
 * channel to channel and from pixel to pixel, in both. */
struct pixels {
	const char *transposed;         /* "HWC to CHW"; NULL: not */
	bool ambiguous;                 /* HWC or CHW: all extents are equal */
	const struct normalization *normal;    /* NULL: pixels stay 0 to 255 */
	uint64_t channels, n;           /* n: pixels of each */
	uint64_t from_channel, from_pixel, to_channel, to_pixel;
};

/* "MEAN,STD", each a number for all channels or, with '/' between them, one for
 * every channel. */
ckr_status normalization_parse(struct normalization *, const char *text,
                               struct err *);
/* Whether rows of the array a, integers, make up those of an input of the
 * extents dim: as they lie, as images of one channel or as a list, or
 * transposed from HWC to CHW or back, of at most four channels.  Extents of
 * both begin with that of the samples. */
bool pixels_fit(struct pixels *, const struct array *a, int rank,
                const int64_t *dim);
/* Of an ambiguous array: as images that lie HWC, for an input CHW, or as is. */
void pixels_transpose(struct pixels *, const struct array *, bool hwc);
/* Which axis holds the channels that means are given for; false: none does, or
 * two could.  If ambiguous and not transposed, the first one. */
bool pixels_split(struct pixels *, const struct normalization *, int rank,
                  const int64_t *dim);
/* A row: (x / 255 - mean) / deviation in float32, as torchvision's ToTensor and
 * Normalize have it, or x. */
void pixels_convert(const struct pixels *, const unsigned char *from,
                    float *to);

#endif
