/* Measure this machine for a device profile.
 *
 * what    products through the library that a compiled model would use
 *         (oneDNN, else OpenBLAS, else a loop of our own), a polynomial over
 *         arrays in the first cache, a sum of two arrays larger than the
 *         caches, and an empty round of all threads
 * method  the best of several rounds, each some milliseconds; a second in all
 */
#include "passes/cost.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 5, SIDE = 1024, SMALL = 2048, LARGE = 4 << 20 };

struct team {
	int threads;
	void (*work)(void *part, int index, int threads);
	void *arg;
};

struct member {
	const struct team *team;
	pthread_t thread;
	int index;
	bool started;
};

static void *
run_member(void *arg)
{
	struct member *m = arg;

	m->team->work(m->team->arg, m->index, m->team->threads);
	return NULL;
}

/* All threads do their part; seconds from start to end. */
static double
run_team(const struct team *team)
{
	struct member *m = calloc((size_t)team->threads, sizeof *m);
	double start = pass_seconds();

	if (!m)
		return 1;
	for (int i = 1; i < team->threads; i++) {
		m[i] = (struct member){ .team = team, .index = i };
		m[i].started = !pthread_create(&m[i].thread, NULL, run_member,
		                               &m[i]);
	}
	team->work(team->arg, 0, team->threads);
	for (int i = 1; i < team->threads; i++)
		if (m[i].started)
			pthread_join(m[i].thread, NULL);
	free(m);
	return pass_seconds() - start;
}

static double
best_of(const struct team *team)
{
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double s = run_team(team);

		if (s < best)
			best = s;
	}
	return best;
}

/* ---- products ---- */

typedef int DnnlSgemm(char, char, int64_t, int64_t, int64_t, float,
                      const float *, int64_t, const float *, int64_t, float,
                      float *, int64_t);
typedef void CblasSgemm(int, int, int, int, int, int, float,
                        const float *, int, const float *, int, float,
                        float *, int);

struct gemm {
	DnnlSgemm *dnnl;
	CblasSgemm *cblas;
	void *library;
};

static void *
find(struct gemm *g, const char *const *names, const char *symbol)
{
	void *f = NULL;

	for (int i = 0; names[i] && !f; i++) {
		g->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (g->library)
			f = dlsym(g->library, symbol);
	}
	return f;
}

static struct gemm
find_gemm(void)
{
	static const char *const dnnl[] = {
		"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", NULL
	};
	static const char *const blas[] = {
		"libopenblas.so.0", "libopenblas.so", NULL
	};
	struct gemm g = { 0 };
	void *f = find(&g, dnnl, "dnnl_sgemm");

	/* POSIX's way from an object pointer to a function */
	*(void **)&g.dnnl = f;
	if (!f) {
		f = find(&g, blas, "cblas_sgemm");
		*(void **)&g.cblas = f;
	}
	return g;
}

static void
multiply(const struct gemm *g, const float *a, const float *b, float *c)
{
	if (g->dnnl) {
		g->dnnl('N', 'N', SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c,
		        SIDE);
	} else if (g->cblas) {
		g->cblas(101, 111, 111, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE,
		         0, c, SIDE);
	} else {
		for (int i = 0; i < SIDE; i++)
			for (int k = 0; k < SIDE; k++)
				for (int j = 0; j < SIDE; j++)
					c[i * SIDE + j] += a[i * SIDE + k]
						* b[k * SIDE + j];
	}
}

static double
product_rate(void)
{
	struct gemm g = find_gemm();
	size_t n = (size_t)SIDE * SIDE;
	float *a = malloc(3 * n * sizeof *a);
	double best = 1e9;

	if (!a)
		return 1e9;
	for (size_t i = 0; i < 3 * n; i++)
		a[i] = (float)(i % 97) / 97;
	for (int i = 0; i < 2 * ROUNDS; i++) {
		double start = pass_seconds(), s;

		multiply(&g, a, a + n, a + 2 * n);
		s = pass_seconds() - start;
		if (s < best)
			best = s;
	}
	free(a);
	/* the library's threads may still run: it stays loaded */
	return 2.0 * SIDE * SIDE * SIDE / best;
}

/* ---- vectors ---- */

enum { PASSES = 400, TERMS = 12 };

/* A multiplication and an addition for each of TERMS coefficients. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
static void
polynomial(float *x)
{
	typedef float vec __attribute__((vector_size(32)));
	vec *v = (vec *)x;

	for (int i = 0; i < SMALL / 8; i++) {
		vec y = v[i], z = v[i];

		for (int k = 0; k < TERMS; k++)
			y = y * z + 0.5f;
		v[i] = y * 1e-3f;
	}
}

static void
polynomials(void *arg, int index, int threads)
{
	float *x = (float *)arg + (size_t)index * SMALL;

	(void)threads;
	for (int k = 0; k < PASSES; k++)
		polynomial(x);
}

static double
vector_rate(int threads)
{
	size_t bytes = (size_t)threads * SMALL * sizeof(float);
	float *x = aligned_alloc(64, bytes);
	struct team team = { threads, polynomials, x };
	double s;

	if (!x)
		return 1e9;
	for (size_t i = 0; i < bytes / sizeof *x; i++)
		x[i] = 0.25f;
	s = best_of(&team);
	free(x);
	return 2.0 * TERMS * PASSES * SMALL * threads / s;
}

/* ---- memory ---- */

static void
add_arrays(void *arg, int index, int threads)
{
	float *a = arg, *b = a + LARGE, *c = b + LARGE;
	size_t from = (size_t)LARGE / (size_t)threads * (size_t)index;
	size_t to = index + 1 == threads ? LARGE
		: from + LARGE / (size_t)threads;

	for (size_t i = from; i < to; i++)
		c[i] = a[i] + b[i];
}

static double
memory_rate(int threads)
{
	float *a = malloc(3 * (size_t)LARGE * sizeof *a);
	struct team team = { threads, add_arrays, a };
	double s;

	if (!a)
		return 1e9;
	for (size_t i = 0; i < 3 * (size_t)LARGE; i++)
		a[i] = 1;
	s = best_of(&team);
	free(a);
	return 3.0 * LARGE * sizeof *a / s;
}

void
device_measure(struct device *d, int threads)
{
	d->product_flops = product_rate();
	d->product_flops16 = d->product_flops;
	d->vector_flops = vector_rate(threads);
	d->bandwidth = memory_rate(threads);
	/* OpenMP's threads wait nearby; a barrier is a few microseconds */
	d->launch = threads > 1 ? 3e-6 : 0.5e-6;
}
