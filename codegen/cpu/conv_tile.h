/* Work items and cache tiles of convolutions. */
#ifndef CODEGEN_CPU_CONV_TILE_H
#define CODEGEN_CPU_CONV_TILE_H

#include "ir/window.h"

enum {
	CONV_ROWS = 256,                /* rows of unfolded patches per task */
	CONV_BYTES = 1 << 20,           /* unfolded patches of one task */
	CONV_COLUMNS = 128,             /* ... and not less than so many */
	CONV_TASKS = 32,                /* tasks wanted */
	CONV_PART_BYTES = 8 << 20,      /* partial gradients of all images */
};

/* A task of conv is `lines` rows of windows of an image and group; of conv_dx
 * `channels` input channels of those; of conv_dw `channels` input channels of
 * a group over one of `parts` sets of images, `each` images long. */
struct conv_tile {
	bool direct;                    /* patches are the image itself */
	int64_t lines, channels;
	int64_t parts, each;
	int64_t scratch;                /* floats per thread */
	int64_t shared;                 /* floats in front of those */
};

struct conv_tile conv_tile(const Graph *, const Node *);

/* Depthwise (one input channel per group), in floats: a task copies the planes
 * of x of some images to one plane per phase of the stride, an image after the
 * other, with lines as long as those of the copy of y.  The scratch of a thread
 * holds the phases, a lead of zeros (for conv_dx) and that copy, with room for
 * a vector that overruns. */
struct conv_depthwise {
	bool fits;                      /* else nothing else counts */
	int64_t images;                 /* of a task; they divide all */
	int64_t phases[WINDOW_DIMS], room[WINDOW_DIMS];
	int64_t image, size, all;       /* of an image in a phase, of a phase,
	                                 * of all */
	int64_t run;                    /* first to last element of y */
	int64_t lead, scratch;
};

struct conv_depthwise conv_depthwise(const Graph *, const Node *);

enum {
	BLOCK = 16,                     /* channels side by side, at most */
	BLOCK_PLAIN = 3,                /* so few are not put in blocks */
	BLOCK_POINTS = 64,              /* most windows of a 1x1 one */
	BLOCK_BYTES = 1 << 20,          /* operands of one task */
	BLOCK_TASKS = 8,                /* tasks wanted */
	BLOCK_CHANNELS = 64,            /* ... but of so many channels */
	BLOCK_PART_BYTES = 8 << 20,     /* partial gradients */
};

/* The same convolution in a channel-blocked layout (nChw16c), without padding,
 * as a library computes it.  A task covers `images` images, `lines` rows of
 * windows and `channels` channels: of the result of conv, of x in conv_dx, of
 * dy in conv_dw, whose tasks each sum over `each` images. */
struct conv_blocked {
	bool fits;                      /* else nothing below is set */
	bool point;                     /* 1x1: x is sampled beforehand */
	int64_t cin, cout;              /* padded; cin may be plain */
	int64_t images, lines, channels;
	int64_t halo;                   /* conv_dx: lines above that matter */
	int64_t each;
	int64_t extent[2];              /* of the part of x in one task */
	int64_t weights;                /* floats, shared by all threads */
	int64_t x, y, w;                /* floats per thread */
};

struct conv_blocked conv_blocked(const Graph *, const Node *);

#endif
