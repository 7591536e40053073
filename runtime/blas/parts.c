/* Partition of a matrix product over threads, by a cost model.
 *
 * A library packs op(A) once for every column of parts and op(B) once for
 * every row of them, and few large parts leave threads idle.  Which shape is
 * best differs by half of a product's time.  The nanoseconds below were fitted
 * to timings of oneDNN on one core with 512-bit vectors: some 6000 of products
 * of transformers and convolutional networks on an Intel processor, and 2400
 * parts of 48 to 1536 rows and columns on an AMD processor, where packing
 * costs more.  Only their ratios matter.
 */
#include "runtime/blas/parts.h"

#include <stdbool.h>

/* Nanoseconds of one core. */
static const double PRODUCT = 0.0185;           /* a product and a sum */
static const double PACK_A[2][2] = { { 0.12, 0.12 }, { 0.25, 0.1 } };
static const double PACK_B[2][2] = { { 0.06, 0.16 }, { 0.13, 0.5 } };
                                                /* [ta][tb], an element */
static const double PART = 300;                 /* a call */
/* Rows of a transposed B that are multiples of 4 KiB apart lie in the same sets
 * of the first cache: packing takes so much longer, and so do products of few
 * columns, for which B is not packed. */
static const double SAME_SETS = 4.3, SAME_SETS_NARROW = 1.25;

/* Parts along a dim. */
static const int COUNTS[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 };

enum {
	NCOUNTS = sizeof COUNTS / sizeof *COUNTS,
	TILE = 16,              /* rows and columns of parts are multiples */
	NARROW = 128,           /* columns */
	SETS = 1024,            /* floats in 4 KiB */
	ROWS = 2048, COLS = 1024,       /* at most */
	WHOLE = 1 << 21,        /* fewer products than that are not cut */
	LEAST = 4, MOST = 16,   /* threads that a product is cut for */
	THREAD = 100000000      /* products for each of them */
};

static int64_t
ceil_quotient(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Of a part of so many, at most `most`. */
static int64_t
extent_of_part(int64_t all, int64_t parts, int64_t most)
{
	int64_t n = ceil_quotient(all, parts);

	n = n > most ? most : n;
	return n == all ? all : ceil_quotient(n, TILE) * TILE;
}

/* Cost of a part. */
static double
estimated_part(int ta, int tb, int64_t rows, int64_t cols, int64_t k)
{
	double product = (double)rows * cols * k * PRODUCT;
	double pack_a = (double)rows * k * PACK_A[!!ta][!!tb];
	double pack_b = (double)cols * k * PACK_B[!!ta][!!tb];

	if (tb && k % SETS == 0) {
		pack_b *= SAME_SETS;
		product *= cols <= NARROW ? SAME_SETS_NARROW : 1;
	}
	return product + pack_a + pack_b + PART;
}

struct gemm_parts
gemm_parts_of(int ta, int tb, int64_t m, int64_t n, int64_t k)
{
	double products = (double)m * n * k, best = 0;
	double wish = products / THREAD;
	int threads = wish < LEAST ? LEAST : wish > MOST ? MOST : (int)wish;
	struct gemm_parts p = { m, n };

	if (products < WHOLE)
		return p;
	for (int i = 0; i < NCOUNTS; i++) {
		int64_t rows = extent_of_part(m, COUNTS[i], ROWS);
		int64_t down = ceil_quotient(m, rows);

		if (down < COUNTS[i] && i > 0)
			continue;
		for (int j = 0; j < NCOUNTS; j++) {
			int64_t cols = extent_of_part(n, COUNTS[j], COLS);
			int64_t across = ceil_quotient(n, cols);
			int64_t parts = down * across;
			double each, cost;

			if (across < COUNTS[j] && j > 0)
				continue;
			/* on two threads, on four and on many */
			each = estimated_part(ta, tb, rows, cols, k);
			cost = each * (double)ceil_quotient(parts, 2)
			     * each * (double)ceil_quotient(parts, 4)
			     * each * (double)ceil_quotient(parts, threads);
			if (best == 0 || cost < best) {
				best = cost;
				p = (struct gemm_parts){ rows, cols };
			}
		}
	}
	return p;
}
