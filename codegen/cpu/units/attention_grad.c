/* The gradient of attention: see attention.c. */
#include "attention_grad.h"
#include "attention_rows.h"

/* If all scores of a row are far from zero, as under a mask that adds a large
 * number to the whole row, rounding in log-sum-exp loses the number of scores.
 * So the sum is taken again from scores shifted to near zero. */
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
 * probabilities, dp the adjoint of the scores, both of the type. */
static inline void
ckr_score_grad_row(const struct ckr_attention *a, float *s, float *dp,
                   int type, int64_t n, int64_t ncol, float lse, float delta,
                   uint64_t index, const struct ckr_env *env)
{
	uint32_t buffer[CKR_WORD_BUFFER];
	uint32_t below = ckr_drop_below(a->ratio, env);
	float scale = ckr_drop_scale(a->ratio, env);
	int64_t end;

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
		for (int64_t j = n; j < ncol; j++)
			s[j] = dp[j] = 0.0f;
		if (type != CKR_F32) {
			ckr_narrow_over(s, type, ncol);
			ckr_narrow_over(dp, type, ncol);
		}
		return;
	}
	end = ckr_fill16(s, n, -__builtin_inff());
	ckr_fill16(dp, n, 0.0f);
	for (int64_t j = 0; j < end; j += 16) {
		float p[16], d[16];

#pragma omp simd
		for (int i = 0; i < 16; i++) {
			p[i] = ckr_exp(s[j + i] - lse);
			d[i] = p[i] * (dp[j + i] - delta);
		}
		ckr_score_put(s, type, j, p, 16);
		ckr_score_put(dp, type, j, d, 16);
	}
	ckr_score_zero(s, type, n, ncol);
	ckr_score_zero(dp, type, n, ncol);
}

/* The product of two rows of a head. */
static inline float
ckr_head_dot(struct ckr_head a, struct ckr_head b, int64_t row, int64_t n)
{
	float x[256], y[256], sum = 0.0f;

	for (int64_t i = 0; i < n; i += 256) {
		int64_t m = ckr_least(n - i, 256);

		sum += ckr_dot(ckr_row(x, a.p, a.type, row * a.ld + i, m),
		               ckr_row(y, b.p, b.type, row * b.ld + i, m), m);
	}
	return sum;
}

/* Buffers that the blocks of a key head share. */
struct ckr_key_head {
	struct ckr_head k, v, dk, dv;
	float *room;                            /* behind it */
};

/* Rows of keys that no query sees. */
static inline void
ckr_head_clear(struct ckr_head h, int64_t from, int64_t to, int64_t dim)
{
	for (int64_t j = from; j < to; j++)
		memset((float *)h.p + j * h.ld, 0,
		       (size_t)dim * sizeof(float));
}

/* first 1: the first block of this key head, which sets dk and dv; no other one
 * sees more keys. */
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
		a->dim, &kv.room, env);
	struct ckr_head o = ckr_head_read(p->o, a->type,
		b * a->o[0] + h * a->o[1] + row * a->o[2], a->o[2], rows,
		a->vdim, &kv.room, env);
	struct ckr_head d_o = ckr_head_read(p->d_o, a->type,
		b * a->d_o[0] + h * a->d_o[1] + row * a->d_o[2], a->d_o[2],
		rows, a->vdim, &kv.room, env);
	struct ckr_head dq = ckr_head_room(p->dq, a->type, to, a->dq[2], rows,
	                                   a->dim, &kv.room);
	struct ckr_head ph = ckr_head_scores(a, s, env);
	struct ckr_head dph = ckr_head_scores(a, dp, env);
	const float *lse = p->lse + (b * a->heads + h) * a->queries + row;

	if (ncol > 0) {
		ckr_head_product(0, 1, rows, ncol, a->dim, a->scale, q, kv.k,
		                 0.0f, (struct ckr_head){ s, CKR_F32, a->ld },
		                 env);
		ckr_head_product(0, 1, rows, ncol, a->vdim, 1.0f, d_o, kv.v,
		                 0.0f, (struct ckr_head){ dp, CKR_F32, a->ld },
		                 env);
	}
	for (int64_t i = 0; i < rows; i++) {
		int64_t n = ckr_visible(a, row + i);
		float z, delta = ckr_head_dot(d_o, o, i, a->vdim);

		ckr_mask_row(a, s + i * a->ld, p->mask, b, h, row + i, n);
		z = ckr_near_row(s + i * a->ld, n, lse[i]);
		ckr_score_grad_row(a, s + i * a->ld, dp + i * a->ld, ph.type,
		                   n, ncol,
		                   z, delta,
		                   ckr_score_index(a, b, h, row + i), env);
	}
	if (p->dq) {
		for (int64_t i = 0; i < rows && ncol == 0; i++)
			memset((float *)dq.p + i * dq.ld, 0,
			       (size_t)a->dim * sizeof(float));
		if (ncol > 0)
			ckr_head_product(0, 0, rows, a->dim, ncol, a->scale,
			                 dph, kv.k, 0.0f, dq, env);
		ckr_head_write(p->dq, a->type, to, a->dq[2], rows, a->dim, dq);
	}
	if (p->dk && first)
		ckr_head_clear(kv.dk, ncol, a->keys, a->dim);
	if (p->dv && first)
		ckr_head_clear(kv.dv, ncol, a->keys, a->vdim);
	if (p->dk && ncol > 0)
		ckr_head_product(1, 0, ncol, a->dim, rows, a->scale, dph, q,
		                 beta, kv.dk, env);
	if (p->dv && ncol > 0)
		ckr_head_product(1, 0, ncol, a->vdim, rows, 1.0f, ph, d_o,
		                 beta, kv.dv, env);
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
	                     a->keys, a->dim, &kv.room, env);
	kv.v = ckr_head_read(p->v, a->type, b * a->v[0] + g * a->v[1], a->v[2],
	                     a->keys, a->vdim, &kv.room, env);
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

void
ckr_attention_grad(const struct ckr_attention *a,
                   const struct ckr_attention_grad *p, float *workspace,
                   const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (a->batch * a->heads * a->queries * a->keys > CKR_SMALL) \
	schedule(dynamic)
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t g = 0; g < a->groups; g++)
			ckr_attention_grad_head(
				a, p, b, g,
				workspace + omp_get_thread_num() * a->workspace,
				env);
}
