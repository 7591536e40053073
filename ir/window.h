/* The geometry of convolutions and pools.
 *
 * Spatial dims are always three here: missing ones stand in front with extent
 * and kernel 1.
 */
#ifndef IR_WINDOW_H
#define IR_WINDOW_H

#include "ir/ir.h"

enum {
	WINDOW_DIMS = 3,
	WINDOW_MAX = 1 << 30,           /* stride, dilation, pad, extent */
};

/* in: of the side that windows slide over; out: windows.  Channels of one
 * group; a pool has one group of as many channels. */
struct window {
	int64_t images, group, cin, cout;
	int64_t in[WINDOW_DIMS], out[WINDOW_DIMS], kernel[WINDOW_DIMS];
	int64_t stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
	int64_t begin[WINDOW_DIMS];
};

/* Of a conv, conv_dx, conv_dw, maxpool, avgpool or avgpool_grad whose shapes
 * are known. */
struct window window_of(const Graph *, const Node *);
/* A window is one element, in its place: what is unfolded is the operand. */
bool window_is_direct(const struct window *);
/* The extent along one dim: windows that fit, or -1 if none does. */
int64_t window_count(int64_t in, int64_t kernel, int64_t stride,
                     int64_t dilation, int64_t pads);

/* The windows of a col2im along one dim. */
struct columns {
	int64_t image, block, count, stride, dilation, begin, end;
};

/* For a col2im whose lists are known: how many dims it has, or 0 and what is
 * wrong with it. */
int col2im_dims(const Graph *, const Node *, struct columns [WINDOW_DIMS],
                const char **why);

/* What an interpolate does along one axis; scale 0: to / from. */
struct interpolated_axis {
	int64_t to;
	double scale, first, last;
};

/* For an interpolate whose operand's shape and lists are known: NULL, or what
 * is wrong with it. */
const char *interpolate_axes(const Graph *, const Node *,
                             struct interpolated_axis r[MAX_RANK]);

#endif
