/* Work items and cache tiles of convolutions. */
#ifndef CODEGEN_CPU_CONV_TILE_H
#define CODEGEN_CPU_CONV_TILE_H

#include "codegen/rules/emit.h"
#include "ir/window.h"

enum {
	CONV_ROWS = 256,                /* rows of unfolded patches per task */
	CONV_BYTES = 1 << 20,           /* bytes of unfolded patches per task */
	CONV_SUM_BYTES = 4 << 20,       /* bytes of sums per task of conv_dx,
	                                 * of bf16, unless of one channel */
	CONV_COLUMNS = 128,             /* columns of patches, at least */
	CONV_TASKS = 32,                /* tasks wanted */
	CONV_PART_BYTES = 8 << 20,      /* bytes of all partial gradients */
};

/* A task of conv is `windows` of an image and group; of conv_dx `channels`
 * input channels of all of them; of conv_dw `channels` input channels of
 * a group over one of `parts` sets of images, `each` images long. */
struct conv_tile {
	bool direct;                    /* patches are the image: no copy */
	int64_t windows, channels;
	int64_t parts, each;
	int64_t room;                   /* floats before those of sums */
	int64_t workspace;                /* floats per thread */
	int64_t shared;                 /* floats in front of those */
};

struct conv_tile conv_tile(const Graph *, const Node *);
/* Whether the kernels take its operands as bf16, where the processor multiplies
 * that; else, and on other processors, they are staged. */
bool conv_takes_bf16(const Graph *, const Node *);
/* Whether they take its operands of any 16-bit type, on all processors:
 * depthwise. */
bool conv_takes_half(const Graph *, const Node *);

/* Depthwise (one input channel per group), in floats: a task copies the planes
 * of x of some images to one plane per phase of the stride, an image after the
 * other, with lines as long as those of the copy of y.  The workspace of a
 * thread holds the phases, a lead of zeros (for conv_dx) and that copy, with
 * room for a vector that overruns. */
struct conv_depthwise {
	bool fits;                      /* else no other field is set */
	int64_t images;                 /* images of a task; divides all */
	int64_t phases[WINDOW_DIMS], room[WINDOW_DIMS];
	int64_t image, size, all;       /* elements of an image in a phase, of a
	                                 * phase, of all phases */
	int64_t run;                    /* elements from first to last of y */
	int64_t lead, workspace;
};

struct conv_depthwise conv_depthwise(const Graph *, const Node *);

enum {
	BLOCK = 16,                     /* channels of a block, at most */
	BLOCK_PLAIN = 3,                /* channels that are not blocked, at
	                                 * most */
	BLOCK_POINTS = 64,              /* windows of a 1x1 task, at most */
	BLOCK_BYTES = 1 << 20,          /* bytes of a task's operands */
	BLOCK_TASKS = 8,                /* tasks wanted */
	BLOCK_CHANNELS = 64,            /* channels of a task, at least */
	BLOCK_PART_BYTES = 8 << 20,     /* bytes of partial gradients */
};

/* The same convolution in a channel-blocked layout (nChw16c), without padding,
 * as a library computes it.  A task covers `images` images, `lines` rows of
 * windows and `channels` channels: of the result of conv, of x in conv_dx, of
 * dy in conv_dw, whose tasks each sum over `each` images. */
struct conv_blocked {
	bool fits;                      /* else no other field is set */
	bool point;                     /* 1x1: strided x is sampled first */
	int64_t cin, cout;              /* channels, padded to blocks unless cin
	                                 * is plain */
	int64_t images, lines, channels;
	int64_t halo;                   /* conv_dx: lines above that are read */
	int64_t each;
	int64_t extent[2];              /* extent of x in one task */
	bool half;                      /* of bf16 */
	int64_t weights;                /* floats that all threads share */
	int64_t x, y, w, scratch;       /* floats per thread */
};

struct conv_blocked conv_blocked(const Graph *, const Node *);

WorkRule work_conv;

#endif
