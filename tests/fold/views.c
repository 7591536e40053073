/* Views: an element of a view must lie where the op that made the view says
 * that it comes from.  Random chains of reshape, transpose, slice and expand
 * end in readers of each kind; every operand must be laid out as its reader
 * needs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "ir/text/text.h"
#include "ir/infer/infer.h"
#include "ir/verify/verify.h"
#include "passes/fuse/fuse.h"
#include "codegen/cpu/cpu.h"

bool pass_layout(Pass *, Graph *);

enum { GRAPHS = 400, CHAIN = 5 };

struct test {
	Graph *g;
	Pass pass;
	uint64_t random;
	int failed, views, copies;
};

static uint32_t
rnd(struct test *t, uint32_t n)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->random >> 33) % n;
}

/* ---- graphs ---- */

static ValId
emit(struct test *t, Op op, ValId x, const Attr *attr)
{
	return emit_op(t->g, t->pass.diag, op, 1, &x, attr, 0);
}

/* Merge two axes, or split one, or add an axis of 1. */
static ValId
reshape(struct test *t, ValId x)
{
	Shape s = t->g->val[x].shape, y = { .rank = 0 };
	Attr a = attr_default(OP_RESHAPE);
	int d = (int)rnd(t, (uint32_t)s.rank);
	bool merge = rnd(t, 2) && d + 1 < s.rank;

	for (int i = 0; i < s.rank; i++) {
		if (merge && i == d) {
			y.dim[y.rank++] = s.dim[i] * s.dim[i + 1];
			i++;
		} else if (!merge && i == d && s.rank < 5) {
			int64_t f = s.dim[i] % 2 == 0 ? 2 : 1;
			y.dim[y.rank++] = f;
			y.dim[y.rank++] = s.dim[i] / f;
		} else {
			y.dim[y.rank++] = s.dim[i];
		}
	}
	a.RESHAPE.shape.n = y.rank;
	memcpy(a.RESHAPE.shape.v, y.dim, sizeof y.dim);
	return emit(t, OP_RESHAPE, x, &a);
}

static ValId
transpose(struct test *t, ValId x)
{
	int rank = t->g->val[x].shape.rank;
	Attr a = attr_default(OP_TRANSPOSE);
	IntList *perm = &a.TRANSPOSE.perm;

	for (perm->n = 0; perm->n < rank; perm->n++)
		perm->v[perm->n] = perm->n;
	for (int d = rank - 1; d > 0; d--) {
		int k = (int)rnd(t, (uint32_t)d + 1);
		int64_t v = perm->v[d];
		perm->v[d] = perm->v[k];
		perm->v[k] = v;
	}
	return emit(t, OP_TRANSPOSE, x, &a);
}

static ValId
slice(struct test *t, ValId x)
{
	Shape s = t->g->val[x].shape, y = s;
	Node *n = node_new(t->g, OP_SLICE, 1, &x, 0, 0);
	IntList *start = &n->attr.SLICE.start, *step = &n->attr.SLICE.step;

	start->n = step->n = s.rank;
	for (int d = 0; d < s.rank; d++) {
		int64_t by = rnd(t, 4) ? 1 : rnd(t, 2) ? 2 : -1;
		start->v[d] = rnd(t, 2) ? rnd(t, (uint32_t)s.dim[d]) : 0;
		step->v[d] = by;
		int64_t room = by < 0 ? start->v[d]
		                      : s.dim[d] - 1 - start->v[d];
		y.dim[d] = 1 + room / (by < 0 ? -by : by);
	}
	t->g->val[n->out[0]].shape = y;
	return shape_infer(t->g, t->pass.diag, n) ? n->out[0] : 0;
}

static ValId
expand(struct test *t, ValId x)
{
	Shape s = t->g->val[x].shape;
	Attr a = attr_default(OP_EXPAND);

	for (int d = 0; d < s.rank; d++)
		if (s.dim[d] == 1)
			s.dim[d] = 1 + rnd(t, 3);
	a.EXPAND.shape.n = s.rank;
	memcpy(a.EXPAND.shape.v, s.dim, sizeof s.dim);
	return emit(t, OP_EXPAND, x, &a);
}

static void
read_by(struct test *t, ValId x)
{
	Graph *g = t->g;
	Node *n;
	struct body *b;

	switch (rnd(t, 4)) {
	case 0:
		n = node_new(g, OP_LOOP, 1, &x, 1, 0);
		b = arena_alloc(g->arena, sizeof *b);
		b->op = arena_alloc(g->arena, sizeof *b->op);
		b->result = arena_alloc(g->arena, sizeof *b->result);
		b->nop = 1;
		b->op[0] = (struct scalar_op){ .op = OP_NEG, .dt = DT_F32,
		                              .narg = 1 };
		n->body = b;
		shape_infer(g, t->pass.diag, n);
		break;
	case 1:
		if (g->val[x].shape.rank >= 2) {
			Attr a = attr_default(OP_MATMUL);
			a.MATMUL.tb = 1;
			emit_op(g, t->pass.diag, OP_MATMUL, 2,
			        (ValId[]){ x, x }, &a, 0);
			break;
		}
		/* fall through */
	case 2:
		emit(t, OP_SOFTMAX, x, NULL);
		break;
	default:
		g->val[x].output = true;
	}
}

static void
build(struct test *t)
{
	Shape s = { .rank = 2 + (int)rnd(t, 3) };

	for (int d = 0; d < s.rank; d++)
		s.dim[d] = 1 + rnd(t, 5);
	ValId x = val_new(t->g, V_INPUT, "x", DT_F32, s);
	int n = 1 + (int)rnd(t, CHAIN);
	for (int i = 0; i < n && x; i++) {
		uint32_t which = rnd(t, 4);
		x = which == 0 ? reshape(t, x) : which == 1 ? transpose(t, x)
		    : which == 2 ? slice(t, x) : expand(t, x);
		if (x && (i == n - 1 || rnd(t, 2)))
			read_by(t, x);
	}
}

/* ---- what must hold ---- */

static void
fail(struct test *t, const Node *n, const char *what)
{
	printf("%s: %s\n", op_info[n->op].text, what);
	if (t->failed++ == 0)
		text_print(t->g, stdout);
}

static int64_t
address(const Val *v, const int64_t *idx)
{
	int64_t at = v->start;

	for (int d = 0; d < v->shape.rank; d++)
		at += idx[d] * v->stride[d];
	return at;
}

static void
unravel(const Shape *s, int64_t i, int64_t *idx)
{
	for (int d = s->rank; d-- > 0; i /= s->dim[d])
		idx[d] = i % s->dim[d];
}

/* Where element idx of the output comes from, by the meaning of the op. */
static void
source(const Node *n, const Val *x, const Val *y, int64_t i,
       const int64_t *idx, int64_t *from)
{
	int pad = y->shape.rank - x->shape.rank;

	switch (n->op) {
	case OP_RESHAPE:
		unravel(&x->shape, i, from);
		break;
	case OP_TRANSPOSE:
		for (int d = 0; d < y->shape.rank; d++)
			from[n->attr.TRANSPOSE.perm.v[d]] = idx[d];
		break;
	case OP_SLICE:
		for (int d = 0; d < y->shape.rank; d++)
			from[d] = n->attr.SLICE.start.v[d]
			          + idx[d] * n->attr.SLICE.step.v[d];
		break;
	default:
		for (int d = 0; d < x->shape.rank; d++)
			from[d] = x->shape.dim[d] == 1 ? 0 : idx[d + pad];
	}
}

static void
check_view(struct test *t, const Node *n)
{
	const Graph *g = t->g;
	const Val *x = &g->val[n->in[0]], *y = &g->val[n->out[0]];
	int64_t idx[MAX_RANK], from[MAX_RANK];

	if (y->base == 0) {
		if (!val_contiguous(y))
			fail(t, n, "a copy that is not row-major");
		return;
	}
	t->views++;
	if (y->base != val_owner(g, n->in[0]) || g->val[y->base].base != 0)
		fail(t, n, "not a view of its input's owner");
	for (int64_t i = 0; i < val_nelem(y); i++) {
		unravel(&y->shape, i, idx);
		source(n, x, y, i, idx, from);
		if (address(y, idx) != address(x, from)) {
			fail(t, n, "an element lies elsewhere");
			return;
		}
	}
	if (y->output && !val_contiguous(y))
		fail(t, n, "an output that is not row-major");
}

static void
check_operand(struct test *t, const Node *n, int k)
{
	const Val *v = &t->g->val[n->in[k]];
	int r = v->shape.rank;

	if (n->op == OP_SOFTMAX && !val_contiguous(v))
		fail(t, n, "operand is not row-major");
	if (n->op != OP_MATMUL || val_contiguous(v))
		return;
	int64_t row = v->stride[r - 2], col = v->stride[r - 1];
	if (!(col == 1 && row >= v->shape.dim[r - 1])
	    && !(row == 1 && col >= v->shape.dim[r - 2]))
		fail(t, n, "operand is not a matrix");
}

int
main(void)
{
	struct options opt = { .fold_limit = 1 << 20 };
	struct test t = { .random = 7 };

	t.pass = (Pass){ .target = &target_cpu, .diag = diag_new("views", stderr), .opt = &opt,
	                 .scratch = arena_new(), .keep = arena_new() };
	for (int i = 0; i < GRAPHS && !t.failed; i++) {
		t.g = graph_new("t");
		build(&t);
		if (!pass_layout(&t.pass, t.g)
		    || !graph_verify(t.g, t.pass.diag))
			t.failed++;
		FOR_NODES (n, t.g) {
			t.copies += n->op == OP_COPY;
			if (op_info[n->op].flags & F_VIEW)
				check_view(&t, n);
			for (int k = 0; k < n->nin; k++)
				check_operand(&t, n, k);
		}
		graph_free(t.g);
	}
	/* a test without views or without copies would test nothing */
	if (t.views < GRAPHS / 2 || t.copies < GRAPHS / 20) {
		printf("too few views or copies\n");
		t.failed++;
	}
	printf("%d views, %d copies, %d failures\n", t.views, t.copies,
	       t.failed);
	arena_free(t.pass.scratch);
	arena_free(t.pass.keep);
	diag_free(t.pass.diag);
	return t.failed != 0;
}
