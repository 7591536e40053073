/* Reference interpreter: values, element-wise ops and the run of nodes. */
#include "tests/ref/interp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"
#include "runtime/support/half.h"

/* ---- values ---- */

void *
interp_need(void *p)
{
	if (p == NULL) {
		fputs("interp: out of memory\n", stderr);
		abort();
	}
	return p;
}

void
interp_group(struct interp *const *all, int n)
{
	for (int r = 0; r < n; r++) {
		all[r]->group = all;
		all[r]->rank = r;
		all[r]->ranks = n;
	}
}

void
interp_world(struct interp *const *all, int n, int ranks)
{
	for (int r = 0; r < n; r++) {
		interp_group(all + r * ranks, ranks);
		for (int k = 0; k < ranks; k++) {
			all[r * ranks + k]->world = all;
			all[r * ranks + k]->replica = r;
			all[r * ranks + k]->replicas = n;
		}
	}
}

struct interp *
interp_new(const Graph *g)
{
	struct interp *it = interp_need(calloc(1, sizeof *it));

	it->g = g;
	it->x = interp_need(calloc(g->nval, sizeof *it->x));
	it->self = it;
	interp_world(&it->self, 1, 1);
	it->env = (struct interp_env){
		.training = true, .loss_scale = 1, .replicas = 1,
		.lr = 1e-3, .beta1 = .9, .beta2 = .999, .eps = 1e-8,
		.beta2_decay = -.8, .threshold = 1, .eps2 = 1e-3, .ema_decay = .999,
	};
	return it;
}

void
interp_free(struct interp *it)
{
	if (it == NULL)
		return;
	for (uint32_t v = 0; v < it->g->nval; v++)
		free(it->x[v]);
	free(it->x);
	placed_free(it);
	free(it);
}

struct interp_env *
interp_env(struct interp *it)
{
	return &it->env;
}

const char *
interp_error(const struct interp *it)
{
	return it->error;
}

int64_t
interp_nelem(const Shape *s)
{
	int64_t n = 1;

	if (s->rank < 0)
		return -1;
	for (int i = 0; i < s->rank; i++) {
		if (s->dim[i] < 0)
			return -1;
		n *= s->dim[i];
	}
	return n;
}

Val
interp_held(const Val *v)
{
	Val w = *v;
	Placement *s = &w.placement;

	if (v->dt != DT_INT8X64 && v->dt != DT_NF4X64)
		return w;
	w.shape.dim[w.shape.rank - 1] *= 64;
	for (int i = 0; s->axis == w.shape.rank - 1 && i < s->nsegment; i++)
		s->segment[i] *= 64;
	return w;
}

static Shape
held_shape(const Val *v)
{
	return interp_held(v).shape;
}

double *
interp_room(struct interp *it, ValId v)
{
	Shape s = held_shape(&it->g->val[v]);
	int64_t n = interp_nelem(&s);

	if (it->x[v] == NULL && n >= 0)
		it->x[v] = interp_need(calloc((size_t)n + 1, sizeof(double)));
	return it->x[v];
}

void
interp_set(struct interp *it, ValId v, const double *x)
{
	Shape s = held_shape(&it->g->val[v]);
	int64_t n = interp_nelem(&s);

	if (n > 0)
		memcpy(interp_room(it, v), x, (size_t)n * sizeof *x);
	else
		interp_room(it, v);
	if (it->placed)
		placed_write(it, v);
}

/* Weight i of blocks: a scale, then 64 bytes or, the upper half of a byte first,
 * 32 bytes of codes. */
static double
read_weight(DType dt, const void *raw, int64_t i)
{
	static const double level[8] = { 0, 0.07958029955625534,
		0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
		0.44070982933044434, 0.5626170039176941, 0.7229568362236023 };
	static const double below[8] = { -1, -0.6961928009986877,
		-0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
		-0.18477343022823334, -0.09105003625154495, 0 };
	const unsigned char *p = raw;
	int code;
	float scale;

	p += i / 64 * (dt == DT_INT8X64 ? 68 : 36);
	i %= 64;
	memcpy(&scale, p, sizeof scale);
	if (dt == DT_INT8X64)
		return (double)(float)((float)(signed char)p[4 + i] * scale);
	code = i % 2 ? p[4 + i / 2] & 15 : p[4 + i / 2] >> 4;
	return (double)(float)((float)(code == 15 ? 1 : code < 7 ? below[code]
	                               : level[code - 7]) * scale);
}

double
interp_read(DType dt, const void *raw, int64_t i)
{
	if (dt == DT_INT8X64 || dt == DT_NF4X64)
		return read_weight(dt, raw, i);

	const char *p = (const char *)raw + i * dtype_info[dt].nbytes;

#define READ(id, type) \
	case DT_##id: { type t_; memcpy(&t_, p, sizeof t_); return (double)t_; }
	switch (dt) {
	READ(F32, float) READ(F64, double)
	READ(I64, int64_t) READ(I32, int32_t) READ(I16, int16_t)
	READ(I8, int8_t)
	READ(U64, uint64_t) READ(U32, uint32_t) READ(U16, uint16_t)
	READ(U8, uint8_t) READ(BOOL, uint8_t)
	case DT_F16: {
		uint16_t h;

		memcpy(&h, p, sizeof h);
		return half_to_float(h);
	}
	case DT_BF16: {
		uint16_t h;

		memcpy(&h, p, sizeof h);
		return bf16_to_float(h);
	}
	default:
		return NAN;
	}
#undef READ
}

void
interp_write(DType dt, void *raw, int64_t i, double x)
{
	char *p = (char *)raw + i * dtype_info[dt].nbytes;

#define WRITE(id, type) \
	case DT_##id: { type t_ = (type)x; memcpy(p, &t_, sizeof t_); return; }
	switch (dt) {
	WRITE(F32, float) WRITE(F64, double)
	WRITE(I64, int64_t) WRITE(I32, int32_t) WRITE(I16, int16_t)
	WRITE(I8, int8_t) WRITE(U64, uint64_t) WRITE(U32, uint32_t)
	WRITE(U16, uint16_t) WRITE(U8, uint8_t)
	case DT_BOOL:
		*p = x != 0;
		return;
	case DT_F16: {
		uint16_t h = float_to_half((float)x);

		memcpy(p, &h, sizeof h);
		return;
	}
	case DT_BF16: {
		uint16_t h = float_to_bf16((float)x);

		memcpy(p, &h, sizeof h);
		return;
	}
	default:
		return;
	}
#undef WRITE
}

void
interp_load(struct interp *it, ValId v, const void *raw)
{
	Shape s = held_shape(&it->g->val[v]);
	int64_t n = interp_nelem(&s);
	double *x = interp_room(it, v);

	for (int64_t i = 0; i < n; i++)
		x[i] = interp_read(it->g->val[v].dt, raw, i);
	if (it->placed)
		placed_write(it, v);
}

/* This rank's piece of the contents that the graph has. */
static void
load_piece(struct interp *it, ValId v)
{
	const Val *p = &it->g->val[v];
	double *x = interp_room(it, v);

	for (int64_t i = 0; i < interp_nelem(&p->shape); i++) {
		int64_t from = interp_whole(it, &p->placement, &p->shape, i);

		x[i] = from < 0 ? 0 : interp_read(p->dt, p->data, from);
	}
	if (it->placed)
		placed_write(it, v);
}

/* A parameter in 16 bits is that as it begins. */
static void
start_copy(struct interp *it, ValId v)
{
	const double *from = interp_get(it, it->g->val[v].param);
	double *x = interp_room(it, v);

	for (int64_t i = 0; from && i < interp_nelem(&it->g->val[v].shape);
	     i++)
		x[i] = from[i];
}

const double *
interp_get(struct interp *it, ValId v)
{
	const Val *p = &it->g->val[v];

	if (v == 0 || v >= it->g->nval)
		return NULL;
	if (it->x[v] != NULL)
		return it->x[v];
	if (p->data != NULL)
		load_piece(it, v);
	else if (p->kind == V_STATE && strcmp(p->state, "copy") == 0)
		start_copy(it, v);
	else if (p->kind == V_STATE)
		interp_room(it, v);
	return it->x[v];
}

bool
interp_store(struct interp *it, ValId v, void *raw)
{
	const double *x = interp_get(it, v);
	int64_t n = interp_nelem(&it->g->val[v].shape);

	if (x == NULL)
		return false;
	for (int64_t i = 0; i < n; i++)
		interp_write(it->g->val[v].dt, raw, i, x[i]);
	return true;
}

bool
interp_fail(struct call *c, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(c->it->error, sizeof c->it->error, "node %u (%s): ",
	                 (unsigned)node_id(c->g, c->n), op_info[c->n->op].text);

	va_start(ap, fmt);
	vsnprintf(c->it->error + n, sizeof c->it->error - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- indices ---- */

void
interp_unravel(const Shape *s, int64_t i, int64_t idx[MAX_RANK])
{
	for (int k = s->rank - 1; k >= 0; k--) {
		idx[k] = i % s->dim[k];
		i /= s->dim[k];
	}
}

int64_t
interp_ravel(const Shape *s, const int64_t idx[MAX_RANK])
{
	int64_t i = 0;

	for (int k = 0; k < s->rank; k++)
		i = i * s->dim[k] + idx[k];
	return i;
}

int64_t
interp_bcast(const Shape *x, const Shape *out, const int64_t idx[MAX_RANK])
{
	int64_t i = 0;
	int lead = out->rank - x->rank;

	for (int k = 0; k < x->rank; k++)
		i = i * x->dim[k] + (x->dim[k] == 1 ? 0 : idx[k + lead]);
	return i;
}

int64_t
interp_extent(const Shape *s, int first, int last)
{
	int64_t n = 1;

	for (int k = first; k < last; k++)
		n *= s->dim[k];
	return n;
}

/* ---- random numbers ---- */

uint32_t
interp_philox(const struct interp_env *e, uint32_t stream, uint64_t index)
{
	uint64_t block = index / 4;
	uint32_t c[4] = { (uint32_t)block,
		(uint32_t)(block >> 32) ^ (e->micro << 16), (uint32_t)e->step,
		stream };
	uint32_t k0 = (uint32_t)e->seed, k1 = (uint32_t)(e->seed >> 32);

	for (int r = 0; r < 10; r++) {
		uint64_t p = (uint64_t)0xD2511F53u * c[0];
		uint64_t q = (uint64_t)0xCD9E8D57u * c[2];
		uint32_t d[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
			(uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p };

		memcpy(c, d, sizeof c);
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return c[index % 4];
}

double
interp_dropout(const struct interp_env *e, double x, double ratio,
               int64_t stream, uint64_t index)
{
	if (!e->training || ratio == 0)
		return x;
	if (interp_philox(e, (uint32_t)stream, index)
	    < (uint32_t)(ratio * 4294967296.0))
		return 0;
	return x * (double)(float)(1.0 / (1.0 - ratio));
}

/* The u-quantile of the normal distribution, by halving. */
static double
quantile(double u)
{
	double lo = -10, hi = 10;

	for (int i = 0; i < 60; i++) {
		double x = (lo + hi) / 2;

		if (erfc(-x / sqrt(2)) / 2 < u)
			lo = x;
		else
			hi = x;
	}
	return (lo + hi) / 2;
}

/* Whether f32 arithmetic rounds the sum up to b; then a stands for it. */
static double
uniform(double a, double b, double u, DType dt)
{
	double y = a + u * (b - a);

	return dt == DT_F64 ? y : (float)y < (float)b ? y : a;
}

static bool
run_random(struct call *c)
{
	const Attr *a = c->a;
	DType dt = c->out[0].dt;
	int bits = dt == DT_F64 ? 32 : dt == DT_F16 ? 11 : dt == DT_BF16 ? 8
	         : 24;

	for (int64_t i = 0; i < c->out[0].n; i++) {
		uint32_t w = interp_philox(c->env, (uint32_t)a->RANDOM.stream,
		                           interp_draw(c, OP_RANDOM, a, 0, i));
		double u = (w >> (32 - bits)) / ldexp(1, bits);

		if (a->RANDOM.kind == 1)
			c->out[0].x[i] = a->RANDOM.a + a->RANDOM.b
				* quantile((w + 0.5) / 4294967296.0);
		else
			c->out[0].x[i] = uniform(a->RANDOM.a, a->RANDOM.b, u,
			                         dt);
	}
	return true;
}

/* ---- element-wise ---- */

/* x as a value of dtype dt. */
static double
fit(const struct interp_env *e, DType dt, double x)
{
	int64_t i;

	switch (dtype_info[dt].cls) {
	case 'f':
		if (dt == DT_F64 || e->round == ROUND_NONE
		    || (e->round == ROUND_HALF && !dtype_is_half(dt)))
			return x;
		if (dt == DT_F16)
			return half_to_float(float_to_half((float)x));
		if (dt == DT_BF16)
			return bf16_to_float(float_to_bf16((float)x));
		return (float)x;
	case 'q':
		return x;
	case 'b':
		return x != 0;
	}
	if (!(x > -9.3e18 && x < 1.85e19))
		return 0;
	if (dt == DT_U64 || x >= 9.2e18)
		return trunc(x);
	i = (int64_t)x;
	switch (dt) {
	case DT_I32: return (int32_t)i;
	case DT_I16: return (int16_t)i;
	case DT_I8: return (int8_t)i;
	case DT_U32: return (uint32_t)i;
	case DT_U16: return (uint16_t)i;
	case DT_U8: return (uint8_t)i;
	default: return (double)i;
	}
}

static const double sqrt_half = 0.70710678118654752440;
static const double sqrt_2_pi = 0.79788456080286535588;

static double
gelu(double x, bool tanhish)
{
	if (!tanhish)
		return .5 * x * (1 + erf(x * sqrt_half));
	return .5 * x * (1 + tanh(sqrt_2_pi * (x + .044715 * x * x * x)));
}

static double
gelu_slope(double x, bool tanhish)
{
	double t;

	if (!tanhish)
		return .5 * (1 + erf(x * sqrt_half))
		       + x * exp(-.5 * x * x) * .5 * sqrt_2_pi;
	t = tanh(sqrt_2_pi * (x + .044715 * x * x * x));
	return .5 * (1 + t) + .5 * x * (1 - t * t) * sqrt_2_pi
	                          * (1 + 3 * .044715 * x * x);
}

static double
sigmoid(double x)
{
	return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double
modulo(double a, double b, bool c_like)
{
	double r = fmod(a, b);

	if (!c_like && r != 0 && (r < 0) != (b < 0))
		r += b;
	return r;
}

/* Of unsigned numbers below 2^53. */
static double
shift_left(double a, double by, int width)
{
	return by >= width ? 0 : fmod(a * exp2(by), exp2(width));
}

static bool
is_ew(Op op)
{
	return (op_info[op].flags & F_EW) && op != OP_LOOP;
}

/* One element; dt is the result's. */
static double
scalar(const struct interp_env *e, Op op, const Attr *at, DType dt,
       const double *a, uint64_t index)
{
	double s;

	switch (op) {
	case OP_NEG: return -a[0];
	case OP_ABS: return fabs(a[0]);
	case OP_SIGN: return isnan(a[0]) ? a[0] : (a[0] > 0) - (a[0] < 0);
	case OP_EXP: return exp(a[0]);
	case OP_LOG: return log(a[0]);
	case OP_SQRT: return sqrt(a[0]);
	case OP_RECIP: return 1 / a[0];
	case OP_SIN: return sin(a[0]);
	case OP_COS: return cos(a[0]);
	case OP_ATAN: return atan(a[0]);
	case OP_ASINH: return asinh(a[0]);
	case OP_BIT_NOT:
		return dtype_info[dt].cls == 'u'
		       ? exp2(8 * dtype_info[dt].nbytes) - 1 - a[0] : -1 - a[0];
	case OP_BIT_AND: return (double)((int64_t)a[0] & (int64_t)a[1]);
	case OP_BIT_OR: return (double)((int64_t)a[0] | (int64_t)a[1]);
	case OP_BIT_XOR: return (double)((int64_t)a[0] ^ (int64_t)a[1]);
	case OP_SHL: return shift_left(a[0], a[1], 8 * dtype_info[dt].nbytes);
	case OP_SHR:
		return a[1] >= 8 * dtype_info[dt].nbytes
		       ? 0 : floor(a[0] / exp2(a[1]));
	case OP_TANH: return tanh(a[0]);
	case OP_SIGMOID: return sigmoid(a[0]);
	case OP_ERF: return erf(a[0]);
	case OP_RELU: return a[0] < 0 ? 0 : a[0];
	case OP_SOFTPLUS:
		return a[0] > 0 ? a[0] + log1p(exp(-a[0])) : log1p(exp(a[0]));
	case OP_FLOOR: return floor(a[0]);
	case OP_CEIL: return ceil(a[0]);
	case OP_ROUND: return nearbyint(a[0]);
	case OP_GELU: return gelu(a[0], at->GELU.tanh);
	case OP_SILU: return a[0] * sigmoid(a[0]);
	case OP_GELU_GRAD: return a[1] * gelu_slope(a[0], at->GELU_GRAD.tanh);
	case OP_SILU_GRAD:
		s = sigmoid(a[0]);
		return a[1] * s * (1 + a[0] * (1 - s));
	case OP_SHIELD: return a[0] == 0 ? 0 : a[1];
	case OP_NOT: return !a[0];
	case OP_ISNAN: return isnan(a[0]);
	case OP_CAST:
	case OP_COPY: return a[0];
	case OP_ADD: return a[0] + a[1];
	case OP_SUB: return a[0] - a[1];
	case OP_MUL: return a[0] * a[1];
	case OP_DIV:
		return dtype_info[dt].cls == 'f' ? a[0] / a[1]
		                                 : trunc(a[0] / a[1]);
	case OP_POW: return pow(a[0], a[1]);
	case OP_MOD: return modulo(a[0], a[1], at->MOD.fmod);
	case OP_MAX: return maximum(a[0], a[1]);
	case OP_MIN: return -maximum(-a[0], -a[1]);
	case OP_EQ: return a[0] == a[1];
	case OP_LT: return a[0] < a[1];
	case OP_LE: return a[0] <= a[1];
	case OP_GT: return a[0] > a[1];
	case OP_GE: return a[0] >= a[1];
	case OP_AND: return a[0] != 0 && a[1] != 0;
	case OP_OR: return a[0] != 0 || a[1] != 0;
	case OP_XOR: return (a[0] != 0) != (a[1] != 0);
	case OP_WHERE: return a[0] != 0 ? a[1] : a[2];
	case OP_DROPOUT:
		return interp_dropout(e, a[0], at->DROPOUT.ratio,
		                      at->DROPOUT.stream, index);
	case OP_BERNOULLI:
		return interp_philox(e, (uint32_t)at->BERNOULLI.stream, index)
			< a[0] * 4294967296.0;
	default:
		return NAN;
	}
}

static bool
run_ew(struct call *c)
{
	struct ten *y = &c->out[0];
	int narg = c->n->op == OP_DROPOUT ? 1 : c->nin;
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		double a[3] = { 0, 0, 0 };

		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < narg; k++)
			a[k] = c->in[k].x[interp_bcast(&c->in[k].s, &y->s,
			                               idx)];
		y->x[i] = scalar(c->env, c->n->op, c->a, y->dt, a,
		                 interp_draw(c, c->n->op, c->a, 0, i));
	}
	return true;
}

static bool
is_cut(const struct call *c, int out)
{
	return c->g->val[c->n->out[out]].placement.kind == PLACEMENT_SHARD;
}

static bool
run_loop(struct call *c)
{
	const struct body *b = c->n->body;
	double *r = interp_need(calloc((size_t)b->nop + 1, sizeof *r));
	int64_t idx[MAX_RANK];
	const struct ten *shape = NULL;
	int like = 0;

	for (int k = 0; k < c->nout; k++)
		if (c->out[k].x != NULL && (shape == NULL || is_cut(c, k)))
			shape = &c->out[like = k];
	for (int64_t i = 0; shape != NULL && i < shape->n; i++) {
		interp_unravel(&shape->s, i, idx);
		for (int m = 0; m < b->nop; m++) {
			const struct scalar_op *u = &b->op[m];
			double a[3] = { 0, 0, 0 };

			for (int k = 0; k < u->narg; k++) {
				int j = u->arg[k];

				a[k] = j < 0 ? r[~j] : c->in[j].x[
				    interp_bcast(&c->in[j].s, &shape->s, idx)];
			}
			r[m] = fit(c->env, u->dt,
			           scalar(c->env, u->op, &u->attr, u->dt, a,
			                  interp_draw(c, u->op, &u->attr,
			                              like, i)));
		}
		for (int k = 0; k < c->nout; k++)
			if (c->out[k].x != NULL)
				c->out[k].x[i] = r[b->result[k]];
	}
	free(r);
	return true;
}

/* ---- dispatch ---- */

static InterpFn *const table[OP_COUNT] = {
	[OP_LOOP] = run_loop, [OP_IDENTITY] = interp_copy,
	[OP_DEQUANTIZE] = interp_copy,
	[OP_RESHAPE] = interp_copy, [OP_SQUEEZE] = interp_copy,
	[OP_UNSQUEEZE] = interp_copy, [OP_FLATTEN] = interp_copy,
	[OP_EXPAND] = interp_expand, [OP_TRANSPOSE] = interp_transpose,
	[OP_SLICE] = interp_slice, [OP_CONCAT] = interp_concat,
	[OP_PAD] = interp_pad, [OP_TILE] = interp_tile,
	[OP_TRILU] = interp_trilu, [OP_GATHER] = interp_gather,
	[OP_GATHER_ELEMENTS] = interp_gather_elements,
	[OP_SCATTER_ELEMENTS] = interp_scatter_elements,
	[OP_GATHER_ND] = interp_gather_nd, [OP_SCATTER_ND] = interp_scatter_nd,
	[OP_SCATTER_ADD] = interp_scatter_add, [OP_CUMSUM] = interp_cumsum,
	[OP_ARGMAX] = interp_argmax, [OP_TOPK] = interp_topk,
	[OP_REDUCE_SUM] = interp_reduce,
	[OP_REDUCE_MEAN] = interp_reduce, [OP_REDUCE_MAX] = interp_reduce,
	[OP_REDUCE_MIN] = interp_reduce, [OP_REDUCE_PROD] = interp_reduce,
	[OP_DET] = interp_det, [OP_DET_GRAD] = interp_det_grad,
	[OP_EXPERT_MATMUL] = interp_expert_matmul,
	[OP_EXPERT_DW] = interp_expert_dw,
	[OP_EXPERT_SLOTS] = interp_expert_slots,
	[OP_TAKE_ROWS] = interp_take_rows,
	[OP_EXCHANGE_ROWS] = interp_exchange_rows,
	[OP_MATMUL] = interp_matmul, [OP_SOFTMAX] = interp_softmax,
	[OP_LOG_SOFTMAX] = interp_softmax,
	[OP_SOFTMAX_GRAD] = interp_softmax_grad,
	[OP_LOG_SOFTMAX_GRAD] = interp_softmax_grad,
	[OP_LAYERNORM] = interp_layernorm,
	[OP_LAYERNORM_GRAD] = interp_layernorm_grad,
	[OP_RMSNORM] = interp_rmsnorm, [OP_RMSNORM_GRAD] = interp_rmsnorm_grad,
	[OP_SCE] = interp_sce, [OP_SCE_GRAD] = interp_sce_grad,
	[OP_NLL] = interp_nll, [OP_NLL_GRAD] = interp_nll_grad,
	[OP_CLASSIFIER] = interp_classifier, [OP_ATTENTION] = interp_attention,
	[OP_ATTENTION_GRAD] = interp_attention_grad, [OP_FILL] = interp_fill,
	[OP_LOSS_SCALE] = interp_loss_scale, [OP_SHARE] = interp_share,
	[OP_BATCH_TOTAL] = interp_of_all,
	[OP_GRAD_NORM] = interp_grad_norm, [OP_ACCUMULATE] = interp_accumulate,
	[OP_EMA] = interp_ema,
	[OP_SGD] = interp_sgd, [OP_SGDM] = interp_sgdm,
	[OP_ADAMW] = interp_adamw, [OP_LION] = interp_lion,
	[OP_ADAFACTOR] = interp_adafactor,
	[OP_ADAFACTOR_MEANS] = interp_adafactor_means,
	[OP_ADAFACTOR_SQUARES] = interp_adafactor_squares,
	[OP_CONV] = interp_conv, [OP_CONV_DX] = interp_conv_dx,
	[OP_CONV_DW] = interp_conv_dw, [OP_BATCHNORM] = interp_batchnorm,
	[OP_BATCHNORM_GRAD] = interp_batchnorm_grad,
	[OP_BN_UPDATE] = interp_bn_update, [OP_MAXPOOL] = interp_maxpool,
	[OP_MAXPOOL_GRAD] = interp_maxpool_grad,
	[OP_AVGPOOL] = interp_avgpool, [OP_AVGPOOL_GRAD] = interp_avgpool_grad,
	[OP_RESIZE] = interp_resize,
	[OP_GRID_SAMPLE] = interp_grid_sample,
	[OP_GRID_SAMPLE_GRAD] = interp_grid_sample_grad,
	[OP_RANDOM] = run_random,
	[OP_SELECTED] = interp_selected,
	[OP_ALL_REDUCE] = interp_all_reduce,
	[OP_ALL_GATHER] = interp_all_gather,
	[OP_REDUCE_SCATTER] = interp_reduce_scatter,
	[OP_ALL_TO_ALL] = interp_all_to_all, [OP_REPLICATE] = interp_copy,
	[OP_SEND] = interp_send, [OP_RECEIVE] = interp_receive,
	[OP_FETCH] = interp_copy, [OP_OFFLOAD] = interp_copy,
	[OP_OFFLOAD_INTO] = interp_offload_into,
	[OP_GATHER_ROWS] = interp_gather_rows, [OP_SUM_ROWS] = interp_sum_rows,
	[OP_OWN] = interp_own, [OP_OWN_GRAD] = interp_own_grad,
	[OP_VOCAB_STATS] = interp_vocab_stats,
	[OP_SUM_SQUARES] = interp_sum_squares,
};

bool
interp_knows(Op op)
{
	return table[op] != NULL || is_ew(op);
}

static bool
bind_operand(struct call *c, ValId v, struct ten *t, bool out, int k)
{
	const Val *p = &c->g->val[v];

	if (v == 0)
		return true;
	t->dt = p->dt;
	t->s = held_shape(p);
	t->n = interp_nelem(&t->s);
	if (t->n < 0)
		return interp_fail(c, "%s %d has no shape",
		                   out ? "output" : "input", k);
	t->x = out ? interp_room(c->it, v) : (double *)interp_get(c->it, v);
	if (t->x == NULL)
		return interp_fail(c, "input %d (%s) has no contents", k,
		                   p->name ? p->name : "?");
	return true;
}

static bool
run_node(struct interp *it, const Node *n)
{
	struct ten *t = interp_need(calloc((size_t)(n->nin + n->nout) + 4,
	                                   sizeof *t));
	struct call c = { it, &it->env, it->g, n, &n->attr, n->nin, n->nout,
		t, t + n->nin };
	bool ok = true;

	if (!interp_knows(n->op))
		ok = interp_fail(&c, "not known to the interpreter");
	else if (op_info[n->op].nstat != NOSTAT && n->op != OP_DROPOUT &&
	         n->nin > op_info[n->op].nstat)
		ok = interp_fail(&c, "has static operands");
	for (int k = 0; ok && k < n->nin; k++)
		ok = bind_operand(&c, n->in[k], &c.in[k], false, k);
	for (int k = 0; ok && k < n->nout; k++)
		ok = bind_operand(&c, n->out[k], &c.out[k], true, k);
	if (ok && it->placed)
		ok = placed_before(&c);
	if (ok)
		ok = is_ew(n->op) ? run_ew(&c) : table[n->op](&c);
	for (int k = 0; ok && k < n->nout; k++)
		for (int64_t i = 0; c.out[k].x && i < c.out[k].n; i++)
			c.out[k].x[i] = fit(c.env, c.out[k].dt, c.out[k].x[i]);
	if (ok && it->placed)
		ok = placed_after(&c);
	free(t);
	return ok;
}

bool
interp_run(struct interp *it, NodeId first, NodeId last)
{
	if (it->placed && first == 1 && !it->runs_on)
		placed_start(it);
	for (NodeId n = first; n < last; n++)
		if (!run_node(it, &it->g->node[n]))
			return false;
	return true;
}

bool
interp_run_all(struct interp *it)
{
	return interp_run(it, 1, it->g->nnode);
}
