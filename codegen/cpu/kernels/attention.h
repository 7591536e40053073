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
	int mask_type;                          /* CKR_NONE: there is none */
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
	int type;               /* of q, k, v, o and their gradients */
};

/* Rows of one head as float32, and where they lie. */
struct ckr_head {
	float *p;
	int64_t ld;
};

/* Element `at` and the rows that follow: as they lie, or packed in *room,
 * which moves on. */
static inline struct ckr_head
ckr_head_room(void *x, int type, int64_t at, int64_t ld, int64_t rows,
              int64_t dim, float **room)
{
	struct ckr_head h = { *room, dim };

	if (!x || type == CKR_F32)
		return (struct ckr_head){ x ? (float *)x + at : NULL, ld };
	*room += rows * dim;
	return h;
}

static inline struct ckr_head
ckr_head_read(const void *x, int type, int64_t at, int64_t ld, int64_t rows,
              int64_t dim, float **room)
{
	struct ckr_head h = ckr_head_room((void *)x, type, at, ld, rows, dim,
	                                  room);

	if (type != CKR_F32)
		for (int64_t i = 0; i < rows; i++)
			ckr_widen(h.p + i * dim, x, type, at + i * ld, dim);
	return h;
}

static inline void
ckr_head_write(void *x, int type, int64_t at, int64_t ld, int64_t rows,
               int64_t dim, struct ckr_head h)
{
	if (x && type != CKR_F32)
		for (int64_t i = 0; i < rows; i++)
			ckr_narrow(x, type, at + i * ld, h.p + i * dim, dim);
}

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

	if (a->mask_type == CKR_F32) {
		const float *m = (const float *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j];
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] += m[j * step];
		}
	} else if (a->mask_type == CKR_BOOL) {
		const uint8_t *m = (const uint8_t *)mask + at;

		if (step == 1) {
#pragma omp simd
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j] ? s[j] : -__builtin_inff();
		} else {
			for (int64_t j = 0; j < n; j++)
				s[j] = m[j * step] ? s[j] : -__builtin_inff();
		}
	} else if (a->mask_type != CKR_NONE) {
		for (int64_t j = 0; j < n; j++) {
			float m;

			ckr_widen(&m, mask, a->mask_type, at + j * step, 1);
			s[j] += m;
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
ckr_attention_block(const struct ckr_attention *a, void *o, float *lse,
                    const void *q, const void *k, const void *v,
                    const void *mask, int64_t b, int64_t h, int64_t first,
                    float *scores, const struct ckr_env *env)
{
	int64_t g = h / (a->heads / a->groups), left = a->queries - first;
	int64_t rows = left < a->rows ? left : a->rows;
	int64_t ncol = ckr_visible(a, first + rows - 1);
	int64_t to = b * a->o[0] + h * a->o[1] + first * a->o[2];
	float *factor = scores + a->rows * a->ld, *room = factor + a->rows;
	struct ckr_head qh = ckr_head_read(q, a->type,
		b * a->q[0] + h * a->q[1] + first * a->q[2], a->q[2], rows,
		a->dim, &room);
	struct ckr_head kh = ckr_head_read(k, a->type,
		b * a->k[0] + g * a->k[1], a->k[2], ncol, a->dim, &room);
	struct ckr_head vh, oh;

	if (ncol > 0)
		env->sgemm(0, 1, rows, ncol, a->dim, a->scale, qh.p, qh.ld,
		           kh.p, kh.ld, 0.0f, scores, a->ld);
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
	vh = ckr_head_read(v, a->type, b * a->v[0] + g * a->v[1], a->v[2],
	                   ncol, a->vdim, &room);
	oh = ckr_head_room(o, a->type, to, a->o[2], rows, a->vdim, &room);
	if (ncol > 0)
		env->sgemm(0, 0, rows, a->vdim, ncol, 1.0f, scores, a->ld,
		           vh.p, vh.ld, 0.0f, oh.p, oh.ld);
	/* without a visible key, factor is 0 and what lies in o is junk */
	for (int64_t i = 0; i < rows; i++) {
		float *row = oh.p + i * oh.ld, f = factor[i];

#pragma omp simd
		for (int64_t j = 0; j < a->vdim; j++)
			row[j] = f == 0.0f ? 0.0f : row[j] * f;
	}
	ckr_head_write(o, a->type, to, a->o[2], rows, a->vdim, oh);
}

static inline void
ckr_attention(const struct ckr_attention *a, void *o, float *lse,
              const void *q, const void *k, const void *v,
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
	const void *d_o, *q, *k, *v, *o, *mask;
	const float *lse;
	void *dq, *dk, *dv;                     /* NULL: not wanted */
	int64_t start[3];                       /* where in these it begins */
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

/* What the blocks of a key head share. */
struct ckr_key_head {
	struct ckr_head k, v, dk, dv;
	float *room;                            /* behind it */
};

/* first 1: the first block of this key head, which sets dk and dv; it must
 * see all keys. */
static inline void
ckr_attention_grad_block(const struct ckr_attention *a,
                         const struct ckr_attention_grad *p,
                         struct ckr_key_head kv, int64_t b, int64_t h,
                         int64_t row, int first, float *s,
                         const struct ckr_env *env)
{
	int64_t left = a->queries - row, rows = left < a->rows ? left
	                                                       : a->rows;
	int64_t ncol = ckr_visible(a, row + rows - 1);
	int64_t to = p->start[0] + b * a->dq[0] + h * a->dq[1] + row * a->dq[2];
	float *dp = s + a->rows * a->ld, beta = first ? 0.0f : 1.0f;
	struct ckr_head q = ckr_head_read(p->q, a->type,
		b * a->q[0] + h * a->q[1] + row * a->q[2], a->q[2], rows,
		a->dim, &kv.room);
	struct ckr_head o = ckr_head_read(p->o, a->type,
		b * a->o[0] + h * a->o[1] + row * a->o[2], a->o[2], rows,
		a->vdim, &kv.room);
	struct ckr_head d_o = ckr_head_read(p->d_o, a->type,
		b * a->d_o[0] + h * a->d_o[1] + row * a->d_o[2], a->d_o[2],
		rows, a->vdim, &kv.room);
	struct ckr_head dq = ckr_head_room(p->dq, a->type, to, a->dq[2], rows,
	                                   a->dim, &kv.room);
	const float *lse = p->lse + (b * a->heads + h) * a->queries + row;

	if (ncol > 0) {
		env->sgemm(0, 1, rows, ncol, a->dim, a->scale, q.p, q.ld,
		           kv.k.p, kv.k.ld, 0.0f, s, a->ld);
		env->sgemm(0, 1, rows, ncol, a->vdim, 1.0f, d_o.p, d_o.ld,
		           kv.v.p, kv.v.ld, 0.0f, dp, a->ld);
	}
	for (int64_t i = 0; i < rows; i++) {
		int64_t n = ckr_visible(a, row + i);
		float z, delta = ckr_dot(d_o.p + i * d_o.ld, o.p + i * o.ld,
		                         a->vdim);

		ckr_mask_row(a, s + i * a->ld, p->mask, b, h, row + i, n);
		z = ckr_near_row(s + i * a->ld, n, lse[i]);
		ckr_score_grad_row(a, s + i * a->ld, dp + i * a->ld, n, ncol,
		                   z, delta,
		                   ckr_score_index(a, b, h, row + i), env);
	}
	if (p->dq) {
		for (int64_t i = 0; i < rows && ncol == 0; i++)
			memset(dq.p + i * dq.ld, 0,
			       (size_t)a->dim * sizeof *dq.p);
		if (ncol > 0)
			env->sgemm(0, 0, rows, a->dim, ncol, a->scale, dp,
			           a->ld, kv.k.p, kv.k.ld, 0.0f, dq.p, dq.ld);
		ckr_head_write(p->dq, a->type, to, a->dq[2], rows, a->dim, dq);
	}
	if (p->dk && ncol > 0)
		env->sgemm(1, 0, ncol, a->dim, rows, a->scale, dp, a->ld, q.p,
		           q.ld, beta, kv.dk.p, kv.dk.ld);
	if (p->dv && ncol > 0)
		env->sgemm(1, 0, ncol, a->vdim, rows, 1.0f, s, a->ld, d_o.p,
		           d_o.ld, beta, kv.dv.p, kv.dv.ld);
}

static inline void
ckr_attention_grad_head(const struct ckr_attention *a,
                        const struct ckr_attention_grad *p, int64_t b,
                        int64_t g, float *s, const struct ckr_env *env)
{
	int64_t nblock = (a->queries + a->rows - 1) / a->rows;
	int64_t per = a->heads / a->groups;
	int64_t dk = p->start[1] + b * a->dk[0] + g * a->dk[1];
	int64_t dv = p->start[2] + b * a->dv[0] + g * a->dv[1];
	struct ckr_key_head kv = { .room = s + 2 * a->rows * a->ld };

	kv.k = ckr_head_read(p->k, a->type, b * a->k[0] + g * a->k[1], a->k[2],
	                     a->keys, a->dim, &kv.room);
	kv.v = ckr_head_read(p->v, a->type, b * a->v[0] + g * a->v[1], a->v[2],
	                     a->keys, a->vdim, &kv.room);
	kv.dk = ckr_head_room(p->dk, a->type, dk, a->dk[2], a->keys, a->dim,
	                      &kv.room);
	kv.dv = ckr_head_room(p->dv, a->type, dv, a->dv[2], a->keys, a->vdim,
	                      &kv.room);
	for (int64_t n = per * nblock; n-- > 0;)
		ckr_attention_grad_block(a, p, kv, b, g * per + n / nblock,
		                         n % nblock * a->rows,
		                         n == per * nblock - 1, s, env);
	ckr_head_write(p->dk, a->type, dk, a->dk[2], a->keys, a->dim, kv.dk);
	ckr_head_write(p->dv, a->type, dv, a->dv[2], a->keys, a->vdim, kv.dv);
}

static inline void
ckr_attention_grad(const struct ckr_attention *a,
                   const struct ckr_attention_grad *p, float *scratch,
                   const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (a->batch * a->heads * a->queries * a->keys > CKR_SMALL) \
	schedule(dynamic)
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t g = 0; g < a->groups; g++)
			ckr_attention_grad_head(a, p, b, g, scratch +
				omp_get_thread_num() * a->scratch, env);
}

#endif
