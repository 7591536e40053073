/* Keep gradients finite behind branches that a `where`, `max` or `min` did not
 * take.
 *
 * In y = where(m, f(x), c) the adjoint of f(x) is zero where m is false, and
 * so it is in max(f(x), c) where c is greater.  The chain rule multiplies that
 * zero by f'(x).  Of log 0, 0 / 0, sqrt 0 or an overflowing exp the slope is
 * infinite or no number, and so would be the product.  PyTorch leaves this to
 * the model, which has to choose a harmless x by a second `where`; here the
 * zero stays zero.
 *
 * Two walks.  Forward: which values may be infinite or no number while weights
 * are finite (`wild`).  Backward: which adjoints have such zeros in them
 * (`hidden`).  An element-wise node whose adjoint is hidden and is multiplied
 * by something wild, or by a steep slope, is shielded; no other one pays.  Both
 * walks end at products, normalisation and softmax: what mixes elements mixes
 * hidden ones in, as in PyTorch.
 */
#include "passes/grad/shield.h"

#include <math.h>

/* Elements keep to themselves, or are moved and added up. */
static bool
keeps_apart(Op op)
{
	uint64_t flags = op_info[op].flags;

	return flags & (F_EW | F_VIEW | F_REDUCE | F_LIN0)
		&& !(flags & (F_CONTRACT | F_ROWS));
}

/* The result is one operand's element; the others' adjoints are zero there. */
static bool
selects_operand(Op op)
{
	return op == OP_WHERE || op == OP_MAX || op == OP_MIN;
}

/* A number as the divisor or exponent may make it harmless. */
static bool
is_steep(const Graph *g, const Node *n)
{
	double x;

	if (!(op_info[n->op].flags & F_STEEP))
		return false;
	if (n->nin < 2 || !val_splat(g, n->in[1], &x))
		return true;
	return n->op == OP_DIV ? x == 0
		: n->op != OP_POW || x < 1 || x != floor(x);
}

/* A constant that is not finite somewhere. */
static bool
is_unbounded(const Val *v)
{
	int64_t n = val_is_const(v) ? val_nelem(v) : 0;

	for (int64_t i = 0; i < n; i++)
		if (!isfinite(val_float(v, i)))
			return true;
	return false;
}

static bool *
find_wild(const Graph *g, Arena *arena)
{
	bool *wild = arena_array(arena, g->nval, sizeof *wild);

	FOR_VALS (v, g)
		wild[val_id(g, v)] = dtype_info[v->dt].cls == 'f'
			&& (v->kind == V_INPUT || is_unbounded(v));
	FOR_NODES (n, g) {
		bool any = is_steep(g, n);

		for (int k = 0; k < n->nin; k++)
			any |= keeps_apart(n->op) && wild[n->in[k]];
		if (n->nout > 0 && n->out[0])
			wild[n->out[0]] |= any;
	}
	return wild;
}

/* The rule multiplies the adjoint by what it finds in operands or results. */
static bool
multiplies_adjoint(Op op)
{
	uint64_t flags = op_info[op].flags;

	return flags & F_EW && !(flags & F_JOINT)
		&& !(flags & F_LIN0 && op_info[op].min == 1);
}

bool *
grad_shields(const Graph *g, Arena *arena)
{
	bool *shield = arena_array(arena, g->nnode, sizeof *shield);
	bool *hidden = arena_array(arena, g->nval, sizeof *hidden);
	const bool *wild = find_wild(g, arena);

	for (NodeId id = g->nnode; --id > 0; ) {
		const Node *n = &g->node[id];
		bool is_hidden = n->nout > 0 && hidden[n->out[0]];
		bool meets = is_steep(g, n);

		for (int k = 0; k < n->nin; k++) {
			meets |= wild[n->in[k]];
			hidden[n->in[k]] |= selects_operand(n->op)
				|| (is_hidden && keeps_apart(n->op));
		}
		shield[id] = is_hidden && meets && multiplies_adjoint(n->op);
	}
	return shield;
}
