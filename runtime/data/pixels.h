/* 8-bit pixels as float inputs of a model: scaled, and transposed from one
 * layout to the other. */
#ifndef RUNTIME_DATA_PIXELS_H
#define RUNTIME_DATA_PIXELS_H

#include <stddef.h>

#include "runtime/file/array.h"

enum { MAX_CHANNELS = 16 };

/* The values of --normalize, relative to the largest pixel value. */
struct normalization {
	unsigned n;                     /* number of channels; 0: not given */
	float mean[MAX_CHANNELS], deviation[MAX_CHANNELS];
};

/* How a row of an array becomes a row of an input, with the distances in
 * elements between channels and between pixels in both. */
struct pixels {
	const char *transposed;         /* "HWC to CHW"; NULL: not transposed */
	bool ambiguous;                 /* HWC or CHW: all extents are equal */
	const struct normalization *normal;    /* NULL: pixels stay 0 to 255 */
	uint64_t channels, n;           /* n: pixels of a channel */
	uint64_t from_channel, from_pixel, to_channel, to_pixel;
};

/* Parse "MEAN,STD": each a number for all channels, or one per channel
 * separated by '/'. */
ckr_status normalization_parse(struct normalization *, const char *text,
                               struct err *);
/* Whether rows of the integer array a fit an input of the extents dim: in the
 * same order (images of one channel, or lists), or transposed from HWC to CHW
 * or back, with at most four channels.  The first extent of both is the number
 * of samples. */
bool pixels_fit(struct pixels *, const struct array *a, int rank,
                const int64_t *dim);
/* For an ambiguous array: hwc: images are HWC and the input CHW; else both are
 * alike. */
void pixels_transpose(struct pixels *, const struct array *, bool hwc);
/* Find the axis of the channels that means are given for; false: none has their
 * number, or two have.  If ambiguous and not transposed, the first one. */
bool pixels_split(struct pixels *, const struct normalization *, int rank,
                  const int64_t *dim);
/* Convert a row: (x / 255 - mean) / deviation in float32, as ToTensor and
 * Normalize of torchvision, or x without normalization. */
void pixels_convert(const struct pixels *, const unsigned char *from,
                    float *to);

#endif
