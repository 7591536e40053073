/* Keep or recompute: the problem read off a graph, and what a candidate costs.
 *
 * what    storages of the arena, which nodes read and write them, and an
 *         exact evaluation of "drop these storages": schedule with copies,
 *         live bytes per step, placed arena
 * method  forward as it stands; before a backward node the forward values
 *         that it reads and that were dropped are computed again by copies of
 *         their nodes, recursively, views included; a copy writes only the
 *         dropped outputs that somebody reads.  Lifetimes, sharing of bytes
 *         in place and scratch follow the rules of passes inplace and place.
 * needs   P_LAYOUT
 * cost    an evaluation is linear in the operands of the schedule
 * refuses to drop: outputs of the step, values that several nodes write,
 *         results of nodes that change resident memory
 */
#include "passes/remat.h"

#include <string.h>

static bool
arena_owner(const Graph *g, ValId o)
{
	const Val *v = &g->val[o];

	return o && v->kind == V_TEMP && !v->resident && v->def
		&& !inplace_update(g->node[v->def].op);
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

	rn->clonable = !inplace_update(n->op);
	for (int i = 0; i < n->nout; i++) {
		ValId v = n->out[i];

		if (!v || !g->val[v].base || op_info[n->op].flags & F_VIEW)
			continue;
		rn->clonable = false;
		if (r->of_val[v] >= 0)
			r->store[r->of_val[v]].candidate = false;
	}
	for (int i = 0; i < n->nout && !rn->clonable; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->store[r->of_val[n->out[i]]].candidate = false;
}

static void
fill_node(struct remat *r, const Node *n)
{
	enum { MAX = 64 };
	const Graph *g = r->g;
	struct rnode *rn = &r->node[node_id(g, n)];
	struct inplace_pair pair[MAX];

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
	rn->npair = inplace_pairs(g, n, pair, MAX);
	rn->pair = arena_array(r->arena, 2 * (size_t)rn->npair + 1, 4);
	for (int i = 0; i < rn->npair; i++) {
		rn->pair[2 * i] = r->of_val[n->out[pair[i].out]];
		rn->pair[2 * i + 1] = r->of_val[n->in[pair[i].in]];
	}
	rn->workspace = n->workspace;
	rn->sec = node_cost(g, n).sec;
	rn->backward = n->phase != PH_FORWARD;
	r->base_sec += rn->sec;
	find_fixed(r, n, rn);
}

/* Storages that play the same role in repeated layers: equal op, attributes
 * and shapes of their node, of its operands' nodes and of one more level. */
static uint64_t
mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static void
find_groups(struct remat *r)
{
	const Graph *g = r->g;
	uint64_t *h = arena_array(r->arena, g->nval, sizeof *h);
	uint64_t *next = arena_array(r->arena, g->nval, sizeof *h);

	for (int round = 0; round < 3; round++) {
		FOR_VALS (v, g) {
			ValId id = val_id(g, v);
			const Node *n = &g->node[v->def];
			uint64_t x = mix(v->kind + 1, (uint64_t)v->slot);

			for (int i = 0; i < v->shape.rank; i++)
				x = mix(x, (uint64_t)v->shape.dim[i]);
			if (v->def)
				x = mix(x, n->op + (n->phase << 8));
			for (int i = 0; v->def && i < n->nin; i++)
				x = mix(x, h[n->in[i]]);
			next[id] = x;
		}
		memcpy(h, next, g->nval * sizeof *h);
	}
	for (int32_t s = 0; s < r->nstore; s++) {
		int32_t t = 0;

		if (!r->store[s].candidate)
			continue;
		while (t < s && (r->store[t].group < 0
		       || h[r->store[t].owner] != h[r->store[s].owner]))
			t++;
		r->store[s].group = t < s ? r->store[t].group : r->ngroup++;
	}
}

struct remat *
remat_new(const Graph *g, Arena *arena)
{
	struct remat *r = arena_alloc(arena, sizeof *r);
	bool backward = false;
	size_t n = g->nnode;

	r->g = g;
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
	r->target = INT64_MAX;
	r->resident = resident_bytes(g, arena);
	r->step = arena_array(arena, 2 * n, sizeof *r->step);
	r->again = arena_array(arena, g->nval, 1);
	r->cloned = arena_array(arena, n, 1);
	r->first = arena_array(arena, 2 * (size_t)r->nstore + 1, 4);
	r->last = arena_array(arena, 2 * (size_t)r->nstore + 1, 4);
	r->block = arena_array(arena, 2 * (size_t)r->nstore + 1, 4);
	r->delta = arena_array(arena, 2 * n + 1, sizeof *r->delta);
	r->buffer = arena_array(arena, 2 * n + 2 * (size_t)r->nstore,
	                        sizeof *r->buffer);
	return r;
}

/* ---- evaluation ---- */

/* Value v is about to be read in backward. */
static void
need(struct remat *r, const uint8_t *drop, ValId v)
{
	int32_t s = v ? r->of_val[v] : -1;
	const Node *n;

	if (s < 0 || !drop[s] || r->again[v])
		return;
	n = &r->g->node[r->g->val[v].def];
	if (n->phase != PH_FORWARD || r->cloned[node_id(r->g, n)])
		return;
	r->cloned[node_id(r->g, n)] = 1;
	for (int i = 0; i < n->nin; i++)
		need(r, drop, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->again[n->out[i]] = 1;
	r->step[r->nstep++] = (struct rstep){ node_id(r->g, n), true };
}

static void
schedule(struct remat *r, const uint8_t *drop)
{
	const Graph *g = r->g;

	memset(r->again, 0, g->nval);
	memset(r->cloned, 0, g->nnode);
	r->nstep = 0;
	FOR_NODES (n, g) {
		if (n->phase != PH_FORWARD)
			for (int i = 0; i < n->nin; i++)
				need(r, drop, n->in[i]);
		r->step[r->nstep++] = (struct rstep){ node_id(g, n), false };
	}
}

/* Which instance of storage s a step means. */
static inline int32_t
instance(const struct remat *r, const uint8_t *drop, const struct rstep *t,
         int32_t s)
{
	return drop[s] && (t->clone || r->node[t->node].backward)
		? s + r->nstore : s;
}

static void
find_last(struct remat *r, const uint8_t *drop)
{
	memset(r->last, -1, 2 * (size_t)r->nstore * 4);
	memset(r->first, -1, 2 * (size_t)r->nstore * 4);
	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rnode *n = &r->node[r->step[k].node];

		for (int i = 0; i < n->nread; i++)
			r->last[instance(r, drop, &r->step[k],
			                 n->read[i])] = k;
		for (int i = 0; i < n->nwrite; i++) {
			int32_t s = n->write[i];

			if (!r->step[k].clone)
				r->first[s] = k;
			else if (drop[s])
				r->first[s + r->nstore] = k;
		}
	}
	for (int32_t s = 0; s < r->nstore; s++) {
		if (r->last[s] < r->first[s])
			r->last[s] = r->first[s];
		if (r->store[s].output)         /* never dies */
			r->last[s] = r->nstep;
		if (r->last[s + r->nstore] < 0) /* a copy that nobody reads */
			r->first[s + r->nstore] = -1;
	}
}

/* Outputs that a step may write over operands; more than a loop has. */
enum { REMAT_OUTPUTS = 16 };

/* Outputs over dying operands, in order of execution. */
static void
share(struct remat *r, const uint8_t *drop)
{
	int32_t n = r->nstore;

	for (int32_t i = 0; i < 2 * n; i++)
		r->block[i] = i;
	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rstep *t = &r->step[k];
		const struct rnode *rn = &r->node[t->node];

		int32_t given[REMAT_OUTPUTS];   /* bytes given away here */
		int ngiven = 0;

		for (int i = 0; i < rn->npair; i++) {
			int32_t y = rn->pair[2 * i], x = rn->pair[2 * i + 1];
			bool taken = ngiven == REMAT_OUTPUTS;

			if (t->clone && !drop[y])
				continue;
			if (t->clone)
				y += n;
			x = r->block[instance(r, drop, t, x)];
			for (int j = 0; j < ngiven; j++)
				taken |= given[j] == x;
			if (taken || r->first[y] != k || r->block[y] != y
			    || r->last[x] != k)
				continue;
			r->block[y] = x;
			r->last[x] = r->last[y];
			given[ngiven++] = x;
		}
	}
}

/* First step at which the bytes of instance i are free again. */
static inline int32_t
end_of(const struct remat *r, int32_t i)
{
	return r->last[i] < r->nstep ? r->last[i] + 1 : r->nstep;
}

static struct remat_cost
profile(struct remat *r)
{
	struct remat_cost c = { 0, 0, 0, 0 };
	int64_t live = 0;

	memset(r->delta, 0, ((size_t)r->nstep + 1) * sizeof *r->delta);
	for (int32_t i = 0; i < 2 * r->nstore; i++) {
		if (r->block[i] != i || r->first[i] < 0)
			continue;
		int64_t size = r->store[i % r->nstore].size;

		r->delta[r->first[i]] += size;
		r->delta[end_of(r, i)] -= size;
	}
	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rnode *n = &r->node[r->step[k].node];

		live += r->delta[k];
		if (live + n->workspace > r->target)
			c.over += (double)(live + n->workspace - r->target);
		if (live + n->workspace > c.live) {
			c.live = live + n->workspace;
			c.tight = k;
		}
		if (r->step[k].clone)
			c.sec += n->sec;
	}
	return c;
}

struct remat_cost
remat_eval(struct remat *r, const uint8_t *drop)
{
	schedule(r, drop);
	find_last(r, drop);
	share(r, drop);
	return profile(r);
}

int64_t
remat_placed(struct remat *r, const uint8_t *drop, Arena *scratch)
{
	size_t n = 0;

	remat_eval(r, drop);
	for (int32_t i = 0; i < 2 * r->nstore; i++)
		if (r->block[i] == i && r->first[i] >= 0)
			r->buffer[n++] = (struct buffer){
				r->first[i], end_of(r, i),
				r->store[i % r->nstore].size, 0 };
	for (int32_t k = 0; k < r->nstep; k++) {
		int64_t w = r->node[r->step[k].node].workspace;

		if (w > 0)
			r->buffer[n++] = (struct buffer){ k, k + 1, w, 0 };
	}
	return pack(r->buffer, n, PACK_WORK, scratch).height;
}
