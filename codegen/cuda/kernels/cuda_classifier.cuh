/* The classifier end: last linear, softmax cross entropy and the gradients of
 * both, a chunk of rows at a time.
 *
 * Logits of a chunk are made by one product, turned into their own adjoint in
 * place, and used up by the products for dx and dw.  They are of the type that
 * is multiplied, their statistics float32.  Sums over chunks are float32.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_CLASSIFIER_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_CLASSIFIER_CUH

#include "cuda_widen.cuh"
#include "lines.cuh"
#include "places.h"
#include "classes.h"

enum {
	CKR_CLASSIFIER_HELD = 112 << 10,        /* bytes of a row that shared
	                                         * memory holds, at most */
	CKR_CLASSIFIER_STATIC = CKR_WARP * sizeof(float),
	CKR_CLASSIFIER_THREADS = 512,
};

/* ld: elements from row to row of logits.  Offsets in workspace, in bytes:
 * logits; losses of all rows, then the sum of weights; sums of dw, of db; x of
 * a chunk, w and dx as float32; workspace of products.  Unused regions are
 * empty.  ORDER CLASSIFIER. */
struct ckr_classifier {
	int64_t rows, classes, dim, chunk, ld;
	int tb, reduction;
	float seed;
	int64_t z, each, dw, db, x, w, dx, work, work_bytes;
};

/* Labels that count. */
CKR_GLOBAL
ckr_classifier_count(float *weight, struct ckr_labels l, int64_t rows,
                     struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float s = 0.0f;

	for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
		s += ckr_label_weight(&l, ckr_label(&l, i, env));
	s = ckr_block_sum(s, room);
	if (threadIdx.x == 0)
		*weight = s;
}

CKR_GLOBAL
ckr_classifier_loss(float *loss, const float *each, const float *weight,
                    int64_t rows, int reduction)
{
	__shared__ float room[CKR_WARP];
	float s = 0.0f;

	for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
		s += each[i];
	s = ckr_block_sum(s, room);
	if (threadIdx.x == 0)
		*loss = reduction == 1 ? s / *weight : s;
}

/* Pack p of logits, with bias; -inf beyond the last, where a row is padded. */
template <typename Z> CKR_DEVICE void
ckr_logits(float *v, const Z *row, int p, int64_t n, const ckr_any &bias)
{
	enum { N = ckr_vec<Z>::N };
	int64_t at = (int64_t)p * N;
	int left = N;

	ckr_fetch<N>(v, row, at, n, true);
	if (p < (int)(n / N)) {         /* all exist, as nearly everywhere */
		if (bias.at)
#pragma unroll
			for (int j = 0; j < N; j++)
				v[j] += ckr_at(bias, at + j);
		return;
	}
	left = (int)(n - at);
	if (bias.at)
#pragma unroll
		for (int j = 0; j < N; j++)
			v[j] += j < left ? ckr_at(bias, at + j) : 0.0f;
#pragma unroll
	for (int j = 0; j < N; j++)
		v[j] = j < left ? v[j] : -__builtin_inff();
}

/* e^x, relative error 2^-22. */
CKR_DEVICE float
ckr_likely(float x)
{
	return ckr_exp2(x * CKR_LOG2E);
}

/* Rows of logits to losses and adjoints; first: the first one's label.  e^x of
 * a logit is taken twice, which is an instruction each: to keep it takes a
 * register per logit, or a second rounding to 16 bits. */
template <typename Z> CKR_GLOBAL
__launch_bounds__(CKR_CLASSIFIER_THREADS)
ckr_classifier_rows(Z *z, float *each, const float *weight, const float *seed,
                    struct ckr_labels l, ckr_any bias,
                    struct ckr_classifier c, int64_t first, int64_t rows,
                    bool held, struct ckr_env *env)
{
	CKR_SHARED(Z, copy);
	__shared__ float room[CKR_WARP];
	enum { N = ckr_vec<Z>::N };
	int64_t n = c.classes;
	int begin = (int)threadIdx.x, step = (int)blockDim.x;
	int packs = (int)ckr_line_packs<Z>(n);

	CKR_BLOCK_TASKS(i, rows) {
		Z *row = z + i * c.ld;
		const Z *from = held ? copy : row;
		int64_t label = ckr_label(&l, first + i, env);
		float g = seed ? *seed : c.seed, m = -__builtin_inff();
		float s = 0.0f, own, v[N];

		if (label < 0) {
			for (int j = 0; j < N; j++)
				v[j] = 0.0f;
			for (int p = begin; p < packs; p += step)
				ckr_write<N>(row, v, (int64_t)p * N, n, true);
			if (threadIdx.x == 0)
				each[i] = 0.0f;
			continue;
		}
		g = c.reduction == 1 ? g / *weight : g;
		own = ckr_get(row[label]) + (bias.at ? ckr_at(bias, label)
		                                     : 0.0f);
		for (int p = begin; p < packs; p += step) {
			if (held)
				*(ckr_pack<Z, N> *)(copy + p * N) =
					ckr_load<N>(row + p * N);
			ckr_logits(v, from, p, n, bias);
#pragma unroll
			for (int j = 0; j < N; j++)
				m = fmaxf(m, v[j]);
		}
		m = ckr_block_max(m, room);
		for (int p = begin; p < packs; p += step) {
			ckr_logits(v, from, p, n, bias);
#pragma unroll
			for (int j = 0; j < N; j++)
				s += ckr_likely(v[j] - m);
		}
		s = ckr_block_sum(s, room);
		if (threadIdx.x == 0)
			each[i] = m + ckr_log(s) - own;
		s = g / s;
		for (int p = begin; p < packs; p += step) {
			ckr_logits(v, from, p, n, bias);
#pragma unroll
			for (int j = 0; j < N; j++)
				v[j] = ckr_likely(v[j] - m) * s;
			ckr_write<N>(row, v, (int64_t)p * N, n, true);
		}
		/* the thread that has just written there */
		if (label / N % step == begin)
			ckr_put(&row[label], ckr_likely(own - m) * s - g);
	}
}

/* The factors of a product: as stored, or converted to float32. */
template <typename X, typename W> struct ckr_multiplied {
	typedef float type;
};
template <typename X> struct ckr_multiplied<X, X> {
	typedef X type;
};


template <typename A, typename Y> void
ckr_classifier_product(const struct ckr_classifier *c, int ta, int tb,
                       int64_t m, int64_t n, int64_t k, const A *a,
                       int64_t lda, const A *b, int64_t ldb, Y *y, int64_t ldy,
                       bool more, char *workspace, struct ckr_env *env)
{
	struct ckr_gemm g = {};
	uint8_t of = (uint8_t)ckr_type_of(a), to = (uint8_t)ckr_type_of(y);

	g.ta = ta, g.tb = tb, g.m = m, g.n = n, g.k = k, g.batch = 1;
	g.lda = lda, g.ldb = ldb, g.ldc = g.ldy = ldy;
	g.a = of, g.b = of, g.y = to, g.c = more ? to : (uint8_t)CKR_NONE;
	g.alpha = 1.0f;
	env->gemm(env, &g, a, b, NULL, more ? y : NULL, y, workspace + c->work,
	          (uint64_t)c->work_bytes);
}

/* dw = z^T x, or x^T z, or that added to it. */
template <typename Z, typename Y> void
ckr_classifier_dw(const struct ckr_classifier *c, Y *dw, const Z *z,
                  const Z *x, int64_t rows, bool more, char *workspace,
                  struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim;

	if (c->tb)
		ckr_classifier_product(c, 1, 0, n, k, rows, z, c->ld, x, k, dw,
		                       k, more, workspace, env);
	else
		ckr_classifier_product(c, 1, 0, k, n, rows, x, k, z, c->ld, dw,
		                       n, more, workspace, env);
}

/* Memory for a float32 sum of y: y itself, if that is float32. */
static inline float *
ckr_classifier_sum(float *y, float *)
{
	return y;
}

template <typename T> float *
ckr_classifier_sum(T *, float *room)
{
	return room;
}

template <typename Z, typename X> const Z *
ckr_classifier_as(Z *room, const X *x, int64_t n, struct ckr_env *env)
{
	ckr_convert(room, x, n, env);
	return room;
}

template <typename Z> const Z *
ckr_classifier_as(Z *, const Z *x, int64_t, struct ckr_env *)
{
	return x;
}

template <typename Z> void
ckr_classifier_chunk(const struct ckr_classifier *c, Z *z, float *each,
                     const float *weight, const float *seed,
                     const struct ckr_labels *l, ckr_any bias, int64_t first,
                     int64_t rows, struct ckr_env *env)
{
	int64_t packs = ckr_line_packs<Z>(c->classes);
	int64_t bytes = packs * 16;
	bool held = bytes <= CKR_CLASSIFIER_HELD
		&& bytes <= ckr_shared_limit() - CKR_CLASSIFIER_STATIC;
	int threads = packs >= 2 * CKR_CLASSIFIER_THREADS
	            ? CKR_CLASSIFIER_THREADS : ckr_line_threads<Z>(c->classes);

	CKR_EACH_BLOCK(ckr_classifier_rows<Z>, rows, threads,
	               held ? (size_t)bytes : 0, env, z, each + first, weight,
	               seed, *l, bias, *c, first, rows, held, env->device);
}

/* Logits, losses, adjoints and dx of a chunk; returns its x as it is
 * multiplied. */
template <typename Z, typename X> const Z *
ckr_classifier_step(const struct ckr_classifier *c, X *dx, const X *x,
                    const Z *w, const struct ckr_labels *l, ckr_any bias,
                    const float *seed, int64_t first, int64_t rows,
                    char *workspace, struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim, ld = c->tb ? k : n;
	Z *z = (Z *)(workspace + c->z), *to = (Z *)(workspace + c->dx);
	float *each = (float *)(workspace + c->each);
	const Z *a = ckr_classifier_as((Z *)(workspace + c->x), x + first * k,
	                               rows * k, env);

	ckr_classifier_product(c, 0, c->tb, rows, n, k, a, k, w, ld, z, c->ld,
	                       false, workspace, env);
	ckr_classifier_chunk(c, z, each, each + c->rows, seed, l, bias, first,
	                     rows, env);
	if (!dx)
		return a;
	if constexpr (sizeof(Z) == sizeof(X))
		to = (Z *)(dx + first * k);
	ckr_classifier_product(c, 0, !c->tb, rows, k, n, z, c->ld, w, ld, to,
	                       k, false, workspace, env);
	if constexpr (sizeof(Z) != sizeof(X))
		ckr_convert(dx + first * k, to, rows * k, env);
	return a;
}

/* A gradient to which no row adds. */
template <typename X> CKR_GLOBAL
ckr_classifier_none(X *y, int64_t n)
{
	CKR_TASKS(int64_t, i, n)
		ckr_put(&y[i], 0.0f);
}

/* dw of rows that are all of them is rounded by its product. */
template <typename X, typename W> void
ckr_classify(const struct ckr_classifier *c, float *loss, ckr_is<X> *dx,
             ckr_is<X> *dw, ckr_is<X> *dbias, const X *x, const W *weights,
             const struct ckr_labels *l, ckr_any bias, const float *seed,
             char *workspace, struct ckr_env *env)
{
	typedef typename ckr_multiplied<X, W>::type Z;
	int64_t size = c->classes * c->dim;
	const Z *w = ckr_classifier_as((Z *)(workspace + c->w), weights, size,
	                               env);
	const Z *z = (const Z *)(workspace + c->z);
	float *sum = ckr_classifier_sum(dw, (float *)(workspace + c->dw));
	float *db = ckr_classifier_sum(dbias, (float *)(workspace + c->db));
	float *each = (float *)(workspace + c->each);
	bool whole = c->chunk >= c->rows && sizeof(Z) == sizeof(X);

	CKR_LAUNCH_BLOCK(ckr_classifier_count, 1, 1024, 0, env,
	                 each + c->rows, *l, c->rows, env->device);
	for (int64_t i = 0; i < c->rows; i += c->chunk) {
		int64_t rows = ckr_least(c->rows - i, c->chunk);
		const Z *a = ckr_classifier_step(c, dx, x, w, l, bias, seed, i,
		                                 rows, workspace, env);

		if (dw && whole)
			ckr_classifier_dw(c, dw, z, a, rows, false, workspace,
			                  env);
		else if (dw)
			ckr_classifier_dw(c, sum, z, a, rows, i > 0, workspace,
			                  env);
		if (dbias)
			ckr_add_columns(db, z, rows, c->classes, c->ld, i > 0,
			                env);
	}
	if (c->rows == 0 && dw)
		CKR_EACH(ckr_classifier_none<X>, size, env, dw, size);
	if (c->rows == 0 && dbias)
		CKR_EACH(ckr_classifier_none<X>, c->classes, env, dbias,
		         c->classes);
	if (c->rows == 0)
		dw = NULL, dbias = NULL;
	if (dw && !whole && (void *)sum != (void *)dw)
		ckr_convert(dw, sum, size, env);
	if (dbias && (void *)db != (void *)dbias)
		ckr_convert(dbias, db, c->classes, env);
	if (loss)
		CKR_LAUNCH_BLOCK(ckr_classifier_loss, 1, 1024, 0, env, loss,
		                 each, each + c->rows, c->rows, c->reduction);
}

#endif
