/* Constant folding against the reference interpreter: random constants
 * through every op that both know.  A walk over ops.h fails if an op with a
 * folding rule has no case here and is not on the list of those that .ck files
 * test, because they never reach the interpreter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cpu/cpu.h"
#include "passes/eval/eval.h"
#include "tests/ref/interp.h"
#include "ir/infer/infer.h"

enum { ROUNDS = 40 };

struct test {
	Graph *g;
	Pass pass;
	struct options opt;
	uint64_t random;
	bool covered[OP_COUNT];
	int failed, checked;
};

static uint32_t
rnd(struct test *t, uint32_t n)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->random >> 33) % n;
}

static const DType number[] = { DT_F32, DT_F64, DT_I64, DT_I32, DT_U8 };

static DType
some_number(struct test *t)
{
	return number[rnd(t, 5)];
}

static Shape
some_shape(struct test *t, int min_rank)
{
	Shape s = { .rank = min_rank + (int)rnd(t, (uint32_t)(5 - min_rank)) };

	for (int d = 0; d < s.rank; d++)
		s.dim[d] = 1 + rnd(t, 4);
	/* rows longer than what is computed at a time */
	if (s.rank && rnd(t, 8) == 0)
		s.dim[s.rank - 1] = 500 + rnd(t, 700);
	return s;
}

/* A constant with small random contents in low..high (integers or quarters). */
static ValId
constant(struct test *t, DType dt, Shape s, int low, int high)
{
	int64_t n = shape_nelem(&s);
	char *data = malloc((size_t)n * 8 + 8);

	for (int64_t i = 0; i < n; i++) {
		int quarters = low * 4 + (int)rnd(t, (uint32_t)(high - low) * 4
		                                     + 1);
		int whole = low + (int)rnd(t, (uint32_t)(high - low) + 1);
		switch (dt) {
		case DT_F32:
			((float *)(void *)data)[i] = (float)quarters / 4;
			break;
		case DT_F64:
			((double *)(void *)data)[i] = (double)quarters / 4;
			break;
		case DT_I64:
			((int64_t *)(void *)data)[i] = whole;
			break;
		case DT_I32:
			((int32_t *)(void *)data)[i] = whole;
			break;
		default:
			data[i] = (char)(whole < 0 ? -whole : whole);
		}
	}
	ValId v = val_const(t->g, NULL, dt, s, data);
	free(data);
	return v;
}

static ValId
mask(struct test *t, Shape s)
{
	return constant(t, DT_BOOL, s, 0, 1);
}

/* Run node n, made last, both ways and compare. */
static void
check(struct test *t, Node *n)
{
	Graph *g = t->g;
	ValId y = n->out[0];
	Op op = n->op;

	t->covered[op] = true;
	if (!shape_infer(g, t->pass.diag, n)) {
		t->failed++;
		return;
	}
	struct interp *ip = interp_new(g);
	interp_env(ip)->round = true;
	if (!interp_run(ip, node_id(g, n), node_id(g, n) + 1)) {
		printf("%s: interpreter: %s\n", op_info[op].text,
		       interp_error(ip));
		t->failed++;
		interp_free(ip);
		return;
	}
	int64_t count = val_nelem(&g->val[y]);
	double *want = malloc((size_t)count * sizeof *want + 8);
	memcpy(want, interp_get(ip, y), (size_t)count * sizeof *want);
	interp_free(ip);
	enum eval_status status = eval_node(&t->pass, g, n, g->arena);
	if (status != EVAL_DONE && status != EVAL_LARGE) {
		printf("%s: not folded\n", op_info[op].text);
		t->failed++;
	} else if (status == EVAL_DONE) {
		const Val *v = &g->val[y];
		bool exact = dtype_info[v->dt].cls != 'f';
		for (int64_t i = 0; i < count; i++) {
			double x = val_float(v, i), w = want[i];
			double room = exact ? 0 : 2e-6 * (1 + fabs(w));
			if ((isnan(x) && isnan(w)) || x == w
			    || fabs(x - w) <= room)
				continue;
			printf("%s: element %lld is %.9g, not %.9g\n",
			       op_info[op].text, (long long)i, x, w);
			t->failed++;
			break;
		}
	}
	t->checked++;
	free(want);
}

static Node *
node(struct test *t, Op op, int nin, const ValId *in)
{
	return node_new(t->g, op, nin, in, 0, 0);
}

/* ---- element-wise ---- */

static void
unary(struct test *t, Op op)
{
	bool has_int = op == OP_NEG || op == OP_ABS || op == OP_SIGN
	               || op == OP_RELU;
	DType dt = has_int ? some_number(t) : rnd(t, 2) ? DT_F32 : DT_F64;
	int low = op == OP_LOG || op == OP_SQRT ? 0 : -3;

	if (dt == DT_U8)
		dt = DT_I32;            /* -x of an unsigned x wraps */
	if (op == OP_NOT)
		dt = DT_BOOL;
	if (op == OP_BIT_NOT)
		dt = DT_I32;
	ValId x = constant(t, dt, some_shape(t, 0), low, 3);
	Node *n = node(t, op, 1, &x);
	if (op == OP_GELU)
		n->attr.GELU.tanh = rnd(t, 2);
	check(t, n);
}

/* Two shapes that broadcast. */
static void
two_shapes(struct test *t, Shape *a, Shape *b)
{
	*a = *b = some_shape(t, 0);
	for (int d = 0; d < a->rank; d++)
		if (rnd(t, 3) == 0)
			(rnd(t, 2) ? a : b)->dim[d] = 1;
	if (b->rank && rnd(t, 3) == 0) {
		memmove(b->dim, b->dim + 1, sizeof b->dim[0] * 7);
		b->rank--;
	}
}

static void
binary(struct test *t, Op op)
{
	DType dt = some_number(t);
	bool divides = op == OP_DIV || op == OP_MOD;
	bool bits = op >= OP_BIT_AND && op <= OP_SHR;
	bool shifts = op == OP_SHL || op == OP_SHR;
	Shape a, b;

	two_shapes(t, &a, &b);
	if (dt == DT_U8 && op != OP_MAX && op != OP_MIN && !divides)
		dt = DT_I64;            /* the interpreter does not wrap */
	if (bits)
		dt = shifts ? DT_U8 : DT_I64;
	if (op_info[op].flags & F_FLOATS)
		dt = DT_F32;
	ValId in[2] = {
		constant(t, dt, a, op == OP_POW || shifts ? 0 : -9,
		         op == OP_POW ? 4 : 9),
		constant(t, dt, b, divides || op == OP_POW || shifts ? 1 : -9,
		         3),
	};
	Node *n = node(t, op, 2, in);
	if (op == OP_MOD)
		n->attr.MOD.fmod = rnd(t, 2);
	check(t, n);
}

static void
compare(struct test *t, Op op)
{
	bool logic = op == OP_AND || op == OP_OR || op == OP_XOR;
	DType dt = logic ? DT_BOOL : some_number(t);
	Shape a, b;

	two_shapes(t, &a, &b);
	ValId in[2] = { constant(t, dt, a, logic ? 0 : -2, logic ? 1 : 2),
	                constant(t, dt, b, logic ? 0 : -2, logic ? 1 : 2) };
	check(t, node(t, op, 2, in));
}

static void
where(struct test *t, Op op)
{
	DType dt = some_number(t);
	Shape a, b;

	two_shapes(t, &a, &b);
	ValId in[3] = { mask(t, a), constant(t, dt, b, -9, 9),
	                constant(t, dt, shape_scalar(), -9, 9) };
	check(t, node(t, op, 3, in));
}

static void
cast(struct test *t, Op op)
{
	DType dt = some_number(t);
	ValId x = constant(t, dt, some_shape(t, 0), 0, 100);
	Node *n = node(t, op, 1, &x);

	n->attr.CAST.to = 1 + rnd(t, DT_BOOL);
	check(t, n);
}

/* ---- moves ---- */

static void
same(struct test *t, Op op)
{
	ValId x = constant(t, some_number(t), some_shape(t, 0), -9, 9);

	check(t, node(t, op, 1, &x));
}

static void
reshape(struct test *t, Op op)
{
	ValId x = constant(t, some_number(t), SHAPE(2, 3, 4), -9, 9);
	Node *n = node(t, op, 1, &x);

	n->attr.RESHAPE.shape = (IntList){ 2, { 6, 4 } };
	check(t, n);
}

static void
expand(struct test *t, Op op)
{
	Shape a, b;

	two_shapes(t, &a, &b);
	ValId x = constant(t, some_number(t), b, -9, 9);
	Node *n = node(t, op, 1, &x);
	if (a.rank < b.rank)
		a = b;
	shape_broadcast(&a, &b);
	n->attr.EXPAND.shape.n = a.rank;
	memcpy(n->attr.EXPAND.shape.v, a.dim, sizeof a.dim);
	check(t, n);
}

static void
transpose(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	ValId x = constant(t, some_number(t), s, -9, 9);
	Node *n = node(t, op, 1, &x);
	IntList *perm = &n->attr.TRANSPOSE.perm;

	for (perm->n = 0; perm->n < s.rank; perm->n++)
		perm->v[perm->n] = perm->n;
	for (int d = s.rank - 1; d > 0; d--) {
		int k = (int)rnd(t, (uint32_t)d + 1);
		int64_t v = perm->v[d];
		perm->v[d] = perm->v[k];
		perm->v[k] = v;
	}
	check(t, n);
}

static void
slice(struct test *t, Op op)
{
	Shape s = some_shape(t, 1), y = s;
	ValId x = constant(t, some_number(t), s, -9, 9);
	Node *n = node(t, op, 1, &x);
	IntList *start = &n->attr.SLICE.start, *step = &n->attr.SLICE.step;

	start->n = step->n = s.rank;
	for (int d = 0; d < s.rank; d++) {
		bool back = rnd(t, 2);
		start->v[d] = rnd(t, (uint32_t)s.dim[d]);
		step->v[d] = (back ? -1 : 1) * (int64_t)(1 + rnd(t, 2));
		int64_t room = back ? start->v[d] : s.dim[d] - 1 - start->v[d];
		y.dim[d] = 1 + room / llabs(step->v[d]);
	}
	t->g->val[n->out[0]].shape = y;
	check(t, n);
}

static void
concat(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	DType dt = some_number(t);
	int axis = (int)rnd(t, (uint32_t)s.rank);
	ValId in[3];

	for (int k = 0; k < 3; k++) {
		s.dim[axis] = 1 + rnd(t, 3);
		in[k] = constant(t, dt, s, -9, 9);
	}
	Node *n = node(t, op, 3, in);
	n->attr.CONCAT.axis = axis;
	check(t, n);
}

static void
pad(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);

	for (int d = 0; d < s.rank; d++)
		s.dim[d] = 2 + rnd(t, 3);
	ValId x = constant(t, some_number(t), s, -9, 9);
	Node *n = node(t, op, 1, &x);
	IntList *begin = &n->attr.PAD.begin, *end = &n->attr.PAD.end;
	begin->n = end->n = s.rank;
	for (int d = 0; d < s.rank; d++) {
		begin->v[d] = rnd(t, (uint32_t)s.dim[d]);
		end->v[d] = rnd(t, (uint32_t)s.dim[d]);
	}
	n->attr.PAD.mode = rnd(t, 4);
	n->attr.PAD.value = 5;
	check(t, n);
}

static void
trilu(struct test *t, Op op)
{
	ValId x = constant(t, some_number(t), some_shape(t, 2), -9, 9);
	Node *n = node(t, op, 1, &x);

	n->attr.TRILU.upper = rnd(t, 2);
	n->attr.TRILU.k = (int64_t)rnd(t, 7) - 3;
	check(t, n);
}

/* ---- indexing ---- */

static void
gather(struct test *t, Op op)
{
	Shape s = some_shape(t, 1), i = some_shape(t, 0);
	int axis = (int)rnd(t, (uint32_t)s.rank);

	if (i.rank > 2)
		i.rank = 2;
	ValId in[2] = { constant(t, some_number(t), s, -9, 9),
	                constant(t, DT_I64, i, -(int)s.dim[axis],
	                         (int)s.dim[axis] - 1) };
	Node *n = node(t, op, 2, in);
	n->attr.GATHER.axis = axis;
	check(t, n);
}

static void
elements(struct test *t, Op op)
{
	Shape s = some_shape(t, 1), i = s;
	int axis = (int)rnd(t, (uint32_t)s.rank);
	DType dt = rnd(t, 2) ? DT_F32 : DT_I64;
	int nin = op == OP_SCATTER_ELEMENTS ? 3 : 2;

	if (op == OP_SCATTER_ELEMENTS)
		s.dim[axis] += 2;
	else
		i.dim[axis] = 1 + rnd(t, 4);
	ValId in[3] = { constant(t, dt, s, -9, 9),
	                constant(t, DT_I64, i, -(int)s.dim[axis],
	                         (int)s.dim[axis] - 1),
	                constant(t, dt, i, -9, 9) };
	Node *n = node(t, op, nin, in);
	if (nin == 2) {
		n->attr.GATHER_ELEMENTS.axis = axis;
	} else {
		n->attr.SCATTER_ELEMENTS.axis = axis;
		n->attr.SCATTER_ELEMENTS.add = rnd(t, 5);
	}
	check(t, n);
}

static void
tuples(struct test *t, Op op)
{
	DType dt = rnd(t, 2) ? DT_F32 : DT_I64;
	int batch = op == OP_GATHER_ND ? (int)rnd(t, 2) : 0;
	int len = 1 + (int)rnd(t, 2), nin = op == OP_GATHER_ND ? 2 : 3;
	Shape s = SHAPE(3, 3, 3, 2), i = SHAPE(3, 2, len);
	Shape u = len == 1 ? SHAPE(3, 2, 3, 3, 2) : SHAPE(3, 2, 3, 2);
	ValId in[3] = { constant(t, dt, s, -9, 9),
	                constant(t, DT_I64, i, -3, 2),
	                constant(t, dt, u, -9, 9) };
	Node *n = node(t, op, nin, in);

	if (nin == 2)
		n->attr.GATHER_ND.batch = batch;
	else
		n->attr.SCATTER_ND.add = rnd(t, 5);
	check(t, n);
}

/* ---- along axes ---- */

static void
cumsum(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	DType dt = rnd(t, 2) ? DT_F32 : DT_I64;
	ValId x = constant(t, dt, s, -9, 9);
	Node *n = node(t, op, 1, &x);

	n->attr.CUMSUM.axis = rnd(t, (uint32_t)s.rank);
	n->attr.CUMSUM.exclusive = rnd(t, 2);
	n->attr.CUMSUM.reverse = rnd(t, 2);
	check(t, n);
}

static void
argmax(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	ValId x = constant(t, some_number(t), s, 0, 2);
	Node *n = node(t, op, 1, &x);

	n->attr.ARGMAX.axis = rnd(t, (uint32_t)s.rank);
	n->attr.ARGMAX.keepdims = rnd(t, 2);
	n->attr.ARGMAX.last = rnd(t, 2);
	check(t, n);
}

static void
reduce(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	DType dt = op == OP_REDUCE_MEAN || rnd(t, 2) ? DT_F32 : DT_I64;
	ValId x = constant(t, dt, s, -3, 3);
	Node *n = node(t, op, 1, &x);
	IntList *axes = &n->attr.REDUCE_SUM.axes;

	for (int d = 0; d < s.rank; d++)
		if (rnd(t, 2))
			axes->v[axes->n++] = d;
	if (axes->n == 0)
		axes->v[axes->n++] = 0;
	n->attr.REDUCE_SUM.keepdims = rnd(t, 2);
	check(t, n);
}

static void
softmax(struct test *t, Op op)
{
	Shape s = some_shape(t, 1);
	ValId x = constant(t, DT_F32, s, -9, 9);
	Node *n = node(t, op, 1, &x);

	n->attr.SOFTMAX.axis = rnd(t, (uint32_t)s.rank);
	check(t, n);
}

static void
matmul(struct test *t, Op op)
{
	int64_t m = 1 + rnd(t, 4), k = 1 + rnd(t, 4), n_ = 1 + rnd(t, 4);
	bool ta = rnd(t, 2), tb = rnd(t, 2), full = rnd(t, 2);
	Shape a = SHAPE(3, 1, ta ? k : m, ta ? m : k);
	Shape b = SHAPE(2, tb ? n_ : k, tb ? k : n_);
	ValId in[4] = { constant(t, DT_F32, a, -2, 2),
	                constant(t, DT_F32, b, -2, 2) };

	if (full) {
		in[2] = constant(t, DT_F32, SHAPE(n_), -2, 2);
		in[3] = constant(t, DT_F32, SHAPE(3, 2, m, n_), -2, 2);
	}
	Node *n = node(t, op, full ? 4 : 2, in);
	n->attr.MATMUL.ta = ta;
	n->attr.MATMUL.tb = tb;
	n->attr.MATMUL.alpha = full ? 0.5 : 1;
	check(t, n);
}

static void
fill(struct test *t, Op op)
{
	Node *n = node(t, op, 0, NULL);

	n->attr.FILL.shape = (IntList){ 2, { 2, 3 } };
	n->attr.FILL.value = -1.5;
	check(t, n);
}

typedef void Case(struct test *, Op);

/* Ops without a folding rule. */
static void
no_rule(struct test *t, Op op)
{
	(void)t;
	(void)op;
}

/* A rule without a case: the walk says so unless the op is tested as text. */
static void
no_case(struct test *t, Op op)
{
	(void)t;
	(void)op;
}

/* Cases of ops that are not element-wise, or not like the others. */
static Case *const cases[OP_COUNT] = {
	[OP_CAST] = cast, [OP_WHERE] = where, [OP_COPY] = same,
	[OP_RESHAPE] = reshape, [OP_EXPAND] = expand,
	[OP_TRANSPOSE] = transpose, [OP_SLICE] = slice, [OP_CONCAT] = concat,
	[OP_PAD] = pad, [OP_TRILU] = trilu, [OP_GATHER] = gather,
	[OP_GATHER_ELEMENTS] = elements, [OP_SCATTER_ELEMENTS] = elements,
	[OP_GATHER_ND] = tuples, [OP_SCATTER_ND] = tuples,
	[OP_CUMSUM] = cumsum, [OP_ARGMAX] = argmax,
	[OP_REDUCE_SUM] = reduce, [OP_REDUCE_MEAN] = reduce,
	[OP_REDUCE_MAX] = reduce, [OP_REDUCE_MIN] = reduce,
	[OP_REDUCE_PROD] = reduce, [OP_MATMUL] = matmul,
	[OP_SOFTMAX] = softmax, [OP_LOG_SOFTMAX] = softmax, [OP_FILL] = fill,
};

static const char *const rule_of[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) #eval
#include "ir/ops.h"
};

static Case *
case_of(Op op)
{
	const struct op_info *info = &op_info[op];

	if (strcmp(rule_of[op], "none") == 0)
		return no_rule;
	if (cases[op] || !(info->flags & F_EW))
		return cases[op] ? cases[op] : no_case;
	return info->min == 1 ? unary : info->flags & F_TO_BOOL ? compare
	     : binary;
}

/* Ops that fold away and that the interpreter therefore does not know; the
 * files named test them. */
static bool
tested_as_text(Op op)
{
	switch (op) {
	case OP_IDENTITY:               /* fold/noops.ck */
	case OP_SQUEEZE: case OP_UNSQUEEZE:
	case OP_FLATTEN:                /* fold/reshapes.ck */
	case OP_TILE:                   /* fold/tile.ck */
	case OP_ONE_HOT: case OP_NONZERO: case OP_SIZE:
	case OP_CONSTANT_OF_SHAPE:      /* fold/sequences.ck */
	case OP_SHAPE:                  /* fold/shape_arithmetic.ck */
	case OP_RANGE:                  /* fold/causal_mask.ck */
		return true;
	default:
		return false;
	}
}

int
main(void)
{
	struct test t = { .random = 1 };

	t.opt.fold_limit = 1 << 20;
	t.pass = (Pass){ .target = &target_cpu, .diag = diag_new("eval", stderr), .opt = &t.opt,
	                 .scratch = arena_new(), .keep = arena_new() };
	for (Op op = 1; op < OP_COUNT; op++) {
		Case *c = case_of(op);
		if (tested_as_text(op))
			continue;
		int before = t.failed;
		for (int i = 0; i < ROUNDS && t.failed == before; i++) {
			t.g = graph_new("t");
			c(&t, op);
			graph_free(t.g);
		}
		if (c != no_rule && !t.covered[op]) {
			printf("%s: no case\n", op_info[op].text);
			t.failed++;
		}
	}
	printf("%d nodes, %d failures\n", t.checked, t.failed);
	arena_free(t.pass.scratch);
	arena_free(t.pass.keep);
	diag_free(t.pass.diag);
	return t.failed != 0;
}
