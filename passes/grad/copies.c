/* 16-bit copies of parameters that updates write.
 *
 * Products read a parameter in 16 bits.  Either a cast in each step makes this
 * copy, or the update writes it together with the parameter: 2 bytes of memory
 * per element save 6 bytes of traffic and a node.  Pass precision inserts
 * casts; a copy replaces a cast, with the same bits.
 */
#include "passes/grad/copies.h"

/* The parameter that node n casts to 16 bits; 0: none that is trained. */
static ValId
copied_by(const Graph *g, const Node *n)
{
	const Val *p = n->op == OP_CAST ? &g->val[n->in[0]] : g->val;

	return p->kind == V_PARAM && !p->frozen && p->dt == DT_F32
		&& dtype_is_half(g->val[n->out[0]].dt)
		&& !g->val[n->out[0]].output ? n->in[0] : 0;
}

/* By value: how it is read.  What will be a loop casts by itself, and without
 * rounding. */
enum { BY_LOOPS = 1, BY_OTHERS = 2 };

static uint8_t *
readers_by_kind(const Graph *g, Arena *scratch)
{
	uint8_t *by = arena_array(scratch, g->nval, 1);

	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			by[n->in[k]] |= op_fuses(n->op) ? BY_LOOPS : BY_OTHERS;
	return by;
}

static ValId
new_copy(Graph *g, ValId param, const Val *cast)
{
	ValId v = val_new(g, V_STATE, arena_printf(g->arena, "copy.%s",
	                                           g->val[param].name),
	                  cast->dt, cast->shape);

	g->val[v].param = param;
	g->val[v].state = "copy";
	g->val[v].placement = cast->placement;
	g->val[v].shard = cast->shard;
	return v;
}

/* By value: the copy that takes the place of a cast; 0: none.  Of casts to both
 * types the first one's is a copy.  copy: by parameter. */
static ValId *
new_copies(Graph *g, Arena *scratch, const uint8_t *by, const bool *trained,
           ValId *copy)
{
	ValId *now = arena_array(scratch, g->nval, sizeof *now);

	FOR_NODES (n, g) {
		ValId p = copied_by(g, n);
		Val y = g->val[n->nout ? n->out[0] : 0];

		if (!trained[p] || !(by[n->out[0]] & BY_OTHERS)
		    || (copy[p] && g->val[copy[p]].dt != y.dt))
			continue;
		if (!copy[p])
			copy[p] = new_copy(g, p, &y);
		now[n->out[0]] = copy[p];
	}
	return now;
}

ValId *
copies_make(Graph *g, Arena *scratch, const struct update *u, uint32_t n)
{
	ValId nval = g->nval, *copy = arena_array(scratch, nval, sizeof *copy);
	bool *trained = arena_array(scratch, nval, sizeof *trained);
	uint8_t *by = readers_by_kind(g, scratch);
	ValId *now;

	/* a piece is updated in place of a whole that stays */
	for (uint32_t i = 0; i < n; i++)
		trained[u[i].param] = !u[i].cut || g->val[u[i].param].shard;
	now = new_copies(g, scratch, by, trained, copy);
	FOR_NODES (node, g)
		for (int k = 0; k < node->nin; k++)
			if (now[node->in[k]] && !op_fuses(node->op))
				node->in[k] = now[node->in[k]];
	for (ValId v = 1; v < nval; v++) {
		ValId of = g->val[v].grad_of;

		if (now[of] && !(by[of] & BY_LOOPS))
			g->val[v].grad_of = now[of];
	}
	return copy;
}

bool
copies_fit(const Graph *g)
{
	FOR_NODES (n, g)
		if (copied_by(g, n))
			return true;
	return false;
}
