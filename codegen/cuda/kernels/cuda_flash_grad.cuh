/* Gradients of attention of 16-bit floats on tensor cores: dk and dv of 64
 * keys in a loop over queries, dq of 64 queries in one over keys. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_FLASH_GRAD_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_FLASH_GRAD_CUH

#include "cuda_attention_grad.cuh"
#include "cuda_flash.cuh"

/* Of a row: p = 2^(s log2(e) - z), and if masked s is less m, which is large
 * then; delta as in struct ckr_row_stats. */
struct alignas(8) ckr_flash_row {
	float z, delta;
};

/* Of row i, nothing beyond the last. */
CKR_DEVICE struct ckr_row_stats
ckr_flash_stats(const ckr_scores &of, const struct ckr_row_stats *stats, int i)
{
	struct ckr_row_stats none = { 0.0f, -__builtin_inff(), 0.0f };

	return i < (int)of.a.queries
	     ? stats[(of.b * of.a.heads + of.h) * of.a.queries + i] : none;
}

/* masked: of scores from which m is subtracted.  No key of a row that sees
 * nothing is likely. */
CKR_DEVICE struct ckr_flash_row
ckr_flash_row_of(const struct ckr_row_stats &st, bool masked)
{
	float z = masked ? st.z : st.m + st.z;

	z = st.z == -__builtin_inff() ? __builtin_inff() : z * CKR_LOG2E;
	return { z, st.delta };
}

/* Products to dropped probabilities, and dp to the adjoint of the scores:
 * columns of fragments are keys (KEYS 1) or queries, rows the others; `row` and
 * `column` are the first ones of the thread.  rows: of its two rows, or of all
 * columns of the tile. */
template <int N, int KEYS> CKR_DEVICE void
ckr_flash_adjoint(float (*s)[4], float (*dp)[4], const ckr_scores &of,
                  const struct ckr_flash_span &span,
                  const struct ckr_flash_row *rows, const float *m, int row,
                  int column, bool masked)
{
	const float factor = (masked ? 1.0f : of.a.scale) * CKR_LOG2E;
	int first = KEYS ? 0 : (int)threadIdx.x % 4 * 2;
	uint32_t kept;
	const struct ckr_flash_row *st = rows + first;

	if (masked) {
		ckr_flash_mask<N, KEYS>(s, of, span, row, column);
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				s[n][e] -= m[first + (KEYS ? e / 2
				                      : n * 8 + e % 2)];
	}
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			int k = KEYS ? e / 2 : n * 8 + e % 2;

			s[n][e] = ckr_exp2(__builtin_fmaf(s[n][e], factor,
				-st[k].z));
			if (!of.below)
				dp[n][e] = s[n][e] * (dp[n][e] - st[k].delta);
		}
	if (!of.below)
		return;
	kept = ckr_flash_kept<N, KEYS>(of, row, column);
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			int k = KEYS ? e / 2 : n * 8 + e % 2;
			float by = kept >> (4 * n + e) & 1 ? of.keep : 0.0f;

			dp[n][e] = s[n][e] * (dp[n][e] * by - st[k].delta);
			s[n][e] *= by;
		}
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
	int steps = (int)ckr_ceil_div(ckr_visible(a, first + CKR_FLASH_ROWS
		- 1), STEP);
	int w = (int)threadIdx.x / CKR_WARP, lane = (int)threadIdx.x % CKR_WARP;
	int i = (int)first + w * 16, row = i + lane / 4;
	int plain = ckr_flash_plain(a, i, STEP);
	const ckr_scores of(a, p.mask, b, h, env);
	const struct ckr_flash_span span = ckr_flash_keys(a, row);
	T *q = room, *d_o = room + size::OWN, *other = room + 2 * size::OWN;
	T *own = q + w * 16 * size::LD;
	ckr_flash_rows<T> ks = ckr_flash_rows_of<HD>((const T *)p.k, a.k, b, g,
		0, a.dim, whole.k);
	ckr_flash_rows<T> vs = ckr_flash_rows_of<HD>((const T *)p.v, a.v, b, g,
		0, a.vdim, whole.v);
	ckr_flash_rows<T> qs = ckr_flash_rows_of<HD>((const T *)p.q, a.q, b, h,
		first, a.dim, whole.q);
	ckr_flash_rows<T> d_os = ckr_flash_rows_of<HD>((const T *)p.d_o, a.d_o,
		b, h, first, a.vdim, whole.d_o);
	int left = (int)(a.queries - first);
	const struct ckr_row_stats st[2] = {
		ckr_flash_stats(of, stats, row),
		ckr_flash_stats(of, stats, row + 8) };
	const float by[2] = { a.scale, a.scale };
	float acc[HD / 8][4] = {};

	ckr_flash_copy<HD, CKR_FLASH_ROWS>(q, &qs, left);
	ckr_flash_copy<HD, CKR_FLASH_ROWS>(d_o, &d_os, left);
	for (int n = -1; n < steps; n++) {
		T *now = other + n % 2 * 2 * size::TILE;
		T *then = other + (n + 1) % 2 * 2 * size::TILE;
		bool masked = n >= plain;
		const float m[2] = { st[0].m, st[1].m };
		const struct ckr_flash_row rows[2] = {
			ckr_flash_row_of(st[0], masked),
			ckr_flash_row_of(st[1], masked) };
		float s[N][4], dp[N][4];

		if (n + 1 < steps) {
			left = (int)a.keys - (n + 1) * STEP;
			ckr_flash_copy<HD, STEP>(then, &ks, left);
			ckr_flash_copy<HD, STEP>(then + size::TILE, &vs, left);
		}
		ckr_copies_end();
		if (n < 0)
			continue;
		ckr_copies_wait<1>();
		__syncthreads();
		ckr_flash_scores<HD, N>(s, own, now);
		ckr_flash_scores<HD, N>(dp, own + size::OWN, now + size::TILE);
		ckr_flash_adjoint<N, 1>(s, dp, of, span, rows, m, row,
		                        n * STEP + lane % 4 * 2, masked);
		ckr_flash_add<HD, N>(acc, dp, now);
		__syncthreads();
	}
	ckr_copies_wait<0>();
	__syncthreads();
	ckr_flash_store<HD>((T *)p.dq + p.start[0] + b * a.dq[0] + h * a.dq[1]
		+ i * a.dq[2], a.dq[2], a.queries - i, a.dim, acc, by, own,
		whole.dq);
}

/* Queries that see keys j and j + 8. */
CKR_DEVICE struct ckr_flash_span
ckr_flash_queries(const struct ckr_attention &a, int64_t j)
{
	struct ckr_flash_span s = {};

	for (int r = 0; r < 2; r++) {
		s.from[r] = (int)ckr_first_query(a, j + 8 * r);
		s.n[r] = j + 8 * r < a.keys && s.from[r] < a.queries
		       ? (int)a.queries - s.from[r] : 0;
	}
	return s;
}

/* The query from which on all see a block's keys, which begin with j, and
 * scores need nothing but to be scaled. */
CKR_DEVICE int
ckr_flash_plain_from(const struct ckr_attention &a, int64_t j)
{
	if (a.mask_type != CKR_NONE || !(a.scale > 0.0f)
	    || j + CKR_FLASH_ROWS > a.keys)
		return INT32_MAX;
	return (int)ckr_first_query(a, j + CKR_FLASH_ROWS - 1);
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
	alignas(16) __shared__ struct ckr_flash_row rows[STEP];
	__shared__ float m[STEP];
	int64_t tiles = (a.keys + CKR_FLASH_ROWS - 1) / CKR_FLASH_ROWS;
	int64_t first = blockIdx.x % tiles * CKR_FLASH_ROWS;
	int64_t g = blockIdx.x / tiles % a.groups, b = blockIdx.x / tiles
		/ a.groups, per = a.heads / a.groups;
	int queries = (int)a.queries;
	int begin = (int)ckr_first_query(a, first) / STEP * STEP;
	int from = ckr_flash_plain_from(a, first);
	int x = (int)threadIdx.x, w = x / CKR_WARP, lane = x % CKR_WARP;
	int64_t j = first + w * 16;
	const struct ckr_flash_span span = ckr_flash_queries(a, j + lane / 4);
	T *k = room, *v = room + size::OWN, *other = room + 2 * size::OWN;
	T *own = k + w * 16 * size::LD;
	ckr_flash_rows<T> ks = ckr_flash_rows_of<HD>((const T *)p.k, a.k, b, g,
		first, a.dim, whole.k);
	ckr_flash_rows<T> vs = ckr_flash_rows_of<HD>((const T *)p.v, a.v, b, g,
		first, a.vdim, whole.v);
	ckr_flash_rows<T> qs = ckr_flash_rows_of<HD>((const T *)p.q, a.q, b,
		g * per, begin, a.dim, whole.q);
	ckr_flash_rows<T> d_os = ckr_flash_rows_of<HD>((const T *)p.d_o, a.d_o,
		b, g * per, begin, a.vdim, whole.d_o);
	ckr_scores of(a, p.mask, b, g * per, env);
	const float by[2] = { a.scale, a.scale }, one[2] = { 1.0f, 1.0f };
	float dk[HD / 8][4] = {}, dv[HD / 8][4] = {};
	/* tiles of queries of a head, of all heads; the present one begins
	 * with query i */
	int steps = queries > begin ? (queries - begin + STEP - 1) / STEP : 0;
	int count = (int)per * steps, i = begin;

	ckr_flash_copy<HD, CKR_FLASH_ROWS>(k, &ks, (int)(a.keys - first));
	ckr_flash_copy<HD, CKR_FLASH_ROWS>(v, &vs, (int)(a.keys - first));
	if (count > 0) {
		ckr_flash_copy<HD, STEP>(other, &qs, queries - i);
		ckr_flash_copy<HD, STEP>(other + size::TILE, &d_os,
		                         queries - i);
	}
	ckr_copies_end();
	for (int n = 0; n < count; n++) {
		T *now = other + n % 2 * 2 * size::TILE;
		T *then = other + (n + 1) % 2 * 2 * size::TILE;
		bool masked = i < from || i + STEP > queries;
		int next = i + STEP;
		float s[N][4], dp[N][4];

		if (next >= queries) {
			next = begin;
			qs.x += a.q[1] - (int64_t)steps * STEP * qs.ld;
			d_os.x += a.d_o[1] - (int64_t)steps * STEP * d_os.ld;
		}
		if (n + 1 < count) {
			ckr_flash_copy<HD, STEP>(then, &qs, queries - next);
			ckr_flash_copy<HD, STEP>(then + size::TILE, &d_os,
			                         queries - next);
		}
		ckr_copies_end();
		if (x < STEP) {
			struct ckr_row_stats st = ckr_flash_stats(of, stats,
				i + x);

			rows[x] = ckr_flash_row_of(st, masked);
			m[x] = st.m;
		}
		ckr_copies_wait<1>();
		__syncthreads();
		ckr_flash_scores<HD, N>(s, own, now);
		ckr_flash_scores<HD, N>(dp, own + size::OWN, now + size::TILE);
		ckr_flash_adjoint<N, 0>(s, dp, of, span, rows, m,
			(int)j + lane / 4, i + lane % 4 * 2, masked);
		ckr_flash_add<HD, N>(dv, s, now + size::TILE);
		ckr_flash_add<HD, N>(dk, dp, now);
		of.h += next == begin;
		i = next;
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
