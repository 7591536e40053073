/* The classifier end: last linear, softmax cross entropy and the gradients of
 * both, a chunk of rows at a time.
 *
 * Logits of a chunk are made by one product, turned into their own adjoint in
 * place, and used up by the products for dx and dw.  The divisor of a mean is
 * known from the labels beforehand.
 */
#ifndef CKR_CLASSIFIER_H
#define CKR_CLASSIFIER_H

struct ckr_classifier {
	int64_t rows, classes, dim, chunk;
	int tb, reduction;
	float seed;
};

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
ckr_add_columns(float *y, const float *z, int64_t rows, int64_t n, int first,
                const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (rows * n > CKR_SMALL)
	for (int64_t j0 = 0; j0 < n; j0 += 256) {
		int64_t w = n - j0 < 256 ? n - j0 : 256;
		float s[256] = { 0 };

		for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
			for (int64_t j = 0; j < w; j++)
				s[j] += z[i * n + j0 + j];
		}
		for (int64_t j = 0; j < w; j++)
			y[j0 + j] = first ? s[j] : y[j0 + j] + s[j];
	}
}

static inline void
ckr_classifier_products(const struct ckr_classifier *c, float *dx, float *dw,
                        const float *x, const float *w, const float *z,
                        int64_t rows, int first, const struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim;
	float beta = first ? 0.0f : 1.0f;

	if (dx)
		env->sgemm(0, !c->tb, rows, k, n, 1.0f, z, n, w,
		           c->tb ? k : n, 0.0f, dx, k);
	if (dw && c->tb)
		env->sgemm(1, 0, n, k, rows, 1.0f, z, n, x, k, beta, dw, k);
	else if (dw)
		env->sgemm(1, 0, k, n, rows, 1.0f, x, k, z, n, beta, dw, n);
}

/* scratch: a chunk of logits and a loss per row of it. */
static inline void
ckr_classify(const struct ckr_classifier *c, float *loss, float *dx, float *dw,
             float *dbias, const float *x, const float *w,
             const struct ckr_labels *l, const float *bias, float *scratch,
             struct ckr_env *env)
{
	int64_t n = c->classes, k = c->dim;
	float *z = scratch, *each = scratch + c->chunk * n;
	double sum = 0, weight = 0;
	float g = c->seed;

	for (int64_t i = 0; i < c->rows; i++)
		weight += (double)ckr_label_weight(l, ckr_label(l, i, env));
	if (c->reduction == 1)
		g /= (float)weight;
	for (int64_t i0 = 0; i0 < c->rows; i0 += c->chunk) {
		int64_t rows = c->rows - i0 < c->chunk ? c->rows - i0
		                                       : c->chunk;

		if (bias)
			ckr_prefill(z, bias, NULL, rows, n, env);
		env->sgemm(0, c->tb, rows, n, k, 1.0f, x + i0 * k, k, w,
		           c->tb ? k : n, bias ? 1.0f : 0.0f, z, n);
#pragma omp parallel for num_threads(env->threads) \
	if (rows * n > CKR_SMALL)
		for (int64_t i = 0; i < rows; i++) {
			int64_t label = ckr_label(l, i0 + i, env);
			float wc = ckr_label_weight(l, label);

			each[i] = wc * ckr_classifier_row(z + i * n, n, label,
			                                  g * wc);
		}
		for (int64_t i = 0; i < rows; i++)
			sum += (double)each[i];
		ckr_classifier_products(c, dx ? dx + i0 * k : NULL, dw,
			x + i0 * k, w, z, rows, i0 == 0, env);
		if (dbias)
			ckr_add_columns(dbias, z, rows, n, i0 == 0, env);
	}
	if (loss)
		*loss = (float)(c->reduction == 1 ? sum / weight : sum);
}

#endif
