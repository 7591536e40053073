/* Reference interpreter: values, element-wise ops, layout and indexing. */
#include "tests/ref/interp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

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

struct interp *
interp_new(const Graph *g)
{
	struct interp *it = interp_need(calloc(1, sizeof *it));

	it->g = g;
	it->x = interp_need(calloc(g->nval, sizeof *it->x));
	it->env = (struct interp_env){
		.training = true, .lr = 1e-3, .beta1 = .9, .beta2 = .999,
		.eps = 1e-8,
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

double *
interp_room(struct interp *it, ValId v)
{
	int64_t n = interp_nelem(&it->g->val[v].shape);

	if (it->x[v] == NULL && n >= 0)
		it->x[v] = interp_need(calloc((size_t)n + 1, sizeof(double)));
	return it->x[v];
}

void
interp_set(struct interp *it, ValId v, const double *x)
{
	int64_t n = interp_nelem(&it->g->val[v].shape);

	if (n > 0)
		memcpy(interp_room(it, v), x, (size_t)n * sizeof *x);
	else
		interp_room(it, v);
	if (it->placed)
		placed_write(it, v);
}

double
interp_read(DType dt, const void *raw, int64_t i)
{
	const char *p = (const char *)raw + i * dtype_info[dt].nbytes;

#define READ(id, type) \
	case DT_##id: { type t_; memcpy(&t_, p, sizeof t_); return (double)t_; }
	switch (dt) {
	READ(F32, float) READ(F64, double)
	READ(I64, int64_t) READ(I32, int32_t) READ(I16, int16_t) READ(I8, int8_t)
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
	int64_t n = interp_nelem(&it->g->val[v].shape);
	double *x = interp_room(it, v);

	for (int64_t i = 0; i < n; i++)
		x[i] = interp_read(it->g->val[v].dt, raw, i);
	if (it->placed)
		placed_write(it, v);
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
		interp_load(it, v, p->data);
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

/* ---- element-wise ---- */

/* x as a value of dtype dt. */
static double
fit(const struct interp_env *e, DType dt, double x)
{
	int64_t i;

	switch (dtype_info[dt].cls) {
	case 'f':
		if (!e->round || dt == DT_F64)
			return x;
		if (dt == DT_F16)
			return half_to_float(float_to_half((float)x));
		if (dt == DT_BF16)
			return bf16_to_float(float_to_bf16((float)x));
		return (float)x;
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

static double
maximum(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
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
			a[k] = c->in[k].x[interp_bcast(&c->in[k].s, &y->s, idx)];
		y->x[i] = scalar(c->env, c->n->op, c->a, y->dt, a,
		                 (uint64_t)i);
	}
	return true;
}

static bool
run_loop(struct call *c)
{
	const struct body *b = c->n->body;
	double *r = interp_need(calloc((size_t)b->nmicro + 1, sizeof *r));
	int64_t idx[MAX_RANK];
	const struct ten *shape = NULL;

	for (int k = 0; k < c->nout; k++)
		if (c->out[k].x != NULL)
			shape = &c->out[k];
	for (int64_t i = 0; shape != NULL && i < shape->n; i++) {
		interp_unravel(&shape->s, i, idx);
		for (int m = 0; m < b->nmicro; m++) {
			const struct micro *u = &b->micro[m];
			double a[3] = { 0, 0, 0 };

			for (int k = 0; k < u->narg; k++) {
				int j = u->arg[k];

				a[k] = j < 0 ? r[~j] : c->in[j].x[
				    interp_bcast(&c->in[j].s, &shape->s, idx)];
			}
			r[m] = fit(c->env, u->dt,
			           scalar(c->env, u->op, &u->attr, u->dt, a,
			                  (uint64_t)i));
		}
		for (int k = 0; k < c->nout; k++)
			if (c->out[k].x != NULL)
				c->out[k].x[i] = r[b->result[k]];
	}
	free(r);
	return true;
}

/* ---- layout ---- */

static bool
run_copy(struct call *c)
{
	if (c->in[0].n != c->out[0].n)
		return interp_fail(c, "element counts differ");
	memcpy(c->out[0].x, c->in[0].x, (size_t)c->in[0].n * sizeof(double));
	return true;
}

static bool
run_expand(struct call *c)
{
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		y->x[i] = c->in[0].x[interp_bcast(&c->in[0].s, &y->s, idx)];
	}
	return true;
}

static bool
run_transpose(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *perm = &c->a->TRANSPOSE.perm;
	int64_t idx[MAX_RANK], src[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++)
			src[perm->n ? perm->v[k] : y->s.rank - 1 - k] = idx[k];
		y->x[i] = x->x[interp_ravel(&x->s, src)];
	}
	return true;
}

static bool
run_slice(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *start = &c->a->SLICE.start, *step = &c->a->SLICE.step;
	int64_t idx[MAX_RANK];

	if (start->n != x->s.rank || step->n != x->s.rank)
		return interp_fail(c, "not folded");
	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++) {
			idx[k] = start->v[k] + idx[k] * step->v[k];
			if (idx[k] < 0 || idx[k] >= x->s.dim[k])
				return interp_fail(c, "out of bounds");
		}
		y->x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

static bool
run_concat(struct call *c)
{
	struct ten *y = &c->out[0];
	int axis = axis_of(c->a->CONCAT.axis, y->s.rank);
	int64_t at = 0, idx[MAX_RANK];

	for (int k = 0; k < c->nin; k++) {
		const struct ten *x = &c->in[k];

		for (int64_t i = 0; i < x->n; i++) {
			interp_unravel(&x->s, i, idx);
			idx[axis] += at;
			y->x[interp_ravel(&y->s, idx)] = x->x[i];
		}
		at += x->s.dim[axis];
	}
	return at == y->s.dim[axis] ? true : interp_fail(c, "extents");
}

/* Source of position i of n elements; -1: the fill value. */
static int64_t
pad_source(int64_t i, int64_t n, int64_t mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case 1:
		while (i < 0 || i >= n)
			i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
		return i;
	case 2:
		return i < 0 ? 0 : n - 1;
	case 3:
		return ((i % n) + n) % n;
	default:
		return -1;
	}
}

static bool
run_pad(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *begin = &c->a->PAD.begin;
	int64_t idx[MAX_RANK];

	if (begin->n != x->s.rank)
		return interp_fail(c, "not folded");
	for (int64_t i = 0; i < y->n; i++) {
		bool inside = true;

		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++) {
			idx[k] = pad_source(idx[k] - begin->v[k], x->s.dim[k],
			                    c->a->PAD.mode);
			inside &= idx[k] >= 0;
		}
		y->x[i] = inside ? x->x[interp_ravel(&x->s, idx)]
		                 : c->a->PAD.value;
	}
	return true;
}

static bool
run_tile(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < y->n; i++) {
		interp_unravel(&y->s, i, idx);
		for (int k = 0; k < y->s.rank; k++)
			idx[k] %= x->s.dim[k];
		y->x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

static bool
run_trilu(struct call *c)
{
	struct ten *y = &c->out[0];
	int64_t idx[MAX_RANK], k = c->a->TRILU.k;

	for (int64_t i = 0; i < y->n; i++) {
		int64_t d;

		interp_unravel(&y->s, i, idx);
		d = idx[y->s.rank - 1] - idx[y->s.rank - 2] - k;
		y->x[i] = (c->a->TRILU.upper ? d >= 0 : d <= 0)
		          ? c->in[0].x[i] : 0;
	}
	return true;
}

/* ---- indexing ---- */

static bool
wrap_index(struct call *c, double raw, int64_t n, int64_t *i)
{
	*i = (int64_t)raw;
	if (*i < 0)
		*i += n;
	if (*i < 0 || *i >= n)
		return interp_fail(c, "index %lld out of range of %lld",
		                   (long long)raw, (long long)n);
	return true;
}

static bool
run_gather(struct call *c)
{
	const struct ten *x = &c->in[0], *idx = &c->in[1];
	int axis = axis_of(c->a->GATHER.axis, x->s.rank);
	int64_t outer = interp_extent(&x->s, 0, axis), n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);

	for (int64_t o = 0; o < outer; o++)
		for (int64_t j = 0; j < idx->n; j++) {
			int64_t at;

			if (!wrap_index(c, idx->x[j], n, &at))
				return false;
			memcpy(c->out[0].x + (o * idx->n + j) * inner,
			       x->x + (o * n + at) * inner,
			       (size_t)inner * sizeof(double));
		}
	return true;
}

static bool
run_scatter_add(struct call *c)
{
	const struct ten *idx = &c->in[0], *upd = &c->in[1];
	struct ten *y = &c->out[0];
	int axis = axis_of(c->a->SCATTER_ADD.axis, y->s.rank);
	int64_t outer = interp_extent(&y->s, 0, axis), n = y->s.dim[axis];
	int64_t inner = interp_extent(&y->s, axis + 1, y->s.rank);

	if (upd->n != outer * idx->n * inner)
		return interp_fail(c, "extents");
	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = c->nin > 2 && c->in[2].x ? c->in[2].x[i] : 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t j = 0; j < idx->n; j++) {
			int64_t at;

			if (!wrap_index(c, idx->x[j], n, &at))
				return false;
			for (int64_t k = 0; k < inner; k++)
				y->x[(o * n + at) * inner + k] +=
				    upd->x[(o * idx->n + j) * inner + k];
		}
	return true;
}

static bool
run_gather_elements(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1];
	int axis = axis_of(c->a->GATHER_ELEMENTS.axis, x->s.rank);
	int64_t idx[MAX_RANK];

	for (int64_t i = 0; i < ix->n; i++) {
		interp_unravel(&ix->s, i, idx);
		if (!wrap_index(c, ix->x[i], x->s.dim[axis], &idx[axis]))
			return false;
		c->out[0].x[i] = x->x[interp_ravel(&x->s, idx)];
	}
	return true;
}

static bool
run_scatter_elements(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1], *upd = &c->in[2];
	int axis = axis_of(c->a->SCATTER_ELEMENTS.axis, x->s.rank);
	int64_t idx[MAX_RANK];

	if (!run_copy(c))
		return false;
	for (int64_t i = 0; i < ix->n; i++) {
		double *to;

		interp_unravel(&ix->s, i, idx);
		if (!wrap_index(c, ix->x[i], x->s.dim[axis], &idx[axis]))
			return false;
		to = &c->out[0].x[interp_ravel(&x->s, idx)];
		*to = c->a->SCATTER_ELEMENTS.add ? *to + upd->x[i] : upd->x[i];
	}
	return true;
}

/* Start in x of the piece that the index tuple number j addresses. */
static bool
nd_start(struct call *c, const Shape *x, const struct ten *ix, int batch,
         int64_t j, int64_t *start, int64_t *len)
{
	int64_t depth = ix->s.dim[ix->s.rank - 1], at = 0;
	int64_t per = interp_extent(&ix->s, batch, ix->s.rank - 1);

	if (batch > 0)
		at = j / per;
	for (int64_t k = 0; k < depth; k++) {
		int64_t i, n = x->dim[batch + k];

		if (!wrap_index(c, ix->x[j * depth + k], n, &i))
			return false;
		at = at * n + i;
	}
	*len = interp_extent(x, batch + (int)depth, x->rank);
	*start = at * *len;
	return true;
}

static bool
run_gather_nd(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1];
	int64_t n = interp_extent(&ix->s, 0, ix->s.rank - 1), start, len;

	for (int64_t j = 0; j < n; j++) {
		if (!nd_start(c, &x->s, ix, (int)c->a->GATHER_ND.batch, j,
		              &start, &len))
			return false;
		memcpy(c->out[0].x + j * len, x->x + start,
		       (size_t)len * sizeof(double));
	}
	return true;
}

static bool
run_scatter_nd(struct call *c)
{
	const struct ten *x = &c->in[0], *ix = &c->in[1], *upd = &c->in[2];
	int64_t n = interp_extent(&ix->s, 0, ix->s.rank - 1), start, len;

	if (!run_copy(c))
		return false;
	for (int64_t j = 0; j < n; j++) {
		if (!nd_start(c, &x->s, ix, 0, j, &start, &len))
			return false;
		for (int64_t k = 0; k < len; k++) {
			double *to = &c->out[0].x[start + k];
			double u = upd->x[j * len + k];

			*to = c->a->SCATTER_ND.add ? *to + u : u;
		}
	}
	return true;
}

static bool
run_cumsum(struct call *c)
{
	const struct ten *x = &c->in[0];
	int axis = axis_of(c->a->CUMSUM.axis, x->s.rank);
	int64_t n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);
	int64_t lines = n > 0 ? x->n / n : 0;

	for (int64_t l = 0; l < lines; l++) {
		int64_t base = l / inner * n * inner + l % inner;
		double sum = 0;

		for (int64_t j = 0; j < n; j++) {
			int64_t k = c->a->CUMSUM.reverse ? n - 1 - j : j;
			double v = x->x[base + k * inner];

			c->out[0].x[base + k * inner] =
			    c->a->CUMSUM.exclusive ? sum : sum + v;
			sum += v;
		}
	}
	return true;
}

static bool
run_argmax(struct call *c)
{
	const struct ten *x = &c->in[0];
	int axis = axis_of(c->a->ARGMAX.axis, x->s.rank);
	int64_t n = x->s.dim[axis];
	int64_t inner = interp_extent(&x->s, axis + 1, x->s.rank);

	for (int64_t l = 0; l < c->out[0].n; l++) {
		const double *p = x->x + l / inner * n * inner + l % inner;
		int64_t best = 0;

		for (int64_t j = 1; j < n; j++)
			if (p[j * inner] > p[best * inner] ||
			    (c->a->ARGMAX.last &&
			     p[j * inner] == p[best * inner]))
				best = j;
		c->out[0].x[l] = (double)best;
	}
	return true;
}

/* ---- reductions ---- */

static bool
run_reduce(struct call *c)
{
	const struct ten *x = &c->in[0];
	struct ten *y = &c->out[0];
	const IntList *axes = &c->a->REDUCE_SUM.axes;
	bool all = axes->n == 0 && !c->a->REDUCE_SUM.noop;
	bool red[MAX_RANK] = { false }, *seen;
	int64_t idx[MAX_RANK], count = 1;
	Op op = c->n->op;

	for (int k = 0; k < axes->n; k++)
		red[axis_of(axes->v[k], x->s.rank)] = true;
	for (int k = 0; k < x->s.rank; k++) {
		red[k] |= all;
		count *= red[k] ? x->s.dim[k] : 1;
	}
	for (int64_t i = 0; i < y->n; i++)
		y->x[i] = op == OP_REDUCE_PROD;
	seen = interp_need(calloc((size_t)y->n + 1, 1));
	for (int64_t i = 0; i < x->n; i++) {
		int64_t at = 0;
		double v = x->x[i];

		interp_unravel(&x->s, i, idx);
		for (int k = 0; k < x->s.rank; k++)
			if (!red[k])
				at = at * x->s.dim[k] + idx[k];
		switch (op) {
		case OP_REDUCE_PROD: y->x[at] *= v; break;
		case OP_REDUCE_MAX:
			y->x[at] = seen[at] ? maximum(y->x[at], v) : v;
			break;
		case OP_REDUCE_MIN:
			y->x[at] = seen[at] ? -maximum(-y->x[at], -v) : v;
			break;
		default: y->x[at] += v; break;
		}
		seen[at] = true;
	}
	free(seen);
	for (int64_t i = 0; op == OP_REDUCE_MEAN && i < y->n; i++)
		y->x[i] /= (double)count;
	return true;
}

static bool
run_fill(struct call *c)
{
	for (int64_t i = 0; i < c->out[0].n; i++)
		c->out[0].x[i] = c->a->FILL.value;
	return true;
}

/* ---- dispatch ---- */

static InterpFn *const table[OP_COUNT] = {
	[OP_LOOP] = run_loop, [OP_IDENTITY] = run_copy,
	[OP_RESHAPE] = run_copy, [OP_SQUEEZE] = run_copy,
	[OP_UNSQUEEZE] = run_copy, [OP_FLATTEN] = run_copy,
	[OP_EXPAND] = run_expand, [OP_TRANSPOSE] = run_transpose,
	[OP_SLICE] = run_slice, [OP_CONCAT] = run_concat, [OP_PAD] = run_pad,
	[OP_TILE] = run_tile, [OP_TRILU] = run_trilu, [OP_GATHER] = run_gather,
	[OP_GATHER_ELEMENTS] = run_gather_elements,
	[OP_SCATTER_ELEMENTS] = run_scatter_elements,
	[OP_GATHER_ND] = run_gather_nd, [OP_SCATTER_ND] = run_scatter_nd,
	[OP_SCATTER_ADD] = run_scatter_add, [OP_CUMSUM] = run_cumsum,
	[OP_ARGMAX] = run_argmax, [OP_REDUCE_SUM] = run_reduce,
	[OP_REDUCE_MEAN] = run_reduce, [OP_REDUCE_MAX] = run_reduce,
	[OP_REDUCE_MIN] = run_reduce, [OP_REDUCE_PROD] = run_reduce,
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
	[OP_ATTENTION_GRAD] = interp_attention_grad, [OP_FILL] = run_fill,
	[OP_GRAD_NORM] = interp_grad_norm, [OP_ACCUMULATE] = interp_accumulate,
	[OP_SGD] = interp_sgd, [OP_ADAMW] = interp_adamw,
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
	t->s = p->shape;
	t->n = interp_nelem(&p->shape);
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
	struct ten *t = interp_need(calloc((size_t)(n->nin + n->nout) + 4, sizeof *t));
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
	if (it->placed && first == 1)
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
