/* Determinants of small matrices and their gradients by Gaussian elimination,
 * in double since terms cancel. */
#ifndef CODEGEN_RULES_KERNELS_ELIMINATE_H
#define CODEGEN_RULES_KERNELS_ELIMINATE_H

/* Gaussian elimination of a [n, n] with pivots by column: below the diagonal,
 * or with b [n, n] beside it off the diagonal.  Returns the determinant; a and
 * b are of no use if it is 0. */
CKR_LANE double
ckr_eliminate(double *a, double *b, int64_t n)
{
	double det = 1.0;

	for (int64_t k = 0; k < n; k++) {
		int64_t p = k;

		for (int64_t i = k + 1; i < n; i++)
			if (__builtin_fabs(a[i * n + k])
			    > __builtin_fabs(a[p * n + k]))
				p = i;
		if (a[p * n + k] == 0.0)
			return 0.0;
		for (int64_t j = 0; p != k && j < n; j++) {
			double t = a[p * n + j], u = b ? b[p * n + j] : 0.0;

			a[p * n + j] = a[k * n + j];
			a[k * n + j] = t;
			if (b) {
				b[p * n + j] = b[k * n + j];
				b[k * n + j] = u;
			}
		}
		det *= p == k ? a[k * n + k] : -a[k * n + k];
		for (int64_t i = b ? 0 : k + 1; i < n; i++) {
			double f = i == k ? 0.0 : a[i * n + k] / a[k * n + k];

			if (i == k)
				continue;
			for (int64_t j = k; j < n; j++)
				a[i * n + j] -= f * a[k * n + j];
			for (int64_t j = 0; b && j < n; j++)
				b[i * n + j] -= f * b[k * n + j];
		}
	}
	return det;
}

/* One cofactor of x, which exists where there is no inverse. */
CKR_LANE double
ckr_cofactor(double *a, const double *x, int64_t n, int64_t row, int64_t col)
{
	int64_t k = 0;

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			if (i != row && j != col)
				a[k++] = x[i * n + j];
	return ((row + col) & 1 ? -1.0 : 1.0) * ckr_eliminate(a, NULL, n - 1);
}

/* The determinant of x [n, n]; a has room for the matrix. */
CKR_TYPED void
ckr_det_of(ckr_t *y, const ckr_t *x, double *a, int64_t n)
{
	for (int64_t i = 0; i < n * n; i++)
		a[i] = ckr_get(x[i]);
	ckr_put(y, (float)ckr_eliminate(a, NULL, n));
}

/* dy times the cofactors, which for a regular matrix are its determinant times
 * the transpose of its inverse; a has room for two. */
CKR_TYPED void
ckr_det_grad_of(ckr_t *dx, double dy, const ckr_t *x, double *a, int64_t n)
{
	double *b = a + n * n, det;

	for (int64_t i = 0; i < n * n; i++) {
		a[i] = ckr_get(x[i]);
		b[i] = i % (n + 1) == 0;
	}
	det = ckr_eliminate(a, b, n);
	for (int64_t i = 0; det != 0.0 && i < n * n; i++)
		ckr_put(&dx[i], (float)(dy * det * b[i % n * n + i / n]
		                        / a[i % n * (n + 1)]));
	for (int64_t i = 0; det == 0.0 && i < n * n; i++)
		b[i] = ckr_get(x[i]);
	for (int64_t i = 0; det == 0.0 && i < n * n; i++)
		ckr_put(&dx[i], (float)(dy * ckr_cofactor(a, b, n, i / n,
		                                          i % n)));
}

#endif
