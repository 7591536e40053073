/* Batch normalisation: x is [images, channels, size], statistics per channel.
 *
 * The elements of a channel are cut into parts by the extents; a block sums a
 * part, a thread puts the parts of a channel together in order.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_BATCHNORM_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_BATCHNORM_CUH

enum {
	CKR_BATCH_BLOCKS = 1024,        /* ORDER CUDA: work_batchnorm() */
	CKR_BATCH_PART = 2048,          /* elements, at least */
};

/* workspace: parts [channels, parts, 2], what follows from them
 * [channels, 3]. */
struct ckr_batchnorm {
	int64_t images, channels, size;
	double eps;
	int type;
	float *workspace;
};

struct ckr_batch {
	int64_t channels, size, count, part, parts;
	float eps;
	float *sum, *of;                /* of: [channels, 3] */
};

static inline struct ckr_batch
ckr_batch_of(const struct ckr_batchnorm *p)
{
	struct ckr_batch b = { p->channels, p->size, p->images * p->size };
	int64_t most = CKR_BATCH_BLOCKS / p->channels;

	b.parts = ckr_least(most, b.count / CKR_BATCH_PART);
	b.parts = b.parts < 1 ? 1 : b.parts;
	b.part = ckr_ceil_div(ckr_ceil_div(b.count, b.parts), 8) * 8;
	b.parts = ckr_ceil_div(b.count, b.part);
	b.eps = (float)p->eps;
	b.sum = p->workspace;
	b.of = p->workspace + b.channels * b.parts * 2;
	return b;
}

/* Element e of channel c. */
CKR_DEVICE int64_t
ckr_batch_at(const struct ckr_batch &b, int64_t c, int64_t e)
{
	int64_t image = ckr_div(e, b.size);

	return (image * b.channels + c) * b.size + e - image * b.size;
}

CKR_DEVICE int64_t
ckr_batch_end(const struct ckr_batch &b, int64_t part)
{
	return ckr_least(b.count, (part + 1) * b.part);
}

template <int N> CKR_DEVICE float
ckr_block_total(float *s, float *room)
{
	for (int k = N / 2; k > 0; k /= 2)
		for (int j = 0; j < k; j++)
			s[j] += s[j + k];
	return ckr_block_sum(s[0], room);
}

/* Vectors of N neighbours of channel c within a part. */
#define CKR_BATCH_LOOP(N, e, b, part) \
	for (int64_t e = (part) * b.part + threadIdx.x * (N); \
	     e < ckr_batch_end(b, part); e += CKR_THREADS * (N))

/* ---- forward ---- */

/* A part's mean and sum of squares around it. */
template <int N, typename T> CKR_GLOBAL
ckr_batch_stats(struct ckr_batch b, const T *x, bool aligned)
{
	CKR_SHARED(float, room);

	CKR_BLOCK_TASKS(t, b.channels * b.parts) {
		int64_t c = t / b.parts, part = t - c * b.parts;
		float n = (float)(ckr_batch_end(b, part) - part * b.part);
		float s[N] = { 0.0f }, q[N] = { 0.0f }, v[N], mean, sum;

		CKR_BATCH_LOOP(N, e, b, part) {
			ckr_read<N>(v, x + ckr_batch_at(b, c, e), aligned);
			for (int j = 0; j < N; j++)
				s[j] += v[j];
		}
		mean = ckr_block_total<N>(s, room) / n;
		CKR_BATCH_LOOP(N, e, b, part) {
			ckr_read<N>(v, x + ckr_batch_at(b, c, e), aligned);
			for (int j = 0; j < N; j++)
				q[j] += (v[j] - mean) * (v[j] - mean);
		}
		sum = ckr_block_total<N>(q, room);
		if (threadIdx.x == 0) {
			b.sum[t * 2] = mean;
			b.sum[t * 2 + 1] = sum;
		}
	}
}

CKR_GLOBAL
ckr_batch_finish(struct ckr_batch b, float *mean, float *var,
                 const float *scale, const float *bias)
{
	CKR_TASKS(int64_t, c, b.channels) {
		const float *sum = b.sum + c * b.parts * 2;
		double s = 0, q = 0;
		float m, v;

		for (int64_t p = 0; p < b.parts; p++)
			s += (double)sum[p * 2]
				* (double)(ckr_batch_end(b, p) - p * b.part);
		m = (float)(s / (double)b.count);
		for (int64_t p = 0; p < b.parts; p++) {
			double d = (double)sum[p * 2] - (double)m;

			q += (double)sum[p * 2 + 1] + d * d
				* (double)(ckr_batch_end(b, p) - p * b.part);
		}
		v = (float)(q / (double)b.count);
		if (mean)
			mean[c] = m;
		if (var)
			var[c] = v;
		b.of[c * 3] = m;
		b.of[c * 3 + 1] = 1.0f / __builtin_sqrtf(v + b.eps)
			* (scale ? scale[c] : 1.0f);
		b.of[c * 3 + 2] = bias ? bias[c] : 0.0f;
	}
}

template <int N, typename T> CKR_GLOBAL
ckr_batch_apply(struct ckr_batch b, T *y, const T *x, bool aligned)
{
	CKR_TASKS(int64_t, t, b.channels * b.count / N) {
		int64_t plane = ckr_div(t * N, b.size);
		int64_t c = plane - ckr_div(plane, b.channels) * b.channels;
		const float *of = b.of + c * 3;
		float m = of[0], k = of[1], bias = of[2], v[N];

		ckr_read<N>(v, x + t * N, aligned);
		for (int j = 0; j < N; j++)
			v[j] = (v[j] - m) * k + bias;
		ckr_write<N>(y + t * N, v, aligned);
	}
}

template <int N, typename T> static inline void
ckr_batchnorm_vectors(T *y, float *mean, float *var, const T *x,
                      const float *scale, const float *bias,
                      const struct ckr_batch &b, const struct ckr_env *env)
{
	bool aligned = ((uintptr_t)x | (uintptr_t)y) % (N * sizeof(T)) == 0;

	CKR_EACH_BLOCK((ckr_batch_stats<N, T>), b.channels * b.parts,
	               CKR_THREADS, CKR_THREADS / CKR_WARP * sizeof(float), env,
	               b, x, aligned);
	CKR_EACH(ckr_batch_finish, b.channels, env, b, mean, var, scale, bias);
	if (y)
		CKR_EACH((ckr_batch_apply<N, T>), b.channels * b.count / N, env,
		         b, y, x, aligned);
}

/* y, mean and var may each be NULL, scale and bias too. */
template <typename T> static inline void
ckr_batchnorm(ckr_is<T> *y, float *mean, float *var, const T *x,
              const float *scale, const float *bias,
              const struct ckr_batchnorm *p, const struct ckr_env *env)
{
	enum { N = 16 / sizeof(T) };

	if (p->images * p->channels * p->size == 0)
		return;
	if (p->size % N == 0)
		ckr_batchnorm_vectors<N, T>(y, mean, var, x, scale, bias,
		                            ckr_batch_of(p), env);
	else
		ckr_batchnorm_vectors<1, T>(y, mean, var, x, scale, bias,
		                            ckr_batch_of(p), env);
}

/* ---- backward ---- */

/* A part's sums of dy and of dy (x - mean). */
template <int N, typename T> CKR_GLOBAL
ckr_batch_sums(struct ckr_batch b, const T *dy, const T *x, const float *mean,
               bool aligned)
{
	CKR_SHARED(float, room);

	CKR_BLOCK_TASKS(t, b.channels * b.parts) {
		int64_t c = t / b.parts, part = t - c * b.parts;
		float s[N] = { 0.0f }, q[N] = { 0.0f }, v[N], d[N];
		float m = mean[c], sum, dot;

		CKR_BATCH_LOOP(N, e, b, part) {
			int64_t at = ckr_batch_at(b, c, e);

			ckr_read<N>(v, x + at, aligned);
			ckr_read<N>(d, dy + at, aligned);
			for (int j = 0; j < N; j++) {
				s[j] += d[j];
				q[j] += d[j] * (v[j] - m);
			}
		}
		sum = ckr_block_total<N>(s, room);
		dot = ckr_block_total<N>(q, room);
		if (threadIdx.x == 0) {
			b.sum[t * 2] = sum;
			b.sum[t * 2 + 1] = dot;
		}
	}
}

CKR_GLOBAL
ckr_batch_finish_grad(struct ckr_batch b, float *dscale, float *dbias,
                      const float *var, const float *scale)
{
	CKR_TASKS(int64_t, c, b.channels) {
		const float *sum = b.sum + c * b.parts * 2;
		float r = 1.0f / __builtin_sqrtf(var[c] + b.eps);
		double s = 0, q = 0;

		for (int64_t p = 0; p < b.parts; p++) {
			s += (double)sum[p * 2];
			q += (double)sum[p * 2 + 1];
		}
		q *= (double)r;
		if (dscale)
			dscale[c] = (float)q;
		if (dbias)
			dbias[c] = (float)s;
		b.of[c * 3] = r * (scale ? scale[c] : 1.0f);
		b.of[c * 3 + 1] = (float)(s / (double)b.count);
		b.of[c * 3 + 2] = (float)(q / (double)b.count) * r;
	}
}

template <int N, typename T> CKR_GLOBAL
ckr_batch_apply_grad(struct ckr_batch b, T *dx, const T *dy, const T *x,
                     const float *mean, bool aligned)
{
	CKR_TASKS(int64_t, t, b.channels * b.count / N) {
		int64_t plane = ckr_div(t * N, b.size);
		int64_t c = plane - ckr_div(plane, b.channels) * b.channels;
		const float *of = b.of + c * 3;
		float k = of[0], a = of[1], q = of[2], m = mean[c];
		float v[N], d[N];

		ckr_read<N>(v, x + t * N, aligned);
		ckr_read<N>(d, dy + t * N, aligned);
		for (int j = 0; j < N; j++)
			v[j] = k * (d[j] - a - (v[j] - m) * q);
		ckr_write<N>(dx + t * N, v, aligned);
	}
}

template <int N, typename T> static inline void
ckr_batchnorm_grad_vectors(T *dx, float *dscale, float *dbias, const T *dy,
                           const T *x, const float *mean, const float *var,
                           const float *scale, const struct ckr_batch &b,
                           const struct ckr_env *env)
{
	bool aligned = ((uintptr_t)x | (uintptr_t)dy | (uintptr_t)dx)
		% (N * sizeof(T)) == 0;

	CKR_EACH_BLOCK((ckr_batch_sums<N, T>), b.channels * b.parts,
	               CKR_THREADS, CKR_THREADS / CKR_WARP * sizeof(float), env,
	               b, dy, x, mean, aligned);
	CKR_EACH(ckr_batch_finish_grad, b.channels, env, b, dscale, dbias, var,
	         scale);
	if (dx)
		CKR_EACH((ckr_batch_apply_grad<N, T>), b.channels * b.count / N,
		         env, b, dx, dy, x, mean, aligned);
}

/* dx, dscale and dbias may each be NULL, scale too. */
template <typename T> static inline void
ckr_batchnorm_grad(ckr_is<T> *dx, float *dscale, float *dbias,
                   const T *dy, const T *x, const float *mean,
                   const float *var, const float *scale,
                   const struct ckr_batchnorm *p, const struct ckr_env *env)
{
	enum { N = 16 / sizeof(T) };

	if (p->images * p->channels * p->size == 0)
		return;
	if (p->size % N == 0)
		ckr_batchnorm_grad_vectors<N, T>(dx, dscale, dbias, dy, x,
			mean, var, scale, ckr_batch_of(p), env);
	else
		ckr_batchnorm_grad_vectors<1, T>(dx, dscale, dbias, dy, x,
			mean, var, scale, ckr_batch_of(p), env);
}

/* ---- the running statistic y is stat, overwritten ---- */

template <typename T, typename U> CKR_GLOBAL
ckr_bn_update_device(T *y, const T *stat, const U *fresh, int64_t n,
                     float keep, const struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, n)
		if (env->training)
			ckr_put(&y[t], ckr_get(stat[t]) * keep
			        + ckr_get(fresh[t]) * (1.0f - keep));
		else
			y[t] = stat[t];
}

template <typename T, typename U> static inline void
ckr_bn_update(T *y, const T *stat, const U *fresh, int64_t n,
              double momentum, const struct ckr_env *env)
{
	CKR_EACH((ckr_bn_update_device<T, U>), n, env, y, stat, fresh, n,
	         (float)momentum, env->device);
}

#endif
