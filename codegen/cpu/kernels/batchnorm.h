/* Batch normalisation: x is [images, channels, size], statistics per channel.
 *
 * Threads share channels.  Sums of a plane have a fixed shape, and planes are
 * added in order in double precision.
 */
#ifndef CKR_BATCHNORM_H
#define CKR_BATCHNORM_H

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

/* y, mean and var may each be NULL, scale and bias too. */
static inline void
ckr_batchnorm(float *y, float *mean, float *var, const float *x,
              const float *scale, const float *bias, int64_t images,
              int64_t channels, int64_t size, double eps,
              const struct ckr_env *env)
{
	double count = (double)images * (double)size;

#pragma omp parallel for num_threads(env->threads) \
	if (images * channels * size > CKR_SMALL)
	for (int64_t c = 0; c < channels; c++) {
		double s = 0, q = 0;
		float m, v, k, b = bias ? bias[c] : 0.0f;

		for (int64_t n = 0; n < images; n++)
			s += ckr_plane_sum(x + (n * channels + c) * size,
			                   size);
		m = (float)(s / count);
		for (int64_t n = 0; n < images; n++)
			q += ckr_plane_deviations(x + (n * channels + c) *
			                          size, size, m);
		v = (float)(q / count);
		if (mean)
			mean[c] = m;
		if (var)
			var[c] = v;
		k = ckr_inverse_deviation(v, eps) * (scale ? scale[c] : 1.0f);
		for (int64_t n = 0; y && n < images; n++) {
			const float *from = x + (n * channels + c) * size;
			float *to = y + (n * channels + c) * size;

#pragma omp simd
			for (int64_t i = 0; i < size; i++)
				to[i] = (from[i] - m) * k + b;
		}
	}
}

/* dx, dscale and dbias may each be NULL, scale too. */
static inline void
ckr_batchnorm_grad(float *dx, float *dscale, float *dbias, const float *dy,
                   const float *x, const float *mean, const float *var,
                   const float *scale, int64_t images, int64_t channels,
                   int64_t size, double eps, const struct ckr_env *env)
{
	double count = (double)images * (double)size;

#pragma omp parallel for num_threads(env->threads) \
	if (images * channels * size > CKR_SMALL)
	for (int64_t c = 0; c < channels; c++) {
		double s = 0, q = 0;
		float m = mean[c], r = ckr_inverse_deviation(var[c], eps), k;
		float a, b;

		for (int64_t n = 0; n < images; n++) {
			int64_t at = (n * channels + c) * size;

			s += ckr_plane_sum(dy + at, size);
			q += ckr_plane_dot(dy + at, x + at, size, m);
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

#pragma omp simd
			for (int64_t i = 0; i < size; i++)
				dx[at + i] = k * (dy[at + i] - a -
				                  (x[at + i] - m) * b);
		}
	}
}

/* The running statistic y is stat, overwritten. */
static inline void
ckr_bn_update(float *y, const float *stat, const float *new, int64_t n,
              double momentum, const struct ckr_env *env)
{
	float keep = (float)momentum;

	for (int64_t i = 0; i < n; i++)
		y[i] = env->training ? stat[i] * keep + new[i] * (1.0f - keep)
		                     : stat[i];
}

#endif
