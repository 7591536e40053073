/* Pass fold: compact lanes and lanes in place (fold_lanes.c).
 *
 * The lanes of a selection are compact, the first `count` of them all, or in
 * place, each where the mask has its element.  In place every sample keeps to
 * itself, so that replicas can share out a batch, and what is written back
 * under the same mask is a `where`.  It is correct unless an op reads the index
 * of a lane, which is known only during the walk (fold_compact).  Until then
 * both forms are built, and one of them is removed at the end.
 */
#include "passes/fold/fold_lanes.h"

/* ---- selections that lie alike ---- */

static struct selection *
root(struct fold *f, int sel)
{
	while (f->selection[sel - 1].like)
		sel = f->selection[sel - 1].like;
	return &f->selection[sel - 1];
}

void
fold_compact(struct fold *f, int sel)
{
	root(f, sel)->compact = true;
}

void
fold_lie_alike(struct fold *f, int a, int b)
{
	struct selection *x = root(f, a), *y = root(f, b);

	if (x == y)
		return;
	y->compact |= x->compact;
	x->like = (int)(y - f->selection) + 1;
}

/* ---- looking through moves ---- */

/* What v was before it was given other shapes. */
static ValId
unshaped(const struct fold *f, ValId v)
{
	const Graph *g = f->g;

	while (g->val[v].def && g->node[g->val[v].def].op == OP_RESHAPE)
		v = g->node[g->val[v].def].in[0];
	return v;
}

bool
fold_is_places(const struct fold *f, ValId idx, int sel)
{
	const struct selection *s = &f->selection[sel - 1];
	const Node *n = &f->g->node[f->g->val[idx].def];
	bool one = f->g->val[s->from].shape.rank == 1;

	if (!s->at)
		return false;
	if (one && unshaped(f, idx) == s->at)
		return true;
	idx = one ? unshaped(f, idx) : idx;
	n = &f->g->node[f->g->val[idx].def];
	return n->op == OP_TRANSPOSE && n->in[0] == s->at;
}

/* Whether the elements of mask v, that many times as many, are those of mask m,
 * each repeated. */
static bool
repeats_each(const struct fold *f, ValId v, ValId m, int64_t times)
{
	const Node *n;
	const Shape *x, *y;

	v = unshaped(f, v);
	m = unshaped(f, m);
	if (v == m || f->g->val[v].def == 0)
		return v == m && times == 1;
	n = &f->g->node[f->g->val[v].def];
	if (n->op != OP_EXPAND || unshaped(f, n->in[0]) != m)
		return false;
	x = &f->g->val[n->in[0]].shape;
	y = &f->g->val[v].shape;
	for (int d = y->rank - 1; d >= 0; d--) {
		int from = d - y->rank + x->rank;

		if (from >= 0 && x->dim[from] > 1)
			break;
		times = times % y->dim[d] ? 0 : times / y->dim[d];
	}
	return times == 1;
}

bool
fold_see_as(struct fold *f, ValId x, int sel)
{
	struct lanes *l = fold_note(f, x)->lanes;
	const struct selection *s = &f->selection[sel - 1], *own;

	if (l->id == sel && l->times == 1)
		return true;
	own = &f->selection[l->id - 1];
	if (s->joins[0] || own->joins[0] || s->bound != own->bound * l->times
	    || !repeats_each(f, s->from, own->from, l->times))
		return false;
	fold_lie_alike(f, l->id, sel);
	l->id = sel;
	l->times = 1;
	return true;
}

/* ---- the end ---- */

void
fold_in_place(struct fold *f, ValId v, ValId instead, int sel)
{
	if (!v || !instead)
		return;
	f->placed = arena_grow(f->p->scratch, f->placed, f->nplaced,
	                       &f->placed_cap, f->nplaced + 1,
	                       sizeof *f->placed);
	f->placed[f->nplaced++] = (struct placed){ v, instead, sel };
}

/* Whether all that is read of v, places among the lanes of another selection,
 * picks along these, or asks the mask whose elements they are. */
static bool
picks_alone(struct fold *f, const struct uses *u, ValId v,
            const struct selection *s)
{
	const Graph *g = f->g;

	FOR_USES (i, u, v) {
		const Node *n = &g->node[u->node[i]];
		const struct lanes *l = lanes_of(f, n->in[0]);
		ValId asked = n->in[0];
		const Node *by = &g->node[g->val[asked].def];

		if (n->op == OP_RESHAPE || n->op == OP_TRANSPOSE) {
			if (!picks_alone(f, u, n->out[0], s))
				return false;
			continue;
		}
		if (g->val[asked].def && by->op == OP_CAST)
			asked = by->in[0];
		if (n->in[0] == v || (n->op != OP_GATHER
		                      && n->op != OP_GATHER_ND)
		    || !((l && l->id == s->of) || asked == s->from))
			return false;
	}
	return !g->val[v].output;
}

/* Numbers of lanes that are read as numbers. */
static void
find_read(struct fold *f)
{
	struct uses u;
	bool any = false;

	for (size_t i = 0; i < f->nselection; i++)
		any |= f->selection[i].of > 0 && f->selection[i].at;
	if (!any)
		return;
	u = graph_uses(f->g, f->p->scratch);
	for (size_t i = 0; i < f->nselection; i++) {
		const struct selection *s = &f->selection[i];

		if (s->of && s->at && !picks_alone(f, &u, s->at, s))
			fold_compact(f, s->of);
	}
}

void
fold_settle(struct fold *f)
{
	Graph *g = f->g;
	ValId *now = f->nplaced ? arena_array(f->p->scratch, g->nval,
	                                      sizeof *now) : NULL;

	find_read(f);
	for (size_t i = 0; i < f->nplaced; i++) {
		const struct placed *p = &f->placed[i];

		if (root(f, p->sel)->compact)
			continue;
		now[p->v] = p->instead;
		if (g->val[p->v].output)
			fold_turn(f, g->val[p->v].def, OP_COPY, p->instead);
	}
	FOR_NODES (n, g)
		for (int k = 0; now && k < n->nin; k++)
			while (now[n->in[k]])
				n->in[k] = now[n->in[k]];
	for (size_t i = 0; i < f->nselection; i++) {
		ValId at = f->selection[i].at;

		if (at && !root(f, (int)i + 1)->compact)
			g->node[g->val[at].def].attr.SELECTED.compact = 0;
	}
}
