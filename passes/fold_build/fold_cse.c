/* Pass fold: bounded work.  Equal constant nodes are computed once, and only
 * within the limit of work.
 *
 * Layers build equal masks from constants of their own, so nodes are compared
 * by the contents of their operands.
 *
 * cost   MOST steps, or the steps that the limit allows for all nodes; bytes of
 *        operands count, except large ones
 */
#include "passes/fold_build/fold_build.h"
#include "runtime/support/hash.h"

#include <string.h>

/* A node may take STEPS steps per byte of the limit, all nodes together SHARES
 * times the steps and bytes of one.  Small nodes ignore the limit until all
 * took MOST steps; tiny ones always do, because shapes depend on them. */
enum { STEPS = 16, SHARES = 64, SMALL = 1 << 16, FEW = 1 << 20,
       TINY = 1 << 12, MOST = 1 << 26 };

/* ---- cost of a node ---- */

/* Whether all nodes together have used up their share. */
static bool
is_spent(const struct fold *f, bool small)
{
	int64_t limit = f->p->opt->fold_limit;

	return (!small || f->steps > MOST)
		&& (f->bytes / SHARES > limit
		    || f->steps / SHARES / STEPS > limit);
}

bool
fold_is_expensive(struct fold *f, const Node *n)
{
	int64_t limit = f->p->opt->fold_limit, steps = eval_steps(f->g, n);
	int64_t bytes = val_data_bytes(&f->g->val[n->out[0]]);

	if (steps == 0)
		return false;
	/* unknown extents depend on contents */
	if (steps < 0 && !shape_known(&f->g->val[n->out[0]].shape))
		steps = bytes = 0;
	if (steps < 0 || bytes < 0 || bytes > eval_limit(f->p, n->op)
	    || steps / STEPS > limit)
		return true;
	if ((bytes > TINY || steps > TINY)
	    && is_spent(f, bytes <= SMALL && steps <= FEW))
		return true;
	f->bytes += bytes;
	f->steps += steps;
	return false;
}

int64_t
fold_steps_enough(const struct fold *f, const Node *n)
{
	int64_t limit = f->p->opt->fold_limit, steps = eval_steps(f->g, n);
	int64_t need = steps / STEPS, twice = limit < INT64_MAX / 2
		? 2 * limit : limit;

	return (need > twice ? need : twice) / (1 << 20) + 1;
}

/* ---- equal nodes ---- */

static uint64_t
hash_operand(const Graph *g, ValId id)
{
	const Val *v = &g->val[id];
	int64_t n = val_data_bytes(v);

	if (!val_is_const(v))
		return id;
	return hash_number((uint64_t)n, n > SMALL ? (uintptr_t)v->data
	                   : hash_block(v->data, (size_t)n));
}

static bool
same_operand(const Graph *g, ValId x, ValId y)
{
	const Val *a = &g->val[x], *b = &g->val[y];
	int64_t n = val_data_bytes(a);

	if (x == y || !val_is_const(a) || !val_is_const(b))
		return x == y;
	return a->dt == b->dt && shape_eq(&a->shape, &b->shape)
		&& (a->data == b->data
		    || (n <= SMALL && !memcmp(a->data, b->data, (size_t)n)));
}

static bool
same_result(const struct fold *f, NodeId a, NodeId b)
{
	const Graph *g = f->g;
	const Node *x = &g->node[a], *y = &g->node[b];
	const Val *u = &g->val[x->out[0]], *v = &g->val[y->out[0]];

	if (x->op != y->op || x->nin != y->nin || u->dt != v->dt
	    || !shape_eq(&u->shape, &v->shape)
	    || !attr_equal(x->op, &x->attr, &y->attr))
		return false;
	for (int i = 0; i < x->nin; i++)
		if (!same_operand(g, x->in[i], y->in[i]))
			return false;
	return true;
}

/* Whether the node reads only constants and constant expressions, and has one
 * result without padding. */
static bool
is_const_expr(struct fold *f, const Node *n)
{
	if (n->nin == 0 || n->nout != 1 || op_info[n->op].flags & F_RNG
	    || !shape_known(&f->g->val[n->out[0]].shape)
	    || fold_facts(f, n->out[0])->padded)
		return false;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && ((!val_is_const(in_val(f, n, i))
		                  && !fold_facts(f, n->in[i])->const_expr)
		                 || fold_facts(f, n->in[i])->padded))
			return false;
	return true;
}

static uint64_t
hash_const_node(struct fold *f, const Node *n)
{
	uint64_t h = n->op;

	for (int i = 0; i < n->nin; i++) {
		int64_t bytes = n->in[i] ? val_data_bytes(in_val(f, n, i)) : 0;

		h = n->in[i] ? hash_number(h, hash_operand(f->g, n->in[i]))
			     : h;
		f->steps += bytes > 0 && bytes <= SMALL
			&& val_is_const(in_val(f, n, i)) ? bytes / 8 : 0;
	}
	return h ^ h >> 32;
}

void
fold_add_known(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];

	if (!is_const_expr(f, n))
		return;
	fold_facts(f, n->out[0])->const_expr = true;
	if (!is_spent(f, true))
		table_add(&f->known, f->p->scratch, hash_const_node(f, n), id);
}

ValId
fold_find_equal(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	uint64_t hash;
	NodeId before;

	if (!f->known.used || is_spent(f, true) || !is_const_expr(f, n))
		return 0;
	hash = hash_const_node(f, n);
	for (size_t at = 0; (before = table_next(&f->known, hash, &at));)
		if (same_result(f, before, id))
			return f->g->node[before].out[0];
	return 0;
}
