/* The graphs of stages: copies of what each runs, and what crosses between
 * them; see pipeline.h.
 */
#include "passes/pipeline/stages.h"

#include <string.h>

/* A bound value on its way: from stage to stage up to the last reader. */
struct message {
	ValId value;
	int64_t tag;
};

/* What goes from one stage to the next, in the order in which it is sent. */
struct link {
	struct message *m;
	size_t n, cap;
};

struct cut {
	const struct stages *s;
	const struct pipeline *l;
	int *last;                      /* by value: the last stage that reads
	                                 * it, in the direction in which it
	                                 * goes; -1: it stays */
	struct link *up, *down;         /* by stage that sends: forward to the
	                                 * next one, backward to that before */
	struct link *tie;               /* by stage that receives: gradients of
	                                 * parameters */
	int64_t ntag;
	bool *grad;                     /* by value: an adjoint comes back */
};

/* ---- what crosses ---- */

static void
read_on_stage(struct cut *c, const Node *n, ValId v)
{
	const struct stages *s = c->s;
	NodeId def = s->g->val[v].def;
	int at = s->of_node[node_id(s->g, n)], from = s->of_node[def];
	bool back = s->g->node[def].phase != PH_FORWARD;

	if (!v || !def || from < 0 || at < 0 || at == from)
		return;
	if (c->last[v] < 0 || (back ? at < c->last[v] : at > c->last[v]))
		c->last[v] = at;
}

static void
find_last_readers(struct cut *c)
{
	const Graph *g = c->s->g;

	c->last = arena_array(c->s->p->scratch, g->nval, sizeof *c->last);
	FOR_VALS (v, g)
		c->last[val_id(g, v)] = -1;
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			read_on_stage(c, n, n->in[k]);
}

static void
add_message(struct cut *c, struct link *l, ValId v)
{
	l->m = arena_grow(c->s->p->scratch, l->m, l->n, &l->cap, l->n + 1,
	                  sizeof *l->m);
	l->m[l->n++] = (struct message){ v, c->ntag++ };
}

/* A stage sends first what it has received, then what it makes. */
static void
list_link(struct cut *c, int from, Phase phase)
{
	const struct stages *s = c->s;
	const Graph *g = s->g;
	bool back = phase != PH_FORWARD;
	int before = back ? from + 1 : from - 1, to = back ? from - 1
		: from + 1;
	struct link *all = back ? c->down : c->up;

	for (size_t i = 0; before >= 0 && before < s->n && i < all[before].n;
	     i++) {
		ValId v = all[before].m[i].value;

		if (back ? c->last[v] <= to : c->last[v] >= to)
			add_message(c, &all[from], v);
	}
	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && c->last[n->out[k]] >= 0
			    && s->of_node[node_id(g, n)] == from
			    && (n->phase != PH_FORWARD) == back)
				add_message(c, &all[from], n->out[k]);
}

/* Stages beside the one where the gradient is made. */
static void
list_ties(struct cut *c)
{
	const struct stages *s = c->s;
	const Graph *g = s->g;

	FOR_VALS (v, g) {
		NodeId def = v->kind == V_TEMP && v->param ? v->def : 0;

		for (int k = 0; def && k < s->n; k++)
			if (stage_in(s, s->has, v->param, k)
			    && !stage_runs(s, def, k))
				add_message(c, &c->tie[k], val_id(g, v));
	}
}

/* ---- one stage ---- */

struct part {
	struct cut *c;
	const Graph *g;
	Graph *to;
	int stage;
	ValId *map;                     /* by value of g: that of `to`; 0 */
};

/* A value as g has it; what refers to other values follows in map_relations. */
static void
copy_facts(struct part *p, ValId v, ValId y)
{
	const Val *from = &p->g->val[v];
	Val *to = &p->to->val[y];
	Val fresh = *to;

	*to = *from;
	to->name = fresh.name;
	to->def = fresh.def;
	to->result_index = fresh.result_index;
	p->map[v] = y;
}

static ValId
take_value(struct part *p, ValId v)
{
	const Val *from = &p->g->val[v];

	if (v && !p->map[v])
		copy_facts(p, v, val_new(p->to, from->kind, from->name,
		                         from->dt, from->shape));
	return p->map[v];
}

static void
copy_leaves(struct part *p)
{
	const struct stages *s = p->c->s;

	FOR_VALS (v, p->g) {
		ValId id = val_id(p->g, v);

		if (v->kind != V_TEMP && stage_in(s, s->has, id, p->stage))
			take_value(p, id);
	}
}

static void
take_node(struct part *p, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		take_value(p, n->in[k]);
	for (int k = 0; k < n->nout; k++)
		take_value(p, n->out[k]);
	node_copy(p->to, n, p->map)->place = 0;
}

static void
emit_send(struct part *p, const struct message *m, int peer, Phase phase)
{
	Node *n = node_new(p->to, OP_SEND, 1, &p->map[m->value], 1, 0);

	p->to->val[n->out[0]].def = 0;
	n->out[0] = 0;
	n->attr.SEND.peer = peer;
	n->attr.SEND.tag = m->tag;
	n->phase = phase;
}

static ValId
emit_receive(struct part *p, const struct message *m, int peer, Phase phase)
{
	const Val *v = &p->g->val[m->value];
	Node *n = node_new(p->to, OP_RECEIVE, 0, NULL, 1, 0);
	ValId y = n->out[0];

	n->attr.RECEIVE.peer = peer;
	n->attr.RECEIVE.tag = m->tag;
	n->attr.RECEIVE.dt = v->dt;
	n->attr.RECEIVE.adjoint = phase == PH_FORWARD && p->c->grad[m->value];
	n->attr.RECEIVE.shape.n = v->shape.rank;
	for (int i = 0; i < v->shape.rank; i++)
		n->attr.RECEIVE.shape.v[i] = v->shape.dim[i];
	n->phase = phase;
	val_rename(p->to, y, v->name);
	copy_facts(p, m->value, y);
	p->to->val[y].output = false;
	p->to->val[y].param = 0;
	return y;
}

/* What comes from the stage before, some of which goes on. */
static void
receive_all(struct part *p, Phase phase)
{
	bool back = phase != PH_FORWARD;
	struct link *all = back ? p->c->down : p->c->up;
	int from = back ? p->stage + 1 : p->stage - 1;

	if (from < 0 || from >= p->c->s->n)
		return;
	for (size_t i = 0; i < all[from].n; i++)
		emit_receive(p, &all[from].m[i], from, phase);
}

/* Those messages of the stage whose value is v; 0: those that it received. */
static void
send_value(struct part *p, ValId v, Phase phase)
{
	const struct stages *s = p->c->s;
	bool back = phase != PH_FORWARD;
	const struct link *l = &(back ? p->c->down : p->c->up)[p->stage];

	for (size_t i = 0; i < l->n; i++) {
		ValId m = l->m[i].value;
		bool own = s->of_node[p->g->val[m].def] == p->stage;

		if (v ? m == v : !own)
			emit_send(p, &l->m[i], p->stage + (back ? -1 : 1),
			          phase);
	}
}

static void
copy_phase(struct part *p, Phase phase)
{
	bool begun = false;

	FOR_NODES (n, p->g) {
		if (n->phase != phase || !stage_runs(p->c->s, node_id(p->g, n),
		                                     p->stage))
			continue;
		if (!begun && !n->count_pass) {
			receive_all(p, phase);
			send_value(p, 0, phase);
			begun = true;
		}
		take_node(p, n);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && p->c->last[n->out[k]] >= 0)
				send_value(p, n->out[k], phase);
	}
	if (!begun) {
		receive_all(p, phase);
		send_value(p, 0, phase);
	}
}

/* Gradients of parameters that other stages have as well. */
static void
copy_ties(struct part *p)
{
	const struct stages *s = p->c->s;
	const Graph *g = p->g;
	bool sums = s->p->opt->grad_accum > 1;

	for (int k = 0; k < s->n; k++)
		for (size_t i = 0; i < p->c->tie[k].n; i++) {
			const struct message *m = &p->c->tie[k].m[i];
			NodeId def = g->val[m->value].def;
			int owner = 0;
			ValId y;

			while (!stage_runs(s, def, owner))
				owner++;
			if (owner == p->stage)
				emit_send(p, m, k, PH_UPDATE);
			if (k != p->stage)
				continue;
			p->map[m->value] = 0;
			y = emit_receive(p, m, owner, PH_UPDATE);
			p->to->val[y].param = g->val[m->value].param;
			/* as it is accumulated */
			if (sums && p->to->val[y].dt != DT_F64)
				p->to->val[y].dt = DT_F32;
			p->to->node[p->to->nnode - 1].attr.RECEIVE.dt =
				p->to->val[y].dt;
		}
}

static void
map_relations(struct part *p)
{
	FOR_VALS (v, p->to) {
		v->param = p->map[v->param];
		v->grad_of = p->map[v->grad_of];
		v->of = p->map[v->of];
		v->low_precision_of = p->map[v->low_precision_of];
		v->base = p->map[v->base];
	}
	p->to->loss = p->map[p->g->loss];
}

static Graph *
new_part(const struct part *p)
{
	const Graph *g = p->g;
	Graph *to = graph_new(g->name);

	for (uint32_t i = 1; i < g->norigin; i++)
		origin_new(to, g->origin[i].name, g->origin[i].op);
	to->props = g->props;
	to->nstream = g->nstream;
	to->ranks = g->ranks;
	to->replicas = g->replicas;
	to->exact = g->exact;
	to->zero_group = g->zero_group;
	to->stages = p->c->s->n;
	to->stage = p->stage;
	to->slots = p->c->l->stage[p->stage].slots;
	to->through_slots = p->c->l->stage[p->stage].through_slots;
	to->weight_slots = p->c->l->stage[p->stage].weight_slots;
	to->halves = g->halves;
	to->adds = g->adds;
	to->device = g->device;
	return to;
}

/* An output is one of the stage that makes it. */
static void
keep_outputs(struct part *p)
{
	const Graph *g = p->g;
	int last = p->c->s->n - 1;

	FOR_VALS (v, g) {
		ValId id = val_id(g, v);
		int at = v->def ? p->c->s->of_node[v->def] : last;

		if (p->map[id] && (v->output || id == g->loss)
		    && (at < 0 ? last : at) != p->stage)
			p->to->val[p->map[id]].output = false;
	}
	if (p->c->s->of_node[g->val[g->loss].def] != p->stage)
		p->to->loss = 0;
}

static Graph *
cut_stage(struct cut *c, int stage)
{
	struct part p = { .c = c, .g = c->s->g, .stage = stage };

	p.map = arena_array(c->s->p->scratch, p.g->nval, sizeof *p.map);
	p.to = new_part(&p);
	copy_leaves(&p);
	copy_phase(&p, PH_FORWARD);
	copy_phase(&p, PH_BACKWARD);
	copy_ties(&p);
	map_relations(&p);
	keep_outputs(&p);
	return p.to;
}

/* By value: its adjoint is made. */
static bool *
find_adjoints(const Graph *g, Arena *a)
{
	bool *grad = arena_array(a, g->nval, sizeof *grad);

	FOR_VALS (v, g)
		if (v->kind == V_TEMP && v->def)
			grad[v->grad_of] = true;
	grad[0] = false;
	return grad;
}

bool
stages_cut(const struct stages *s, struct pipeline *l)
{
	Arena *a = s->p->scratch;
	size_t n = (size_t)s->n;
	struct cut c = { .s = s, .l = l, .grad = find_adjoints(s->g, a),
		.up = arena_array(a, n, sizeof *c.up),
		.down = arena_array(a, n, sizeof *c.down),
		.tie = arena_array(a, n, sizeof *c.tie),
		.ntag = s->first_tag };

	find_last_readers(&c);
	for (int k = 0; k < s->n - 1; k++)
		list_link(&c, k, PH_FORWARD);
	for (int k = s->n - 1; k > 0; k--)
		list_link(&c, k, PH_BACKWARD);
	list_ties(&c);
	l->ntag = c.ntag - s->first_tag;
	for (int k = 0; k < s->n; k++)
		l->stage[k].graph = cut_stage(&c, k);
	return true;
}
