/* Where the numbers of a grid lie in the data. */
#ifndef CKR_SPOTS_H
#define CKR_SPOTS_H

#include <math.h>

struct ckr_sample {
	int64_t images, channels, plane, points;
	int64_t in[3];                  /* extents of the `dims` dims */
	int dims, linear, padding, align;
};

/* Elements that a point takes in: their place in the plane (-1: outside),
 * weight, and what the weight grows by with the grid's numbers. */
struct ckr_spot {
	int64_t at[8];
	float weight[8], slope[8][3];
};

/* Where the grid's number lies along a dim of n elements; *slope: its
 * derivative.  In double precision: far from 0 little would be left of the
 * fraction. */
CKR_LANE double
ckr_sample_at(const struct ckr_sample *s, int64_t n, double grid,
              double *slope)
{
	double last = (double)(n - 1), low = s->align ? 0.0 : -0.5;
	double span = s->align ? last : (double)n, x, rest;

	*slope = span / 2;
	x = (grid + 1) * *slope + low;
	if (s->padding == 2 && span > 0) {
		rest = x - low;
		if (rest < 0) {
			rest = -rest;
			*slope = -*slope;
		}
		rest = fmod(rest, 2 * span);
		if (rest >= span) {
			rest = 2 * span - rest;
			*slope = -*slope;
		}
		x = rest + low;
	}
	if (s->padding != 0 && (!(x > 0) || x >= last)) {
		x = x >= last ? last : 0.0;
		*slope = 0;
	}
	return fabs(x) < 1e9 ? x : -100.0;     /* far away: outside */
}

CKR_LANE int
ckr_corners(const struct ckr_sample *s)
{
	return s->linear ? 1 << s->dims : 1;
}

CKR_LANE void
ckr_spot(const struct ckr_sample *s, const float *grid, struct ckr_spot *t)
{
	float part[3][2], step[3][2];
	double slope, x, low;
	int64_t at[3];

	for (int d = 0; d < s->dims; d++) {
		x = ckr_sample_at(s, s->in[d], grid[s->dims - 1 - d], &slope);
		low = s->linear ? floor(x) : rint(x);
		at[d] = (int64_t)low;
		part[d][1] = s->linear ? (float)(x - low) : 0.0f;
		part[d][0] = 1 - part[d][1];
		step[d][0] = (float)-slope;
		step[d][1] = (float)slope;
	}
	for (int c = 0; c < ckr_corners(s); c++) {
		int64_t place = 0;
		float weight = 1;

		for (int d = 0; d < s->dims; d++) {
			int side = c >> d & 1;
			int64_t i = at[d] + side;

			if (i < 0 || i >= s->in[d])
				place = -1;
			if (place >= 0)
				place = place * s->in[d] + i;
			weight *= part[d][side];
			t->slope[c][d] = step[d][side];
			for (int k = 0; k < s->dims; k++)
				if (k != d)
					t->slope[c][d] *= part[k][c >> k & 1];
		}
		t->at[c] = place;
		t->weight[c] = weight;
	}
}

#endif
