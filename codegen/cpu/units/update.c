/* Optimizer steps, accumulation, gradient norm. */
#include "update.h"
#include "sums.h"

double
ckr_norm_part(const float *g, int64_t n, const struct ckr_env *env)
{
	double part[CKR_NORM_PARTS], s = 0;
	int64_t size = (n + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS, nparts;

	size = size < 4096 ? 4096 : (size + 63) / 64 * 64;
	nparts = (n + size - 1) / size;
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < nparts; i++) {
		int64_t left = n - i * size;

		part[i] = (double)ckr_sum_squares(g + i * size,
		                                  left < size ? left : size);
	}
	for (int64_t i = 0; i < nparts; i++)
		s += part[i];
	return s;
}

void
ckr_accumulate(float *y, const float *acc, const float *g, int64_t n,
               const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i0 = 0; i0 < n; i0 += CKR_UPDATE_BLOCK) {
		int64_t end = n - i0 < CKR_UPDATE_BLOCK
		            ? n : i0 + CKR_UPDATE_BLOCK;

		if (env->micro == 0) {
			memcpy(y + i0, g + i0, (size_t)(end - i0) * sizeof *y);
			continue;
		}
#pragma omp simd
		for (int64_t i = i0; i < end; i++)
			y[i] = acc[i] + g[i];
	}
}

void
ckr_sgd(float *y, const float *p, const float *g, const float *norm,
        int64_t n, int decay, const struct ckr_env *env)
{
	float scale = ckr_clip_scale(norm, env), lr = ckr_own_lr(env);
	float keep = 1.0f - lr * ckr_own_decay(decay, env);

#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i0 = 0; i0 < n; i0 += CKR_UPDATE_BLOCK) {
		int64_t end = n - i0 < CKR_UPDATE_BLOCK
		            ? n : i0 + CKR_UPDATE_BLOCK;

#pragma omp simd
		for (int64_t i = i0; i < end; i++)
			y[i] = p[i] * keep - lr * (g[i] * scale);
	}
}

void
ckr_sgdm(float *y, float *m1, const float *p, const float *g, const float *m,
         const float *norm, int64_t n, int decay, const struct ckr_env *env)
{
	float scale = ckr_clip_scale(norm, env), lr = ckr_own_lr(env);
	float pull = ckr_own_decay(decay, env), keep = env->momentum;
	int ahead = env->nesterov;

#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i0 = 0; i0 < n; i0 += CKR_UPDATE_BLOCK) {
		int64_t end = n - i0 < CKR_UPDATE_BLOCK
		            ? n : i0 + CKR_UPDATE_BLOCK;

#pragma omp simd
		for (int64_t i = i0; i < end; i++) {
			float d = g[i] * scale + pull * p[i];
			float a = keep * m[i] + d;

			m1[i] = a;
			y[i] = p[i] - lr * (ahead ? d + keep * a : a);
		}
	}
}

void
ckr_lion(float *y, float *m1, const float *p, const float *g, const float *m,
         const float *norm, int64_t n, int decay, const struct ckr_env *env)
{
	float scale = ckr_clip_scale(norm, env), lr = ckr_own_lr(env);
	float keep = 1.0f - lr * ckr_own_decay(decay, env);
	float b1 = env->beta1, b2 = env->beta2;

#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i0 = 0; i0 < n; i0 += CKR_UPDATE_BLOCK) {
		int64_t end = n - i0 < CKR_UPDATE_BLOCK
		            ? n : i0 + CKR_UPDATE_BLOCK;

#pragma omp simd
		for (int64_t i = i0; i < end; i++) {
			float d = g[i] * scale;
			float c = b1 * m[i] + (1.0f - b1) * d;
			float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c;

			m1[i] = b2 * m[i] + (1.0f - b2) * d;
			y[i] = p[i] * keep - lr * sign;
		}
	}
}

void
ckr_adamw(float *y, float *m1, float *v1, const float *p, const float *g,
          const float *m, const float *v, const float *norm, int64_t n,
          int decay, int coupled, const struct ckr_env *env)
{
	float scale = ckr_clip_scale(norm, env), lr = ckr_own_lr(env);
	float pull = ckr_own_decay(decay, env);
	float keep = coupled ? 1.0f : 1.0f - lr * pull;
	float b1 = env->beta1, b2 = env->beta2, eps = env->eps;
	float step = lr / env->c1, root = 1.0f / __builtin_sqrtf(env->c2);

#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i0 = 0; i0 < n; i0 += CKR_UPDATE_BLOCK) {
		int64_t end = n - i0 < CKR_UPDATE_BLOCK
		            ? n : i0 + CKR_UPDATE_BLOCK;

#pragma omp simd
		for (int64_t i = i0; i < end; i++) {
			float d = coupled ? g[i] * scale + pull * p[i]
			                  : g[i] * scale;
			float a = b1 * m[i] + (1.0f - b1) * d;
			float b = b2 * v[i] + (1.0f - b2) * (d * d);

			m1[i] = a;
			v1[i] = b;
			y[i] = p[i] * keep -
			       step * a / (__builtin_sqrtf(b) * root + eps);
		}
	}
}
