/* Gradients against central differences, for every rule of ops.h.
 *
 * Each case builds a small graph whose loss is a weighted sum of what is
 * tested.  Pass autodiff differentiates it; the reference interpreter computes
 * loss and gradients in double precision; every element of every parameter is
 * then moved by h both ways.  A row of ops.h whose gradient is a rule and that
 * no case exercises is a failure of its own.
 */
#include "tests/grad/fd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/grad/grad_rules.h"
#include "passes/passes.h"
#include "tests/ref/interp.h"
#include "passes/grad/grad.h"
#include "codegen/cpu/cpu.h"
#include "ir/infer/infer.h"

/* ---- building ---- */

double
fd_random(struct fd *f, double lo, double hi)
{
	f->rng ^= f->rng << 13;
	f->rng ^= f->rng >> 7;
	f->rng ^= f->rng << 17;
	return lo + (hi - lo) * (double)(f->rng >> 11) * 0x1p-53;
}

static double *
give(struct fd *f, ValId v)
{
	int64_t n = shape_nelem(&f->g->val[v].shape);
	double *x = arena_array(f->g->arena, (size_t)n + 1, sizeof *x);

	if (f->ngiven == FD_GIVEN)
		abort();
	f->given[f->ngiven++] = (struct fd_given){ v, x };
	return x;
}

ValId
fd_param_in(struct fd *f, Shape s, double lo, double hi)
{
	ValId v = val_new(f->g, V_PARAM, "p", DT_F32, s);
	double *x = give(f, v);

	for (int64_t i = 0; i < shape_nelem(&s); i++)
		x[i] = fd_random(f, lo, hi);
	return v;
}

ValId
fd_param(struct fd *f, Shape s)
{
	ValId v = fd_param_in(f, s, .1, 1);
	double *x = f->given[f->ngiven - 1].x;

	for (int64_t i = 0; i < shape_nelem(&s); i++)
		if (fd_random(f, 0, 1) < .5)
			x[i] = -x[i];
	return v;
}

ValId
fd_param_at(struct fd *f, Shape s, const double *at)
{
	ValId v = val_new(f->g, V_PARAM, "p", DT_F32, s);

	memcpy(give(f, v), at, (size_t)shape_nelem(&s) * sizeof *at);
	return v;
}

ValId
fd_input(struct fd *f, Shape s)
{
	ValId v = fd_param(f, s);

	f->g->val[v].kind = V_INPUT;
	return v;
}

static ValId
numbers(struct fd *f, DType dt, Shape s, const int *at)
{
	ValId v = val_new(f->g, V_INPUT, "i", dt, s);
	double *x = give(f, v);

	for (int64_t i = 0; i < shape_nelem(&s); i++)
		x[i] = at[i];
	return v;
}

ValId
fd_ints(struct fd *f, Shape s, const int *at)
{
	return numbers(f, DT_I64, s, at);
}

ValId
fd_bools(struct fd *f, Shape s, const int *at)
{
	return numbers(f, DT_BOOL, s, at);
}

static _Noreturn void
broken(Op op)
{
	printf("FAIL a case builds %s wrongly\n", op_info[op].text);
	exit(1);
}

ValId
fd_op(struct fd *f, Op op, int nin, const ValId *in, const Attr *a)
{
	ValId v = emit_op(f->g, f->diag, op, nin, in, a, 0);

	if (v == 0)
		broken(op);
	return v;
}

ValId
fd_1(struct fd *f, Op op, ValId a)
{
	return fd_op(f, op, 1, &a, NULL);
}

ValId
fd_2(struct fd *f, Op op, ValId a, ValId b)
{
	return fd_op(f, op, 2, (ValId[]){ a, b }, NULL);
}

ValId
fd_slice(struct fd *f, ValId x, IntList start, Shape extent, IntList step)
{
	Node *n = node_new(f->g, OP_SLICE, 1, &x, 1, 0);
	ValId y = n->out[0];

	n->attr.SLICE.start = start;
	n->attr.SLICE.step = step;
	f->g->val[y].dt = f->g->val[x].dt;
	f->g->val[y].shape = extent;
	if (!shape_infer(f->g, f->diag, n))
		broken(OP_SLICE);
	return y;
}

void
fd_loss(struct fd *f, ValId y)
{
	ValId r = fd_input(f, f->g->val[y].shape);
	Attr a = attr_default(OP_REDUCE_SUM);

	f->g->val[r].dt = f->g->val[y].dt;
	y = fd_2(f, OP_MUL, y, r);
	a.REDUCE_SUM.keepdims = 0;
	f->g->loss = fd_op(f, OP_REDUCE_SUM, 1, &y, &a);
}

/* ---- checking ---- */

struct check {
	struct fd f;
	const char *name;
	int variant;
	NodeId nforward;
	bool *covered;
	int nfault;
};

static void
fault(struct check *c, const char *what)
{
	if (c->nfault++ < 5)
		printf("FAIL %s/%d: %s\n", c->name, c->variant, what);
}

static void
mark_covered(struct check *c, Arena *scratch)
{
	bool *reach = grad_reach(c->f.g, scratch);

	FOR_NODES (n, c->f.g)
		for (int k = 0; k < n->nin; k++)
			if (grad_passes(c->f.g, n, k) && reach[n->in[k]])
				c->covered[n->op] = true;
}

static bool
differentiate(struct check *c)
{
	struct options opt = { .grad_accum = c->f.grad_accum };
	Pass p = { .target = &target_cpu, .diag = c->f.diag, .opt = &opt, .scratch = arena_new(),
		.keep = c->f.g->arena };
	bool ok;

	c->nforward = c->f.g->nnode;
	mark_covered(c, p.scratch);
	ok = pass_autodiff(&p, c->f.g);
	arena_free(p.scratch);
	return ok;
}

/* The backward is in phase backward, reads only what is written before, and
 * adjoints have the dtype and shape of what they are the adjoint of. */
static void
check_form(struct check *c)
{
	const Graph *g = c->f.g;

	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		if (n->phase != (id < c->nforward ? PH_FORWARD : PH_BACKWARD))
			fault(c, "wrong phase");
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && g->val[n->in[k]].def >= id)
				fault(c, "read before it is written");
	}
	FOR_VALS (v, g) {
		const Val *of = &g->val[v->grad_of];

		if (v->grad_of && (!shape_eq(&v->shape, &of->shape)
		                   || v->dt != of->dt))
			fault(c, "adjoint of another shape or type");
	}
}

static ValId
final_gradient(struct check *c, ValId p)
{
	ValId found = 0;

	FOR_VALS (v, c->f.g)
		if (v->kind == V_TEMP && v->param == p) {
			if (found)
				fault(c, "two final gradients");
			found = val_id(c->f.g, v);
		}
	return found;
}

static bool
loss_at(struct check *c, struct interp *it, double *loss)
{
	if (!interp_run(it, 1, c->nforward)) {
		fault(c, interp_error(it));
		return false;
	}
	*loss = interp_get(it, c->f.g->loss)[0];
	return true;
}

static void
check_element(struct check *c, struct interp *it, struct fd_given *p,
              int64_t i, double found)
{
	double h = c->f.h ? c->f.h : 1e-5, tol = c->f.tol ? c->f.tol : 2e-6;
	double at = p->x[i], up, down, want;
	char text[160];

	p->x[i] = at + h;
	interp_set(it, p->val, p->x);
	if (!loss_at(c, it, &up))
		return;
	p->x[i] = at - h;
	interp_set(it, p->val, p->x);
	if (!loss_at(c, it, &down))
		return;
	p->x[i] = at;
	interp_set(it, p->val, p->x);
	want = (up - down) / (2 * h);
	if (c->f.grad_accum > 1)
		want /= (double)c->f.grad_accum;
	if (fabs(found - want) <= tol * (1 + fabs(want)))
		return;
	snprintf(text, sizeof text, "%s[%lld]: gradient %.9g, differences "
	         "give %.9g", c->f.g->val[p->val].name, (long long)i, found,
	         want);
	fault(c, text);
}

static void
check_gradients(struct check *c)
{
	struct interp *it = interp_new(c->f.g);

	interp_env(it)->seed = 7;
	for (int k = 0; k < c->f.ngiven; k++)
		interp_set(it, c->f.given[k].val, c->f.given[k].x);
	if (!interp_run_all(it)) {
		fault(c, interp_error(it));
		interp_free(it);
		return;
	}
	for (int k = 0; k < c->f.ngiven; k++) {
		struct fd_given *p = &c->f.given[k];
		const Val *v = &c->f.g->val[p->val];
		ValId d = final_gradient(c, p->val);
		int64_t n = shape_nelem(&v->shape);

		if (v->kind != V_PARAM)
			continue;
		if (v->frozen != (d == 0)) {
			fault(c, "gradient and mark of the parameter differ");
			continue;
		}
		/* Forward runs do not touch the gradient.  What was frozen
		 * must not move the loss. */
		for (int64_t i = 0; i < n; i++)
			check_element(c, it, p, i,
			              d ? interp_get(it, d)[i] : 0);
	}
	interp_free(it);
}

static int
run_case(const struct fd_case *k, int variant, bool *covered)
{
	struct check c = { .name = k->name, .variant = variant,
		.covered = covered };
	FILE *said = tmpfile();         /* of interest if the case fails */

	if (said == NULL)
		abort();
	c.f.g = graph_new(k->name);
	c.f.diag = diag_new("fd", said);
	c.f.rng = 0x9e3779b97f4a7c15u + (uint64_t)variant * 77;
	k->build(&c.f, variant);
	if (!differentiate(&c)) {
		fault(&c, "pass autodiff failed");
	} else {
		check_form(&c);
		check_gradients(&c);
	}
	rewind(said);
	for (int ch; c.nfault > 0 && (ch = getc(said)) != EOF; )
		putchar(ch);
	fclose(said);
	diag_free(c.f.diag);
	graph_free(c.f.g);
	return c.nfault;
}

/* ---- rows without a case ---- */

/* What goes between ranks, or micro-batches, takes several: check_spmd.py and
 * check_forms.py of tests/ref have it. */
static bool
is_of_several(int op)
{
	return op_info[op].flags & F_COMM || op == OP_REPLICATE
		|| op == OP_BATCH_TOTAL;
}

static int
check_coverage(const bool *covered)
{
	int nfault = 0;

	for (int op = 1; op < OP_COUNT; op++) {
		if (grad_table[op] == grad_none || grad_table[op] == grad_zero
		    || covered[op] || is_of_several(op))
			continue;
		printf("FAIL no case covers the gradient of %s\n",
		       op_info[op].text);
		nfault++;
	}
	return nfault;
}

int
main(int argc, char **argv)
{
	static bool covered[OP_COUNT];
	int ncase = 0, nfailed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);       /* a crash names its case */
	for (const struct fd_case *k = fd_cases; k->name; k++) {
		if (argc > 1 && strcmp(argv[1], k->name) != 0)
			continue;
		for (int i = 0; i < k->nvariant; i++, ncase++)
			nfailed += run_case(k, i, covered) > 0;
	}
	if (argc == 1)
		nfailed += check_coverage(covered);
	printf("%d cases, %d failed\n", ncase, nfailed);
	return nfailed > 0;
}
