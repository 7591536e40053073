/* The classifier end: last linear, softmax cross entropy and the gradients of
 * both, a chunk of rows at a time.
 *
 * Logits of a chunk are made by one product, turned into their own adjoint in
 * place, and used up by the products for dx and dw.  The divisor of a mean is
 * known from the labels beforehand.
 *
 * Logits are float32 whatever the operands are; so are their adjoints, but of
 * bf16.  A 16-bit dw is a sum over all rows that is rounded once: where rows
 * are few all adjoints are kept, of the type of x, for one product at the end,
 * and of bf16 another for dx; where they are many the sum is, and adjoints lie
 * over their logits.
 */
#include "classifier.h"
#include "gemm.h"
#include "half.h"
#include "sums.h"
#include "tiles.h"

/* Logits of a row become their adjoint; returns the loss of the row.  The
 * label's own term is taken before it is overwritten. */
static inline float
ckr_classifier_row(float *z, int64_t n, int64_t label, float g)
{
	float m, sum, own;

	if (label < 0) {
		memset(z, 0, (size_t)n * sizeof *z);
		return 0.0f;
	}
	m = ckr_max_of(z, n);
	own = z[label];
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		z[j] = ckr_exp(z[j] - m);
	sum = ckr_sum(z, n);
	m += ckr_log(sum);
	sum = g / sum;
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		z[j] *= sum;
	z[label] -= g;
	return m - own;
}

static inline void
ckr_add_columns(float *y, const struct ckr_half *d, int64_t rows, int64_t n,
                int first, const struct ckr_env *env)
{
	CKR_SHARE(rows * n)
	for (int64_t j0 = 0; j0 < n; j0 += 256) {
		int64_t w = n - j0 < 256 ? n - j0 : 256;
		float s[256] = { 0 }, part[256];

		for (int64_t i = 0; i < rows; i++) {
			const float *row = ckr_row(part, d->data, d->type,
			                           i * d->ld + j0, w);

#pragma omp simd
			for (int64_t j = 0; j < w; j++)
				s[j] += row[j];
		}
		for (int64_t j = 0; j < w; j++)
			y[j0 + j] = first ? s[j] : y[j0 + j] + s[j];
	}
}

/* Rows of the chunk from row `at` on: as many as have place behind the adjoints
 * that are kept, theirs too, 16 bits each. */
static inline int64_t
ckr_classifier_chunk(const struct ckr_classifier *c, int64_t at)
{
	int64_t rows = ckr_least(c->rows - at, c->most);

	return c->keep ? ckr_least(rows, (c->rows - at + 2 * c->chunk) / 3)
	               : rows;
}

/* y = op(a) op(b), or that added to y: product 0 .. 2. */
static inline void
ckr_classifier_product(const struct ckr_classifier *c, int product, int ta,
                       int tb, int64_t m, int64_t n, int64_t k,
                       struct ckr_half a, struct ckr_half b, struct ckr_half y,
                       int more, float *workspace, const struct ckr_env *env)
{
	const struct ckr_classifier_tile *t = &c->tile[product];
	struct ckr_half_product p = { .ta = ta, .tb = tb, .m = m, .n = n,
		.k = k, .rows = t->rows, .cols = t->cols, .depth = t->depth,
		.alpha = 1.0f, .a = a, .b = b, .y = y };

	if (more)
		p.acc = y;
	if (a.type != CKR_F32 || b.type != CKR_F32 || y.type != CKR_F32)
		ckr_half_matmul(&p, c->thread, workspace + c->tiles, env);
	else
		env->sgemm(ta, tb, m, n, k, 1.0f, a.data, a.ld, b.data, b.ld,
		           more ? 1.0f : 0.0f, y.data, y.ld);
}

/* The matrix from element `at` of a row on. */
static inline struct ckr_half
ckr_half_from(struct ckr_half x, int64_t at)
{
	x.data = ckr_item(x.data, x.type, at);
	return x;
}

/* Classes that products take at a time. */
static inline int64_t
ckr_classifier_slice(const struct ckr_classifier *c, const struct ckr_env *env)
{
	return c->slice && env->bgemm ? c->slice : c->classes;
}

/* Weights of n classes from class j on: as they lie, or rounded. */
static inline struct ckr_half
ckr_classifier_weights(const struct ckr_classifier *c, struct ckr_half w,
                       int64_t j, int64_t n, float *workspace,
                       const struct ckr_env *env)
{
	int64_t rows = c->tb ? n : c->dim, cols = c->tb ? c->dim : n;
	void *to = workspace + c->weights;

	w = ckr_half_from(w, c->tb ? j * w.ld : j);
	if (!c->slice || !env->bgemm)
		return w;
	CKR_SHARE(rows * cols)
	for (int64_t i = 0; i < rows; i++)
		ckr_narrow(to, CKR_BF16, i * cols,
		           (const float *)w.data + i * w.ld, cols);
	return (struct ckr_half){ to, CKR_BF16, cols, { 0 } };
}

/* z = x w^T, or that added to it. */
static inline void
ckr_classifier_logits(const struct ckr_classifier *c, struct ckr_half z,
                      struct ckr_half x, struct ckr_half w, int64_t rows,
                      int more, float *workspace, const struct ckr_env *env)
{
	int64_t step = ckr_classifier_slice(c, env);

	for (int64_t j = 0; j < c->classes; j += step) {
		int64_t n = ckr_least(step, c->classes - j);

		ckr_classifier_product(
			c, 0, 0, c->tb, rows, n, c->dim, x,
			ckr_classifier_weights(c, w, j, n, workspace, env),
			ckr_half_from(z, j), more, workspace, env);
	}
}

/* A float32 sum to where it belongs, unless it is there. */
static inline void
ckr_classifier_round(void *y, int type, const float *x, int64_t n,
                     const struct ckr_env *env)
{
	if (!y || y == x)
		return;
	CKR_SHARE(n)
	for (int64_t i = 0; i < n; i += CKR_SMALL)
		ckr_narrow(y, type, i, x + i, ckr_least(n - i, CKR_SMALL));
}

/* dx = d w. */
static inline void
ckr_classifier_dx(const struct ckr_classifier *c, struct ckr_half dx,
                  struct ckr_half d, struct ckr_half w, int64_t rows,
                  float *workspace, const struct ckr_env *env)
{
	int64_t step = ckr_classifier_slice(c, env);
	struct ckr_half sum = { workspace + c->dx, CKR_F32, c->dim, { 0 } };

	if (step == c->classes)
		sum = dx;
	for (int64_t j = 0; j < c->classes; j += step) {
		int64_t n = ckr_least(step, c->classes - j);

		ckr_classifier_product(
			c, 1, 0, !c->tb, rows, c->dim, n, ckr_half_from(d, j),
			ckr_classifier_weights(c, w, j, n, workspace, env), sum,
			j > 0, workspace, env);
	}
	ckr_classifier_round(dx.data, dx.type, sum.data, rows * c->dim, env);
}

/* dw = d^T x, or x^T d, or that added to it. */
static inline void
ckr_classifier_dw(const struct ckr_classifier *c, struct ckr_half dw,
                  struct ckr_half d, struct ckr_half x, int64_t rows, int more,
                  float *workspace, const struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim;

	ckr_classifier_product(c, 2, 1, 0, c->tb ? n : k, c->tb ? k : n, rows,
	                       c->tb ? d : x, c->tb ? x : d, dw, more,
	                       workspace, env);
}

/* Where adjoints of the rows from `at` on go, whose logits are z. */
static inline struct ckr_half
ckr_classifier_adjoints(const struct ckr_classifier *c, float *z, void *all,
                        int64_t at)
{
	int64_t n = c->classes;

	if (c->x != CKR_BF16)
		return (struct ckr_half){ z, CKR_F32, n, { 0 } };
	if (!c->keep)
		return (struct ckr_half){ z, c->x, 2 * n, { 0 } };
	return (struct ckr_half){ (uint16_t *)all + at * n, c->x, n, { 0 } };
}

/* Rows of logits to losses and adjoints, which are also kept in `all`. */
static inline void
ckr_classifier_rows(const struct ckr_classifier *c, float *z, float *each,
                    void *all, const struct ckr_labels *l, int64_t at,
                    int64_t rows, float g, struct ckr_env *env)
{
	int64_t n = c->classes;

	CKR_SHARE(rows * n)
	for (int64_t i = 0; i < rows; i++) {
		int64_t label = ckr_label(l, at + i, env);
		float wc = ckr_label_weight(l, label);

		each[i] = wc * ckr_classifier_row(z + i * n, n, label, g * wc);
		if (c->keep)
			ckr_narrow(all, c->x, (at + i) * n, z + i * n, n);
		else if (c->x == CKR_BF16)
			ckr_narrow_over(z + i * n, c->x, n);
	}
}

/* A gradient of no rows. */
static inline void
ckr_classifier_none(void *y, int type, int64_t n)
{
	if (y)
		ckr_zeros(y, type, n);
}

void
ckr_classify(const struct ckr_classifier *c, float *loss, void *dx, void *dw,
             void *dbias, const void *x, const void *w,
             const struct ckr_labels *l, const void *bias, float *workspace,
             struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim, ld = c->tb ? k : n, rows;
	int full = c->x == CKR_F32, late = c->keep && c->x == CKR_BF16;
	struct ckr_half zs = { NULL, CKR_F32, n, { 0 } }, d;
	struct ckr_half ws = { (void *)w, c->w, ld, { 0 } };
	struct ckr_half sums = { full ? dw : workspace + c->dw, CKR_F32, ld,
		{ 0 } };
	struct ckr_half xs = { (void *)x, c->x, k, { 0 } };
	struct ckr_half dxs = { dx, c->x, k, { 0 } };
	float *each = workspace + c->each;
	float *db = full ? dbias : workspace + c->db;
	double sum = 0, weight = 0;
	float g = c->seed;

	if (c->rows == 0) {
		ckr_classifier_none(dw, c->x, n * k);
		ckr_classifier_none(dbias, c->x, n);
		dw = dbias = NULL;
	}
	for (int64_t i = 0; i < c->rows; i++)
		weight += (double)ckr_label_weight(l, ckr_label(l, i, env));
	if (c->reduction == 1)
		g /= (float)weight;
	if (bias)
		bias = ckr_row(workspace + c->bias_at, bias, c->bias, 0, n);
	for (int64_t i0 = 0; i0 < c->rows; i0 += rows) {
		float *z;

		rows = ckr_classifier_chunk(c, i0);
		z = each - rows * n;
		zs.data = z;
		if (bias)
			ckr_prefill(z, bias, NULL, rows, n, env);
		ckr_classifier_logits(c, zs, xs, ws, rows, bias != NULL,
		                      workspace, env);
		d = ckr_classifier_adjoints(c, z, workspace, i0);
		ckr_classifier_rows(c, z, each, workspace, l, i0, rows, g,
		                    env);
		for (int64_t i = 0; i < rows; i++)
			sum += (double)each[i];
		if (dx && !late)
			ckr_classifier_dx(c, dxs, d, ws, rows, workspace, env);
		if (dw && !c->keep)
			ckr_classifier_dw(c, sums, d, xs, rows, i0 > 0,
			                  workspace, env);
		if (dbias)
			ckr_add_columns(db, &d, rows, n, i0 == 0, env);
		xs = ckr_half_from(xs, rows * k);
		if (dx && !late)
			dxs = ckr_half_from(dxs, rows * k);
	}
	d = (struct ckr_half){ workspace, c->x, n, { 0 } };
	xs.data = (void *)x;
	if (dx && late)
		ckr_classifier_dx(c, dxs, d, ws, c->rows, workspace, env);
	if (dw && c->keep)
		ckr_classifier_dw(c, (struct ckr_half){ dw, c->x, ld, { 0 } },
		                  d, xs, c->rows, 0, workspace, env);
	else
		ckr_classifier_round(dw, c->x, sums.data, n * k, env);
	ckr_classifier_round(dbias, c->x, db, n, env);
	if (loss)
		*loss = (float)(c->reduction == 1 ? sum / weight : sum);
}
