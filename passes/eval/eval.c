/* Constant folding: the table of rules and what they share.
 *
 * One rule per name in the eval column of ops.h.  Integers are computed in 64
 * bits and wrap to their type, floats in double precision and are rounded
 * once; for + - * / and sqrt that equals arithmetic in the type itself,
 * because double has more than twice its digits.
 */
#include "passes/eval/eval_rules.h"

#include <assert.h>
#include <string.h>

static EvalRule *const rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) eval_##eval
#include "ir/ops.h"
};

int64_t
eval_limit(const Pass *p, Op op)
{
	int64_t limit = p->opt->fold_limit;

	return (rule[op] == eval_range || rule[op] == eval_nonzero)
		&& limit <= INT64_MAX / 64 ? 64 * limit : limit;
}

/* Rules that look at no more of their operands than they take. */
static bool
is_gather_rule(EvalRule *fn)
{
	return fn == eval_slice || fn == eval_gather || fn == eval_gather_nd;
}

int64_t
eval_steps(const Graph *g, const Node *n)
{
	EvalRule *fn = rule[n->op];
	const Val *y = &g->val[n->out[0]], *x;
	int64_t steps = val_nelem(y), many;

	if (fn == eval_copy || fn == eval_shape || fn == eval_size
	    || (fn == eval_cast && g->val[n->in[0]].dt == y->dt))
		return 0;
	for (int i = is_gather_rule(fn); i < n->nin; i++) {
		x = &g->val[n->in[i]];
		many = n->in[i] ? val_nelem(x) : 0;
		if (many < 0 || steps < 0)
			return -1;
		/* each element of a product is a sum */
		if (i == 0 && fn == eval_matmul && x->shape.rank > 1
		    && !mul_ok(steps, x->shape.dim[x->shape.rank
		               - (n->attr.MATMUL.ta ? 2 : 1)], &steps))
			return -1;
		if (!add_ok(steps, many, &steps))
			return -1;
	}
	return steps;
}

void *
eval_room(struct eval *e, int i)
{
	const Val *v = eval_out(e, i);
	int64_t n = shape_nelem(&v->shape), nbytes;

	if (n < 0 || v->dt == DT_NONE
	    || !mul_ok(n, dtype_info[v->dt].nbytes, &nbytes)
	    || nbytes > eval_limit(e->p, e->n->op))
		return NULL;
	return arena_alloc(e->mem, nbytes ? (size_t)nbytes : 1);
}

/* Only what defines contents is needed of `shape` and `size`. */
static bool
inputs_ready(const struct eval *e)
{
	if (e->n->op == OP_SHAPE || e->n->op == OP_SIZE)
		return shape_known(&eval_in(e, 0)->shape);
	for (int i = 0; i < e->n->nin; i++)
		if (e->n->in[i] && !val_is_const(eval_in(e, i)))
			return false;
	return true;
}

/* Rules that may give the operand's contents on, or do nothing, or find the
 * shape out. */
static bool
takes_room_itself(EvalRule *fn)
{
	return fn == eval_copy || fn == eval_cast || fn == eval_none
	       || fn == eval_matmul || fn == eval_nonzero;
}

bool
eval_knows(Op op)
{
	return rule[op] && rule[op] != eval_none;
}

static void
make_const(Val *v)
{
	v->kind = V_CONST;
	v->def = 0;
	v->result_index = 0;
}

enum eval_status
eval_node(Pass *p, Graph *g, const Node *n, Arena *mem)
{
	struct eval e = { p, g, n, mem, NULL };
	EvalRule *fn = rule[n->op];

	if (!inputs_ready(&e))
		return EVAL_SKIP;
	if (!takes_room_itself(fn)) {
		e.data = eval_room(&e, 0);
		if (!e.data)
			return EVAL_LARGE;
	}
	enum eval_status st = fn(&e);
	if (st != EVAL_DONE)
		return st;
	if (e.data)
		eval_out(&e, 0)->data = e.data;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			assert(eval_out(&e, i)->data);
			make_const(eval_out(&e, i));
		}
	return EVAL_DONE;
}

enum eval_status
eval_none(struct eval *e)
{
	(void)e;
	return EVAL_SKIP;
}

/* ---- walks ---- */

struct element_walk
walk_new(const Shape *s)
{
	struct element_walk w = { .rank = s->rank };

	for (int d = 0; d < s->rank; d++)
		w.dim[d] = s->dim[d];
	return w;
}

int
walk_add_array(struct element_walk *w, int64_t start, const int64_t *stride)
{
	assert(w->n < WALK_ARRAYS);
	w->at[w->n] = start;
	for (int d = 0; d < w->rank; d++)
		w->stride[w->n][d] = stride[d];
	return w->n++;
}

int
walk_add_broadcast(struct element_walk *w, const Shape *s)
{
	int64_t own[MAX_RANK] = { 0 }, stride[MAX_RANK] = { 0 };
	int pad = w->rank - s->rank;

	shape_strides(s, own);
	for (int d = 0; d < s->rank; d++)
		stride[pad + d] = s->dim[d] == 1 ? 0 : own[d];
	return walk_add_array(w, 0, stride);
}

struct element_rows
rows_of_walk(const struct element_walk *from)
{
	struct element_rows r = { .walk = *from };
	struct element_walk *w = &r.walk;
	int rank = 0;

	r.count = r.len = 1;
	for (int d = 0; d < from->rank; d++) {
		bool joins = rank > 0;

		if (from->dim[d] == 1)
			continue;
		for (int k = 0; joins && k < w->n; k++)
			joins = w->stride[k][rank - 1]
				== from->stride[k][d] * from->dim[d];
		w->dim[rank - joins] = from->dim[d]
			* (joins ? w->dim[rank - 1] : 1);
		for (int k = 0; k < w->n; k++)
			w->stride[k][rank - joins] = from->stride[k][d];
		rank += !joins;
	}
	w->rank = rank ? rank - 1 : 0;
	for (int d = 0; d < w->rank; d++)
		r.count *= w->dim[d];
	if (rank)
		r.len = w->dim[rank - 1];
	for (int k = 0; k < w->n; k++)
		r.step[k] = rank ? w->stride[k][rank - 1] : 0;
	return r;
}

#define COPY_ROW(type) \
	for (int64_t i = 0; i < n; i++) \
		__builtin_memcpy(to + i * (int64_t)sizeof(type), \
		                 from + i * step * (int64_t)sizeof(type), \
		                 sizeof(type)); \
	return

void
copy_strided(void *dst, const void *src, int64_t step, int64_t n, int size)
{
	const char *from = src;
	char *to = dst;

	if (step == 1) {
		memcpy(to, from, (size_t)(n * size));
		return;
	}
	switch (size) {
	case 1: COPY_ROW(uint8_t);
	case 2: COPY_ROW(uint16_t);
	case 4: COPY_ROW(uint32_t);
	case 8: COPY_ROW(uint64_t);
	}
}
