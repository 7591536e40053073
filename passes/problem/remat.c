/* Keep or recompute: the problem read off a graph, and the steps of a
 * candidate.
 *
 * what    storages of the arena, which nodes read and write them, and the
 *         schedule with copies that a sequence of steps, or "drop these
 *         storages", stands for; remat_eval.c says what it costs
 * method  of a set the steps are: forward as it stands; before a backward
 *         node the forward values that it reads and that were dropped are
 *         computed again by copies of their nodes, recursively.  In any
 *         sequence views are repeated for every new copy of what they lie in,
 *         and a copy writes only what somebody reads
 * needs   P_LAYOUT
 * cost    an evaluation is linear in the operands of the schedule
 * refuses to drop: outputs of the step, values that several nodes write,
 *         results of nodes that change resident memory
 */
#include "passes/fuse/inline.h"
#include "passes/problem/numbers.h"
#include "passes/problem/remat.h"
#include "passes/place/place.h"
#include "passes/cost/cost.h"

#include <string.h>

static bool
arena_owner(const Graph *g, ValId o)
{
	const Val *v = &g->val[o];

	return o && v->kind == V_TEMP && !v->resident && v->def
		&& !(op_info[g->node[v->def].op].flags & F_WRITES);
}

static void
find_storages(struct remat *r)
{
	const Graph *g = r->g;

	r->of_val = arena_array(r->arena, g->nval, sizeof *r->of_val);
	r->store = arena_array(r->arena, g->nval, sizeof *r->store);
	memset(r->of_val, -1, g->nval * sizeof *r->of_val);
	FOR_NODES (n, g)
		for (int i = 0; i < n->nout; i++) {
			ValId v = n->out[i];

			if (!v || g->val[v].base || !arena_owner(g, v))
				continue;
			r->of_val[v] = r->nstore;
			r->store[r->nstore++] = (struct storage){
				.owner = v, .size = g->val[v].nbytes,
				.def = node_id(g, n), .group = -1,
				.candidate = n->phase == PH_FORWARD,
			};
		}
	FOR_VALS (v, g) {
		if (v->base)
			r->of_val[val_id(g, v)] = r->of_val[v->base];
		if (v->output && r->of_val[val_id(g, v)] >= 0)
			r->store[r->of_val[val_id(g, v)]].output = true;
	}
}

static void
add_once(int32_t *list, int *n, int32_t x)
{
	for (int i = 0; i < *n; i++)
		if (list[i] == x)
			return;
	list[(*n)++] = x;
}

/* A node that writes into memory which it did not make cannot be repeated,
 * nor can what shares that memory be dropped. */
static void
find_fixed(struct remat *r, const Node *n, struct rnode *rn)
{
	const Graph *g = r->g;

	rn->clonable = !(op_info[n->op].flags & F_WRITES)
		&& rn->nwrite <= REMAT_WRITES;
	for (int i = 0; i < n->nout; i++) {
		ValId v = n->out[i];

		if (v && g->val[v].base && !(op_info[n->op].flags & F_VIEW))
			rn->clonable = false;
	}
	for (int i = 0; i < n->nout && !rn->clonable; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->store[r->of_val[n->out[i]]].candidate = false;
}

static void
fill_node(struct remat *r, const Node *n)
{
	const Graph *g = r->g;
	struct rnode *rn = &r->node[node_id(g, n)];
	struct inplace_pair pair[REMAT_PAIRS];

	rn->node = node_id(g, n);
	rn->read = arena_array(r->arena, (size_t)n->nin + 1, 4);
	rn->write = arena_array(r->arena, (size_t)n->nout + 1, 4);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && r->of_val[n->in[i]] >= 0) {
			add_once(rn->read, &rn->nread, r->of_val[n->in[i]]);
			r->store[r->of_val[n->in[i]]].direct |=
				n->phase != PH_FORWARD;
		}
	for (int i = 0; i < n->nout; i++) {
		ValId v = n->out[i];

		if (!v || r->of_val[v] < 0)
			continue;
		if (g->val[v].base)     /* touches memory that exists */
			add_once(rn->read, &rn->nread, r->of_val[v]);
		else
			add_once(rn->write, &rn->nwrite, r->of_val[v]);
	}
	rn->npair = inplace_pairs(g, n, pair, REMAT_PAIRS);
	rn->pair = arena_array(r->arena, 2 * (size_t)rn->npair + 1, 4);
	for (int i = 0; i < rn->npair; i++) {
		rn->pair[2 * i] = r->of_val[n->out[pair[i].out]];
		rn->pair[2 * i + 1] = r->of_val[n->in[pair[i].in]];
	}
	/* a kernel writes its first result in any case, but for these two */
	rn->always = -1;
	for (int i = 0; i < rn->nwrite && n->op != OP_LOOP
	     && n->op != OP_ATTENTION; i++)
		if (n->out[0] && rn->write[i] == r->of_val[n->out[0]])
			rn->always = i;
	rn->workspace = n->workspace;
	rn->sec = node_cost(g, n).sec;
	rn->backward = n->phase != PH_FORWARD;
	r->base_sec += rn->sec;
	find_fixed(r, n, rn);
}

/* The only node of backward that reads what each node made, as it stands. */
static void
find_readers(struct remat *r)
{
	const Graph *g = r->g;

	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++) {
			int32_t s = n->in[i] ? r->of_val[n->in[i]] : -1;
			NodeId id = node_id(g, n), *reader;

			if (s < 0 || n->phase == PH_FORWARD)
				continue;
			reader = &r->node[r->store[s].def].reader;
			*reader = g->val[n->in[i]].base
				|| (*reader && *reader != id) ? REMAT_MANY : id;
		}
}

/* Loops whose work another one may do again: the only one of backward that
 * reads them, or if there is none a loop of which that holds. */
static void
find_inlinable(struct remat *r)
{
	const Graph *g = r->g;

	find_readers(r);
	for (NodeId i = g->nnode - 1; i > 0; i--) {
		const Node *n = &g->node[i];
		struct rnode *rn = &r->node[i];

		rn->least_sec = rn->sec;
		if (n->op != OP_LOOP || n->phase != PH_FORWARD)
			continue;
		if (rn->reader && rn->reader != REMAT_MANY)
			rn->inlinable |= inline_fits(g, n,
				&g->node[rn->reader]);
		rn->inlinable &= rn->clonable && rn->reader != REMAT_MANY;
		if (!rn->inlinable)
			continue;
		rn->least_sec = inlined_cost(g, n).sec;
		for (int k = 0; k < n->nin; k++) {
			NodeId from = n->in[k] ? g->val[n->in[k]].def : 0;

			r->node[from].inlinable |= from
				&& r->node[from].reader == 0
				&& inline_fits(g, &g->node[from], n);
		}
	}
}

/* Storages that play the same role in repeated layers: equal op, attributes
 * and shapes of their node, of its operands' nodes and of one more level. */
static void
find_groups(struct remat *r)
{
	const Graph *g = r->g;
	struct numbers t = numbers_new((size_t)r->nstore, r->arena);
	uint64_t *h = arena_array(r->arena, g->nval, sizeof *h);
	uint64_t *next = arena_array(r->arena, g->nval, sizeof *h);

	for (int round = 0; round < 3; round++) {
		FOR_VALS (v, g) {
			ValId id = val_id(g, v);
			const Node *n = &g->node[v->def];
			uint64_t x = mix64(v->kind + 1, (uint64_t)v->slot);

			for (int i = 0; i < v->shape.rank; i++)
				x = mix64(x, (uint64_t)v->shape.dim[i]);
			if (v->def)
				x = mix64(x, n->op + (n->phase << 8));
			for (int i = 0; v->def && i < n->nin; i++)
				x = mix64(x, h[n->in[i]]);
			next[id] = x;
		}
		memcpy(h, next, g->nval * sizeof *h);
	}
	for (int32_t s = 0; s < r->nstore; s++)
		if (r->store[s].candidate)
			r->store[s].group = numbers_of(&t,
				&h[r->store[s].owner], 1);
	r->ngroup = t.n;
}

/* Room for so many steps; what the arrays held is lost but for the steps. */
static void
reserve_steps(struct remat *r, int32_t n)
{
	struct rstep *old = r->step;

	if (n <= r->step_cap)
		return;
	n += n / 2;
	r->step = arena_array(r->arena, (size_t)n + 1, sizeof *r->step);
	if (old)
		memcpy(r->step, old, (size_t)r->nstep * sizeof *old);
	r->live = arena_array(r->arena, (size_t)n + 2, sizeof *r->live);
	r->step_cap = n;
}

static void
reserve_instances(struct remat *r, int32_t n)
{
	if (n <= r->inst_cap)
		return;
	n += n / 2;
	r->of_inst = arena_array(r->arena, (size_t)n + 1, 4);
	r->first = arena_array(r->arena, (size_t)n + 1, 4);
	r->last = arena_array(r->arena, (size_t)n + 1, 4);
	r->block = arena_array(r->arena, (size_t)n + 1, 4);
	r->inst_cap = n;
}

void
remat_ready(struct remat *r)
{
	r->target = INT64_MAX;
	r->now = arena_array(r->arena, (size_t)r->nstore + 1, 4);
	reserve_steps(r, 2 * (int32_t)r->nnode);
	reserve_instances(r, 2 * r->nstore + 1);
}

struct remat *
remat_new(const Graph *g, Arena *arena)
{
	struct remat *r = arena_alloc(arena, sizeof *r);
	bool backward = false;
	size_t n = g->nnode;

	r->g = g;
	r->nnode = g->nnode;
	r->arena = arena;
	r->node = arena_array(arena, n, sizeof *r->node);
	find_storages(r);
	FOR_NODES (m, g) {
		fill_node(r, m);
		backward |= m->phase != PH_FORWARD;
	}
	for (int32_t s = 0; s < r->nstore; s++) {
		r->store[s].candidate &= backward && !r->store[s].output;
		r->ncand += r->store[s].candidate;
	}
	find_groups(r);
	find_inlinable(r);
	r->resident = resident_bytes(g, arena);
	r->again = arena_array(arena, g->nval, 1);
	r->cloned = arena_array(arena, n, 1);
	r->taken_by = arena_array(arena, n, sizeof *r->taken_by);
	r->in_view = arena_array(arena, g->nval, 4);
	r->views = arena_array(arena, g->nval, sizeof *r->views);
	r->waiting = arena_array(arena, n, sizeof *r->waiting);
	remat_ready(r);
	return r;
}

/* ---- the steps of a set ---- */

static void
emit(struct remat *r, struct rstep t)
{
	if (r->nstep >= r->step_cap)
		reserve_steps(r, r->nstep + 1);
	r->step[r->nstep++] = t;
}

static uint32_t
dropped_writes(const struct rnode *n, const uint8_t *drop)
{
	uint32_t makes = 0;

	for (int i = 0; i < n->nwrite; i++)
		makes |= (uint32_t)(drop[n->write[i]] != 0) << i;
	return makes;
}

/* The bodies that a loop of backward takes in. */
struct taking {
	NodeId reader;
	int micros, operands;           /* of the loop by now */
	NodeId first[LOOP_MICROS_MAX];
	int n;
};

static void need(struct remat *, const uint8_t *drop, ValId);

/* Value v, read by loop `by`, which is the reader or was taken in by it: may
 * the reader compute it?  If so all that this reads is made ready. */
static bool
take(struct remat *r, const uint8_t *drop, struct taking *t, ValId v,
     NodeId by)
{
	const Graph *g = r->g;
	NodeId id = v ? g->val[v].def : 0;
	const struct rnode *rn = &r->node[id];
	const Node *n = &g->node[id];

	if (!id || !rn->inlinable || !drop[r->of_val[v]] || r->again[v]
	    || (rn->reader && rn->reader != t->reader))
		return false;
	if (r->taken_by[id] == t->reader)
		return true;
	if (!inline_fits(g, n, &g->node[by])
	    || t->micros + n->body->nmicro > LOOP_MICROS_MAX
	    || t->operands + n->nin > LOOP_INPUTS_MAX)
		return false;
	r->taken_by[id] = t->reader;
	t->micros += n->body->nmicro;
	t->operands += n->nin;
	for (int i = 0; i < n->nin; i++)
		if (!take(r, drop, t, n->in[i], id))
			need(r, drop, n->in[i]);
	t->first[t->n++] = id;
	return true;
}

/* A loop of backward is about to run. */
static void
need_of_loop(struct remat *r, const uint8_t *drop, const Node *n)
{
	NodeId id = node_id(r->g, n);
	struct taking t = { .reader = id, .micros = n->body->nmicro,
	                    .operands = n->nin };

	for (int i = 0; i < n->nin; i++)
		if (!take(r, drop, &t, n->in[i], id))
			need(r, drop, n->in[i]);
	for (int i = 0; i < t.n; i++)
		emit(r, (struct rstep){ .node = t.first[i], .clone = true,
		                        .inlined = true });
}

/* The node that has to run again for value v, and is not about to; 0. */
static NodeId
missing(const struct remat *r, const uint8_t *drop, ValId v)
{
	int32_t s = v ? r->of_val[v] : -1;
	NodeId id;

	if (s < 0 || !drop[s] || r->again[v])
		return 0;
	id = r->g->val[v].def;
	return r->node[id].backward || r->cloned[id] ? 0 : id;
}

/* All that the copy reads has been made. */
static void
copy(struct remat *r, const uint8_t *drop, NodeId id)
{
	const Node *n = &r->g->node[id];

	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->again[n->out[i]] = 1;
	emit(r, (struct rstep){ .node = id, .clone = true,
	                        .makes = dropped_writes(&r->node[id], drop) });
}

/* Value v is about to be read in backward.  Chains may be long: no recursion.
 * A node waits once at most. */
static void
need(struct remat *r, const uint8_t *drop, ValId v)
{
	struct waiting *w = r->waiting;
	NodeId id = missing(r, drop, v);
	size_t n = 0;

	while (id || n > 0) {
		const Node *m;

		if (id) {
			r->cloned[id] = 1;
			w[n++] = (struct waiting){ id, 0 };
		}
		m = &r->g->node[w[n - 1].node];
		id = w[n - 1].next < m->nin
			? missing(r, drop, m->in[w[n - 1].next]) : 0;
		if (w[n - 1].next++ == m->nin)
			copy(r, drop, w[--n].node);
	}
}

static void
schedule(struct remat *r, const uint8_t *drop)
{
	const Graph *g = r->g;

	memset(r->again, 0, g->nval);
	memset(r->cloned, 0, g->nnode);
	memset(r->taken_by, 0, g->nnode * sizeof *r->taken_by);
	r->nstep = 0;
	for (uint32_t k = 0; k < (r->only ? r->nonly : g->nnode - 1); k++) {
		const Node *n = &g->node[r->only ? r->only[k] : k + 1];

		if (n->phase != PH_FORWARD && n->op == OP_LOOP)
			need_of_loop(r, drop, n);
		else if (n->phase != PH_FORWARD)
			for (int i = 0; i < n->nin; i++)
				need(r, drop, n->in[i]);
		emit(r, (struct rstep){ .node = node_id(g, n) });
	}
}

/* ---- the steps of a sequence ---- */

bool
remat_is_view(const struct remat *r, NodeId id)
{
	const Node *n = &r->g->node[id];

	return op_info[n->op].flags & F_VIEW && n->nout > 0 && n->out[0]
		&& r->g->val[n->out[0]].base;
}

/* Copies of which no write is read before the next; keep[k] = 0 for them. */
static void
find_dead(struct remat *r, const struct rstep *step, int32_t n, uint8_t *keep)
{
	int32_t *wanted = r->now;

	memset(wanted, 0, (size_t)r->nstore * sizeof *wanted);
	for (int32_t k = n - 1; k >= 0; k--) {
		const struct rnode *rn = &r->node[step[k].node];

		keep[k] = !step[k].clone;
		for (int i = 0; i < rn->nwrite; i++)
			if (remat_writes(&step[k], i)) {
				keep[k] |= wanted[rn->write[i]] != 0;
				wanted[rn->write[i]] = 0;
			}
		for (int i = 0; keep[k] && i < rn->nread; i++)
			wanted[rn->read[i]] = 1;
	}
}

/* Value v is about to be read: if it is a view, let it be one of the latest
 * instance. */
static void
turn_view(struct remat *r, ValId v)
{
	const Graph *g = r->g;
	size_t n = 0;

	/* views of views: the one next to the storage first */
	while (v && r->of_val[v] >= 0 && g->val[v].base
	       && r->in_view[v] != r->now[r->of_val[v]]) {
		r->views[n++] = v;
		v = g->node[g->val[v].def].in[0];
	}
	while (n > 0) {
		v = r->views[--n];
		r->in_view[v] = r->now[r->of_val[v]];
		emit(r, (struct rstep){ .node = g->val[v].def,
		                        .clone = true });
	}
}

/* Views of what step k reads lie in the latest instances. */
static void
turn_views(struct remat *r, const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		turn_view(r, n->in[i]);
}

/* What step k writes is the latest instance; and so are its views. */
static void
note_views(struct remat *r, const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->in_view[n->out[i]] =
				r->now[r->of_val[n->out[i]]];
}

/* The sequence into r->step. */
static void
expand(struct remat *r, const struct rstep *step, int32_t n)
{
	Arena *scratch = arena_new();
	uint8_t *keep = arena_array(scratch, (size_t)n + 1, 1);
	int32_t ninst = 0;

	find_dead(r, step, n, keep);
	r->nstep = 0;
	for (int32_t k = 0; k < n; k++) {
		const Node *m = r->g ? &r->g->node[step[k].node] : NULL;
		const struct rnode *rn = &r->node[step[k].node];

		if (!keep[k])
			continue;
		if (m)
			turn_views(r, m);
		emit(r, step[k]);
		for (int i = 0; i < rn->nwrite; i++)
			if (remat_writes(&step[k], i))
				r->now[rn->write[i]] = ninst++;
		if (m)
			note_views(r, m);
	}
	reserve_instances(r, ninst);
	arena_free(scratch);
}

struct remat_cost
remat_eval(struct remat *r, const uint8_t *drop)
{
	schedule(r, drop);
	return remat_evaluate(r);
}

int64_t
remat_placed(struct remat *r, const uint8_t *drop, Arena *scratch)
{
	remat_eval(r, drop);
	return remat_packed(r, scratch);
}

struct remat_cost
remat_eval_steps(struct remat *r, const struct rstep *step, int32_t n)
{
	expand(r, step, n);
	return remat_evaluate(r);
}
