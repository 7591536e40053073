/* Sampling at the positions of a grid: forward and the gradient of the grid
 * have a thread for each point, the gradient of the data a warp for some
 * planes. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_SAMPLE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_SAMPLE_CUH

#include "spots.h"

enum { CKR_SPOT_CHANNELS = 8 };         /* of a thread, of a warp */

CKR_LANE int64_t
ckr_channel_groups(const struct ckr_sample *s)
{
	return ckr_ceil_div(s->channels, CKR_SPOT_CHANNELS);
}

template <typename T, typename G> CKR_GLOBAL
ckr_grid_sample_device(struct ckr_sample s, T *y, const T *x, const G *grid)
{
	int64_t groups = ckr_channel_groups(&s);

	CKR_TASKS(int64_t, t, s.images * groups * s.points) {
		int64_t group = ckr_div(t, s.points), i = t - group * s.points;
		int64_t image = ckr_div(group, groups);
		int64_t c = (group - image * groups) * CKR_SPOT_CHANNELS;
		struct ckr_spot spot;

		ckr_spots(&s, grid, image, i, 1, &spot);
		ckr_sample_points(&s, y, x, &spot, image, i, 1, c,
			ckr_least(s.channels, c + CKR_SPOT_CHANNELS));
	}
}

template <typename T, typename G> static inline void
ckr_grid_sample(const struct ckr_sample *s, T *y, const T *x, const G *grid,
                const struct ckr_env *env)
{
	int64_t n = s->images * ckr_channel_groups(s) * s->points;

	CKR_EACH((ckr_grid_sample_device<T, G>), n, env, *s, y, x, grid);
}

/* Planes plane.. of an image, of which there are `count`. */
template <typename T, typename G> CKR_DEVICE void
ckr_grid_sample_planes(const struct ckr_sample *s, float *dx, const T *dy,
                       const G *grid, int64_t image, int64_t plane,
                       int64_t count)
{
	int lane = threadIdx.x % CKR_WARP, corners = ckr_corners(s);

	for (int64_t i = lane; i < count * s->plane; i += CKR_WARP)
		dx[plane * s->plane + i] = 0.0f;
	__syncwarp();
	for (int64_t first = 0; first < s->points; first += CKR_WARP) {
		int64_t i = first + lane;
		bool have = i < s->points;
		struct ckr_spot spot;

		ckr_spots(s, grid, image, have ? i : first, 1, &spot);
		for (int64_t p = plane; p < plane + count; p++) {
			float d = have ? ckr_get(dy[p * s->points + i]) : 0;

			for (int k = 0; k < corners; k++)
				ckr_add_in_order(dx + p * s->plane,
					have ? spot.at[k] : -1,
					spot.weight[k] * d);
		}
	}
}

template <typename T, typename G> CKR_GLOBAL
ckr_grid_sample_dx_device(struct ckr_sample s, float *dx, const T *dy,
                          const G *grid)
{
	enum { WARPS = CKR_THREADS / CKR_WARP };
	int64_t groups = ckr_channel_groups(&s), n = s.images * groups;

	CKR_BLOCK_TASKS(b, (n + WARPS - 1) / WARPS) {
		int64_t t = b * WARPS + threadIdx.x / CKR_WARP;
		int64_t image = t / groups;
		int64_t c = (t - image * groups) * CKR_SPOT_CHANNELS;

		if (t < n)
			ckr_grid_sample_planes(&s, dx, dy, grid, image,
				image * s.channels + c, ckr_least(
				s.channels - c, CKR_SPOT_CHANNELS));
	}
}

/* room: dx in float32, if it is not. */
template <typename T, typename G> static inline void
ckr_grid_sample_dx(const struct ckr_sample *s, T *dx, const T *dy,
                   const G *grid, const struct ckr_env *env,
                   float *room = NULL)
{
	int64_t warps = s->images * ckr_channel_groups(s);
	int64_t n = s->images * s->channels * s->plane;
	float *sums = ckr_sums_of(dx, room);

	if (n == 0)
		return;
	CKR_EACH_BLOCK((ckr_grid_sample_dx_device<T, G>),
	               ckr_ceil_div(warps, CKR_THREADS / CKR_WARP), CKR_THREADS,
	               0, env, *s, sums, dy, grid);
	ckr_sums_done(dx, sums, n, env);
}

template <typename T, typename G> CKR_GLOBAL
ckr_grid_sample_dgrid_device(struct ckr_sample s, G *dgrid, const T *dy,
                             const T *x, const G *grid)
{
	CKR_TASKS(int64_t, t, s.images * s.points) {
		int64_t image = ckr_div(t, s.points), i = t - image * s.points;
		float sum[1][3];
		struct ckr_spot spot;

		ckr_spots(&s, grid, image, i, 1, &spot);
		ckr_sample_slopes(&s, dgrid, dy, x, &spot, sum, image, i, 1);
	}
}

template <typename T, typename G> static inline void
ckr_grid_sample_dgrid(const struct ckr_sample *s, G *dgrid, const T *dy,
                      const T *x, const G *grid, const struct ckr_env *env)
{
	int64_t n = s->images * s->points;

	CKR_EACH((ckr_grid_sample_dgrid_device<T, G>), n, env, *s, dgrid, dy, x,
	         grid);
}

#endif
