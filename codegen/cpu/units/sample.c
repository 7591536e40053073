/* Sampling at the positions of a grid.  Forward and the gradient of the grid
 * share points among threads, the gradient of the data shares planes; sums
 * have one order in all of them. */
#include "sample.h"

enum { CKR_SPOT_POINTS = 32, CKR_SPOT_PLANES = 8 };

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

void
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

void
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

void
ckr_grid_sample_dgrid(const struct ckr_sample *s, float *dgrid,
                      const float *dy, const float *x, const float *grid,
                      const struct ckr_env *env)
{
	int64_t blocks = (s->points + CKR_SPOT_POINTS - 1) / CKR_SPOT_POINTS;
	int corners = s->mode ? ckr_corners(s) : 0;

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
