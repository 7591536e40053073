/* Sampling at the positions of a grid.  Forward and the gradient of the grid
 * share points among threads, the gradient of the data shares planes; sums
 * have one order in all of them. */
#include "sample.h"
#include "half.h"

enum { CKR_SPOT_POINTS = 32, CKR_SPOT_PLANES = 8 };

/* Task `b` of an image: its first point, and how many they are. */
static inline int64_t
ckr_spot_block(const struct ckr_sample *s, int64_t b, int64_t *n)
{
	*n = ckr_least(s->points - b * CKR_SPOT_POINTS, CKR_SPOT_POINTS);
	return b * CKR_SPOT_POINTS;
}

static inline int64_t
ckr_spot_blocks(const struct ckr_sample *s)
{
	return (s->points + CKR_SPOT_POINTS - 1) / CKR_SPOT_POINTS;
}

void
ckr_grid_sample(const struct ckr_sample *s, float *y, const float *x,
                const float *grid, const struct ckr_env *env)
{
	int64_t blocks = ckr_spot_blocks(s);

	CKR_SHARE(s->images * s->channels * s->points, collapse(2))
	for (int64_t image = 0; image < s->images; image++)
		for (int64_t b = 0; b < blocks; b++) {
			struct ckr_spot spot[CKR_SPOT_POINTS];
			int64_t n, first = ckr_spot_block(s, b, &n);

			ckr_spots(s, grid, image, first, n, spot);
			ckr_sample_points(s, y, x, spot, image, first, n, 0,
			                  s->channels);
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
	for (int64_t b = 0; b < ckr_spot_blocks(s); b++) {
		int64_t n, first = ckr_spot_block(s, b, &n);

		ckr_spots(s, grid, image, first, n, spot);
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

	CKR_SHARE(s->images * s->channels * s->points, collapse(2))
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
	int64_t blocks = ckr_spot_blocks(s);

	CKR_SHARE(s->images * s->channels * s->points, collapse(2))
	for (int64_t image = 0; image < s->images; image++)
		for (int64_t b = 0; b < blocks; b++) {
			struct ckr_spot spot[CKR_SPOT_POINTS];
			float sum[CKR_SPOT_POINTS][3];
			int64_t n, first = ckr_spot_block(s, b, &n);

			ckr_spots(s, grid, image, first, n, spot);
			ckr_sample_slopes(s, dgrid, dy, x, spot, sum, image,
			                  first, n);
		}
}
