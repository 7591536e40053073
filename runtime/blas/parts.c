/* Partition of a matrix product over threads, by a cost model.
 *
 * A library packs op(A) once for every column of parts and op(B) once for
 * every row of them, and few large parts leave threads idle.  Which shape is
 * best differs by half of a product's time: reading B transposed costs ten
 * times what the rest of packing does, so that products with it want few rows
 * of parts.  The nanoseconds below were fitted to some 6000 timings of
 * products of transformers and convolutional networks in 117 shapes (oneDNN
 * on one core with 512-bit vectors; the median of model over measured is
 * 0.98, nine tenths lie within a fifth).  Only their ratios matter.
 */
#include "runtime/blas/parts.h"

#include <stdbool.h>

/* Nanoseconds of one core. */
static const double PRODUCT = 0.018;            /* a product and a sum */
static const double PACK_A[2] = { 0.045, 0.01 };        /* [ta], an element */
static const double PACK_B[2] = { 0.022, 0.2 };         /* [tb] */
static const double PART = 300;                 /* a call */

/* Rows and columns of a part: multiples of the tiles of all kernels that are
 * known. */
static const int64_t ROWS[] = { 48, 64, 96, 128, 192, 256, 384, 512, 768,
                                1024, 2048 };
static const int64_t COLS[] = { 48, 96, 128, 192, 256, 384, 512, 768, 1024 };

enum {
	WHOLE = 1 << 21,        /* fewer products than that are not cut */
	LEAST = 4, MOST = 16,   /* threads that a product is cut for */
	THREAD = 100000000      /* products for each of them */
};

static double
ceil_quotient(int64_t a, int64_t b)
{
	return (double)((a + b - 1) / b);
}

/* Cost of the whole product on so many threads. */
static double
estimated_time(double work, double parts, int threads)
{
	return work / parts * ceil_quotient((int64_t)parts, threads);
}

struct gemm_parts
gemm_parts_of(int ta, int tb, int64_t m, int64_t n, int64_t k)
{
	double products = (double)m * n * k, best = 0;
	double wish = products / THREAD;
	int threads = wish < LEAST ? LEAST : wish > MOST ? MOST : (int)wish;
	struct gemm_parts p = { m, n };
	bool more_rows = true;

	if (products < WHOLE)
		return p;
	for (int i = 0; i < (int)(sizeof ROWS / sizeof *ROWS) && more_rows;
	     i++) {
		double down = ceil_quotient(m, ROWS[i]);
		bool more_cols = true;

		more_rows = ROWS[i] < m;
		for (int j = 0; j < (int)(sizeof COLS / sizeof *COLS)
		     && more_cols; j++) {
			double across = ceil_quotient(n, COLS[j]);
			double parts = down * across;
			double work = products * PRODUCT
			            + (double)m * k * across * PACK_A[!!ta]
			            + (double)n * k * down * PACK_B[!!tb]
			            + parts * PART;
			/* on two threads, on four and on many */
			double cost = estimated_time(work, parts, 2)
			            * estimated_time(work, parts, 4)
			            * estimated_time(work, parts, threads);

			more_cols = COLS[j] < n;
			if (best == 0 || cost < best) {
				best = cost;
				p = (struct gemm_parts){ ROWS[i], COLS[j] };
			}
		}
	}
	return p;
}
