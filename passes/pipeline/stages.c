/* Which stage each node runs on; see pipeline.h. */
#include "passes/pipeline/stages.h"

#include <string.h>

/* ---- kinds ---- */

static enum stage_kind
kind_of_leaf(const Val *v)
{
	switch (v->kind) {
	case V_PARAM: case V_BUFFER: return KIND_PARAM;
	case V_CONST: return KIND_CONST;
	default: return KIND_FREE;
	}
}

static void
find_value_kinds(struct stages *s)
{
	const Graph *g = s->g;

	s->kind = arena_array(s->p->scratch, g->nval, sizeof *s->kind);
	FOR_VALS (v, g)
		if (v->kind != V_TEMP)
			s->kind[val_id(g, v)] = (uint8_t)kind_of_leaf(v);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				s->kind[n->out[k]] =
					(uint8_t)stage_kind_of(s, n);
}

/* ---- sets of stages ---- */

static void
add_stage(const struct stages *s, uint64_t *sets, size_t i, int stage)
{
	sets[i * (size_t)s->words + (size_t)stage / 64] |=
		UINT64_C(1) << (stage % 64);
}

/* The least stage of a set; s->n: it is empty. */
static int
least_stage(const struct stages *s, const uint64_t *sets, size_t i)
{
	int k = 0;

	while (k < s->n && !stage_in(s, sets, i, k))
		k++;
	return k;
}

/* What node n runs on reads its operands there. */
static void
need_operands(struct stages *s, const Node *n)
{
	const Graph *g = s->g;
	NodeId id = node_id(g, n);
	size_t words = (size_t)s->words;

	for (int k = 0; k < n->nin; k++) {
		NodeId def = g->val[n->in[k]].def;
		uint64_t *to = def ? &s->need[def * words]
			: &s->has[n->in[k] * words];

		if (!n->in[k] || (def && s->kind[n->in[k]] == KIND_BOUND))
			continue;
		if (s->of_node[id] >= 0)
			add_stage(s, to, 0, s->of_node[id]);
		else
			for (size_t w = 0; w < words; w++)
				to[w] |= s->need[id * words + w];
	}
}

/* From the last to the first of nodes first..end-1. */
static void
find_needs(struct stages *s, NodeId first, NodeId end)
{
	for (NodeId id = end; id-- > first; )
		need_operands(s, &s->g->node[id]);
}

/* ---- bound nodes ---- */

static void
assign_forward(struct stages *s, const int *of_place)
{
	FOR_NODES (n, s->g) {
		NodeId id = node_id(s->g, n);

		s->of_node[id] = n->phase == PH_FORWARD
			&& stage_kind_of(s, n) == KIND_BOUND
			? of_place[n->place] : -1;
	}
}

/* The gradient of what depends on parameters alone is made on the first stage
 * that has it. */
static void
place_params(const struct stages *s, int *of_place)
{
	FOR_NODES (n, s->g) {
		NodeId id = node_id(s->g, n);
		int least = least_stage(s, s->need, id);

		if (n->phase == PH_FORWARD && s->of_node[id] < 0)
			of_place[n->place] = least < s->n ? least : 0;
	}
}

/* A sum of contributions that come from later stages goes down to the first
 * of them. */
static bool
assign_backward_node(struct stages *s, const Node *n, const int *of_place)
{
	const Graph *g = s->g;
	int *stage = &s->of_node[node_id(g, n)];

	*stage = n->place ? of_place[n->place] : s->n - 1;
	for (int k = 0; k < n->nin; k++) {
		const Node *def = &g->node[g->val[n->in[k]].def];
		int from = s->of_node[node_id(g, def)];

		if (n->in[k] && def->phase == PH_BACKWARD && from >= 0
		    && from < *stage)
			*stage = from;
	}
	for (int k = 0; k < n->nin; k++) {
		const Node *def = &g->node[g->val[n->in[k]].def];

		if (n->in[k] && g->val[n->in[k]].def
		    && def->phase != PH_BACKWARD
		    && s->of_node[node_id(g, def)] > *stage)
			return node_error(g, s->p->diag, n, "--pp: the "
			                  "gradient reads '%s' of stage %d on "
			                  "stage %d", g->val[n->in[k]].name,
			                  s->of_node[node_id(g, def)], *stage);
	}
	return true;
}

static bool
stage_backward(struct stages *s, const int *of_place)
{
	FOR_NODES (n, s->g)
		if (n->phase != PH_FORWARD
		    && stage_kind_of(s, n) == KIND_BOUND
		    && !assign_backward_node(s, n, of_place))
			return false;
	return true;
}

/* ---- what nobody reads ---- */

/* Outputs and gradients that are not bound, and what is in the file alone. */
static void
find_homes(struct stages *s)
{
	const Graph *g = s->g;

	FOR_VALS (v, g) {
		ValId id = val_id(g, v);

		if (v->def && s->of_node[v->def] < 0
		    && (v->output || v->param || id == g->loss))
			add_stage(s, s->need, v->def, v->param
				? least_stage(s, s->has, v->param) % s->n
				: s->n - 1);
	}
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_WRITES
		    && s->of_node[node_id(g, n)] < 0 && !n->count_pass)
			add_stage(s, s->need, node_id(g, n), 0);
}

static void
find_leaves(struct stages *s)
{
	const Graph *g = s->g;

	FOR_VALS (v, g) {
		ValId id = val_id(g, v);

		/* the gradient is made here */
		if (v->kind == V_TEMP && v->def && v->param) {
			int at = s->of_node[v->def];

			add_stage(s, s->has, v->param, at >= 0 ? at
			          : least_stage(s, s->need, v->def));
		}
		if ((v->kind == V_PARAM || v->kind == V_BUFFER
		     || v->kind == V_INPUT)
		    && least_stage(s, s->has, id) == s->n)
			add_stage(s, s->has, id, 0);
	}
}

void
stages_begin(struct stages *s, Pass *p, const Graph *g)
{
	int chunks = p->opt->chunks ? (int)p->opt->chunks : 1;
	int n = (int)p->opt->pp * chunks;
	size_t words = ((size_t)n + 63) / 64;

	*s = (struct stages){ .p = p, .g = g, .n = n,
		.words = (int)words,
		.of_node = arena_array(p->scratch, g->nnode,
		                       sizeof *s->of_node),
		.need = arena_array(p->scratch, g->nnode, words * 8),
		.has = arena_array(p->scratch, g->nval, words * 8),
		.cut = arena_array(p->keep, (size_t)n, sizeof *s->cut),
		.nmicro = (int)p->opt->grad_accum };
	find_value_kinds(s);
}

void
stages_find_needs(struct stages *s)
{
	find_homes(s);
	find_needs(s, 1, s->g->nnode);
}

bool
stages_assign(struct stages *s, Pass *p, const Graph *g)
{
	int *of_place = arena_array(p->scratch, g->nnode, sizeof *of_place);
	NodeId backward = 1;

	stages_begin(s, p, g);
	if (!places_choose(s, of_place))
		return false;
	assign_forward(s, of_place);
	while (backward < g->nnode && g->node[backward].phase == PH_FORWARD)
		backward++;
	find_needs(s, 1, backward);
	place_params(s, of_place);
	if (!stage_backward(s, of_place))
		return false;
	stages_find_needs(s);
	find_leaves(s);
	return true;
}

void
forward_line_list(struct forward_line *to, Pass *p, const Graph *g)
{
	struct stages s;

	stages_begin(&s, p, g);
	places_list(&s, to);
}
