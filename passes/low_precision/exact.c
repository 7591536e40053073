/* Values that must not be rounded.
 *
 * what    Backward depends on choices of forward: the sign of a value, the
 *         largest element, an index.  If these are recomputed from rounded
 *         values, some elements choose differently, and their gradients are
 *         those of another function.  Values from which this schedule
 *         recomputes such a choice are not rounded, nor are those compared
 *         directly, except with zero: rounding keeps the sign.
 * method  one walk over the schedule, backwards through copies and views
 * cost    linear
 */
#include "ir/loop.h"
#include "passes/grad/grad_rules.h"
#include "passes/low_precision/low_precision.h"

/* How much rounding a value tolerates. */
enum tolerance { ANY, SIGN, NONE };

struct decisions {
	const Graph *g;
	uint8_t *tolerance;             /* by value */
};

static void
tighten_value(struct decisions *d, ValId v, enum tolerance least)
{
	if (d->tolerance[v] < least)
		d->tolerance[v] = (uint8_t)least;
}

static bool
is_zero_operand(const Graph *g, const Node *n, int arg)
{
	double x;

	return arg >= 0 && val_splat(g, n->in[arg], &x) && x == 0;
}

/* Without a slope: comparisons, floor; or no float. */
static bool
is_step(const struct scalar_op *m)
{
	return grad_table[m->op] == grad_zero || dtype_info[m->dt].cls != 'f';
}

/* By operands, as bits: what scalar op i is computed from. */
static uint32_t
source_operands(const struct body *b, int i)
{
	uint32_t of[LOOP_OPS_MAX];

	for (int k = 0; k <= i; k++) {
		const struct scalar_op *m = &b->op[k];

		of[k] = 0;
		for (int a = 0; a < m->narg; a++)
			of[k] |= m->arg[a] < 0 ? of[~m->arg[a]]
				: (uint32_t)1 << m->arg[a];
	}
	return of[i];
}

static void
tighten_op_operands(struct decisions *d, const Node *n,
                       const struct scalar_op *m)
{
	for (int a = 0; a < m->narg; a++) {
		int arg = m->arg[a];
		bool zero = m->narg == 2
			&& is_zero_operand(d->g, n, m->arg[1 - a]);
		uint32_t of = arg < 0 ? source_operands(n->body, ~arg) : 0;

		if (arg >= 0)
			tighten_value(d, n->in[arg], zero ? SIGN : NONE);
		for (int k = 0; k < n->nin; k++)
			if (of >> k & 1)
				tighten_value(d, n->in[k], NONE);
	}
}

/* What node n asks of its operands. */
static void
tighten_operands(struct decisions *d, const Node *n)
{
	enum tolerance least = ANY;
	bool view = op_info[n->op].flags & F_VIEW;

	for (int i = 0; i < n->nout; i++) {
		ValId v = n->out[i];
		char cls = dtype_info[d->g->val[v].dt].cls;

		if (d->tolerance[v] > least)
			least = (enum tolerance)d->tolerance[v];
		if (v && !n->body && (cls == 'i' || cls == 'u'))
			least = NONE;
	}
	/* an adjoint is nothing that was there in forward */
	if (n->phase != PH_RECOMPUTE && !view)
		least = ANY;
	for (int i = 0; i < n->nin; i++)
		tighten_value(d, n->in[i], view || least == ANY ? least : NONE);
	for (int i = 0; n->body && i < n->body->nop; i++)
		if (is_step(&n->body->op[i]))
			tighten_op_operands(d, n, &n->body->op[i]);
}

bool *
low_precision_exact(const Graph *g, Arena *a)
{
	struct decisions d = { g, arena_array(a, g->nval, 1) };
	bool *fixed = arena_array(a, g->nval, sizeof *fixed);

	for (NodeId id = g->nnode - 1; id > 0; id--)
		if (g->node[id].phase != PH_FORWARD)
			tighten_operands(&d, &g->node[id]);
	/* of a view, as of what it is a view of */
	FOR_VALS (v, g)
		if (d.tolerance[val_id(g, v)] == NONE)
			fixed[val_owner(g, val_id(g, v))] = true;
	return fixed;
}
