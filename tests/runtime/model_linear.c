/* A compiled model written by hand: linear regression, y = x w + b, with
 * AdamW.  It lets the run time be tested without the compiler.
 *
 * The plan computes `pred` three times (as pred.again and pred.again.2 before
 * the backward pass); the reference keeps it.  Variants by macro: ACCUM=2
 * gradient accumulation; SLIP, SLIP2 make the second or third `pred` differ in
 * one bit; LONE gives the third nothing to be compared with; COUNT_EARLY counts
 * in the forward pass too, as running statistics are kept; SCALED=1 says that
 * its gradients bear the loss scale; FAULTY's last kernel does with memory what
 * $FAULT says.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef FAULTY
#include <sys/mman.h>
#endif

#include "runtime/ckr_abi.h"

#ifndef ACCUM
#define ACCUM 1
#endif
#ifndef SCALED
#define SCALED 0
#endif

enum { B = 4, IN = 3, OUT = 2 };

/* pred = x w + b */
static void
k_linear(void *const *p, const int64_t *c, struct ckr_env *env)
{
	float *y = p[3];

	for (int i = 0; i < B; i++)
		memcpy(y + i * OUT, p[2], OUT * sizeof(float));
	env->sgemm(0, 0, B, OUT, IN, 1, p[0], IN, p[1], OUT, 1, y, OUT);
	(void)c;
}

#if defined(SLIP) || defined(SLIP2)
static void
k_linear_slip(void *const *p, const int64_t *c, struct ckr_env *env)
{
	float *y = p[3];

	k_linear(p, c, env);
	y[5] = nextafterf(y[5], 1e9f);
}
#endif
#ifdef SLIP
#define k_again k_linear_slip
#else
#define k_again k_linear
#endif
#ifdef SLIP2
#define k_again_2 k_linear_slip
#else
#define k_again_2 k_linear
#endif
#ifdef LONE
#define TWIN_2 -1
#else
#define TWIN_2 PRED
#endif

/* loss = scale * mean (pred - t)^2; scale is a constant of the library */
static void
k_loss(void *const *p, const int64_t *c, struct ckr_env *env)
{
	const float *y = p[0], *t = p[1], *scale = p[2];
	double s = 0;

	for (int i = 0; i < B * OUT; i++) {
		if (t[i] > 1e6f) {
			env->fault = "target out of range";
			env->fault_value = i;
			return;
		}
		s += (double)(y[i] - t[i]) * (y[i] - t[i]);
	}
	*(float *)p[3] = (float)(*scale * s / (B * OUT));
	(void)c;
}

static void
k_dpred(void *const *p, const int64_t *c, struct ckr_env *env)
{
	const float *y = p[0], *t = p[1], *scale = p[2];
	float *d = p[3], *work = p[4];

	for (int i = 0; i < B * OUT; i++) {
		work[i] = y[i] - t[i];
		d[i] = 2 * *scale * work[i] / (B * OUT) / (float)env->nmicro
		       * env->loss_scale;
	}
	(void)c;
}

/* dw is kept transposed in memory: its strides say so. */
static void
k_dw(void *const *p, const int64_t *c, struct ckr_env *env)
{
	env->sgemm(1, 0, OUT, IN, B, 1, p[1], OUT, p[0], IN, 0, p[2], IN);
	(void)c;
}

static void
k_db(void *const *p, const int64_t *c, struct ckr_env *env)
{
	const float *d = p[0];
	float *g = p[1];

	memset(g, 0, OUT * sizeof(float));
	for (int i = 0; i < B * OUT; i++)
		g[i % OUT] += d[i];
	(void)c;
	(void)env;
}

/* acc, g -> acc; c: elements */
#if ACCUM > 1
static void
k_accumulate(void *const *p, const int64_t *c, struct ckr_env *env)
{
	float *acc = p[0];
	const float *g = p[1];

	for (int64_t i = 0; i < c[0]; i++)
		acc[i] = env->micro ? acc[i] + g[i] : g[i];
}
#endif

/* p, g, m, v; c: rows, columns, g's strides */
static void
k_adamw(void *const *p, const int64_t *c, struct ckr_env *env)
{
	float *w = p[0], *m = p[2], *v = p[3], lr = env->lr * env->group.lr;
	float decay = env->group.decay >= 0 ? env->group.decay
	              : env->weight_decay;
	const float *g = p[1];

	for (int64_t i = 0; i < c[0] * c[1]; i++) {
		float d = g[i / c[1] * c[2] + i % c[1] * c[3]] * env->unscale;

		w[i] *= 1 - lr * decay;
		m[i] = env->beta1 * m[i] + (1 - env->beta1) * d;
		v[i] = env->beta2 * v[i] + (1 - env->beta2) * d * d;
		w[i] -= lr * (m[i] / env->c1)
		        / (sqrtf(v[i] / env->c2) + env->eps);
	}
}

#ifdef FAULTY
/* p[0] is the count, at byte 576 of the resident block. */
static void
do_fault(char *resident, int64_t step, const char *fault)
{
	enum { MIB = 1 << 20 };
	static volatile char own[MIB];
	char *p = NULL;

	if (!strcmp(fault, "leak"))
		p = malloc(MIB);
	if (!strcmp(fault, "small leak"))
		p = malloc(16);
	if (!strcmp(fault, "scratch")) {
		char *volatile scratch = malloc(64);

		free(scratch);
	}
	if (!strcmp(fault, "map"))
		p = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
		         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p)
		memset(p, 1, strcmp(fault, "small leak") ? MIB : 16);
	if (!strcmp(fault, "static") || (!strcmp(fault, "late") && step > 1))
		memset((char *)own, 1, MIB);
	if (!strcmp(fault, "stack"))
		memset((char *)(volatile char[MIB]){ 0 }, 1, MIB);
	if (!strcmp(fault, "behind"))
		resident[768] = 1;
}
#endif

static void
k_count(void *const *p, const int64_t *c, struct ckr_env *env)
{
	*(int64_t *)p[0] += 1;
#ifdef FAULTY
	if (getenv("FAULT"))
		do_fault((char *)p[0] - 576, *(int64_t *)p[0], getenv("FAULT"));
#endif
	(void)c;
	(void)env;
}

#ifdef COUNT_EARLY
static void
k_linear_count(void *const *p, const int64_t *c, struct ckr_env *env)
{
	k_linear(p, c, env);
	*(int64_t *)p[4] += 1;
}
#define FIRST k_linear_count, "matmul", "dense", 49, 5
#else
#define FIRST k_linear, "matmul", "dense", 0, 4
#endif

/* ---- tables ---- */

enum {
	W, BIAS, X, T, MW, VW, MB, VB, SCALE, COUNT,
	ACCW, ACCB, NSHARED,
	PRED = NSHARED, LOSS, AGAIN, DPRED, GW, GB, WORK, NEWW, NEWB, NEWGW,
	NEWGB, AGAIN2, NEWCOUNT, NTENSOR
};

#define RES(at, own) .offset = 64 * (at), .flags = CKR_RESIDENT, .ready = -1, \
	.param = own, .last = 99
#define MAT(r, c) .rank = 2, .dim = { r, c }, .stride = { c, 1 }, \
	.nbytes = 4 * (r) * (c), .dtype = CKR_F32
#define VEC(n) .rank = 1, .dim = { n }, .stride = { 1 }, .nbytes = 4 * (n), \
	.dtype = CKR_F32
#define SHARED \
	[W] = { "w", MAT(IN, OUT), .kind = CKR_PARAM, RES(0, -1) }, \
	[BIAS] = { "b", VEC(OUT), .kind = CKR_PARAM, RES(1, -1) }, \
	[X] = { "x", MAT(B, IN), .kind = CKR_INPUT, RES(2, -1) }, \
	[T] = { "target", MAT(B, OUT), .kind = CKR_INPUT, RES(3, -1) }, \
	[MW] = { "adamw.m.w", MAT(IN, OUT), .kind = CKR_STATE, RES(4, W), \
	         .state = "m" }, \
	[VW] = { "adamw.v.w", MAT(IN, OUT), .kind = CKR_STATE, RES(5, W), \
	         .state = "v" }, \
	[MB] = { "adamw.m.b", VEC(OUT), .kind = CKR_STATE, RES(6, BIAS), \
	         .state = "m" }, \
	[VB] = { "adamw.v.b", VEC(OUT), .kind = CKR_STATE, RES(7, BIAS), \
	         .state = "v" }, \
	[SCALE] = { "scale", VEC(1), .kind = CKR_CONSTANT, RES(8, -1) }, \
	[COUNT] = { "count", .kind = CKR_BUFFER, RES(9, -1), .dtype = CKR_I64, \
	            .nbytes = 8 }, \
	[ACCW] = { "grad.w", .rank = 2, .dim = { IN, OUT }, \
	           .stride = { 1, IN }, .nbytes = 24, .dtype = CKR_F32, \
	           .kind = CKR_STATE, RES(10, W), .state = "grad" }, \
	[ACCB] = { "grad.b", VEC(OUT), .kind = CKR_STATE, RES(11, BIAS), \
	         .state = "grad" }

#define TEMP(at, from, to) .offset = 64 * (at), .ready = from, .last = to, \
	.param = -1, .kind = CKR_OTHER
#define DW(own) "dw", .rank = 2, .dim = { IN, OUT }, .stride = { 1, IN }, \
	.nbytes = 24, .dtype = CKR_F32, .kind = CKR_GRAD, .param = own

#if ACCUM > 1
#define GRADS(s) \
	[GW] = { DW(-1), .twin = GW, .offset = 192, .ready = s, \
	         .last = s + 2 }, \
	[GB] = { "db", VEC(OUT), TEMP(4, s + 1, s + 3), .twin = GB }, \
	[NEWGW] = { "grad.w.1", .rank = 2, .dim = { IN, OUT }, \
	            .stride = { 1, IN }, .nbytes = 24, .dtype = CKR_F32, \
	            .kind = CKR_GRAD, .param = W, .flags = CKR_RESIDENT, \
	            .twin = NEWGW, \
	            .offset = 640, .ready = s + 2, .last = s + 4 }, \
	[NEWGB] = { "grad.b.1", VEC(OUT), .kind = CKR_GRAD, .param = BIAS, \
	            .flags = CKR_RESIDENT, .offset = 704, .ready = s + 3, \
	            .twin = NEWGB, \
	            .last = s + 5 }
#define USEW NEWGW
#define USEB NEWGB
#define SHIFT 2
#else
#define GRADS(s) \
	[GW] = { DW(W), .twin = GW, .offset = 192, .ready = s, \
	         .last = s + 2 }, \
	[GB] = { "db", VEC(OUT), .twin = GB, .offset = 256, .ready = s + 1, \
	         .last = s + 3, .kind = CKR_GRAD, .param = BIAS }, \
	[NEWGW] = { .dtype = CKR_F32, .kind = CKR_OTHER, .param = -1, \
	            .ready = -1 }, \
	[NEWGB] = { .dtype = CKR_F32, .kind = CKR_OTHER, .param = -1, \
	            .ready = -1 }
#define USEW GW
#define USEB GB
#define SHIFT 0
#endif

#define UPDATED(s) \
	[NEWW] = { "w.1", MAT(IN, OUT), .kind = CKR_OTHER, .param = -1, \
	           .twin = NEWW, \
	           .flags = CKR_RESIDENT, .offset = 0, .ready = s, \
	           .last = s }, \
	[NEWB] = { "b.1", VEC(OUT), .kind = CKR_OTHER, .param = -1, \
	           .twin = NEWB, \
	           .flags = CKR_RESIDENT, .offset = 64, .ready = s + 1, \
	           .last = s + 1 }
#ifdef COUNT_EARLY
#define COUNTED \
	[NEWCOUNT] = { "count.1", .dtype = CKR_I64, .nbytes = 8, \
	               .kind = CKR_OTHER, .param = -1, .flags = CKR_RESIDENT, \
	               .offset = 576, .twin = NEWCOUNT }
#else
#define COUNTED \
	[NEWCOUNT] = { .kind = CKR_OTHER, .param = -1, .ready = -1 }
#endif
#define LOSS_AT(at) { "loss", .dtype = CKR_F32, .nbytes = 4, \
	.kind = CKR_OTHER, .flags = CKR_OUTPUT | CKR_LOSS, .param = -1, \
	.twin = LOSS, \
	.offset = 64 * (at), .ready = 1, .last = 1 }

/* linear, loss, linear again and again, dpred, dw, db, [accumulate x 2],
 * adamw x 2, count */
static const struct ckr_tensor tensors[NTENSOR] = {
	SHARED,
	[PRED] = { "pred", MAT(B, OUT), TEMP(0, 0, 1),
	           .flags = CKR_OUTPUT, .twin = PRED },
	[LOSS] = LOSS_AT(1),
	[AGAIN] = { "pred.again", MAT(B, OUT), TEMP(2, 2, 4),
	            .twin = PRED },
	[AGAIN2] = { "pred.again.2", MAT(B, OUT), TEMP(4, 3, 3),
	             .twin = TWIN_2 },
	[DPRED] = { "dpred", MAT(B, OUT), TEMP(5, 4, 6), .twin = DPRED },
	[WORK] = { NULL, MAT(B, OUT), TEMP(3, 4, 4), .twin = WORK },
	GRADS(5), UPDATED(7 + SHIFT), COUNTED,
};
/* linear, loss, dpred, dw, db, ... */
static const struct ckr_tensor ref_tensors[NTENSOR] = {
	SHARED,
	[PRED] = { "pred", MAT(B, OUT), TEMP(0, 0, 2),
	           .flags = CKR_OUTPUT },
	[LOSS] = LOSS_AT(1),
	/* four numbers at the end, backwards and seen often: more bytes than
	 * there is memory, all within it */
	[AGAIN] = { .dtype = CKR_F32, .kind = CKR_OTHER, .param = -1,
	            .ready = -1, .last = -1, .offset = 380, .rank = 2,
	            .nbytes = 1024, .dim = { 64, 4 }, .stride = { 0, -1 } },
	[DPRED] = { "dpred", MAT(B, OUT), TEMP(2, 2, 4) },
	[WORK] = { NULL, MAT(B, OUT), TEMP(5, 2, 2) },
	[AGAIN2] = { .kind = CKR_OTHER, .param = -1, .ready = -1,
	             .last = -1 },
	GRADS(3), UPDATED(5 + SHIFT), COUNTED,
};

static const int32_t args[] = {
	X, W, BIAS, PRED,               /* 0 */
	PRED, T, SCALE, LOSS,           /* 4 */
	X, W, BIAS, AGAIN,              /* 8 */
	AGAIN, T, SCALE, DPRED, WORK,   /* 12 */
	X, DPRED, GW,                   /* 17 */
	DPRED, GB,                      /* 20 */
	W, USEW, MW, VW, NEWW,          /* 22 */
	BIAS, USEB, MB, VB, NEWB,       /* 27 */
	COUNT, -1,                      /* 32 */
	PRED, T, SCALE, DPRED, WORK,    /* 34 */
	ACCW, GW, NEWGW,                /* 39 */
	ACCB, GB, NEWGB,                /* 42 */
	X, W, BIAS, AGAIN2,             /* 45 */
	X, W, BIAS, PRED, NEWCOUNT,     /* 49 */
};
static const int64_t consts[] = { IN, OUT, 1, IN, 1, OUT, 0, 1, 6, 2 };

#define ACCUMULATE \
	{ k_accumulate, "accumulate", "g1", 39, 3, 8, 1, CKR_BACKWARD, 6, 72, \
	  1e-7, NULL, 0, 0 }, \
	{ k_accumulate, "accumulate", "g2", 42, 3, 9, 1, CKR_BACKWARD, 2, 24, \
	 1e-7, NULL, 0, 0 },
#define BACK \
	{ k_dw, "matmul", "dense", 17, 3, 0, 0, CKR_BACKWARD, 48, 104, \
	  1e-7, NULL, 0, 0 }, \
	{ k_db, "reduce_sum", "dense", 20, 2, 0, 0, CKR_BACKWARD, 8, 40, \
	  1e-7, NULL, 0, 0 },
#define UPDATE \
	{ k_adamw, "adamw", NULL, 22, 5, 0, 4, CKR_UPDATE, 60, 168, \
	  1e-7, NULL, 0, 0 }, \
	{ k_adamw, "adamw", NULL, 27, 5, 4, 4, CKR_UPDATE, 20, 56, \
	  1e-7, NULL, 0, 0 }, \
	{ k_count, "count", NULL, 32, 2, 0, 0, CKR_UPDATE, 0, 8, \
	  1e-7, NULL, 0, 0 },
#if ACCUM == 1
#undef ACCUMULATE
#define ACCUMULATE
#endif

static const struct ckr_instr steps[] = {
	{ FIRST, 0, 0, CKR_FORWARD, 48, 112, 1e-7, NULL, 0, 0 },
	{ k_loss, "mse", "mse", 4, 4, 0, 0, CKR_FORWARD, 24, 68,
	  1e-7, NULL, 0, 0 },
	{ k_again, "matmul", "dense", 8, 4, 0, 0, CKR_RECOMPUTE, 48, 112,
	  1e-7, NULL, 0, 0 },
	{ k_again_2, "matmul", "dense", 45, 4, 0, 0, CKR_RECOMPUTE, 48, 112,
	  1e-7, NULL, 0, 0 },
	{ k_dpred, "loop", "mse", 12, 5, 0, 0, CKR_BACKWARD, 24, 96,
	  1e-7, NULL, 0, 0 },
	BACK ACCUMULATE UPDATE
};
static const struct ckr_instr ref_steps[] = {
	{ FIRST, 0, 0, CKR_FORWARD, 48, 112, 1e-7, NULL, 0, 0 },
	{ k_loss, "mse", "mse", 4, 4, 0, 0, CKR_FORWARD, 24, 68,
	  1e-7, NULL, 0, 0 },
	{ k_dpred, "loop", "mse", 34, 5, 0, 0, CKR_BACKWARD, 24, 96,
	  1e-7, NULL, 0, 0 },
	BACK ACCUMULATE UPDATE
};

static const float constants[1] = { 1.5f };
static const struct ckr_hole holes[] = {
	{ 4, W, CKR_F32, 0 }, { 6, BIAS, CKR_F16, 0 },
};

const struct ckr_library ckr_library = {
	.abi = CKR_ABI_VERSION, .threads = 2, .name = "linear",
	.compiler = "by hand",
	.program = {
		{ steps, sizeof(steps) / sizeof(*steps), 7 + SHIFT, 7 + SHIFT,
		  args, consts, tensors, NTENSOR, LOSS, 384, 768, 0 },
		{ ref_steps, sizeof(ref_steps) / sizeof(*ref_steps), 5 + SHIFT,
		  5 + SHIFT, args, consts, ref_tensors, NTENSOR, LOSS, 384,
		  768, 0 },
	},
	.nshared = NSHARED, .constants = (const unsigned char *)constants,
	.constants_bytes = sizeof(constants), .optimizer = "adamw",
	.grad_accum = ACCUM, .clip_ok = 1, .loss_scaled = SCALED, .peak_bytes = 384 + 768,
	.onnx = (const unsigned char *)"HEADmiTAIL", .onnx_bytes = 10,
	.hole = holes, .nhole = 2,
};
