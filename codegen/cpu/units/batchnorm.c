/* Batch normalisation: x is [images, channels, size], statistics per channel.
 *
 * Threads share channels.  Sums of a plane have a fixed shape, and planes are
 * added in order in double precision.
 */
#include "batchnorm.h"
#include "half.h"
#include "sums.h"

enum { CKR_SHORT_PLANE = 48 };

CKR_SUM(ckr_dot_deviations, (const float *x, const float *y, int64_t n,
        float mean), x, y, w * (v - mean))

/* Short planes are not worth 64 lanes. */
static inline double
ckr_plane_sum(const float *x, int64_t n)
{
	double s = 0;

	if (n >= CKR_SHORT_PLANE)
		return (double)ckr_sum(x, n);
	for (int64_t i = 0; i < n; i++)
		s += (double)x[i];
	return s;
}

static inline double
ckr_plane_deviations(const float *x, int64_t n, float mean)
{
	double s = 0;

	if (n >= CKR_SHORT_PLANE)
		return (double)ckr_sum_deviations(x, n, mean);
	for (int64_t i = 0; i < n; i++)
		s += (double)((x[i] - mean) * (x[i] - mean));
	return s;
}

static inline double
ckr_plane_dot(const float *dy, const float *x, int64_t n, float mean)
{
	double s = 0;

	if (n >= CKR_SHORT_PLANE)
		return (double)ckr_dot_deviations(x, dy, n, mean);
	for (int64_t i = 0; i < n; i++)
		s += (double)(dy[i] * (x[i] - mean));
	return s;
}

static inline float
ckr_inverse_deviation(float var, double eps)
{
	return 1.0f / __builtin_sqrtf(var + (float)eps);
}

static inline float *
ckr_plane_room(const struct ckr_batchnorm *c, int i)
{
	return c->scratch ? c->scratch + (omp_get_thread_num() * 2 + i)
	                    * c->size : NULL;
}

/* Plane `at` of x, as it lies or in room i. */
static inline const float *
ckr_plane(const struct ckr_batchnorm *c, const void *x, int64_t at, int i)
{
	return ckr_row(ckr_plane_room(c, i), x, c->type, at, c->size);
}

void
ckr_batchnorm(void *y, float *mean, float *var, const void *x,
              const float *scale, const float *bias,
              const struct ckr_batchnorm *p, const struct ckr_env *env)
{
	int64_t images = p->images, channels = p->channels, size = p->size;
	double count = (double)images * (double)size;

#pragma omp parallel for num_threads(env->threads) \
	if (images * channels * size > CKR_SMALL)
	for (int64_t c = 0; c < channels; c++) {
		double s = 0, q = 0;
		float m, v, k, b = bias ? bias[c] : 0.0f;

		for (int64_t n = 0; n < images; n++)
			s += ckr_plane_sum(ckr_plane(p, x, (n * channels + c)
			                             * size, 0), size);
		m = (float)(s / count);
		for (int64_t n = 0; n < images; n++)
			q += ckr_plane_deviations(ckr_plane(p, x,
				(n * channels + c) * size, 0), size, m);
		v = (float)(q / count);
		if (mean)
			mean[c] = m;
		if (var)
			var[c] = v;
		k = ckr_inverse_deviation(v, p->eps)
			* (scale ? scale[c] : 1.0f);
		for (int64_t n = 0; y && n < images; n++) {
			int64_t at = (n * channels + c) * size;
			const float *from = ckr_plane(p, x, at, 0);
			float *to = ckr_row_new(ckr_plane_room(p, 1), y,
			                        p->type, at);

#pragma omp simd
			for (int64_t i = 0; i < size; i++)
				to[i] = (from[i] - m) * k + b;
			ckr_row_put(y, p->type, at, to, size);
		}
	}
}

void
ckr_batchnorm_grad(void *dx, float *dscale, float *dbias, const void *dy,
                   const void *x, const float *mean, const float *var,
                   const float *scale, const struct ckr_batchnorm *p,
                   const struct ckr_env *env)
{
	int64_t images = p->images, channels = p->channels, size = p->size;
	double count = (double)images * (double)size;

#pragma omp parallel for num_threads(env->threads) \
	if (images * channels * size > CKR_SMALL)
	for (int64_t c = 0; c < channels; c++) {
		double s = 0, q = 0;
		float m = mean[c], r = ckr_inverse_deviation(var[c], p->eps);
		float a, b, k;

		for (int64_t n = 0; n < images; n++) {
			int64_t at = (n * channels + c) * size;
			const float *d = ckr_plane(p, dy, at, 0);

			s += ckr_plane_sum(d, size);
			q += ckr_plane_dot(d, ckr_plane(p, x, at, 1), size, m);
		}
		q *= (double)r;
		if (dscale)
			dscale[c] = (float)q;
		if (dbias)
			dbias[c] = (float)s;
		k = r * (scale ? scale[c] : 1.0f);
		a = (float)(s / count);
		b = (float)(q / count) * r;
		for (int64_t n = 0; dx && n < images; n++) {
			int64_t at = (n * channels + c) * size;
			const float *d = ckr_plane(p, dy, at, 0);
			const float *from = ckr_plane(p, x, at, 1);
			float *to = ckr_row_new(ckr_plane_room(p, 0), dx,
			                        p->type, at);

#pragma omp simd
			for (int64_t i = 0; i < size; i++)
				to[i] = k * (d[i] - a - (from[i] - m) * b);
			ckr_row_put(dx, p->type, at, to, size);
		}
	}
}

void
ckr_bn_update(float *y, const float *stat, const float *new, int64_t n,
              double momentum, const struct ckr_env *env)
{
	float keep = (float)momentum;

	for (int64_t i = 0; i < n; i++)
		y[i] = env->training ? stat[i] * keep + new[i] * (1.0f - keep)
		                     : stat[i];
}
