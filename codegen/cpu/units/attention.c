/* Attention in blocks of query rows.
 *
 * A block's scores are a product with all keys that it can see; no matrix of
 * all scores exists.  The forward pass keeps the log-sum-exp of every row,
 * from which the backward pass computes the probabilities again (Dao et al.,
 * "FlashAttention", 2022, without its tiling over keys: a row of scores fits
 * the cache).  Threads share batch x head x block forward and batch x key
 * head backward, where dk and dv add up; within those the order is fixed.
 */
#include "attention_rows.h"

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
		a->dim, &room, env);
	struct ckr_head kh = ckr_head_read(k, a->type,
		b * a->k[0] + g * a->k[1], a->k[2], ncol, a->dim, &room, env);
	struct ckr_head sh = { scores, CKR_F32, a->ld }, vh, oh;
	struct ckr_head ph = ckr_head_scores(a, scores, env);

	if (ncol > 0)
		ckr_head_product(0, 1, rows, ncol, a->dim, a->scale, qh, kh,
		                 0.0f, sh, env);
	for (int64_t i = 0; i < rows; i++) {
		float *s = scores + i * a->ld, z;
		int64_t n = ckr_visible(a, first + i);
		int drops = a->ratio > 0 && env->training;

		ckr_mask_row(a, s, mask, b, h, first + i, n);
		factor[i] = ckr_score_row(s, drops ? CKR_F32 : ph.type, n,
		                          ncol, &z);
		if (lse)
			lse[(b * a->heads + h) * a->queries + first + i] = z;
		if (!drops)
			continue;
		ckr_drop_row(a, s, ckr_score_index(a, b, h, first + i), n,
		             env);
		if (ph.type != CKR_F32)
			ckr_narrow_over(s, ph.type, ncol);
	}
	if (!o)                 /* only lse is wanted */
		return;
	vh = ckr_head_read(v, a->type, b * a->v[0] + g * a->v[1], a->v[2],
	                   ncol, a->vdim, &room, env);
	oh = ckr_head_room(o, a->type, to, a->o[2], rows, a->vdim, &room);
	if (ncol > 0)
		ckr_head_product(0, 0, rows, a->vdim, ncol, 1.0f, ph, vh, 0.0f,
		                 oh, env);
	/* without a visible key, factor is 0 and what lies in o is junk */
	for (int64_t i = 0; i < rows; i++) {
		float *row = (float *)oh.p + i * oh.ld, f = factor[i];

#pragma omp simd
		for (int64_t j = 0; j < a->vdim; j++)
			row[j] = f == 0.0f ? 0.0f : row[j] * f;
	}
	ckr_head_write(o, a->type, to, a->o[2], rows, a->vdim, oh);
}

void
ckr_attention(const struct ckr_attention *a, void *o, float *lse, const void *q,
              const void *k, const void *v, const void *mask, float *workspace,
              const struct ckr_env *env)
{
	int64_t nblock = (a->queries + a->rows - 1) / a->rows;

#pragma omp parallel for num_threads(env->threads) collapse(3) \
	if (a->batch * a->heads * a->queries * a->keys > CKR_SMALL) \
	schedule(dynamic)
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t h = 0; h < a->heads; h++)
			for (int64_t i = 0; i < nblock; i++)
				ckr_attention_block(
					a, o, lse, q, k, v, mask, b, h,
					i * a->rows,
					workspace
						+ omp_get_thread_num()
							* a->workspace,
					env);
}
