#include "tests/codegen/harness.h"
#include "tests/codegen/blocked.h"
#include "tests/codegen/convolved.h"

#include "runtime/support/half.h"
#include "passes/place/place.h"
#include "ir/infer/infer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that nobody may write: behind tensors, and behind workspace, of which the
 * last thread's part may be too small. */
enum { MAX_SHOWN = 3, GAP = 128, WORKSPACE_GAP = 1 << 18, UNTOUCHED = 0xff };

void
setup_open(struct setup *t, const char *name)
{
	memset(t, 0, sizeof *t);
	t->g = graph_new(name);
	t->diag = diag_new("test", stderr);
	t->arena = arena_new();
	t->cap = 1 << 14;
	t->machine = machines;
	t->name_of = arena_array(t->arena, t->cap, sizeof *t->name_of);
	t->tolerance = arena_array(t->arena, t->cap, sizeof *t->tolerance);
	t->contents = arena_array(t->arena, t->cap, sizeof *t->contents);
	t->random = 88172645463325252u;
}

void
setup_close(struct setup *t)
{
	interp_free(t->reference);
	graph_free(t->g);
	diag_free(t->diag);
	arena_free(t->arena);
}

void
case_begin(struct setup *t, const char *name)
{
	t->name = arena_str(t->arena, name);
	t->next_tolerance = 0;
}

/* ---- values ---- */

static double
uniform(struct setup *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (double)(t->random >> 11) * 0x1p-53;
}

static void
store(DType dt, void *to, int64_t i, double x)
{
	switch (dt) {
	case DT_F32: ((float *)to)[i] = (float)x; break;
	case DT_F64: ((double *)to)[i] = x; break;
	case DT_F16: ((uint16_t *)to)[i] = float_to_half((float)x); break;
	case DT_BF16: ((uint16_t *)to)[i] = float_to_bf16((float)x); break;
	case DT_I64: ((int64_t *)to)[i] = (int64_t)floor(x); break;
	case DT_I32: ((int32_t *)to)[i] = (int32_t)floor(x); break;
	case DT_I16: ((int16_t *)to)[i] = (int16_t)floor(x); break;
	case DT_I8: ((int8_t *)to)[i] = (int8_t)floor(x); break;
	case DT_U64: ((uint64_t *)to)[i] = (uint64_t)floor(x); break;
	case DT_U32: ((uint32_t *)to)[i] = (uint32_t)floor(x); break;
	case DT_U16: ((uint16_t *)to)[i] = (uint16_t)floor(x); break;
	default: ((uint8_t *)to)[i] = (uint8_t)floor(x);
	}
}

static double
load(DType dt, const void *from, int64_t i)
{
	switch (dt) {
	case DT_F32: return (double)((const float *)from)[i];
	case DT_F64: return ((const double *)from)[i];
	case DT_F16: return (double)half_to_float(((const uint16_t *)from)[i]);
	case DT_BF16:
		return (double)bf16_to_float(((const uint16_t *)from)[i]);
	case DT_I64: return (double)((const int64_t *)from)[i];
	case DT_I32: return ((const int32_t *)from)[i];
	case DT_I16: return ((const int16_t *)from)[i];
	case DT_I8: return ((const int8_t *)from)[i];
	case DT_U64: return (double)((const uint64_t *)from)[i];
	case DT_U32: return ((const uint32_t *)from)[i];
	case DT_U16: return ((const uint16_t *)from)[i];
	default: return ((const uint8_t *)from)[i];
	}
}

/* A scale, and random codes. */
static void
store_block(struct setup *t, char *to, int nbytes, double x)
{
	float scale = (float)x;

	memcpy(to, &scale, sizeof scale);
	for (int i = sizeof scale; i < nbytes; i++)
		to[i] = (char)(256 * uniform(t) - 128);
}

ValId
given_as(struct setup *t, ValKind kind, DType dt, Shape s, double lo,
         double hi)
{
	char name[32];
	ValId id;
	int64_t n = shape_nelem(&s);

	snprintf(name, sizeof name, "in%u", t->g->nval);
	id = val_new(t->g, kind, name, dt, s);
	t->contents[id] = arena_alloc(t->arena, (size_t)n *
	                              (size_t)dtype_info[dt].nbytes + 1);
	for (int64_t i = 0; i < n && dtype_info[dt].cls == 'q'; i++)
		store_block(t, (char *)t->contents[id]
		            + i * dtype_info[dt].nbytes, dtype_info[dt].nbytes,
		            lo + (hi - lo) * uniform(t));
	for (int64_t i = 0; i < n && dtype_info[dt].cls != 'q'; i++)
		store(dt, t->contents[id], i, lo + (hi - lo) * uniform(t));
	return id;
}

ValId
given(struct setup *t, DType dt, Shape s, double lo, double hi)
{
	return given_as(t, V_INPUT, dt, s, lo, hi);
}

ValId
floats(struct setup *t, Shape s)
{
	return given(t, t->real, s, -1, 1);
}

ValId
listed(struct setup *t, DType dt, Shape s, const int64_t *v)
{
	ValId id = given(t, dt, s, 0, 1);

	for (int64_t i = 0; i < shape_nelem(&s); i++)
		store(dt, t->contents[id], i, (double)v[i]);
	return id;
}

Attr
list_attr(Op op, int nlist, const int64_t *list)
{
	Attr a = attr_default(op);
	int n;
	IntList *l = (IntList *)((char *)&a + op_attrs(op, &n)[0].offset);

	l->n = nlist;
	memcpy(l->v, list, (size_t)nlist * sizeof *list);
	return a;
}

Node *
apply(struct setup *t, Op op, const Attr *attr, int nin, const ValId *in)
{
	int nout = op != OP_ATTENTION_GRAD ? 0
	         : attr->ATTENTION_GRAD.packed ? 1 : 3;
	Node *n = node_new(t->g, op, nin, in, nout, 0);
	NodeId id = node_id(t->g, n);

	if (attr)
		n->attr = *attr;
	if (!shape_infer(t->g, t->diag, n)) {
		fprintf(stderr, "%s: shapes of %s\n", t->name,
		        op_info[op].text);
		exit(1);
	}
	t->name_of[id] = t->name;
	t->tolerance[id] = t->next_tolerance;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			t->g->val[n->out[i]].output = true;
	return n;
}

/* ---- layout ---- */

static void
plain_layout(Val *v)
{
	int64_t nbytes = val_nelem(v) * dtype_info[v->dt].nbytes;

	if (v->laid_out)
		return;
	shape_strides(&v->shape, v->stride);
	v->laid_out = true;
	v->nbytes = (nbytes + 63) / 64 * 64;
}

ValId
view(struct setup *t, Op op, const Attr *attr, ValId x)
{
	ValId id = apply(t, op, attr, 1, &x)->out[0];
	Val *v = &t->g->val[x], *y = &t->g->val[id];

	plain_layout(v);
	y->laid_out = true;
	y->base = val_owner(t->g, x);
	y->start = v->start;
	switch (op) {
	case OP_TRANSPOSE:
		for (int i = 0; i < y->shape.rank; i++)
			y->stride[i] = v->stride[attr->TRANSPOSE.perm.v[i]];
		break;
	case OP_SLICE:
		for (int i = 0; i < y->shape.rank; i++) {
			y->stride[i] = v->stride[i] * attr->SLICE.step.v[i];
			y->start += attr->SLICE.start.v[i] * v->stride[i];
		}
		break;
	case OP_EXPAND:
		for (int i = 0; i < y->shape.rank; i++) {
			int at = i - (y->shape.rank - v->shape.rank);

			y->stride[i] = at < 0 || v->shape.dim[at] == 1
			             ? 0 : v->stride[at];
		}
		break;
	default:
		shape_strides(&y->shape, y->stride);
	}
	return id;
}

void
slice_view(struct setup *t, const Node *n, Shape shape)
{
	Val *x = &t->g->val[n->in[0]], *y = &t->g->val[n->out[0]];

	plain_layout(x);
	y->dt = x->dt;
	y->shape = shape;
	y->laid_out = true;
	y->base = val_owner(t->g, n->in[0]);
	y->start = x->start;
	for (int i = 0; i < shape.rank; i++) {
		y->stride[i] = x->stride[i] * n->attr.SLICE.step.v[i];
		y->start += n->attr.SLICE.start.v[i] * x->stride[i];
	}
}

void
permuted(struct setup *t, ValId id, const int *order)
{
	Val *v = &t->g->val[id];
	int64_t step = 1;

	plain_layout(v);
	for (int i = v->shape.rank - 1; i >= 0; i--) {
		v->stride[order[i]] = step;
		step *= v->shape.dim[order[i]];
	}
}

void
in_place(struct setup *t, Node *n, int slot, ValId owner)
{
	Val *y = &t->g->val[n->out[slot]], *o = &t->g->val[owner];

	plain_layout(o);
	memcpy(y->stride, o->stride, sizeof y->stride);
	y->laid_out = true;
	y->base = owner;
}

/* ---- the plan ---- */

static TensorKind
kind_of(const Val *v)
{
	switch (v->kind) {
	case V_PARAM: return K_PARAM;
	case V_BUFFER: return K_BUFFER;
	case V_CONST: return K_CONSTANT;
	case V_INPUT: return K_INPUT;
	case V_STATE: return K_STATE;
	default: return K_ACTIVATION;
	}
}

/* The lowest of a view's elements, counted in its owner. */
static int64_t
lowest(const Val *v)
{
	int64_t at = v->start;

	for (int i = 0; i < v->shape.rank; i++)
		if (v->stride[i] < 0)
			at += (v->shape.dim[i] - 1) * v->stride[i];
	return at;
}

/* Every value has a place of its own. */
static void
plan_tensor(struct setup *t, Plan *p, ValId id, int64_t *index)
{
	const Val *v = &t->g->val[id];
	struct plan_tensor *x;

	if (!id || index[id] >= 0)
		return;
	if (v->base)
		plan_tensor(t, p, v->base, index);
	else if (v->kind != V_TEMP)     /* these lie as codegen wants */
		t->g->val[id].nbytes += GAP;
	index[id] = p->ntensor;
	x = &p->tensor[p->ntensor++];
	*x = (struct plan_tensor){ .name = v->name, .val = id, .node = -1,
		.kind = kind_of(v), .dt = v->dt, .shape = v->shape,
		.bytes = v->nbytes, .offset = -1, .of = -1, .alias_of = -1,
		.low_precision_of = -1,
		.resident = v->kind != V_TEMP };
	if (v->base) {
		x->alias_of = index[v->base];
		x->alias_offset = lowest(v) * dtype_info[v->dt].nbytes;
		x->resident = p->tensor[x->alias_of].resident;
	} else if (!x->resident) {
		x->offset = p->sum.arena;
		p->sum.arena += x->bytes + GAP;
	}
}

static void
plan_step(struct setup *t, Plan *p, const Node *n, int64_t *index,
          int threads)
{
	struct plan_step *s = &p->step[p->nstep++];
	bool aliased = n->out[0] && t->g->val[n->out[0]].base;

	*s = (struct plan_step){ .op = op_info[n->op].text,
		.gnode = node_id(t->g, n), .node = -1, .of = -1,
		.phase = PH_FORWARD,
		.view = (op_info[n->op].flags & F_VIEW) && aliased,
		.workspace = t->machine->target->workspace(t->g, n, threads) };
	for (int i = 0; i < n->nin; i++)
		plan_tensor(t, p, n->in[i], index);
	for (int i = 0; i < n->nout; i++)
		plan_tensor(t, p, n->out[i], index);
	s->write = arena_array(t->arena, 1, sizeof *s->write);
	if (s->workspace % t->machine->target->align) {
		fprintf(stderr, "%s: %lld B of workspace are no multiple of "
		        "%lld\n", s->op, (long long)s->workspace,
		        (long long)t->machine->target->align);
		exit(1);
	}
	if (s->workspace > 0) {
		s->nwrite = 1;
		s->write[0] = p->ntensor;
		p->tensor[p->ntensor++] = (struct plan_tensor){
			.name = "workspace", .kind = K_WORKSPACE,
			.bytes = s->workspace, .offset = p->sum.arena,
			.of = -1, .alias_of = -1, .low_precision_of = -1,
			.first = p->nstep - 1,
			.last = p->nstep - 1 };
		p->sum.arena += s->workspace + WORKSPACE_GAP;
	}
}

Plan *
setup_plan(struct setup *t, int threads)
{
	Plan *p = arena_alloc(t->arena, sizeof *p);
	int64_t *index = arena_array(t->arena, t->g->nval, sizeof *index);

	FOR_VALS (v, t->g)
		plain_layout(v);
	memset(index, 0xff, t->g->nval * sizeof *index);
	p->tensor = arena_array(t->arena, t->g->nval + t->g->nnode,
	                        sizeof *p->tensor);
	p->step = arena_array(t->arena, t->g->nnode, sizeof *p->step);
	p->sum.budget = -1;
	p->replayed = true;             /* made by hand */
	FOR_NODES (n, t->g)
		plan_step(t, p, n, index, threads);
	return p;
}

bool
setup_compile(struct setup *t, const Plan *p, const char *cc, const char *so,
              const char *emit_dir, int threads)
{
	struct codegen_options opt = { .machine = t->machine, .out_so = so,
		.compiler = cc, .emit_dir = emit_dir, .threads = threads,
		.werror = true };

	return codegen_library(&(struct codegen_schedules){ .g = t->g,
		.plan = p }, &opt, t->diag);
}

/* ---- running ---- */

static void
naive_sgemm(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
            const float *a, int64_t lda, const float *b, int64_t ldb,
            float beta, float *c, int64_t ldc)
{
	double *sum = malloc((size_t)(n + n * k) * sizeof *sum + 1);
	double *rows = sum + n;         /* of b as it is multiplied */

	for (int64_t q = 0; q < k; q++)
		for (int64_t j = 0; j < n; j++)
			rows[q * n + j] = (double)(tb ? b[j * ldb + q]
			                           : b[q * ldb + j]);
	for (int64_t i = 0; i < m; i++) {
		for (int64_t j = 0; j < n; j++)
			sum[j] = 0;
		for (int64_t q = 0; q < k; q++) {
			double x = (double)(ta ? a[q * lda + i]
			                    : a[i * lda + q]);

			for (int64_t j = 0; j < n; j++)
				sum[j] += x * rows[q * n + j];
		}
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = (float)((double)alpha * sum[j]
				+ (beta != 0 ? (double)beta
				   * (double)c[i * ldc + j] : 0));
	}
	free(sum);
}

/* n x k bf16 as floats, rows packed. */
static float *
floats_of(const uint16_t *x, int64_t ld, int64_t n, int64_t k)
{
	float *to = malloc((size_t)(n * k) * sizeof *to + 1);

	for (int64_t i = 0; i < n * k; i++)
		to[i] = (float)load(DT_BF16, x, i / k * ld + i % k);
	return to;
}

static void
naive_bgemm(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
            const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb,
            float beta, float *c, int64_t ldc)
{
	float *x = floats_of(a, lda, ta ? k : m, ta ? m : k);
	float *y = floats_of(b, ldb, tb ? n : k, tb ? k : n);

	naive_sgemm(ta, tb, m, n, k, alpha, x, ta ? m : k, y, tb ? k : n, beta,
	            c, ldc);
	free(x);
	free(y);
}

/* Rows of n x k elements as doubles: element (i, j) lies at i ld + j, or if
 * trans at j ld + i. */
static double *
widened(uint8_t type, const void *x, int64_t at, bool trans, int64_t ld,
        int64_t n, int64_t k)
{
	double *to = malloc((size_t)(n * k) * sizeof *to + 1);

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			to[i * k + j] = load((DType)type, x,
				at + (trans ? j * ld + i : i * ld + j));
	return to;
}

/* What a library for GPUs would compute, on memory of the host. */
static void
naive_gemm(struct ckr_env *env, const struct ckr_gemm *g, const void *a,
           const void *b, const void *bias, const void *c, void *y,
           void *work, uint64_t bytes)
{
	(void)env;
	if (bytes)
		memset(work, 0xa5, bytes);
	for (int64_t q = 0; q < g->batch; q++) {
		double *x = widened(g->a, a, q * g->sa, g->ta, g->lda, g->m,
		                    g->k);
		double *z = widened(g->b, b, q * g->sb, !g->tb, g->ldb, g->n,
		                    g->k);

		for (int64_t i = 0; i < g->m * g->n; i++) {
			int64_t r = i / g->n, s = i % g->n;
			double sum = 0;

			for (int64_t k = 0; k < g->k; k++)
				sum += x[r * g->k + k] * z[s * g->k + k];
			sum *= (double)g->alpha;
			if (g->bias)
				sum += load((DType)g->bias, bias, s);
			if (g->c)
				sum += load((DType)g->c, c, q * g->sc
				            + r * g->ldc + s);
			store((DType)g->y, y, q * g->sy + r * g->ldy + s, sum);
		}
		free(x);
		free(z);
	}
}

struct ckr_env
env_usual(void)
{
	struct ckr_env env = { .sgemm = naive_sgemm,
		.sgemm_one = naive_sgemm, .sgemm_tile = naive_sgemm,
		.seed = 77, .step = 3,
		.micro = 1, .nmicro = 2, .threads = 1, .training = 1,
		.lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f,
		.weight_decay = 0.1f, .clip = 0.5f, .momentum = 0.8f,
		.nesterov = 1, .ranks = 1, .threshold = 1.5f, .eps2 = 1e-3f,
		.max_lr = 0.5f, .group = { 0.75f, -1 }, .loss_scale = 8,
		.unscale = 0.125f, .ema_weight = 0.25f, .replicas = 3 };

	env.gemm = naive_gemm;
	env.c1 = 1 - powf(env.beta1, 4);
	env.c2 = 1 - powf(env.beta2, 4);
	env.one_minus_beta2 = powf(4, -0.8f);
	return env;
}

static bool has_units;          /* run_units() */

/* A row of the table that the run time does not prepare is not called. */
static void
prepared_conv(void *convs, int thread, uint32_t job, void *x, void *w, void *y,
              void *scratch)
{
	const struct ckr_blocked *b = &((const struct ckr_blocked *)convs)[job];

	if (has_units ? b->without_units : b->type == CKR_BF16) {
		fprintf(stderr, "convolution %u of the table is called %s "
		        "units for bf16\n", job, has_units ? "with"
		        : "without");
		abort();
	}
	blocked_conv(convs, thread, job, x, w, y, scratch);
}

void
run_convs(struct run *r, bool on)
{
	size_t n = r->lib->nblocked;

	if (on && n && !r->ready) {
		r->ready = malloc(n);
		if (r->ready)
			memset(r->ready, 1, n);
	}
	r->env.conv = prepared_conv;
	r->env.convs = r->lib->arch ? (void *)(uintptr_t)r->lib->convolved
	             : (void *)(uintptr_t)r->lib->blocked;
	r->env.convolve = on ? convolved : NULL;
	r->env.conv_ready = on ? r->ready : NULL;
}

void
run_units(struct run *r, bool on)
{
	r->env.bgemm = on ? naive_bgemm : NULL;
	has_units = on;
}

bool
run_has_bf16(const struct run *r)
{
	bool any = false;

	for (uint32_t i = 0; i < r->lib->program[0].ntensor; i++)
		any |= r->lib->program[0].tensor[i].dtype == CKR_BF16;
	return any && !r->lib->arch;
}

bool
run_open(struct run *r, const char *so)
{
	const struct ckr_program *p;

	memset(r, 0, sizeof *r);
	/* OpenMP's threads outlive a dlclose */
	r->handle = dlopen(so, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!r->handle) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	r->lib = dlsym(r->handle, "ckr_library");
	if (!r->lib) {
		fprintf(stderr, "no ckr_library\n");
		return false;
	}
	p = &r->lib->program[0];
	r->arena = aligned_alloc(64, (p->arena_bytes + 127) / 64 * 64);
	r->resident = aligned_alloc(64, (p->resident_bytes + 127) / 64 * 64);
	r->env = env_usual();
	run_convs(r, true);
	return true;
}

void
run_close(struct run *r)
{
	free(r->arena);
	free(r->resident);
	free(r->ready);
	if (r->handle)
		dlclose(r->handle);
}

/* A view that runs backwards, whose owner is a tensor, too. */
static bool
is_spread(const struct ckr_tensor *t)
{
	for (int d = 0; d < t->rank; d++)
		if (t->stride[d] < 0)
			return true;
	return false;
}

void *
run_tensor(const struct run *r, int64_t i)
{
	const struct ckr_tensor *t;

	if (i < 0)
		return NULL;
	t = &r->lib->program[0].tensor[i];
	return (t->flags & CKR_RESIDENT ? r->resident : r->arena) + t->offset;
}

/* Contents by name; constants from the library itself. */
static void
fill(struct run *r, const struct setup *t)
{
	const struct ckr_program *p = &r->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *x = &p->tensor[i];
		ValId v = x->kind != CKR_OTHER ? val_find(t->g, x->name) : 0;

		if (x->kind == CKR_CONSTANT)
			memcpy(run_tensor(r, i), r->lib->constants + x->data,
			       x->nbytes);
		else if (v && t->contents[v])
			memcpy(run_tensor(r, i), t->contents[v], x->nbytes);
	}
}

/* What AddressSanitizer offers, if it is there: kernels that are built with it
 * then see a fault in what no tensor has. */
static void
tell_asan(const char *what, const void *p, uint64_t n)
{
	void (*fn)(const volatile void *, size_t);

	*(void **)&fn = dlsym(RTLD_DEFAULT, what);
	if (fn)
		fn(p, n);
}

static void
fence(const struct run *r, bool up)
{
	const struct ckr_program *p = &r->lib->program[0];
	const char *what = up ? "__asan_poison_memory_region"
	                      : "__asan_unpoison_memory_region";

	tell_asan(what, r->arena, p->arena_bytes);
	tell_asan(what, r->resident, p->resident_bytes);
	for (uint32_t i = 0; i < p->ntensor && up; i++)
		if (!is_spread(&p->tensor[i]))
			tell_asan("__asan_unpoison_memory_region",
			          run_tensor(r, i), p->tensor[i].nbytes);
}

void
run_once(struct run *r, const struct setup *t, int threads)
{
	const struct ckr_program *p = &r->lib->program[0];
	void *arg[64];

	memset(r->arena, UNTOUCHED, p->arena_bytes);
	memset(r->resident, UNTOUCHED, p->resident_bytes);
	fill(r, t);
	r->env.threads = threads;
	r->env.fault = NULL;
	r->device = r->env;
	r->env.device = &r->device;
	fence(r, true);
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];

		for (uint32_t k = 0; k < s->narg; k++)
			arg[k] = run_tensor(r, p->arg[s->arg0 + k]);
		if (s->run)
			s->run(arg, p->constant + s->const0, &r->env);
	}
	fence(r, false);
}

/* ---- comparing ---- */

static bool
close_enough(DType dt, double got, double want, double tolerance)
{
	double usual;

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (got == want)
		return true;
	if (dtype_info[dt].cls != 'f')
		return false;
	usual = dt == DT_BF16 ? 1e-2 : dt == DT_F16 ? 2e-3 : 2e-5;
	if (tolerance == 0 || ((dt == DT_BF16 || dt == DT_F16) &&
	                       tolerance < usual))
		tolerance = usual;
	return fabs(got - want) <= tolerance * (1 + fabs(want));
}

/* Row-major element i in memory. */
static int64_t
position(const struct ckr_tensor *t, int64_t i)
{
	int64_t at = 0;

	for (int d = t->rank - 1; d >= 0; d--) {
		at += i % t->dim[d] * t->stride[d];
		i /= t->dim[d];
	}
	return at;
}

static int
compare_value(const struct run *r, const struct setup *t, int64_t index,
              ValId id, const double *want)
{
	const Val *v = &t->g->val[id];
	const struct ckr_tensor *x = &r->lib->program[0].tensor[index];
	const void *got = run_tensor(r, index);
	int bad = 0;

	for (int64_t i = 0; i < val_nelem(v); i++) {
		double g = load(v->dt, got, position(x, i));

		if (close_enough(v->dt, g, want[i], t->tolerance[v->def]))
			continue;
		if (bad++ < MAX_SHOWN)
			fprintf(stderr, "%s: %s: output %d, element %lld: "
			        "got %.9g, expected %.9g\n",
			        t->name_of[v->def],
			        op_info[t->g->node[v->def].op].text, v->result_index,
			        (long long)i, g, want[i]);
	}
	return bad > 0;
}

/* Bytes of the arena that belong to no tensor and were written. */
static int
stray_writes(const struct run *r)
{
	const struct ckr_program *p = &r->lib->program[0];
	unsigned char *owned = calloc(1, p->arena_bytes + 1);
	int bad = 0;

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (!(t->flags & CKR_RESIDENT) && !is_spread(t))
			memset(owned + t->offset, 1, t->nbytes);
	}
	for (uint64_t i = 0; i < p->arena_bytes; i++)
		if (!owned[i] && r->arena[i] != UNTOUCHED && bad++ < MAX_SHOWN)
			fprintf(stderr, "stray write at byte %llu\n",
			        (unsigned long long)i);
	free(owned);
	return bad;
}

static struct interp *
interpret(const struct setup *t, const struct ckr_env *env)
{
	struct interp *i = interp_new(t->g);
	struct interp_env *e = interp_env(i);

	e->seed = env->seed;
	e->step = env->step;
	e->micro = env->micro;
	e->training = env->training;
	e->lr = (double)(env->lr * env->group.lr);
	e->beta1 = (double)env->beta1;
	e->beta2 = (double)env->beta2;
	e->eps = (double)env->eps;
	e->weight_decay = (double)env->weight_decay;
	e->momentum = (double)env->momentum;
	e->nesterov = env->nesterov;
	e->threshold = (double)env->threshold;
	e->eps2 = (double)env->eps2;
	e->clip = (double)env->clip;
	e->loss_scale = (double)env->loss_scale;
	e->replicas = env->replicas;
	e->ema_decay = 1 - (double)env->ema_weight;
	for (ValId v = 1; v < t->g->nval; v++)
		if (t->contents[v])
			interp_load(i, v, t->contents[v]);
	if (!interp_run_all(i))
		fprintf(stderr, "interpreter: %s\n", interp_error(i));
	return i;
}

int
run_compare(const struct run *r, struct setup *t)
{
	const struct ckr_program *p = &r->lib->program[0];
	struct interp *ref = t->reference;
	int bad = 0;

	/* the same for every run: all begin with env_usual's settings */
	if (!ref)
		ref = t->reference = interpret(t, &r->env);

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *x = &p->tensor[i];
		ValId id = val_find(t->g, x->name);
		const double *want = id ? interp_get(ref, id) : NULL;

		if (!id || t->g->val[id].kind != V_TEMP ||
		    !t->g->val[id].output)
			continue;
		if (!want) {
			fprintf(stderr, "no reference for %s\n", x->name);
			bad++;
			continue;
		}
		bad += compare_value(r, t, i, id, want);
	}
	return bad + stray_writes(r);
}
