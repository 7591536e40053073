/* Constant folding: the table of rules.
 *
 * One rule per name in the eval column of ops.h.  Integers are computed in 64
 * bits and wrap to their type, floats in double precision and are rounded
 * once; for + - * / and sqrt that equals arithmetic in the type itself,
 * because double has more than twice its digits.
 */
#include "passes/eval/eval_rules.h"

#include <assert.h>

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
	struct eval e = { p, g, n, mem, eval_limit(p, n->op), NULL };
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
