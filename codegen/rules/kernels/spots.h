/* Where the numbers of a grid lie in the data. */
#ifndef CODEGEN_RULES_KERNELS_SPOTS_H
#define CODEGEN_RULES_KERNELS_SPOTS_H

#include <math.h>

/* A point takes in 2^(mode * dims) elements: the nearest, those around it, or
 * of cubic four in each dim. */
struct ckr_sample {
	int64_t images, channels, plane, points;
	int64_t in[3];                  /* extents of the `dims` dims */
	int dims, mode, padding, align;
};

enum { CKR_TAPS = 4, CKR_CORNERS = 16 };

/* Elements that a point takes in: their place in the plane (-1: outside),
 * weight, and what the weight grows by with the grid's numbers. */
struct ckr_spot {
	int64_t at[CKR_CORNERS];
	float weight[CKR_CORNERS], slope[CKR_CORNERS][3];
};

/* The same in one dim of n elements. */
struct ckr_taps {
	int64_t at[CKR_TAPS];
	float part[CKR_TAPS], step[CKR_TAPS];
};

/* x within the dim, mirrored at its edges; *slope turns with it. */
CKR_LANE double
ckr_reflected(double x, double low, double span, double *slope)
{
	double rest = x - low;

	if (rest < 0) {
		rest = -rest;
		*slope = -*slope;
	}
	rest = fmod(rest, 2 * span);
	if (rest >= span) {
		rest = 2 * span - rest;
		*slope = -*slope;
	}
	return rest + low;
}

/* x as the padding has it, along a dim of n elements. */
CKR_LANE double
ckr_padded(const struct ckr_sample *s, int64_t n, double x, double *slope)
{
	double last = (double)(n - 1), low = s->align ? 0.0 : -0.5;
	double span = s->align ? last : (double)n;

	if (s->padding == 2 && span > 0)
		x = ckr_reflected(x, low, span, slope);
	if (s->padding != 0 && (!(x > 0) || x >= last)) {
		x = x >= last ? last : 0.0;
		*slope = 0;
	}
	return x;
}

/* Where the grid's number lies along a dim of n elements; *slope: its
 * derivative.  In double precision: far from 0 little would be left of the
 * fraction. */
CKR_LANE double
ckr_sample_at(const struct ckr_sample *s, int64_t n, double grid,
              double *slope)
{
	double low = s->align ? 0.0 : -0.5, x;

	*slope = (s->align ? (double)(n - 1) : (double)n) / 2;
	x = (grid + 1) * *slope + low;
	if (s->mode == 2)       /* the elements are padded, not the place */
		return fabs(x) < 1e9 ? x : x > 0 ? 1e9 : -1e9;
	x = ckr_padded(s, n, x, slope);
	return fabs(x) < 1e9 ? x : -100.0;     /* far away: outside */
}

/* The two nearest elements in each direction by Keys' convolution with
 * a = -0.75, as PyTorch has it; t: how far the place is behind at[1]. */
CKR_LANE void
ckr_cubic_taps(const struct ckr_sample *s, int64_t n, double low, float t,
               float slope, struct ckr_taps *c)
{
	const float a = -0.75f;

	for (int k = 0; k < CKR_TAPS; k++) {
		float side = k < 2 ? 1.0f : -1.0f;
		float far = side * t + (k < 2 ? 1 - k : k - 1);
		double flat = 0, at = ckr_padded(s, n, low + k - 1, &flat);
		int inner = k == 1 || k == 2;

		c->at[k] = (int64_t)at;
		c->part[k] = inner
			? ((a + 2) * far - (a + 3)) * far * far + 1
			: ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
		c->step[k] = side * slope * (inner
			? (3 * (a + 2) * far - 2 * (a + 3)) * far
			: (3 * a * far - 10 * a) * far + 8 * a);
	}
}

CKR_LANE void
ckr_taps_of(const struct ckr_sample *s, int64_t n, double grid,
            struct ckr_taps *c)
{
	double slope, x = ckr_sample_at(s, n, grid, &slope);
	double low = s->mode ? floor(x) : rint(x);

	if (s->mode == 2) {
		ckr_cubic_taps(s, n, low, (float)(x - low), (float)slope, c);
		return;
	}
	c->at[0] = (int64_t)low;
	c->at[1] = (int64_t)low + 1;
	c->part[1] = s->mode ? (float)(x - low) : 0.0f;
	c->part[0] = 1 - c->part[1];
	c->step[0] = (float)-slope;
	c->step[1] = (float)slope;
}

CKR_LANE int
ckr_corners(const struct ckr_sample *s)
{
	return 1 << s->mode * s->dims;
}

CKR_LANE void
ckr_spot(const struct ckr_sample *s, const float *grid, struct ckr_spot *t)
{
	struct ckr_taps tap[3];
	int bits = s->mode, mask = (1 << bits) - 1;

	for (int d = 0; d < s->dims; d++)
		ckr_taps_of(s, s->in[d], grid[s->dims - 1 - d], &tap[d]);
	for (int c = 0; c < ckr_corners(s); c++) {
		int64_t place = 0;
		float weight = 1;

		for (int d = 0; d < s->dims; d++) {
			int side = c >> bits * d & mask;
			int64_t i = tap[d].at[side];

			if (i < 0 || i >= s->in[d])
				place = -1;
			if (place >= 0)
				place = place * s->in[d] + i;
			weight *= tap[d].part[side];
			t->slope[c][d] = tap[d].step[side];
			for (int k = 0; k < s->dims; k++)
				if (k != d)
					t->slope[c][d] *= tap[k].part[
						c >> bits * k & mask];
		}
		t->at[c] = place;
		t->weight[c] = weight;
	}
}

/* ---- n points of an image from `first` on ---- */

CKR_TYPED void
ckr_spots(const struct ckr_sample *s, const ckr_t *grid, int64_t image,
          int64_t first, int64_t n, struct ckr_spot *spot)
{
	grid += (image * s->points + first) * s->dims;
	for (int64_t i = 0; i < n; i++, grid += s->dims) {
		float at[3] = { 0.0f };

		for (int d = 0; d < s->dims; d++)
			at[d] = ckr_get(grid[d]);
		ckr_spot(s, at, spot + i);
	}
}

/* Their samples, of channels c .. end - 1. */
CKR_TYPED void
ckr_sample_points(const struct ckr_sample *s, ckr_t *y, const ckr_t *x,
                  const struct ckr_spot *spot, int64_t image, int64_t first,
                  int64_t n, int64_t c, int64_t end)
{
	int corners = ckr_corners(s);

	for (c += image * s->channels; c < end + image * s->channels; c++) {
		const ckr_t *from = x + c * s->plane;
		ckr_t *to = y + c * s->points + first;

		for (int64_t i = 0; i < n; i++) {
			float sum = 0;

			for (int k = 0; k < corners; k++)
				if (spot[i].at[k] >= 0)
					sum += spot[i].weight[k]
						* ckr_get(from[spot[i].at[k]]);
			ckr_put(&to[i], sum);
		}
	}
}

/* The gradient of the grid's numbers; sum: room for three per point. */
CKR_TYPED2 void
ckr_sample_slopes(const struct ckr_sample *s, ckr_u *dgrid, const ckr_t *dy,
                  const ckr_t *x, const struct ckr_spot *spot, float (*sum)[3],
                  int64_t image, int64_t first, int64_t n)
{
	int corners = s->mode ? ckr_corners(s) : 0;

	for (int64_t i = 0; i < n; i++)
		sum[i][0] = sum[i][1] = sum[i][2] = 0;
	for (int64_t c = 0; c < s->channels; c++) {
		int64_t p = image * s->channels + c;
		const ckr_t *from = x + p * s->plane;

		for (int64_t i = 0; i < n; i++) {
			float d = ckr_get(dy[p * s->points + first + i]);

			for (int k = 0; k < corners; k++)
				for (int e = 0; spot[i].at[k] >= 0
				     && e < s->dims; e++)
					sum[i][e] += d * ckr_get(from[
						spot[i].at[k]])
						* spot[i].slope[k][e];
		}
	}
	dgrid += (image * s->points + first) * s->dims;
	for (int64_t i = 0; i < n; i++, dgrid += s->dims)
		for (int e = 0; e < s->dims; e++)
			ckr_put(&dgrid[s->dims - 1 - e], sum[i][e]);
}

#endif
