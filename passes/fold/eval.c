/* Constant folding: the table of rules and what they share.
 *
 * One rule per name in the eval column of ops.h.  Integers are computed in 64
 * bits and wrap to their type, floats in double precision and are rounded
 * once; for + - * / and sqrt that equals arithmetic in the type itself,
 * because double has more than twice its digits.
 */
#include "passes/fold/eval_rules.h"

#include <assert.h>
#include <string.h>

static EvalRule *const rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, lanes, cost, grad, shard) eval_##eval
#include "ir/ops.h"
};

enum eval_status
eval_fail(struct eval *e, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	diag_at(e->p->diag, node_label(e->g, e->n), node_type(e->g, e->n),
	        "%s", text);
	return EVAL_FAIL;
}

void *
eval_room(struct eval *e, int i)
{
	const Val *v = eval_out(e, i);
	int64_t n = shape_nelem(&v->shape), nbytes;

	if (n < 0 || v->dt == DT_NONE
	    || !mul_ok(n, dtype_info[v->dt].nbytes, &nbytes)
	    || nbytes > e->p->opt->fold_limit)
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

static void
make_const(Val *v)
{
	v->kind = V_CONST;
	v->def = 0;
	v->slot = 0;
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

struct walk
walk_new(const Shape *s)
{
	struct walk w = { .rank = s->rank };

	for (int d = 0; d < s->rank; d++)
		w.dim[d] = s->dim[d];
	return w;
}

int
walk_add(struct walk *w, int64_t start, const int64_t *stride)
{
	assert(w->n < WALK_ARRAYS);
	w->at[w->n] = start;
	for (int d = 0; d < w->rank; d++)
		w->stride[w->n][d] = stride[d];
	return w->n++;
}

int
walk_add_broadcast(struct walk *w, const Shape *s)
{
	int64_t own[MAX_RANK] = { 0 }, stride[MAX_RANK] = { 0 };
	int pad = w->rank - s->rank;

	shape_strides(s, own);
	for (int d = 0; d < s->rank; d++)
		stride[pad + d] = s->dim[d] == 1 ? 0 : own[d];
	return walk_add(w, 0, stride);
}
