/* Backward of a stage in two turns (Qi, Wan, Huang and Lin, "Zero Bubble
 * Pipeline Parallelism", 2023): B, what other stages wait for, and W, phase
 * weight, most of which are gradients of parameters.
 *
 * method  B is what messages depend on: a walk back from the SENDs, and the
 *         RECEIVEs.  W is the rest.
 *         Turns of other micro-batches run between the two.  What several nodes
 *         of a micro-batch write into the same memory, as a gradient that two
 *         of them accumulate, would then be summed in another order.  Such
 *         nodes are all in B or all in W.
 * needs   P_FUSED: what one kernel computes runs at one time
 * gives   order: forward, backward, weight, update
 * cost    linear in operands, for each time that shared memory makes B larger
 */
#include "passes/pipeline/pipeline.h"

struct weights {
	Graph *g;
	bool *needed;                   /* by value: B reads it */
	bool *waits;                    /* by node: it is in B */
	bool *written;                  /* by value that no node writes: B
	                                 * writes into it */
};

/* The value whose memory a value lies in that nodes write over. */
static ValId
memory_of(const Graph *g, ValId v)
{
	const Node *def = &g->node[g->val[v].def];

	while (g->val[v].def && op_info[def->op].flags & F_WRITES) {
		int k = op_overwrites(def->op, g->val[v].result_index);

		v = def->in[k];
		def = &g->node[g->val[v].def];
	}
	return v;
}

/* What the node writes over; 0: nothing. */
static ValId
written_by(const Graph *g, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (op_info[n->op].flags & F_WRITES && n->out[k])
			return memory_of(g, n->out[k]);
	return 0;
}

static bool
others_wait_for(const struct weights *w, const Node *n)
{
	ValId memory = written_by(w->g, n);

	if (node_is_message(n) || (memory && w->written[memory]))
		return true;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && w->needed[n->out[k]])
			return true;
	return false;
}

/* From the last to the first node of backward; whether more is in B. */
static bool
walk_back(struct weights *w)
{
	const Graph *g = w->g;
	bool more = false;

	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];

		if (n->phase != PH_BACKWARD || n->count_pass || w->waits[id]
		    || !others_wait_for(w, n))
			continue;
		w->waits[id] = more = true;
		for (int k = 0; k < n->nin; k++)
			w->needed[n->in[k]] = true;
		w->written[written_by(g, n)] = true;
	}
	w->written[0] = w->needed[0] = false;
	return more;
}

/* Forward and what is in B, then W, then updates. */
static void
order_turns(const struct weights *w, Arena *a)
{
	Graph *g = w->g;
	NodeId *order = arena_array(a, g->nnode, sizeof *order);
	uint32_t n = 0;

	FOR_NODES (m, g)
		if (m->phase == PH_BACKWARD && !m->count_pass
		    && !w->waits[node_id(g, m)])
			m->phase = PH_WEIGHT;
	for (int part = 0; part < 3; part++)
		FOR_NODES (m, g)
			if (part == (m->phase == PH_UPDATE && !m->count_pass
			             ? 2 : m->phase == PH_WEIGHT))
				order[n++] = node_id(g, m);
	graph_reorder(g, order, n);
}

bool
pass_weights(Pass *p, Graph *g)
{
	struct weights w = { .g = g,
		.needed = arena_array(p->scratch, g->nval, sizeof *w.needed),
		.waits = arena_array(p->scratch, g->nnode, sizeof *w.waits),
		.written = arena_array(p->scratch, g->nval,
		                       sizeof *w.written) };

	if (!g->weight_slots)
		return true;
	while (walk_back(&w))
		;
	order_turns(&w, p->scratch);
	return true;
}
