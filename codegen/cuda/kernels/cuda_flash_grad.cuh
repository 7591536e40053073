/* Gradients of attention of 16-bit floats on tensor cores: dk and dv of 64
 * keys in a loop over queries, dq of 64 queries in one over keys. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_FLASH_GRAD_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_FLASH_GRAD_CUH

#include "cuda_attention_grad.cuh"
#include "cuda_flash.cuh"

/* Products to dropped probabilities, and dp to the adjoint of the scores:
 * columns of fragments are keys (KEYS 1) or queries, rows the others. */
template <int N, int KEYS> CKR_DEVICE void
ckr_flash_adjoint(float (*s)[4], float (*dp)[4], const ckr_scores &of,
                  const struct ckr_row_stats *stats, int64_t row,
                  int64_t column, bool plain)
{
	int lane = (int)threadIdx.x % CKR_WARP;

	row += lane / 4, column += lane % 4 * 2;
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			int64_t r = row + e / 2 * 8, c = column + n * 8 + e % 2;
			int64_t i = KEYS ? r : c, j = KEYS ? c : r;
			const struct ckr_row_stats st = stats[KEYS ? e / 2
				: n * 8 + lane % 4 * 2 + e % 2];
			float p, by = 1.0f;

			p = plain ? s[n][e] * of.a.scale
			          : of.score(s[n][e], i, j);
			p = ckr_probability(p, st);
			if (of.below)
				of.kept<1>(&by, i, j);
			dp[n][e] = p * (dp[n][e] * by - st.delta);
			s[n][e] = p * by;
		}
}

/* Stats of row i, nothing beyond the last. */
CKR_DEVICE struct ckr_row_stats
ckr_flash_stats(const ckr_scores &of, const struct ckr_row_stats *stats,
                int64_t i)
{
	struct ckr_row_stats none = { 0.0f, -__builtin_inff(), 0.0f };

	return i < of.a.queries
	     ? stats[(of.b * of.a.heads + of.h) * of.a.queries + i] : none;
}

template <typename T, int HD> CKR_GLOBAL
__launch_bounds__(CKR_FLASH_THREADS, 2)
ckr_flash_dq(struct ckr_attention a, struct ckr_attention_grad p,
             const struct ckr_row_stats *stats, struct ckr_flash_whole whole,
             struct ckr_env *env)
{
	typedef ckr_flash_size<HD> size;
	enum { STEP = size::STEP, N = STEP / 8 };
	CKR_SHARED(T, room);
	int64_t tiles = (a.queries + CKR_FLASH_ROWS - 1) / CKR_FLASH_ROWS;
	int64_t first = (tiles - 1 - blockIdx.x % tiles) * CKR_FLASH_ROWS;
	int64_t h = blockIdx.x / tiles % a.heads, b = blockIdx.x / tiles
		/ a.heads, g = h / (a.heads / a.groups);
	int64_t end = ckr_visible(a, first + CKR_FLASH_ROWS - 1);
	int w = (int)threadIdx.x / CKR_WARP, lane = (int)threadIdx.x % CKR_WARP;
	int64_t i = first + w * 16;
	const ckr_scores of(a, p.mask, b, h, env);
	T *q = room, *d_o = room + size::OWN, *other = room + 2 * size::OWN;
	T *own = q + w * 16 * size::LD;
	const struct ckr_row_stats st[2] = {
		ckr_flash_stats(of, stats, i + lane / 4),
		ckr_flash_stats(of, stats, i + lane / 4 + 8) };
	const float by[2] = { a.scale, a.scale };
	float acc[HD / 8][4] = {};

	ckr_flash_copy<HD, CKR_FLASH_ROWS>(q, ckr_rows_of<T>(p.q, a.q, b, h,
		first, a.queries, a.dim), whole.q);
	ckr_flash_copy<HD, CKR_FLASH_ROWS>(d_o, ckr_rows_of<T>(p.d_o, a.d_o, b,
		h, first, a.queries, a.vdim), whole.d_o);
	for (int64_t j = -STEP; j < end; j += STEP) {
		T *now = other + j / STEP % 2 * 2 * size::TILE;
		T *then = other + (j / STEP + 1) % 2 * 2 * size::TILE;
		float s[N][4], dp[N][4];

		if (j + STEP < end) {
			ckr_flash_copy<HD, STEP>(then, ckr_rows_of<T>(p.k, a.k,
				b, g, j + STEP, a.keys, a.dim), whole.k);
			ckr_flash_copy<HD, STEP>(then + size::TILE,
				ckr_rows_of<T>(p.v, a.v, b, g, j + STEP,
				a.keys, a.vdim), whole.v);
		}
		ckr_copies_end();
		if (j < 0)
			continue;
		ckr_copies_wait<1>();
		__syncthreads();
		ckr_flash_scores<HD, N>(s, own, now);
		ckr_flash_scores<HD, N>(dp, own + size::OWN, now + size::TILE);
		ckr_flash_adjoint<N, 1>(s, dp, of, st, i, j,
		                        ckr_flash_plain(of, i, j, STEP));
		ckr_flash_add<HD, N>(acc, dp, now);
		__syncthreads();
	}
	ckr_copies_wait<0>();
	__syncthreads();
	ckr_flash_store<HD>((T *)p.dq + p.start[0] + b * a.dq[0] + h * a.dq[1]
		+ i * a.dq[2], a.dq[2], a.queries - i, a.dim, acc, by, own,
		whole.dq);
}

template <typename T, int HD> CKR_GLOBAL
__launch_bounds__(CKR_FLASH_THREADS, 2)
ckr_flash_dkv(struct ckr_attention a, struct ckr_attention_grad p,
              const struct ckr_row_stats *stats, struct ckr_flash_whole whole,
              struct ckr_env *env)
{
	typedef ckr_flash_size<HD> size;
	enum { STEP = size::STEP, N = STEP / 8 };
	CKR_SHARED(T, room);
	__shared__ struct ckr_row_stats st[STEP];
	int64_t tiles = (a.keys + CKR_FLASH_ROWS - 1) / CKR_FLASH_ROWS;
	int64_t first = blockIdx.x % tiles * CKR_FLASH_ROWS;
	int64_t g = blockIdx.x / tiles % a.groups, b = blockIdx.x / tiles
		/ a.groups, per = a.heads / a.groups;
	int64_t begin = ckr_first_query(a, first) / STEP * STEP;
	int64_t steps = a.queries > begin
		? (a.queries - begin + STEP - 1) / STEP : 0;
	int x = (int)threadIdx.x, w = x / CKR_WARP;
	int64_t j = first + w * 16;
	T *k = room, *v = room + size::OWN, *other = room + 2 * size::OWN;
	T *own = k + w * 16 * size::LD;
	const float by[2] = { a.scale, a.scale }, one[2] = { 1.0f, 1.0f };
	float dk[HD / 8][4] = {}, dv[HD / 8][4] = {};

	ckr_flash_copy<HD, CKR_FLASH_ROWS>(k, ckr_rows_of<T>(p.k, a.k, b, g,
		first, a.keys, a.dim), whole.k);
	ckr_flash_copy<HD, CKR_FLASH_ROWS>(v, ckr_rows_of<T>(p.v, a.v, b, g,
		first, a.keys, a.vdim), whole.v);
	for (int64_t t = -1; t < per * steps; t++) {
		T *now = other + t % 2 * 2 * size::TILE;
		T *then = other + (t + 1) % 2 * 2 * size::TILE;
		float s[N][4], dp[N][4];

		if (t + 1 < per * steps) {
			int64_t h = g * per + (t + 1) / steps;
			int64_t i = begin + (t + 1) % steps * STEP;

			ckr_flash_copy<HD, STEP>(then, ckr_rows_of<T>(p.q, a.q,
				b, h, i, a.queries, a.dim), whole.q);
			ckr_flash_copy<HD, STEP>(then + size::TILE,
				ckr_rows_of<T>(p.d_o, a.d_o, b, h, i,
				a.queries, a.vdim), whole.d_o);
		}
		ckr_copies_end();
		if (t < 0)
			continue;
		const ckr_scores of(a, p.mask, b, g * per + t / steps, env);
		int64_t i = begin + t % steps * STEP;
		bool plain = i + STEP <= a.queries && first + CKR_FLASH_ROWS
			<= ckr_visible(a, i) && a.mask_type == CKR_NONE;

		if (x < STEP)
			st[x] = ckr_flash_stats(of, stats, i + x);
		ckr_copies_wait<1>();
		__syncthreads();
		ckr_flash_scores<HD, N>(s, own, now);
		ckr_flash_scores<HD, N>(dp, own + size::OWN, now + size::TILE);
		ckr_flash_adjoint<N, 0>(s, dp, of, st, j, i, plain);
		ckr_flash_add<HD, N>(dv, s, now + size::TILE);
		ckr_flash_add<HD, N>(dk, dp, now);
		__syncthreads();
	}
	ckr_copies_wait<0>();
	__syncthreads();
	if (p.dk)
		ckr_flash_store<HD>((T *)p.dk + p.start[1] + b * a.dk[0]
			+ g * a.dk[1] + j * a.dk[2], a.dk[2], a.keys - j,
			a.dim, dk, by, own, whole.dk);
	if (p.dv)
		ckr_flash_store<HD>((T *)p.dv + p.start[2] + b * a.dv[0]
			+ g * a.dv[1] + j * a.dv[2], a.dv[2], a.keys - j,
			a.vdim, dv, one, own, whole.dv);
}

template <typename T, int HD> void
ckr_flash_grad(const struct ckr_attention *a,
               const struct ckr_attention_grad *p,
               const struct ckr_row_stats *stats, struct ckr_env *env)
{
	struct ckr_flash_whole whole = {};
	int64_t rows = CKR_FLASH_ROWS;
	int64_t q = a->batch * a->heads * ((a->queries + rows - 1) / rows);
	int64_t k = a->batch * a->groups * ((a->keys + rows - 1) / rows);

	whole.q = ckr_flash_vectors((const T *)p->q, a->q, a->dim);
	whole.k = ckr_flash_vectors((const T *)p->k, a->k, a->dim);
	whole.v = ckr_flash_vectors((const T *)p->v, a->v, a->vdim);
	whole.d_o = ckr_flash_vectors((const T *)p->d_o, a->d_o, a->vdim);
	whole.dq = ckr_flash_vectors((T *)p->dq + p->start[0], a->dq, a->dim);
	whole.dk = ckr_flash_vectors((T *)p->dk + p->start[1], a->dk, a->dim);
	whole.dv = ckr_flash_vectors((T *)p->dv + p->start[2], a->dv, a->vdim);
	if ((p->dk || p->dv) && k > 0)
		CKR_LAUNCH_BLOCK((ckr_flash_dkv<T, HD>), k, CKR_FLASH_THREADS,
		                 ckr_flash_size<HD>::GRAD_BYTES, env, *a, *p, stats,
		                 whole, env->device);
	if (p->dq && q > 0)
		CKR_LAUNCH_BLOCK((ckr_flash_dq<T, HD>), q, CKR_FLASH_THREADS,
		                 ckr_flash_size<HD>::GRAD_BYTES, env, *a, *p, stats,
		                 whole, env->device);
}

#endif
