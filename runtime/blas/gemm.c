/* Selection of the library for matrix products.
 *
 * Libraries are loaded when the model is opened: our own kernel for small
 * products; else oneDNN, else OpenBLAS, else our own again, so that a compiled
 * model needs none of them.  A symbol once
 * found is kept for the whole process: sgemm has no argument that could carry
 * it, and a library cannot be unloaded safely anyway.
 *
 * Parts of C are divided among threads here, see run_parts.  oneDNN and
 * OpenBLAS's OpenMP flavour run on one thread inside a parallel region; the
 * pthread flavour brings threads of its own, which fight with ours (measured:
 * five times slower steps), and is told to use one while a step runs.  Before
 * and after, its threads are the caller's business.
 * OPENBLAS_CORETYPE and the like are the user's: they are not touched, but the
 * kernel that results is told.
 */
#include "runtime/blas/gemm.h"
#include "runtime/blas/parts.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef int onednn_sgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k,
                            float alpha, const float *a, int64_t lda,
                            const float *b, int64_t ldb, float beta, float *c,
                            int64_t ldc);
typedef int onednn_bgemm_fn(char ta, char tb, int64_t m, int64_t n, int64_t k,
                            float alpha, const uint16_t *a, int64_t lda,
                            const uint16_t *b, int64_t ldb, float beta,
                            float *c, int64_t ldc);
typedef void cblas_sgemm_fn(int order, int ta, int tb, int m, int n, int k,
                            float alpha, const float *a, int lda,
                            const float *b, int ldb, float beta, float *c,
                            int ldc);

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

struct onednn_version {
	int major, minor, patch;
};

/* Written under the lock, before any product is computed. */
static struct {
	pthread_mutex_t lock;
	onednn_sgemm_fn *onednn;
	onednn_bgemm_fn *onednn_bf16;   /* NULL: not in this build or not
	                                 * on this processor */
	bool onednn_lacks_bf16;         /* not in this build */
	void *onednn_handle;
	cblas_sgemm_fn *openblas;
	char onednn_text[64], openblas_text[128];
	bool openblas_alone;            /* pthread flavour */
	bool openblas_slow;
	int (*openblas_get_threads)(void);
	void (*openblas_set_threads)(int);
	/* these two change with every step */
	int users, threads_before;
} loaded = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Degenerate products, which libraries treat in different ways. */
static bool
run_degenerate(int64_t m, int64_t n, int64_t k, float alpha, float beta,
               float *c, int64_t ldc)
{
	if (m > 0 && n > 0 && k > 0 && alpha != 0)
		return false;
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
	return true;
}

/* C[m,n] = alpha op(A) op(B) + beta C by one library on one thread. */
typedef void part_fn(int ta, int tb, int64_t m, int64_t n, int64_t k,
                     float alpha, const float *a, int64_t lda, const float *b,
                     int64_t ldb, float beta, float *c, int64_t ldc);

static void
onednn_part(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
            const float *a, int64_t lda, const float *b, int64_t ldb,
            float beta, float *c, int64_t ldc)
{
	/* it refuses only sizes that no caller has; then ours must do */
	if (loaded.onednn(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a,
	                  lda, b, ldb, beta, c, ldc))
		gemm_own(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void
openblas_part(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb,
              float beta, float *c, int64_t ldc)
{
	loaded.openblas(ROW_MAJOR, ta ? TRANS : NO_TRANS,
	                tb ? TRANS : NO_TRANS, (int)m, (int)n, (int)k, alpha,
	                a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

/* Use one thread from here on, also if the caller is a thread of another
 * OpenMP.  Returns the argument for restore_threads. */
static int
one_thread(void)
{
	int before = omp_get_max_threads();

	if (before > 1)
		omp_set_num_threads(1);
	return before;
}

static void
restore_threads(int before)
{
	if (before > 1)
		omp_set_num_threads(before);
}

static void
bgemm_onednn(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
             const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb,
             float beta, float *c, int64_t ldc)
{
	int before;

	if (run_degenerate(m, n, k, alpha, beta, c, ldc))
		return;
	before = one_thread();
	loaded.onednn_bf16(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a,
	                   lda, b, ldb, beta, c, ldc);
	restore_threads(before);
}

static bool
has_bf16_units(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx512bf16");
#else
	return false;
#endif
}

/* Divide parts of C among the OpenMP threads.  Libraries left to themselves
 * divide even the sums of a product among as many threads as there are, and
 * round differently with each number; the parts depend on the shape alone. */
static void
run_parts(part_fn *fn, int ta, int tb, int64_t m, int64_t n, int64_t k,
          float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
          float beta, float *c, int64_t ldc)
{
	struct gemm_parts p = gemm_parts_of(ta, tb, m, n, k);
	int64_t down = (m + p.rows - 1) / p.rows;
	int64_t all = (n + p.cols - 1) / p.cols * down;
	int before = all == 1 ? one_thread() : 1;

#pragma omp parallel for schedule(dynamic) if (all > 1)
	for (int64_t t = 0; t < all; t++) {
		int64_t i = t % down * p.rows, j = t / down * p.cols;

		fn(ta, tb, m - i < p.rows ? m - i : p.rows,
		   n - j < p.cols ? n - j : p.cols, k, alpha,
		   a + i * (ta ? 1 : lda), lda, b + j * (tb ? ldb : 1), ldb,
		   beta, c + i * ldc + j, ldc);
	}
	restore_threads(before);
}

static void
gemm_onednn(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
            const float *a, int64_t lda, const float *b, int64_t ldb,
            float beta, float *c, int64_t ldc)
{
	if (!run_degenerate(m, n, k, alpha, beta, c, ldc))
		run_parts(onednn_part, ta, tb, m, n, k, alpha, a, lda, b, ldb,
		          beta, c, ldc);
}

static void
gemm_openblas(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb,
              float beta, float *c, int64_t ldc)
{
	if (run_degenerate(m, n, k, alpha, beta, c, ldc))
		return;
	if (m > INT_MAX || n > INT_MAX || k > INT_MAX || lda > INT_MAX
	    || ldb > INT_MAX || ldc > INT_MAX)
		gemm_own(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	else
		run_parts(openblas_part, ta, tb, m, n, k, alpha, a, lda, b, ldb,
		          beta, c, ldc);
}

/* ckr_env.sgemm_one of each */
#define ONE(name) \
	static void \
	name##_one(int ta, int tb, int64_t m, int64_t n, int64_t k, \
	           float alpha, const float *a, int64_t lda, const float *b, \
	           int64_t ldb, float beta, float *c, int64_t ldc) \
	{ \
		int before = one_thread(); \
\
		name(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
		restore_threads(before); \
	}
ONE(gemm_onednn)
ONE(gemm_openblas)
ONE(gemm_own)
#undef ONE

/* ckr_env.sgemm_tile */
static void
gemm_onednn_tile(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *a, int64_t lda, const float *b, int64_t ldb,
                 float beta, float *c, int64_t ldc)
{
	int before;

	if (run_degenerate(m, n, k, alpha, beta, c, ldc))
		return;
	before = one_thread();
	onednn_part(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	restore_threads(before);
}

/* oneDNN 2 has no bf16 products below AVX-512: it returns "unimplemented" and
 * leaves C as it was. */
static bool
onednn_multiplies_bf16(void)
{
	static const uint16_t two = 0x4000;
	float product = 0;

	return loaded.onednn_bf16
		&& !loaded.onednn_bf16('N', 'N', 1, 1, 1, 1, &two, 1, &two, 1,
		                       0, &product, 1)
		&& product == 4;
}

static bool
load_onednn(void)
{
	static const char *const names[] = { "libdnnl.so.3", "libdnnl.so.2",
	                                     "libdnnl.so" };
	const struct onednn_version *(*version)(void);
	void *dl = NULL;

	if (loaded.onednn)
		return true;
	for (size_t i = 0; !dl && i < sizeof(names) / sizeof(*names); i++)
		dl = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		return false;
	*(void **)&loaded.onednn = dlsym(dl, "dnnl_sgemm");
	*(void **)&loaded.onednn_bf16 = dlsym(dl, "dnnl_gemm_bf16bf16f32");
	*(void **)&version = dlsym(dl, "dnnl_version");
	if (!loaded.onednn || !version) {
		loaded.onednn = NULL;
		dlclose(dl);
		return false;
	}
	loaded.onednn_lacks_bf16 = !loaded.onednn_bf16;
	if (!onednn_multiplies_bf16())
		loaded.onednn_bf16 = NULL;
	loaded.onednn_handle = dl;
	snprintf(loaded.onednn_text, sizeof(loaded.onednn_text),
	         "onednn %d.%d.%d", version()->major, version()->minor,
	         version()->patch);
	return true;
}

/* On a processor it does not know OpenBLAS may fall back to kernels of 2006
 * (seen: "Prescott" on a server with AVX-512), a fourth of what ours do. */
static bool
is_slow(const char *core)
{
	static const char *const fast[] = { "Haswell", "Zen", "SkylakeX",
	                                    "Cooperlake", "Sapphirerapids" };

	if (!strcmp(gemm_own_isa(), "plain C"))
		return false;
	for (size_t i = 0; i < sizeof(fast) / sizeof(*fast); i++)
		if (!strcasecmp(core, fast[i]))
			return false;
	return true;
}

static bool
load_openblas(void)
{
	static const char *const names[] = { "libopenblas.so.0",
	                                     "libopenblas.so" };
	char *(*config)(void), *(*core)(void);
	int (*parallel)(void);
	void *dl = NULL;
	char version[32] = "";

	if (loaded.openblas)
		return true;
	for (size_t i = 0; !dl && i < sizeof(names) / sizeof(*names); i++)
		dl = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		return false;
	*(void **)&loaded.openblas = dlsym(dl, "cblas_sgemm");
	*(void **)&config = dlsym(dl, "openblas_get_config");
	*(void **)&core = dlsym(dl, "openblas_get_corename");
	*(void **)&parallel = dlsym(dl, "openblas_get_parallel");
	*(void **)&loaded.openblas_set_threads =
		dlsym(dl, "openblas_set_num_threads");
	*(void **)&loaded.openblas_get_threads =
		dlsym(dl, "openblas_get_num_threads");
	if (!loaded.openblas || !loaded.openblas_set_threads
	    || !loaded.openblas_get_threads) {
		loaded.openblas = NULL;
		dlclose(dl);
		return false;
	}
	/* 0: no threads, 1: pthreads, 2: OpenMP */
	loaded.openblas_alone = !parallel || parallel() != 2;
	loaded.openblas_slow = core && is_slow(core());
	if (config)
		sscanf(config(), "OpenBLAS %31s", version);
	snprintf(loaded.openblas_text, sizeof(loaded.openblas_text),
	         "openblas %s (%s kernels, %s)", version,
	         core ? core() : "unknown",
	         loaded.openblas_alone ? "split by ckr" : "openmp");
	return true;
}

void
gemm_begin(const struct gemm *g)
{
	if (g->fn != gemm_openblas || !loaded.openblas_alone)
		return;
	pthread_mutex_lock(&loaded.lock);
	if (!loaded.users++) {
		loaded.threads_before = loaded.openblas_get_threads();
		loaded.openblas_set_threads(1);
	}
	pthread_mutex_unlock(&loaded.lock);
}

void
gemm_end(const struct gemm *g)
{
	if (g->fn != gemm_openblas || !loaded.openblas_alone)
		return;
	pthread_mutex_lock(&loaded.lock);
	if (!--loaded.users)
		loaded.openblas_set_threads(loaded.threads_before);
	pthread_mutex_unlock(&loaded.lock);
}

void
gemm_release(struct gemm *g)
{
	gemm_own_remove_buffers(g->packs);
	g->packs = 0;
}

/* FLOPs.  oneDNN compiles its kernels when it is first called, 30 ms that a
 * model of small products does not win back in a thousand steps. */
static const uint64_t SMALL_PRODUCT = 1000000;

ckr_status
gemm_choose(struct gemm *g, const char *name, uint64_t largest, int threads,
            struct err *e)
{
	bool any = !name || !*name || !strcmp(name, "auto");
	bool bf16 = name && !strcmp(name, "onednn-bf16"), ok = true;

	if (any && largest <= SMALL_PRODUCT) {
		name = "own";
		any = false;
	}
	*g = (struct gemm){ .fn = NULL };
	pthread_mutex_lock(&loaded.lock);
	if ((any || bf16 || !strcmp(name, "onednn")) && load_onednn()
	    && (loaded.onednn_bf16 || !bf16)) {
		g->fn = gemm_onednn;
		g->one = gemm_onednn_one;
		g->tile = gemm_onednn_tile;
		g->onednn = loaded.onednn_handle;
		if (loaded.onednn_bf16 && (bf16 || has_bf16_units()))
			g->bf16 = bgemm_onednn;
		snprintf(g->text, sizeof(g->text), "%s%s", loaded.onednn_text,
		         g->bf16 ? ", bf16 too" : "");
	} else if ((any || !strcmp(name, "openblas")) && load_openblas()
	           && !(any && loaded.openblas_slow)) {
		g->fn = gemm_openblas;
		g->one = g->tile = gemm_openblas_one;
		snprintf(g->text, sizeof(g->text), "%s",
		         loaded.openblas_text);
	} else if (any || !strcmp(name, "own")) {
		g->fn = gemm_own;
		g->one = g->tile = gemm_own_one;
		snprintf(g->text, sizeof(g->text), "own (%s)", gemm_own_isa());
		g->packs = gemm_own_add_buffers(threads);
	} else {
		ok = false;
	}
	pthread_mutex_unlock(&loaded.lock);
	if (g->fn == gemm_own && g->packs < threads)
		return err_set(e, CKR_ENOMEM, "cannot allocate packing buffers "
		               "of matrix products for %d thread%s: %m",
		               threads,
		               threads == 1 ? "" : "s");
	if (ok)
		return CKR_OK;
	if (bf16 && loaded.onednn)
		return err_set(e, CKR_EUNSUPPORTED, "%s%s has no bf16 matrix "
		               "products%s; try: --blas onednn",
		               loaded.onednn_lacks_bf16 ? "this build of " : "",
		               loaded.onednn_text,
		               loaded.onednn_lacks_bf16 ? ""
		               : " on this processor");
	if (bf16 || !strcmp(name, "onednn") || !strcmp(name, "openblas"))
		return err_set(e, CKR_EUNSUPPORTED, "%s cannot be loaded; "
		               "install %s, or choose another library with "
		               "--blas",
		               name,
		               strcmp(name, "openblas") ? "libdnnl2"
		               : "libopenblas0-openmp");
	return err_set(e, CKR_EARG, "unknown library '%s' for matrix products; "
	               "expected auto, onednn, openblas or own", name);
}
