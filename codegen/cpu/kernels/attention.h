/* Attention in blocks of query rows.
 *
 * A block's scores are a product with all keys that it can see; no matrix of
 * all scores exists.  The forward pass keeps the log-sum-exp of every row,
 * from which the backward pass computes the probabilities again (Dao et al.,
 * "FlashAttention", 2022, without its tiling over keys: a row of scores fits
 * the cache).  Threads share batch x head x block forward and batch x key
 * head backward, where dk and dv add up; within those the order is fixed.
 */
#ifndef CKR_ATTENTION_H
#define CKR_ATTENTION_H

struct ckr_attention {
	int64_t batch, heads, groups, queries, keys, dim, vdim;
	int64_t q[3], k[3], v[3], o[3];         /* strides: batch, head, row */
	int64_t d_o[3], dq[3], dk[3], dv[3];
	int64_t mask[4];
	int mask_kind;                          /* 0 none, 1 float, 2 bool */
	int causal;
	float scale;
	double ratio;
	uint32_t stream;
	int64_t rows;                           /* of a block */
	int64_t ld;                             /* of a block's scores */
	int64_t scratch;                        /* floats per thread */
	/* of a piece of the batch or the heads: heads of the whole, 0 if it is
	 * the whole, and how many (image, head) come before */
	int64_t all, first;
};

/* Keys that query i sees. */
static inline int64_t
ckr_visible(const struct ckr_attention *a, int64_t i)
{
	int64_t n = a->causal ? i + 1 + a->keys - a->queries : a->keys;

	return n < 0 ? 0 : n > a->keys ? a->keys : n;
}

/* Mask one row of n scores. */
static inline void
ckr_mask_row(const struct ckr_attention *a, float *s, const void *mask,
             int64_t b, int64_t h, int64_t i, int64_t n)
{
	int64_t at = b * a->mask[0] + h * a->mask[1] + i * a->mask[2];
	int64_t step = a->mask[3];

	if (a->mask_kind == 1) {
		const float *m = (const float *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j];
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j * step];
		}
	} else if (a->mask_kind == 2) {
		const uint8_t *m = (const uint8_t *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j] ? s[j] : -__builtin_inff();
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j * step] ? s[j] : -__builtin_inff();
		}
	}
}

/* Index of a row's first score, for dropout. */
static inline uint64_t
ckr_score_index(const struct ckr_attention *a, int64_t b, int64_t h,
                int64_t i)
{
	int64_t at = b * (a->all ? a->all : a->heads) + h + a->first;

	return (uint64_t)((at * a->queries + i) * a->keys);
}

static inline void
ckr_drop_row(const struct ckr_attention *a, float *s, uint64_t index,
             int64_t n, const struct ckr_env *env)
{
	uint32_t buffer[CKR_WORD_BUFFER];
	uint32_t below = ckr_drop_below(a->ratio, env);
	float scale = ckr_drop_scale(a->ratio, env);

	for (int64_t j = 0; j < n; j += CKR_WORDS) {
		int64_t m = n - j < CKR_WORDS ? n - j : CKR_WORDS;
		const uint32_t *w = ckr_words(buffer, index + (uint64_t)j, m,
		                              a->stream, env);

#pragma omp simd
		for (int64_t i = 0; i < m; i++)
			s[j + i] = w[i] >= below ? s[j + i] * scale : 0.0f;
	}
}

/* Rows of scores are worked on in blocks of 16: what lies between n and the
 * next multiple (a row has room for it) is set to what gives 0. */
static inline int64_t
ckr_fill16(float *s, int64_t n, float value)
{
	int64_t end = (n + 15) / 16 * 16;

	for (int64_t j = n; j < end; j++)
		s[j] = value;
	return end;
}

/* Scores to probabilities, but for the factor returned; what lies beyond the
 * n visible ones becomes 0. */
static inline float
ckr_score_row(float *s, int64_t n, int64_t ncol, float *lse)
{
	int64_t end = ckr_fill16(s, n, -__builtin_inff());
	float m = ckr_max_of(s, end), sum;

	/* nothing to see; a NaN is not nothing */
	if (m == -__builtin_inff() && ckr_sum(s, n) <= 0.0f) {
		memset(s, 0, (size_t)ncol * sizeof *s);
		*lse = m;
		return 0.0f;
	}
	for (int64_t j = 0; j < end; j += 16) {
#pragma omp simd
		for (int i = 0; i < 16; i++)
			s[j + i] = ckr_exp(s[j + i] - m);
	}
	for (int64_t j = end; j < ncol; j++)
		s[j] = 0.0f;
	sum = ckr_sum(s, end);
	*lse = m + ckr_log(sum);
	return 1.0f / sum;
}

static inline void
ckr_attention_block(const struct ckr_attention *a, float *o, float *lse,
                    const float *q, const float *k, const float *v,
                    const void *mask, int64_t b, int64_t h, int64_t first,
                    float *scores, const struct ckr_env *env)
{
	int64_t g = h / (a->heads / a->groups), left = a->queries - first;
	int64_t rows = left < a->rows ? left : a->rows;
	int64_t ncol = ckr_visible(a, first + rows - 1);
	float *factor = scores + a->rows * a->ld;
	float *to;

	q += b * a->q[0] + h * a->q[1] + first * a->q[2];
	k += b * a->k[0] + g * a->k[1];
	v += b * a->v[0] + g * a->v[1];
	if (ncol > 0)
		env->sgemm(0, 1, rows, ncol, a->dim, a->scale, q, a->q[2], k,
		           a->k[2], 0.0f, scores, a->ld);
	for (int64_t i = 0; i < rows; i++) {
		float *s = scores + i * a->ld, z;
		int64_t n = ckr_visible(a, first + i);

		ckr_mask_row(a, s, mask, b, h, first + i, n);
		factor[i] = ckr_score_row(s, n, ncol, &z);
		if (lse)
			lse[(b * a->heads + h) * a->queries + first + i] = z;
		if (a->ratio > 0 && env->training)
			ckr_drop_row(a, s, ckr_score_index(a, b, h, first + i),
			             n, env);
	}
	if (!o)                 /* only lse is wanted */
		return;
	to = o + b * a->o[0] + h * a->o[1] + first * a->o[2];
	if (ncol > 0)
		env->sgemm(0, 0, rows, a->vdim, ncol, 1.0f, scores, a->ld, v,
		           a->v[2], 0.0f, to, a->o[2]);
	/* without a visible key, factor is 0 and what lies in `to` is junk */
	for (int64_t i = 0; i < rows; i++) {
		float *row = to + i * a->o[2], f = factor[i];

#pragma omp simd
		for (int64_t j = 0; j < a->vdim; j++)
			row[j] = f == 0.0f ? 0.0f : row[j] * f;
	}
}

static inline void
ckr_attention(const struct ckr_attention *a, float *o, float *lse,
              const float *q, const float *k, const float *v,
              const void *mask, float *scratch, const struct ckr_env *env)
{
	int64_t nblock = (a->queries + a->rows - 1) / a->rows;

#pragma omp parallel for num_threads(env->threads) collapse(3) \
	if (a->batch * a->heads * a->queries * a->keys > CKR_SMALL) \
	schedule(dynamic)
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t h = 0; h < a->heads; h++)
			for (int64_t i = 0; i < nblock; i++)
				ckr_attention_block(a, o, lse, q, k, v, mask,
					b, h, i * a->rows, scratch +
					omp_get_thread_num() * a->scratch,
					env);
}

/* ---- gradient ---- */

struct ckr_attention_grad {
	const float *d_o, *q, *k, *v, *o, *lse;
	const void *mask;
	float *dq, *dk, *dv;                    /* NULL: not wanted */
};

/* Where all scores of a row are far from zero, as under a mask that hides it
 * whole with a number, the log of their sum has lost what their number adds:
 * from scores brought near zero, it is taken again. */
static inline float
ckr_near_row(float *s, int64_t n, float lse)
{
	float m, sum = 0.0f;

	if ((lse >= -256.0f && lse <= 256.0f) || lse == -__builtin_inff())
		return lse;
	m = ckr_max_of(s, ckr_fill16(s, n, -__builtin_inff()));
	for (int64_t j = 0; j < n; j++) {
		s[j] -= m;
		sum += ckr_exp(s[j]);
	}
	return ckr_log(sum);
}

/* From scores s and dp = do v^T of one row: s becomes the dropped
 * probabilities, dp the adjoint of the scores. */
static inline void
ckr_score_grad_row(const struct ckr_attention *a, float *s, float *dp,
                   int64_t n, int64_t ncol, float lse, float delta,
                   uint64_t index, const struct ckr_env *env)
{
	uint32_t buffer[CKR_WORD_BUFFER];
	uint32_t below = ckr_drop_below(a->ratio, env);
	float scale = ckr_drop_scale(a->ratio, env);

	if (lse == -__builtin_inff())
		n = 0;
	if (a->ratio > 0 && env->training) {
		for (int64_t j = 0; j < n; j += CKR_WORDS) {
			int64_t m = n - j < CKR_WORDS ? n - j : CKR_WORDS;
			const uint32_t *w = ckr_words(buffer,
				index + (uint64_t)j, m, a->stream, env);

#pragma omp simd
			for (int64_t i = j; i < j + m; i++) {
				float p = ckr_exp(s[i] - lse);
				float keep = w[i - j] >= below ? scale : 0.0f;

				s[i] = p * keep;
				dp[i] = p * (dp[i] * keep - delta);
			}
		}
	} else {
		int64_t end = ckr_fill16(s, n, -__builtin_inff());

		ckr_fill16(dp, n, 0.0f);
		for (int64_t j = 0; j < end; j += 16) {
#pragma omp simd
			for (int64_t i = j; i < j + 16; i++) {
				float p = ckr_exp(s[i] - lse);

				s[i] = p;
				dp[i] = p * (dp[i] - delta);
			}
		}
	}
	for (int64_t j = n; j < ncol; j++)
		s[j] = dp[j] = 0.0f;
}

/* first 1: the first block of this key head, which sets dk and dv; it must
 * see all keys. */
static inline void
ckr_attention_grad_block(const struct ckr_attention *a,
                         const struct ckr_attention_grad *p, int64_t b,
                         int64_t h, int64_t row, int first, float *s,
                         const struct ckr_env *env)
{
	int64_t g = h / (a->heads / a->groups), left = a->queries - row;
	int64_t rows = left < a->rows ? left : a->rows;
	int64_t ncol = ckr_visible(a, row + rows - 1);
	float *dp = s + a->rows * a->ld, beta = first ? 0.0f : 1.0f;
	const float *q = p->q + b * a->q[0] + h * a->q[1] + row * a->q[2];
	const float *k = p->k + b * a->k[0] + g * a->k[1];
	const float *v = p->v + b * a->v[0] + g * a->v[1];
	const float *o = p->o + b * a->o[0] + h * a->o[1] + row * a->o[2];
	const float *d_o = p->d_o + b * a->d_o[0] + h * a->d_o[1] +
	                   row * a->d_o[2];
	const float *lse = p->lse + (b * a->heads + h) * a->queries + row;

	if (ncol > 0) {
		env->sgemm(0, 1, rows, ncol, a->dim, a->scale, q, a->q[2], k,
		           a->k[2], 0.0f, s, a->ld);
		env->sgemm(0, 1, rows, ncol, a->vdim, 1.0f, d_o, a->d_o[2], v,
		           a->v[2], 0.0f, dp, a->ld);
	}
	for (int64_t i = 0; i < rows; i++) {
		int64_t n = ckr_visible(a, row + i);
		float z, delta = ckr_dot(d_o + i * a->d_o[2], o + i * a->o[2],
		                      a->vdim);

		ckr_mask_row(a, s + i * a->ld, p->mask, b, h, row + i, n);
		z = ckr_near_row(s + i * a->ld, n, lse[i]);
		ckr_score_grad_row(a, s + i * a->ld, dp + i * a->ld, n, ncol,
		                   z, delta,
		                   ckr_score_index(a, b, h, row + i), env);
	}
	if (p->dq) {
		float *dq = p->dq + b * a->dq[0] + h * a->dq[1] +
		            row * a->dq[2];

		for (int64_t i = 0; i < rows && ncol == 0; i++)
			memset(dq + i * a->dq[2], 0,
			       (size_t)a->dim * sizeof *dq);
		if (ncol > 0)
			env->sgemm(0, 0, rows, a->dim, ncol, a->scale, dp,
			           a->ld, k, a->k[2], 0.0f, dq, a->dq[2]);
	}
	if (p->dk && ncol > 0)
		env->sgemm(1, 0, ncol, a->dim, rows, a->scale, dp, a->ld, q,
		           a->q[2], beta, p->dk + b * a->dk[0] + g * a->dk[1],
		           a->dk[2]);
	if (p->dv && ncol > 0)
		env->sgemm(1, 0, ncol, a->vdim, rows, 1.0f, s, a->ld, d_o,
		           a->d_o[2], beta, p->dv + b * a->dv[0] +
		           g * a->dv[1], a->dv[2]);
}

static inline void
ckr_attention_grad(const struct ckr_attention *a,
                   const struct ckr_attention_grad *p, float *scratch,
                   const struct ckr_env *env)
{
	int64_t nblock = (a->queries + a->rows - 1) / a->rows;
	int64_t per = a->heads / a->groups;

#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (a->batch * a->heads * a->queries * a->keys > CKR_SMALL) \
	schedule(dynamic)
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t g = 0; g < a->groups; g++)
			for (int64_t n = per * nblock; n-- > 0;)
				ckr_attention_grad_block(a, p, b,
					g * per + n / nblock,
					n % nblock * a->rows,
					n == per * nblock - 1, scratch +
					omp_get_thread_num() * a->scratch,
					env);
}

#endif
