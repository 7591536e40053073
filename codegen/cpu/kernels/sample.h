/* Sampling at the positions of a grid.  Forward and the gradient of the grid
 * share points among threads, the gradient of the data shares planes; sums
 * have one order in all of them. */
#ifndef CKR_SAMPLE_H
#define CKR_SAMPLE_H

struct ckr_sample {
	int64_t images, channels, plane, points;
	int64_t in[3];                  /* extents of the `dims` dims */
	int dims, linear, padding, align;
};

enum { CKR_SPOT_POINTS = 64, CKR_SPOT_PLANES = 8 };

/* Elements that a point takes in: their place in the plane (-1: outside),
 * weight, and what the weight grows by with the grid's numbers. */
struct ckr_spot {
	int64_t at[8];
	float weight[8], slope[8][3];
};

/* Where the grid's number lies along a dim of n elements; *slope: its
 * derivative.  In double precision: far from 0 little would be left of the
 * fraction. */
static inline double
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

static inline int
ckr_corners(const struct ckr_sample *s)
{
	return s->linear ? 1 << s->dims : 1;
}

static inline void
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

/* The spots of points first.. of an image; returns how many there are. */
static inline int64_t
ckr_spots(const struct ckr_sample *s, const float *grid, int64_t image,
          int64_t first, struct ckr_spot *t)
{
	int64_t n = s->points - first;

	n = n < CKR_SPOT_POINTS ? n : CKR_SPOT_POINTS;
	for (int64_t i = 0; i < n; i++)
		ckr_spot(s, grid + (image * s->points + first + i) * s->dims,
		         t + i);
	return n;
}

static inline void
ckr_grid_sample(const struct ckr_sample *s, float *y, const float *x,
                const float *grid, const struct ckr_env *env)
{
	int64_t blocks = (s->points + CKR_SPOT_POINTS - 1) / CKR_SPOT_POINTS;
	int corners = ckr_corners(s);

#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (s->images * s->channels * s->points > CKR_SMALL)
	for (int64_t image = 0; image < s->images; image++)
		for (int64_t b = 0; b < blocks; b++) {
			struct ckr_spot spot[CKR_SPOT_POINTS];
			int64_t first = b * CKR_SPOT_POINTS;
			int64_t n = ckr_spots(s, grid, image, first, spot);

			for (int64_t c = 0; c < s->channels; c++) {
				int64_t p = image * s->channels + c;
				const float *from = x + p * s->plane;
				float *to = y + p * s->points + first;

				for (int64_t i = 0; i < n; i++) {
					const struct ckr_spot *t = spot + i;
					float sum = 0;

					for (int k = 0; k < corners; k++)
						if (t->at[k] >= 0)
							sum += t->weight[k]
							* from[t->at[k]];
					to[i] = sum;
				}
			}
		}
}

/* dx of some planes of one image, from `plane` on. */
static inline void
ckr_grid_sample_planes(const struct ckr_sample *s, float *dx, const float *dy,
                       const float *grid, int64_t image, int64_t plane,
                       int64_t count)
{
	struct ckr_spot spot[CKR_SPOT_POINTS];
	int corners = ckr_corners(s);

	plane += image * s->channels;
	for (int64_t i = 0; i < count * s->plane; i++)
		dx[plane * s->plane + i] = 0;
	for (int64_t first = 0; first < s->points; first += CKR_SPOT_POINTS) {
		int64_t n = ckr_spots(s, grid, image, first, spot);

		for (int64_t p = plane; p < plane + count; p++) {
			const float *from = dy + p * s->points + first;
			float *to = dx + p * s->plane;

			for (int64_t i = 0; i < n; i++)
				for (int k = 0; k < corners; k++)
					if (spot[i].at[k] >= 0)
						to[spot[i].at[k]]
							+= spot[i].weight[k]
							* from[i];
		}
	}
}

static inline void
ckr_grid_sample_dx(const struct ckr_sample *s, float *dx, const float *dy,
                   const float *grid, const struct ckr_env *env)
{
	int64_t groups = (s->channels + CKR_SPOT_PLANES - 1) / CKR_SPOT_PLANES;

#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (s->images * s->channels * s->points > CKR_SMALL)
	for (int64_t image = 0; image < s->images; image++)
		for (int64_t g = 0; g < groups; g++) {
			int64_t first = g * CKR_SPOT_PLANES;
			int64_t n = s->channels - first;

			n = n < CKR_SPOT_PLANES ? n : CKR_SPOT_PLANES;
			ckr_grid_sample_planes(s, dx, dy, grid, image, first,
			                       n);
		}
}

static inline void
ckr_grid_sample_dgrid(const struct ckr_sample *s, float *dgrid,
                      const float *dy, const float *x, const float *grid,
                      const struct ckr_env *env)
{
	int64_t blocks = (s->points + CKR_SPOT_POINTS - 1) / CKR_SPOT_POINTS;
	int corners = s->linear ? ckr_corners(s) : 0;

#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (s->images * s->channels * s->points > CKR_SMALL)
	for (int64_t image = 0; image < s->images; image++)
		for (int64_t b = 0; b < blocks; b++) {
			struct ckr_spot spot[CKR_SPOT_POINTS];
			int64_t first = b * CKR_SPOT_POINTS;
			int64_t n = ckr_spots(s, grid, image, first, spot);
			float *to = dgrid + (image * s->points + first)
				* s->dims;

			for (int64_t i = 0; i < n * s->dims; i++)
				to[i] = 0;
			for (int64_t c = 0; c < s->channels; c++) {
				int64_t p = image * s->channels + c;
				const float *from = x + p * s->plane;
				const float *d = dy + p * s->points + first;

				for (int64_t i = 0; i < n * corners; i++) {
					int64_t q = i / corners;
					int k = (int)(i % corners);
					int64_t at = spot[q].at[k];
					float *g = to + (q + 1) * s->dims - 1;

					for (int e = 0; at >= 0 && e < s->dims;
					     e++)
						g[-e] += d[q] * from[at]
							* spot[q].slope[k][e];
				}
			}
		}
}

#endif
