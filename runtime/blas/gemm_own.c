/* Our own matrix product, for small models, and for machines without oneDNN and
 * OpenBLAS.
 *
 * The usual blocking (Goto and van de Geijn, "Anatomy of High-Performance
 * Matrix Multiplication", 2008): op(B) is packed into panels of NR columns by
 * KC rows, op(A) into panels of MR rows, and a micro-kernel keeps an MR x NR
 * tile of C in registers.  Edges are padded with zeros, so that there is one
 * kernel per instruction set: AVX-512 14 x 32, AVX2 6 x 16, plain C 4 x 8.
 *
 * Threads get disjoint parts of C and pack for themselves.  Every element of
 * C is summed in the same order whatever part it falls into: the bits do not
 * depend on the number of threads.
 */
#include "runtime/blas/gemm.h"

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
	KC = 256, MC = 168, NC = 1024,  /* multiples of every MR and NR */
	MAX_MR = 14, MAX_NR = 32, MAX_TILE = MAX_MR * MAX_NR,
	PACK_A = MC * KC, PACK_B = NC * KC,
	PACK_BYTES = (PACK_A + PACK_B) * (int)sizeof(float)
};
_Static_assert(MC % 14 == 0 && MC % 6 == 0 && MC % 4 == 0, "panels of A");
_Static_assert(NC % 32 == 0, "panels of B");

/* tile[mr][nr] = sum over p of a[p][mr] b[p][nr] */
typedef void micro_fn(int64_t k, const float *a, const float *b, float *tile);

struct isa {
	const char *name;
	int mr, nr;
	micro_fn *micro;
};

static void
micro_plain(int64_t k, const float *a, const float *b, float *tile)
{
	float c[4][8] = { { 0 } };

	for (int64_t p = 0; p < k; p++, a += 4, b += 8)
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 8; j++)
				c[i][j] += a[i] * b[j];
	memcpy(tile, c, sizeof(c));
}

#if defined(__x86_64__)

/* Accumulators are named one by one: gcc keeps an indexed array of vectors
 * on the stack. */
#define ROWS6(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define ROWS14(X) ROWS6(X) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

__attribute__((target("avx512f")))
static void
micro_avx512(int64_t k, const float *a, const float *b, float *tile)
{
#define ZERO(i) __m512 l##i = _mm512_setzero_ps(), h##i = l##i;
#define ADD(i) \
	x = _mm512_set1_ps(a[i]); \
	l##i = _mm512_fmadd_ps(x, lo, l##i); \
	h##i = _mm512_fmadd_ps(x, hi, h##i);
#define OUT(i) \
	_mm512_storeu_ps(tile + 32 * i, l##i); \
	_mm512_storeu_ps(tile + 32 * i + 16, h##i);
	ROWS14(ZERO)
	for (int64_t p = 0; p < k; p++, a += 14, b += 32) {
		__m512 lo = _mm512_loadu_ps(b), hi = _mm512_loadu_ps(b + 16), x;

		ROWS14(ADD)
	}
	ROWS14(OUT)
#undef ZERO
#undef ADD
#undef OUT
}

__attribute__((target("avx2,fma")))
static void
micro_avx2(int64_t k, const float *a, const float *b, float *tile)
{
#define ZERO(i) __m256 l##i = _mm256_setzero_ps(), h##i = l##i;
#define ADD(i) \
	x = _mm256_broadcast_ss(a + i); \
	l##i = _mm256_fmadd_ps(x, lo, l##i); \
	h##i = _mm256_fmadd_ps(x, hi, h##i);
#define OUT(i) \
	_mm256_storeu_ps(tile + 16 * i, l##i); \
	_mm256_storeu_ps(tile + 16 * i + 8, h##i);
	ROWS6(ZERO)
	for (int64_t p = 0; p < k; p++, a += 6, b += 16) {
		__m256 lo = _mm256_loadu_ps(b), hi = _mm256_loadu_ps(b + 8), x;

		ROWS6(ADD)
	}
	ROWS6(OUT)
#undef ZERO
#undef ADD
#undef OUT
}

#endif

static const struct isa isa_plain = { "plain C", 4, 8, micro_plain };
#if defined(__x86_64__)
static const struct isa isa_avx2 = { "avx2", 6, 16, micro_avx2 };
static const struct isa isa_avx512 = { "avx512", 14, 32, micro_avx512 };
#endif

static const struct isa *
choose_isa(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return &isa_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return &isa_avx2;
#endif
	return &isa_plain;
}

const char *
gemm_own_isa(void)
{
	return choose_isa()->name;
}

/* ---- memory for packing ---- */

/* Idle buffers, shared by all threads of the process.  Each begins with the
 * next one's address while it is idle. */
static struct {
	pthread_mutex_t lock;
	void **first;
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* NULL: all are in use. */
static void *
borrow_buffer(void)
{
	void **p;

	pthread_mutex_lock(&idle.lock);
	p = idle.first;
	if (p)
		idle.first = *p;
	pthread_mutex_unlock(&idle.lock);
	return p;
}

static void
return_buffer(void *buffer)
{
	void **p = buffer;

	pthread_mutex_lock(&idle.lock);
	*p = idle.first;
	idle.first = p;
	pthread_mutex_unlock(&idle.lock);
}

int
gemm_own_add_buffers(int n)
{
	for (int i = 0; i < n; i++) {
		void *p = mmap(NULL, PACK_BYTES, PROT_READ | PROT_WRITE,
		               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return i;
		memset(p, 0, PACK_BYTES);
		return_buffer(p);
	}
	return n;
}

void
gemm_own_remove_buffers(int n)
{
	void *p;

	while (n-- > 0 && (p = borrow_buffer()))
		munmap(p, PACK_BYTES);
}

/* ---- blocks ---- */

struct gemm_job {
	const struct isa *isa;
	int ta, tb;
	int64_t m, n, k;
	float alpha, beta;
	const float *a, *b;
	int64_t lda, ldb;
	float *c;
	int64_t down, right;            /* from an element of C to the next */
};

/* to[p][r] = x[r][p] of n rows, which lie ld apart. */
static void
pack_transposed(float *to, int width, const float *x, int64_t ld, int n,
                int64_t depth)
{
	int r = 0;

#if defined(__x86_64__)
	for (; r + 4 <= n; r += 4) {
		const float *from = x + r * ld;
		int64_t p = 0;

		for (; p + 4 <= depth; p += 4) {
			float *row = to + p * width + r;
			__m128 a = _mm_loadu_ps(from + p);
			__m128 b = _mm_loadu_ps(from + ld + p);
			__m128 c = _mm_loadu_ps(from + 2 * ld + p);
			__m128 d = _mm_loadu_ps(from + 3 * ld + p);

			_MM_TRANSPOSE4_PS(a, b, c, d);
			_mm_storeu_ps(row, a);
			_mm_storeu_ps(row + width, b);
			_mm_storeu_ps(row + 2 * width, c);
			_mm_storeu_ps(row + 3 * width, d);
		}
		for (; p < depth; p++)
			for (int i = 0; i < 4; i++)
				to[p * width + r + i] = from[i * ld + p];
	}
#endif
	for (; r < n; r++)
		for (int64_t p = 0; p < depth; p++)
			to[p * width + r] = x[r * ld + p];
}

/* Panels of `width` rows of op(X): to[panel][p][width], zeros at the end.  X is
 * read along its rows; `across`: op(X)'s rows are X's columns. */
static void
pack_panels(float *to, int width, const float *x, int64_t ld, bool across,
            int64_t rows, int64_t depth)
{
	for (int64_t i = 0; i < rows; i += width, to += width * depth) {
		int n = rows - i < width ? (int)(rows - i) : width;

		if (!across)
			pack_transposed(to, width, x + i * ld, ld, n, depth);
		for (int64_t p = 0; across && p < depth; p++)
			memcpy(to + p * width, x + p * ld + i,
			       (size_t)n * sizeof *to);
		for (int64_t p = 0; n < width && p < depth; p++)
			memset(to + p * width + n, 0,
			       (size_t)(width - n) * sizeof *to);
	}
}

/* Element (i, j) of the tile goes to c[i * down + j * right]. */
static void
merge_tile(const float *tile, int nr, int64_t rows, int64_t cols, float alpha,
           float beta, float *c, int64_t down, int64_t right)
{
	for (int64_t i = 0; i < rows; i++, tile += nr, c += down) {
		if (right == 1 && beta == 0 && alpha == 1)
			memcpy(c, tile, (size_t)cols * sizeof *c);
		else if (beta == 0)
			for (int64_t j = 0; j < cols; j++)
				c[j * right] = alpha * tile[j];
		else
			for (int64_t j = 0; j < cols; j++)
				c[j * right] = beta * c[j * right]
				               + alpha * tile[j];
	}
}

/* Add the product of a packed block of A and one of B to C at (i0, j0). */
static void
multiply_block(const struct gemm_job *g, const float *pa, const float *pb,
               int64_t i0, int64_t mc, int64_t j0, int64_t nc, int64_t kc,
               float beta)
{
	_Alignas(64) float tile[MAX_TILE];
	int mr = g->isa->mr, nr = g->isa->nr;

	for (int64_t j = 0; j < nc; j += nr)
		for (int64_t i = 0; i < mc; i += mr) {
			g->isa->micro(kc, pa + i * kc, pb + j * kc, tile);
			merge_tile(tile, nr, mc - i < mr ? mc - i : mr,
			           nc - j < nr ? nc - j : nr, g->alpha, beta,
			           g->c + (i0 + i) * g->down
			           + (j0 + j) * g->right, g->down, g->right);
		}
}

static int64_t
min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Packing buffers and block sizes. */
struct packing {
	float *a, *b;
	int64_t mc, nc;
};

/* The part of g that one thread computes.  How an element is summed depends
 * on KC alone, not on the other sizes of a block. */
static void
compute_packed(const struct gemm_job *g, const struct packing *to)
{
	for (int64_t j = 0; j < g->n; j += to->nc) {
		int64_t nc = min_i64(g->n - j, to->nc);

		for (int64_t p = 0; p < g->k; p += KC) {
			int64_t kc = min_i64(g->k - p, KC);

			pack_panels(to->b, g->isa->nr,
			            g->b + (g->tb ? j * g->ldb + p
			                    : p * g->ldb + j),
			            g->ldb, !g->tb, nc, kc);
			for (int64_t i = 0; i < g->m; i += to->mc) {
				int64_t mc = min_i64(g->m - i, to->mc);

				pack_panels(to->a, g->isa->mr,
				            g->a + (g->ta ? p * g->lda + i
				                    : i * g->lda + p),
				            g->lda, g->ta, mc, kc);
				multiply_block(g, to->a, to->b, i, mc, j, nc,
				               kc, p ? 1 : g->beta);
			}
		}
	}
}

/* Packed one panel at a time, on the stack. */
static void
compute_unpacked(const struct gemm_job *g)
{
	_Alignas(64) float a[MAX_MR * KC], b[MAX_NR * KC];

	compute_packed(g, &(struct packing){ a, b, g->isa->mr, g->isa->nr });
}

static void
compute_part(const struct gemm_job *g)
{
	float *buffer = borrow_buffer();

	if (!buffer) {
		compute_unpacked(g);
		return;
	}
	compute_packed(g, &(struct packing){ buffer, buffer + PACK_A, MC, NC });
	return_buffer(buffer);
}

/* For an empty sum: C = beta C. */
static void
scale_result(const struct gemm_job *g)
{
	for (int64_t i = 0; i < g->m; i++)
		for (int64_t j = 0; j < g->n; j++) {
			float *c = g->c + i * g->down + j * g->right;

			*c = g->beta == 0 ? 0 : g->beta * *c;
		}
}

/* ---- threads ---- */

static int64_t
rounded_share(int64_t n, int64_t parts, int64_t tile)
{
	int64_t each = (n + parts - 1) / parts;

	return (each + tile - 1) / tile * tile;
}

/* How to cut C into rows x cols parts: least work of the busiest thread,
 * counting packing as if an element cost what 16 products do. */
static void
choose_grid(const struct gemm_job *g, int threads, int64_t *rows, int64_t *cols)
{
	double best = 0;

	for (int r = 1; r <= threads; r++) {
		int64_t pr = rounded_share(g->m, r, g->isa->mr);
		int64_t pc = rounded_share(g->n, threads / r, g->isa->nr);
		double cost = (double)pr * (double)pc
		              + 16 * ((double)pr + (double)pc);

		if (r == 1 || cost < best) {
			best = cost;
			*rows = pr;
			*cols = pc;
		}
	}
}

static struct gemm_job
sub_job(const struct gemm_job *g, int64_t i, int64_t rows, int64_t j,
        int64_t cols)
{
	struct gemm_job s = *g;

	s.m = min_i64(g->m - i, rows);
	s.n = min_i64(g->n - j, cols);
	s.a += g->ta ? i : i * g->lda;
	s.b += g->tb ? j * g->ldb : j;
	s.c += i * g->down + j * g->right;
	return s;
}

/* C^T = op(B)^T op(A)^T: every element is the same sum. */
static struct gemm_job
transposed(const struct gemm_job *g)
{
	return (struct gemm_job){ g->isa, !g->tb, !g->ta, g->n, g->m, g->k,
		g->alpha, g->beta, g->b, g->a, g->ldb, g->lda, g->c, g->right,
		g->down };
}

void
gemm_own(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
         const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
         float *c, int64_t ldc)
{
	struct gemm_job g = { choose_isa(), ta, tb, m, n, k, alpha, beta,
		a, b, lda, ldb, c, ldc, 1 };
	int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
	int64_t rows, cols, across, all;

	if (m <= 0 || n <= 0)
		return;
	if (k <= 0 || alpha == 0) {
		scale_result(&g);
		return;
	}
	/* a tile has more columns than rows */
	if (n < m && 2 * n <= g.isa->nr)
		g = transposed(&g);
	rows = g.m;
	cols = g.n;
	if (threads > 1 && (double)m * (double)n * (double)k > 3e5)
		choose_grid(&g, threads, &rows, &cols);
	across = (g.n + cols - 1) / cols;
	all = (g.m + rows - 1) / rows * across;
	if (all == 1) {
		compute_part(&g);
		return;
	}
#pragma omp parallel for schedule(static) num_threads(threads)
	for (int64_t t = 0; t < all; t++) {
		struct gemm_job s = sub_job(&g, t / across * rows, rows,
		                            t % across * cols, cols);

		compute_part(&s);
	}
}
