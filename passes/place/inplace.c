/* In-place: an output shares the bytes of an operand that dies.
 *
 * what    sets Val.base of outputs that overwrite an operand
 * method  one walk in order of execution with the last use of every owner.
 *         An element-wise node may write over any operand of the same type,
 *         shape and layout; accumulating ops over their accumulator.  The
 *         operand's owner must lie in the arena, die at this node, be no
 *         output of the step and be reached by no other operand (of an
 *         element-wise node: except with the same layout), nor on its way
 *         between ranks.  Optimizer steps
 *         always overwrite what they update.
 * needs   P_LAYOUT, the final order
 * breaks  nothing: a value's bytes are shared only after its last use
 * cost    O(operands)
 */
#include "passes/place/place.h"

#include <string.h>

static bool
same_layout(const Val *a, const Val *b)
{
	if (a->dt != b->dt || !shape_eq(&a->shape, &b->shape))
		return false;
	for (int i = 0; i < a->shape.rank; i++)
		if (a->shape.dim[i] > 1 && a->stride[i] != b->stride[i])
			return false;
	return true;
}

/* Dense: as many elements as its owner holds, from the start. */
static bool
covers_owner(const Graph *g, const Val *v)
{
	const Val *o = &g->val[val_owner(g, val_id(g, v))];
	int64_t n = val_nelem(v), span = 1;

	if (v->start != 0 || n <= 0 || val_data_bytes(v) != val_data_bytes(o))
		return false;
	for (int i = 0; i < v->shape.rank; i++)
		span += (v->shape.dim[i] - 1) * v->stride[i];
	return span == n;
}

static bool
is_in_arena(const Graph *g, ValId owner)
{
	const Val *v = &g->val[owner];

	return v->kind == V_TEMP && !v->resident;
}

/* No other operand reads the owner of input `in` in a way that the output
 * would disturb. */
static bool
is_undisturbed(const Graph *g, const Node *n, int in)
{
	ValId owner = val_owner(g, n->in[in]);
	bool ew = op_info[n->op].flags & F_EW;

	for (int i = 0; i < n->nin; i++) {
		if (i == in || !n->in[i] || val_owner(g, n->in[i]) != owner)
			continue;
		const Val *a = &g->val[n->in[i]], *b = &g->val[n->in[in]];

		if (!ew || a->start != b->start || !same_layout(a, b))
			return false;
	}
	return true;
}

static bool
can_overwrite(const Graph *g, const Node *n, int out, int in)
{
	const Val *y, *x;
	uint64_t flags = op_info[n->op].flags;

	if (!n->in[in] || !n->out[out])
		return false;
	if (!(flags & F_EW) && !(out == 0
	    && ((in && in == op_accumulator(n->op))
	        || (flags & F_OVER && in == 0))))
		return false;
	y = &g->val[n->out[out]];
	x = &g->val[n->in[in]];
	return y->kind == V_TEMP && !y->resident && y->base == 0
		&& y->laid_out && x->laid_out
		&& is_in_arena(g, val_owner(g, n->in[in]))
		&& g->val[val_owner(g, n->in[in])].nbytes == y->nbytes
		&& same_layout(x, y) && covers_owner(g, x)
		&& is_undisturbed(g, n, in);
}

int
inplace_pairs(const Graph *g, const Node *n, struct inplace_pair *pair, int max)
{
	int count = 0;

	if (!(op_info[n->op].flags & (F_EW | F_OVER))
	    && !op_accumulator(n->op))
		return 0;
	for (int out = 0; out < n->nout; out++)
		for (int in = 0; in < n->nin && count < max; in++)
			if (can_overwrite(g, n, out, in))
				pair[count++] =
					(struct inplace_pair){ out, in };
	return count;
}

struct inplace {
	Graph *g;
	NodeId *last;                   /* of an owner: who uses it last */
	NodeId *busy;                   /* until this node has run its bytes
	                                 * are on their way between ranks */
	ValId *view, *next;             /* an owner's views as layout made
	                                 * them, chained; 0: end */
};

/* Views of an owner that became a part of another one follow it.  They do so
 * once: outputs are given a place in the order of nodes, and nothing shares
 * the bytes of an output before that. */
static void
move_views(struct inplace *s, ValId from, ValId to)
{
	for (ValId v = s->view[from]; v; v = s->next[v])
		s->g->val[v].base = to;
}

static void
lay_over_operand(struct inplace *s, ValId y, ValId x)
{
	Graph *g = s->g;
	Val *out = &g->val[y];
	const Val *in = &g->val[x];

	out->base = val_owner(g, x);
	out->start = in->start;
	memcpy(out->stride, in->stride, sizeof out->stride);
	out->laid_out = true;
	out->nbytes = 0;
	move_views(s, y, out->base);
}

static void
share_update(struct inplace *s, const Node *n)
{
	for (int i = 0; i < n->nout; i++) {
		int in = op_overwrites(n->op, i);

		if (n->out[i] && in < n->nin && n->in[in]
		    && s->g->val[n->out[i]].base == 0)
			lay_over_operand(s, n->out[i], n->in[in]);
	}
}

static void
share_dying(struct inplace *s, const Node *n)
{
	enum { MAX = 64 };
	Graph *g = s->g;
	NodeId *last = s->last;
	struct inplace_pair pair[MAX];
	int count = inplace_pairs(g, n, pair, MAX);
	NodeId here = node_id(g, n);

	for (int i = 0; i < count; i++) {
		ValId y = n->out[pair[i].out], x = n->in[pair[i].in];
		ValId owner = val_owner(g, x);

		if (g->val[y].base || last[owner] != here
		    || s->busy[owner] >= here)
			continue;
		lay_over_operand(s, y, x);
		/* taken by this node, even if y is never read */
		last[owner] = last[y] > here ? last[y] : here + 1;
	}
}

/* Behind it nobody may lay a result over them until it has ended. */
static void
mark_in_transfer(struct inplace *s, const Node *n)
{
	const Graph *g = s->g;
	ValId of[2] = { node_sent(n), n->out[0] };

	for (int i = 0; i < 2; i++) {
		NodeId *busy = &s->busy[val_owner(g, of[i])];

		if (*busy < n->wait)
			*busy = n->wait;
	}
}

void
inplace_graph(Graph *g, Arena *scratch)
{
	struct inplace s = { .g = g };
	NodeId *last = arena_array(scratch, g->nval, sizeof *last);

	s.last = last;
	s.busy = arena_array(scratch, g->nval, sizeof *s.busy);
	s.view = arena_array(scratch, g->nval, sizeof *s.view);
	s.next = arena_array(scratch, g->nval, sizeof *s.next);
	FOR_VALS (v, g)
		if (v->base) {
			s.next[val_id(g, v)] = s.view[v->base];
			s.view[v->base] = val_id(g, v);
		}
	FOR_NODES (n, g) {
		NodeId here = node_id(g, n);

		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				last[val_owner(g, n->in[i])] = here;
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				last[val_owner(g, n->out[i])] = here;
	}
	FOR_VALS (v, g)
		if (v->output)
			last[val_owner(g, val_id(g, v))] = g->nnode;
	FOR_NODES (n, g) {
		if (op_info[n->op].flags & F_WRITES)
			share_update(&s, n);
		else
			share_dying(&s, n);
		if (n->wait)
			mark_in_transfer(&s, n);
	}
}

bool
pass_inplace(Pass *p, Graph *g)
{
	inplace_graph(g, p->scratch);
	return true;
}
