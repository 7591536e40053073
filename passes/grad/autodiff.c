/* Reverse-mode differentiation: append the backward graph.
 *
 * What.  Adjoints are computed for the values that lie on a differentiable
 * path from a trained parameter to the loss, and for no others.  The seed is
 * 1 if losses of micro-batches add up (pass micro), else 1/grad_accum, so that
 * their gradients add up to the mean's; where
 * adjoints pass through f16, which has none below 6e-8, it is scaled by what
 * the run time finds fit (Micikevicius et al., Mixed precision training,
 * 2018).
 *
 * Algorithm.  One walk over the forward nodes from the last to the first
 * (Griewank and Walther, Evaluating Derivatives, 3.2); the op's rule
 * (ops.h, grad_*.c) emits the backward nodes, which therefore stand in
 * reverse order of the forward nodes: every adjoint is complete when the walk
 * reaches the writer of its value, and is dead soon after.  Within a product
 * the gradient of a parameter comes before the adjoint that goes on.
 *
 * Contributions to one adjoint are added in the order in which they appear,
 * that is, from the last consumer to the first; the order depends on the
 * forward graph alone.  A 2-D product or a scatter_add takes the sum so far as
 * its accumulator, anything else is joined by an add.  Slices that cut one
 * axis without overlap are held back until all are there (slice_adjoints.h).
 *
 * needs   P_CANON, P_LOSS (nothing if there is no loss: then it only says
 *         P_BWD)
 * gives   P_BWD: phase backward; Val.grad_of on adjoints; Val.param on the
 *         one final gradient of every trained parameter
 * breaks  nothing: forward nodes stay as they are, except that statistics
 *         that had been dropped come back as outputs
 * cost    O(N + E)
 * refuses ops whose row says `none`, trained class weights, trained attention
 *         masks; all refusals are reported together, by op.  A parameter that
 *         the loss does not depend on is frozen with a note.
 */
#include "passes/grad/grad_rules.h"

#include <string.h>

#include "passes/grad/slice_adjoints.h"
#include "passes/grad/shield.h"
#include "passes/pass.h"

struct adjoint {
	ValId sum;                      /* of the contributions so far; 0 */
	struct slice_adjoint *piece;
};

struct refusal {
	Op op;
	const char *why;
	NodeId node;
};

struct autodiff {
	Pass *pass;
	Graph *g;
	uint32_t nforward, nval;        /* sizes before anything was added */
	bool *reach;
	bool *shield;                   /* by node */
	NodeId *first_use;              /* by value: its earliest consumer */
	struct adjoint *adj;            /* by value */
	struct grad_scalars scalars;
	struct refusal *refusal;
	size_t nrefusal, refusal_cap;
	bool failed;
};

static struct grad
grad_context(struct autodiff *ad, NodeId id)
{
	return (struct grad){
		.g = ad->g, .diag = ad->pass->diag, .id = id,
		.n = ad->g->node[id], .scalars = &ad->scalars,
		.shield = id < ad->nforward && ad->shield[id],
	};
}

/* ---- sums ---- */

/* Let the node that has just written v add `sum` to it by itself. */
static bool
fold_sum(struct autodiff *ad, ValId v, ValId sum, NodeId fresh)
{
	Graph *g = ad->g;
	NodeId def = g->val[v].def;
	Node *n = &g->node[def];
	ValId in[8] = { 0 };
	int acc = op_accumulator(n->op);

	if (def < fresh || acc == 0 || n->nin > acc || g->val[v].result_index
	    || g->val[sum].def >= def)
		return false;
	if (n->op == OP_MATMUL && g->val[v].shape.rank != 2)
		return false;
	memcpy(in, n->in, (size_t)n->nin * sizeof *in);
	in[acc] = sum;
	n->in = arena_copy(g->arena, in, sizeof in);
	n->nin = acc + 1;
	return true;
}

/* An adjoint is cut as its value is: a rank's shapes alone do not say along
 * which dim.  Other states follow from the ops. */
static void
state_adjoint(Graph *g, ValId v, ValId d)
{
	if (g->val[v].placement.kind == PLACEMENT_SHARD
	    && g->val[d].placement.kind == PLACEMENT_REPLICATE)
		g->val[d].placement = g->val[v].placement;
}

/* Add dv to the adjoint of v; nodes from `fresh` on belong to this
 * contribution alone. */
static void
add_contribution(struct autodiff *ad, struct grad *c, ValId v, ValId dv,
                 NodeId fresh)
{
	struct adjoint *a = &ad->adj[v];
	Graph *g = ad->g;

	state_adjoint(g, v, dv);
	if (a->sum == 0 || fold_sum(ad, dv, a->sum, fresh))
		a->sum = dv;
	else
		a->sum = adj_2(c, OP_ADD, a->sum, dv);
	state_adjoint(g, v, a->sum);
}

/* ---- slices ---- */

static void
hold_piece(struct autodiff *ad, NodeId id, ValId dy)
{
	struct slice_adjoint *p = arena_alloc(ad->pass->scratch, sizeof *p);
	struct adjoint *a = &ad->adj[ad->g->node[id].in[0]];

	*p = (struct slice_adjoint){ id, dy, a->piece };
	a->piece = p;
}

/* Turn the slices of v that were held back into contributions. */
static void
release_pieces(struct autodiff *ad, ValId v)
{
	Graph *g = ad->g;
	struct slice_adjoint *list = ad->adj[v].piece;
	Shape s = g->val[v].shape;
	int nparts;

	if (list == NULL)
		return;
	ad->adj[v].piece = NULL;
	nparts = slice_adjoints_sort(g, &list);
	if (nparts > 0) {
		struct grad c = grad_context(ad, list->node);
		ValId d = slice_adjoints_join(&c, list, nparts,
		                              ad->pass->scratch);

		for (const struct slice_adjoint *p = list->next; p; p = p->next)
			node_add_origin(g, &g->node[g->nnode - 1],
			                g->node[p->node].origin,
			                g->node[p->node].norigin);
		add_contribution(ad, &c, v, d, g->nnode);
		ad->failed |= c.failed;
		return;
	}
	for (const struct slice_adjoint *p = list; p != NULL; p = p->next) {
		struct grad c = grad_context(ad, p->node);
		NodeId fresh = g->nnode;
		const IntList start = c.n.attr.SLICE.start;
		const IntList step = c.n.attr.SLICE.step;

		add_contribution(ad, &c, v, adj_unslice(&c, p->dy, &s, &start,
		                                        &step), fresh);
		ad->failed |= c.failed;
	}
}

/* ---- one node ---- */

static void
record_refusal(struct autodiff *ad, struct grad *c)
{
	ad->refusal = arena_grow(ad->pass->scratch, ad->refusal,
	                         ad->nrefusal, &ad->refusal_cap,
	                         ad->nrefusal + 1, sizeof *ad->refusal);
	ad->refusal[ad->nrefusal++] =
	    (struct refusal){ c->n.op, c->why, c->id };
	/* Go on with zeros, to find the others. */
	for (int k = 0; k < c->n.nin; k++)
		if (c->want[k] && c->dx[k] == 0) {
			Shape s = *adj_shape(c, c->n.in[k]);

			c->dx[k] = adj_zeros(c, adj_dt(c, c->n.in[k]), &s);
		}
}

static void
differentiate_node(struct autodiff *ad, NodeId id)
{
	struct grad c = grad_context(ad, id);
	size_t nin = (size_t)c.n.nin, nout = (size_t)c.n.nout;
	ValId *dy = arena_array(ad->pass->scratch, nout + 1, sizeof *dy);
	bool *want = arena_array(ad->pass->scratch, nin + 1, sizeof *want);
	NodeId fresh = ad->g->nnode;
	bool any = false;

	for (int k = 0; k < c.n.nout; k++) {
		dy[k] = c.n.out[k] ? ad->adj[c.n.out[k]].sum : 0;
		any |= dy[k] != 0;
	}
	if (!any)
		return;
	any = false;
	for (int k = 0; k < c.n.nin; k++) {
		want[k] = grad_passes(ad->g, &c.n, k)
		          && ad->reach[c.n.in[k]];
		any |= want[k];
	}
	if (!any)
		return;
	c.dy = dy;
	c.want = want;
	c.dx = arena_array(ad->pass->scratch, nin + 1, sizeof *c.dx);
	if (c.n.op == OP_SLICE && slice_adjoint_axis(ad->g, &c.n) >= 0) {
		hold_piece(ad, id, dy[0]);
		return;
	}
	if (!grad_table[c.n.op](&c))
		record_refusal(ad, &c);
	for (int k = 0; k < c.n.nin; k++)
		if (want[k] && c.dx[k] != 0)
			add_contribution(ad, &c, c.n.in[k], c.dx[k], fresh);
	ad->failed |= c.failed;
}

/* ---- final gradients ---- */

/* Say whose adjoint it is. */
static void
name_adjoint(struct autodiff *ad, ValId v)
{
	Graph *g = ad->g;
	ValId d = ad->adj[v].sum;

	if (d == 0 || g->val[d].grad_of != 0)
		return;
	g->val[d].grad_of = v;
	g->val[d].onnx = g->val[v].onnx;
	val_rename(g, d, arena_printf(g->arena, "d.%s", g->val[v].name));
}

/* The adjoint of parameter p is complete. */
static void
finish_parameter(struct autodiff *ad, ValId p, NodeId last)
{
	Graph *g = ad->g;
	ValId d = ad->adj[p].sum;

	if (d == 0)
		return;
	if (g->val[d].param != 0) {     /* p + q: one adjoint, two gradients */
		struct grad c = grad_context(ad, last);

		d = adj_1(&c, OP_COPY, d);
		ad->failed |= c.failed;
		if (d == 0)
			return;
		ad->adj[p].sum = d;
	}
	g->val[d].grad_of = 0;
	name_adjoint(ad, p);
	g->val[d].param = p;
}

/* Adjoints of values of which node id is the earliest consumer. */
static void
finish_inputs(struct autodiff *ad, NodeId id)
{
	const Node n = ad->g->node[id];

	for (int k = 0; k < n.nin; k++) {
		ValId v = n.in[k];
		NodeId fresh = ad->g->nnode;

		if (v == 0 || ad->first_use[v] != id || !ad->reach[v])
			continue;
		ad->first_use[v] = 0;   /* an operand may be given twice */
		release_pieces(ad, v);
		while (fresh < ad->g->nnode)
			ad->g->node[fresh++].place = n.place;
		if (ad->g->val[v].kind == V_PARAM)
			finish_parameter(ad, v, id);
		else
			name_adjoint(ad, v);
	}
}

static void
freeze_unreached(struct autodiff *ad)
{
	for (ValId v = 1; v < ad->nval; v++) {
		Val *p = &ad->g->val[v];

		if (p->kind != V_PARAM || p->frozen || ad->adj[v].sum != 0)
			continue;
		p->frozen = true;
		diag_note(ad->pass->diag, "parameter '%s' is not trained: "
		          "the loss does not depend on it", p->name);
	}
}

/* ---- refusals ---- */

static bool
same_reason(const struct refusal *a, const struct refusal *b)
{
	return a->op == b->op && a->why == b->why;
}

/* One message for all nodes with the op and reason of refusal i. */
static void
report_group(struct autodiff *ad, size_t i)
{
	enum { SHOWN = 10 };
	const struct refusal *r = &ad->refusal[i];
	const Graph *g = ad->g;
	Diag *d = ad->pass->diag;
	size_t n = 0;

	diag_error(d, "gradient of %s is not supported%s%s",
	           op_info[r->op].text, r->why ? ": " : "",
	           r->why ? r->why : "");
	for (size_t j = i; j < ad->nrefusal; j++) {
		if (!same_reason(r, &ad->refusal[j]))
			continue;
		if (n++ < SHOWN)
			diag_more(d, "node '%s'", node_label(g, &g->node[
			          ad->refusal[j].node]));
	}
	if (n > SHOWN)
		diag_more(d, "and %zu more", n - SHOWN);
}

static void
report_refusals(struct autodiff *ad)
{
	for (size_t i = 0; i < ad->nrefusal; i++) {
		bool first = true;

		for (size_t j = 0; j < i; j++)
			first &= !same_reason(&ad->refusal[i],
			                      &ad->refusal[j]);
		if (first)
			report_group(ad, i);
	}
}

/* ---- the pass ---- */

static struct autodiff
new_autodiff(Pass *p, Graph *g)
{
	struct autodiff ad = { .pass = p, .g = g, .nforward = g->nnode,
		.nval = g->nval };

	ad.reach = grad_reach(g, p->scratch);
	ad.shield = grad_shields(g, p->scratch);
	ad.adj = arena_array(p->scratch, g->nval, sizeof *ad.adj);
	ad.first_use = arena_array(p->scratch, g->nval, sizeof *ad.first_use);
	ad.scalars.arena = p->scratch;
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] != 0 && ad.first_use[n->in[k]] == 0)
				ad.first_use[n->in[k]] = node_id(g, n);
	return ad;
}

/* Whether an adjoint will be f16. */
static bool
passes_f16(const struct autodiff *ad)
{
	for (ValId v = 1; v < ad->nval; v++)
		if (ad->reach[v] && ad->g->val[v].dt == DT_F16)
			return true;
	return false;
}

static bool
seed_loss(struct autodiff *ad)
{
	Graph *g = ad->g;
	struct grad c = grad_context(ad, g->val[g->loss].def);
	Shape s = g->val[g->loss].shape;
	DType dt = g->val[g->loss].dt;
	int64_t naccum = g->adds ? 1 : ad->pass->opt->grad_accum;
	double value = 1.0 / (double)(naccum > 1 ? naccum : 1);
	ValId d = passes_f16(ad) ? adj_loss_scale(&c, dt, value, &s)
	                         : adj_fill(&c, dt, value, &s);

	if (d == 0)
		return false;
	ad->adj[g->loss].sum = d;
	name_adjoint(ad, g->loss);
	return true;
}

/* Behind them a whole is its total. */
static void
read_totals(Graph *g)
{
	FOR_NODES (n, g)
		if (n->op == OP_BATCH_TOTAL)
			val_replace(g, n->out[0], n->in[1], 1, g->nnode);
	graph_dce(g);
}

/* The options that may be why nothing is trained. */
static const char *
wishes_text(Pass *p)
{
	const char *s = "";

	for (int i = 0; i < p->opt->nwish; i++)
		s = arena_printf(p->scratch, "%s %s '%s'", s,
		                 p->opt->wish[i].wanted ? "--train"
		                                        : "--freeze",
		                 p->opt->wish[i].glob);
	return *s ? arena_printf(p->scratch, "; check%s: the last option that "
	                         "matches a parameter applies", s) : "";
}

bool
pass_autodiff(Pass *p, Graph *g)
{
	struct autodiff ad;

	if (g->loss == 0 || p->opt->forward_only)
		return true;
	ad = new_autodiff(p, g);
	if (!ad.reach[g->loss] || g->val[g->loss].def == 0)
		return diag_error(p->diag, "loss '%s' does not depend on any "
		                  "trained parameter%s", g->val[g->loss].name,
		                  wishes_text(p));
	FOR_NODES (n, g)
		n->place = p->opt->stages ? node_id(g, n) : 0;
	if (!seed_loss(&ad))
		return false;
	for (NodeId id = ad.nforward; --id > 0 && !ad.failed; ) {
		differentiate_node(&ad, id);
		finish_inputs(&ad, id);
	}
	if (ad.failed)
		return false;
	report_refusals(&ad);
	if (ad.nrefusal > 0)
		return false;
	freeze_unreached(&ad);
	for (NodeId id = ad.nforward; id < g->nnode; id++)
		g->node[id].phase = PH_BACKWARD;
	if (graph_has_op(g, OP_BATCH_TOTAL))
		read_totals(g);
	return true;
}
