/* Keep or recompute: the problem read off a graph.
 *
 * what    storages of the arena, and which nodes read and write them
 * needs   P_LAYOUT
 * refuses to drop: outputs of the step, values that several nodes write,
 *         results of nodes that change resident memory
 */
#include "ir/loop.h"
#include "passes/remat_model/intern.h"
#include "passes/remat_model/remat_model.h"
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

	rn->clonable = !(op_info[n->op].flags & (F_WRITES | F_STAGES))
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

int
remat_storage_pairs(const struct remat *r, const Node *n, int32_t *list)
{
	struct inplace_pair pair[REMAT_PAIRS];
	int all = inplace_pairs(r->g, n, pair, REMAT_PAIRS), count = 0;

	for (int i = 0; i < all; i++) {
		int32_t out = r->of_val[n->out[pair[i].out]];
		int32_t in = r->of_val[n->in[pair[i].in]];

		if (out < 0 || in < 0)
			continue;
		list[2 * count] = out;
		list[2 * count++ + 1] = in;
	}
	return count;
}

bool
remat_ask(const struct remat *r, ValId v, struct ask *a)
{
	if (!v || r->of_val[v] < 0 || r->node[r->g->val[v].def].backward)
		return false;
	*a = (struct ask){ v, r->of_val[v], r->g->val[v].def };
	return true;
}

static void
fill_node(struct remat *r, const Node *n)
{
	const Graph *g = r->g;
	struct rnode *rn = &r->node[node_id(g, n)];
	int32_t pair[2 * REMAT_PAIRS];

	rn->node = node_id(g, n);
	rn->read = arena_array(r->arena, (size_t)n->nin + 1, 4);
	rn->write = arena_array(r->arena, (size_t)n->nout + 1, 4);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && r->of_val[n->in[i]] >= 0) {
			add_once(rn->read, &rn->nread, r->of_val[n->in[i]]);
			r->store[r->of_val[n->in[i]]].direct |=
				n->phase != PH_FORWARD;
			r->store[r->of_val[n->in[i]]].late |=
				n->phase == PH_WEIGHT || n->phase == PH_UPDATE;
			r->store[r->of_val[n->in[i]]].early |=
				n->phase == PH_BACKWARD;
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
	rn->ask = arena_array(r->arena, (size_t)n->nin + 1, sizeof *rn->ask);
	for (int i = 0; i < n->nin; i++)
		rn->nask += remat_ask(r, n->in[i], &rn->ask[rn->nask]);
	rn->npair = remat_storage_pairs(r, n, pair);
	rn->pair = arena_copy(r->arena, pair, 2 * (size_t)rn->npair * 4);
	/* a kernel writes its first result in any case, but for these two */
	rn->always = -1;
	for (int i = 0; i < rn->nwrite && n->op != OP_LOOP
	     && n->op != OP_ATTENTION; i++)
		if (n->out[0] && rn->write[i] == r->of_val[n->out[0]])
			rn->always = i;
	rn->workspace = n->workspace;
	/* what goes to host memory takes no time of computation */
	rn->sec = op_info[n->op].flags & F_HOST ? 0 : node_cost(g, n).sec;
	rn->backward = n->phase != PH_FORWARD;
	rn->late = n->phase == PH_WEIGHT || n->phase == PH_UPDATE;
	rn->takes = rn->backward && n->op == OP_LOOP;
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
number_roles(struct remat *r)
{
	const Graph *g = r->g;
	struct intern_table t = intern_new((size_t)r->nstore, r->arena);
	uint64_t *h = arena_array(r->arena, g->nval, sizeof *h);
	uint64_t *next = arena_array(r->arena, g->nval, sizeof *h);

	for (int round = 0; round < 3; round++) {
		FOR_VALS (v, g) {
			ValId id = val_id(g, v);
			const Node *n = &g->node[v->def];
			uint64_t x = mix64(v->kind + 1,
			                   (uint64_t)v->result_index);

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
			r->store[s].group = intern_words(&t,
				&h[r->store[s].owner], 1);
	r->ngroup = t.n;
}

int64_t
remat_work(const struct remat *r, int64_t work)
{
	const int64_t full = 8000, n = r->nnode;

	return n > full ? (work * full + n - 1) / n : work;
}

int64_t
remat_other_slots(const struct remat *r, int32_t s)
{
	bool through = r->weight_slots
		&& (r->store[s].late || r->store[s].output);
	int64_t n = through ? r->through_slots : r->slots;

	return n > 1 ? n - 1 : 0;
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
	number_roles(r);
	find_inlinable(r);
	r->resident = graph_resident_bytes(g, arena);
	r->slots = graph_slots(g);
	r->more_slots = g->other_slots;
	r->through_slots = g->through_slots;
	r->weight_slots = g->weight_slots;
	remat_find_layers(r);
	return r;
}


void
remat_keep_all(const struct remat *r, const uint8_t *constraint, uint8_t *drop)
{
	for (int32_t s = 0; s < r->nstore; s++)
		drop[s] = constraint[s] == 'k' ? 0 : constraint[s] == 'r' ? 1
			: r->store[s].candidate && !r->store[s].direct;
}
