/* Attention on a part of the heads: replicas exchange their positions of all
 * heads for all positions of their heads, and the results back (DeepSpeed
 * Ulysses, Jacobs et al. 2023).  All have equal work, also where zig-zag
 * stretches do not fit, and masks and positions are those of the whole.
 */
#include "passes/context_parallel/cp_partition.h"

#include "passes/cost/cost.h"

static int64_t
ranks_of_part(const struct cp_partition *c)
{
	return c->p->opt->tp > 1 ? c->p->opt->tp : 1;
}

static const Shape *
shape_of(const struct cp_partition *c, ValId v)
{
	return &c->g->val[v].shape;
}

/* A dim of the mask, counted from the last; 1 where it has none. */
static int64_t
mask_dim(const struct cp_partition *c, const Node *n, int back)
{
	ValId mask = n->nin > 3 ? n->in[3] : 0;
	const Shape *s = shape_of(c, mask);

	return mask && s->rank >= back ? s->dim[s->rank - back] : 1;
}

/* Why heads cannot be exchanged; NULL: they can. */
static const char *
why_not_heads(const struct cp_partition *c, const Node *n)
{
	int64_t parts = c->parts * ranks_of_part(c);

	for (int k = 0; k < 3; k++) {
		const Shape *s = shape_of(c, n->in[k]);
		const Placement at = cp_positions(c, 2, s->dim[2]);

		if (s->rank != 4 || !placement_eq(&c->placement[n->in[k]], &at))
			return "expected queries, keys and values with a part "
				"of the positions each";
		if (s->dim[1] % parts)
			return arena_printf(c->p->scratch, "expected a number "
			                    "of %s heads that %lld divides, "
			                    "found %lld", k ? "key" : "query",
			                    (long long)parts,
			                    (long long)s->dim[1]);
	}
	if (mask_dim(c, n, 3) != 1)
		return "expected one mask for all heads";
	return n->nin > 3 && n->in[3]
		&& c->placement[n->in[3]].kind != PLACEMENT_REPLICATE_PARTIAL
		? "expected a mask of all positions" : NULL;
}

/* ---- which form takes less time ---- */

/* Seconds in which a value goes between replicas: each sends all but its own of
 * so many parts. */
static double
send_seconds(const struct cp_partition *c, ValId v, int64_t share)
{
	int64_t tp = ranks_of_part(c), n = c->parts;
	double bytes = (double)val_nelem(&c->g->val[v])
		* dtype_info[c->g->val[v].dt].nbytes / (double)tp;

	return device_ring_seconds(device_of(c->g), (struct ring){ n, tp },
	                           bytes / (double)share * (double)(n - 1)
	                           / (double)n);
}

/* Of forward and backward; within a budget also what is cheapest to send again
 * there: gathered keys and values, or the result. */
static double
gather_seconds(const struct cp_partition *c, const Node *n, bool again)
{
	return (2 + again) * (send_seconds(c, n->in[1], 1)
	                      + send_seconds(c, n->in[2], 1));
}

static double
exchange_seconds(const struct cp_partition *c, const Node *n, bool again)
{
	double result = send_seconds(c, n->out[0], c->parts), sum = result;

	for (int k = 0; k < 3; k++)
		sum += send_seconds(c, n->in[k], c->parts);
	return 2 * sum + again * result;
}

/* What the slowest replica computes longer if queries are shared: backward has
 * five products, forward two. */
static double
unequal_seconds(const struct cp_partition *c, const Node *n)
{
	Node part = *n;
	double equal, seconds = node_cost(c->g, n).sec
		/ (double)(c->parts * ranks_of_part(c));

	if (!n->attr.ATTENTION.causal)
		return 0;
	equal = causal_share(c->g, n);
	part.attr.ATTENTION.context = c->parts;
	return 3.5 * seconds * (causal_share(c->g, &part) / equal - 1);
}

/* A mask of queries and keys would be whole, which a replica that gathers has a
 * part of. */
static bool
is_faster_by_heads(const struct cp_partition *c, const Node *n)
{
	const struct options *o = c->p->opt;
	bool again = o->budget_bytes >= 0 || o->budget_pct > 0;

	return mask_dim(c, n, 2) == 1
		&& exchange_seconds(c, n, again)
		   < gather_seconds(c, n, again) + unequal_seconds(c, n);
}

/* ---- emitting ---- */

static bool
emit_heads(struct cp_partition *c, NodeId id)
{
	const Node *n = &c->g->node[id];
	ValId o = n->out[0];
	Placement at[6];
	const Placement back = cp_positions(c, 2, shape_of(c, o)->dim[2]);

	for (int k = 0; k < n->nin + n->nout; k++) {
		ValId v = k < n->nin ? n->in[k] : o;

		at[k] = k > 2 && k < n->nin ? cp_whole()
			: placement_dim(1, shape_of(c, v)->dim[1]);
	}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			cp_place(c, n->out[k], &at[n->nin + k]);
	c->heads = true;
	if (!cp_emit_node(c, id, at) || !cp_version(c, o, &back, id))
		return false;
	cp_place(c, o, &back);
	return true;
}

bool
cp_exchange_heads(struct cp_partition *c, NodeId id, bool *is)
{
	const Node *n = &c->g->node[id];
	enum cp_attention form = c->p->opt->cp_attention;
	const char *why;

	*is = false;
	if (n->op != OP_ATTENTION || form == EXCHANGE_KEYS)
		return true;
	why = why_not_heads(c, n);
	if (why && form == EXCHANGE_HEADS)
		return node_error(c->g, c->p->diag, n, "--cp-attention heads: "
		                  "%s; try: --cp-attention auto", why);
	*is = !why && (form == EXCHANGE_HEADS || is_faster_by_heads(c, n));
	return !*is || emit_heads(c, id);
}
