/* The library's convolutions against their definition: values, and the same
 * bits from every thread, of which our OpenMP need know nothing.  Skipped where
 * there is no oneDNN 2.
 */
#include "runtime/blas/conv.h"
#include "runtime/blas/gemm.h"
#include "tests/codegen/blocked.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, TIMES = 20, SKIPPED = 77, SCRATCH = 1 << 20 };

/* Sizes. */
static const struct {
	int32_t images, cin, cout;
	int32_t in[2], out[2], kernel[2], stride[2], dilation[2];
} shape[] = {
	{ 2, 16, 32, { 9, 7 }, { 7, 5 }, { 3, 3 }, { 1, 1 }, { 1, 1 } },
	{ 1, 32, 16, { 13, 14 }, { 5, 4 }, { 3, 3 }, { 2, 3 },
	  { 2, 2 } },
	{ 4, 48, 32, { 7, 7 }, { 7, 7 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
	{ 1, 3, 32, { 21, 23 }, { 8, 9 }, { 7, 7 }, { 2, 2 },
	  { 1, 1 } },
	{ 2, 16, 64, { 1, 30 }, { 1, 26 }, { 1, 5 }, { 1, 1 },
	  { 1, 1 } },
	{ 1, 128, 128, { 6, 6 }, { 4, 4 }, { 3, 3 }, { 1, 1 },
	  { 1, 1 } },
};

/* Floats, or bf16 in the same place but for the result. */
struct operands {
	float *v[3];
	int64_t n[3];
	void *scratch;
};

static const int result[] = { [CKR_CONV_Y] = 2, [CKR_CONV_DX] = 0,
                              [CKR_CONV_DW] = 1 };

/* Cut to bf16, in place. */
static void
cut(float *x, int64_t n)
{
	uint16_t *to = (uint16_t *)x;

	for (int64_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, x + i, sizeof bits);
		bits >>= 16;
		memcpy(to + i, &bits, sizeof *to);
	}
}

/* The last input's other half, where inputs lie in pairs: zeros. */
static void
clear_padding(const struct ckr_blocked *b, float *w)
{
	int64_t taps = (int64_t)b->kernel[0] * b->kernel[1];
	int64_t pair = 2 * b->block, row = (b->cin + 1) / 2 * pair;

	if (blocked_weights(b) > b->cout * b->cin * taps)
		for (int64_t i = 0; i < blocked_weights(b); i++)
			if (i % row >= row - pair && i % 2)
				w[i] = 0;
}

static struct operands
operands_of(const struct ckr_blocked *b)
{
	struct operands o = { .n = {
		(int64_t)b->images * b->cin * b->in[0] * b->in[1],
		blocked_weights(b),
		(int64_t)b->images * b->cout * b->out[0] * b->out[1] } };

	for (int k = 0; k < 3; k++) {
		uint32_t seed = 7u + (uint32_t)k;

		o.v[k] = aligned_alloc(64, ((size_t)o.n[k] + 15) / 16 * 64);
		for (int64_t i = 0; o.v[k] && i < o.n[k]; i++) {
			seed = seed * 1664525 + 1013904223;
			o.v[k][i] = (float)(seed >> 8) / (1 << 23) - 1;
		}
		if (k == 1)
			clear_padding(b, o.v[k]);
		if (b->type == CKR_BF16 && k != result[b->kind])
			cut(o.v[k], o.n[k]);
	}
	o.scratch = aligned_alloc(64, SCRATCH);
	return o;
}

static void
free_operands(struct operands *o)
{
	for (int k = 0; k < 3; k++)
		free(o->v[k]);
	free(o->scratch);
}

static int
differs(const struct ckr_blocked *b, const struct operands *got,
        const struct operands *want)
{
	int r = result[b->kind];

	for (int64_t i = 0; i < got->n[r]; i++)
		if (!(fabsf(got->v[r][i] - want->v[r][i]) <= 2e-4f)) {
			fprintf(stderr, "kind %d, cin %d, element %lld: %g, "
			        "expected %g\n", (int)b->kind, (int)b->cin,
			        (long long)i, (double)got->v[r][i],
			        (double)want->v[r][i]);
			return 1;
		}
	return 0;
}

struct job {
	struct ckr_env *env;
	int thread;
	uint32_t i;
	const struct operands *o;
};

static void *
work(void *arg)
{
	struct job *j = arg;

	for (int n = 0; n < TIMES; n++)
		j->env->conv(j->env->convs, j->thread, j->i, j->o->v[0],
		             j->o->v[1], j->o->v[2], j->o->scratch);
	return NULL;
}

/* Every thread computes job i; 1 if one is wrong or they differ. */
static int
check(struct ckr_env *env, const struct ckr_blocked *b, uint32_t i)
{
	struct operands want = operands_of(&b[i]), got[THREADS];
	struct job job[THREADS];
	pthread_t id[THREADS];
	int bad = 0;

	blocked_conv((void *)(uintptr_t)b, 0, i, want.v[0], want.v[1],
	             want.v[2], want.scratch);
	for (int t = 0; t < THREADS; t++) {
		got[t] = operands_of(&b[i]);
		job[t] = (struct job){ env, t, i, &got[t] };
		if (pthread_create(&id[t], NULL, work, &job[t]))
			abort();
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(id[t], NULL);
	for (int t = 0; t < THREADS; t++) {
		bad |= differs(&b[i], &got[t], &want);
		for (int k = 0; k < 3; k++)
			bad |= memcmp(got[t].v[k], got[0].v[k],
			              (size_t)got[0].n[k] * 4) != 0;
		if (t)
			free_operands(&got[t]);
	}
	free_operands(&got[0]);
	free_operands(&want);
	return bad;
}

int
main(void)
{
	enum { SHAPES = sizeof(shape) / sizeof(*shape), KINDS = 9,
	       N = KINDS * SHAPES };
	struct ckr_blocked b[N];
	struct ckr_env env = { .threads = THREADS };
	struct gemm gemm = { 0 };
	struct err err;
	struct convs *c;
	int bad = 0, ready = 0, halves = 0;

	for (int i = 0; i < N; i++) {
		b[i] = (struct ckr_blocked){ .kind = i % 3,
			.block = i / 3 % 3 ? 16 : 8,
			.type = i / 3 % 3 == 2 ? CKR_BF16 : CKR_F32,
			.scratch = i / 3 % 3 == 2 ? SCRATCH : 0 };
		memcpy(&b[i].images, &shape[i / KINDS], sizeof(*shape));
		if (b[i].kind == CKR_CONV_DX && b[i].cin < b[i].block)
			b[i].cin = 16;
	}
	omp_set_num_threads(THREADS);
	if (gemm_choose(&gemm, "onednn", 0, THREADS, &err) != CKR_OK)
		return SKIPPED;
	c = convs_open(gemm.onednn, b, N, THREADS, gemm.bf16 != NULL);
	if (!c)
		return SKIPPED;
	convs_fill_env(c, &env);
	for (uint32_t i = 0; i < N; i++)
		if (env.conv_ready[i]) {
			ready++;
			halves += b[i].type == CKR_BF16;
			bad += check(&env, b, i);
		}
	convs_close(c);
	printf("%d of %d convolutions prepared, %d of bf16, %d wrong\n", ready,
	       (int)N, halves, bad);
	return bad || !ready || (gemm.bf16 && !halves);
}
