/* Equal nodes in equal surroundings: colour refinement over a few hops (after
 * Weisfeiler and Leman), so that the layers of a model count once.
 */
#include "passes/tensor_parallel/strategy_ilp.h"
#include "runtime/support/hash.h"

#include <string.h>

enum { HOPS = 4 };

static uint64_t
mix_colour(uint64_t h, uint64_t x)
{
	h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h *= 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static uint64_t
hash_shape(uint64_t h, const Shape *s)
{
	h = mix_colour(h, (uint64_t)s->rank);
	for (int i = 0; i < s->rank; i++)
		h = mix_colour(h, (uint64_t)s->dim[i]);
	return h;
}

static uint64_t
hash_strategies(const struct strategy_set *c, int nvalue)
{
	uint64_t h = (uint64_t)c->n;

	for (int i = 0; i < c->n; i++)
		h = hash_bytes(h, c->strategy[i].at,
		               (size_t)nvalue * sizeof *c->strategy[i].at);
	return h;
}

/* Hash of an entity by itself, without its surroundings. */
static uint64_t
hash_entity(const struct strategy_ilp *m, uint32_t e)
{
	const struct shard *s = m->s;
	const Graph *g = s->g;
	uint64_t h;

	if (e >= g->nnode) {
		const Val *v = &g->val[e - g->nnode];

		h = mix_colour(hash_shape(v->kind, &v->shape), v->dt);
		h = mix_colour(h, strategy_constraint_key(s, e - g->nnode));
		return mix_colour(h, hash_strategies(&s->source[e - g->nnode],
		                                     1));
	}
	const Node *n = &g->node[e];

	h = mix_colour(n->op, hash_strategies(&s->node[e], n->nin + n->nout));
	for (int k = 0; k < n->nin; k++)
		h = hash_shape(h, &g->val[n->in[k]].shape);
	for (int k = 0; k < n->nout; k++)
		h = mix_colour(
			hash_shape(h + strategy_constraint_key(s, n->out[k]),
		                   &g->val[n->out[k]].shape),
			g->val[n->out[k]].output | 2 * (n->out[k] == g->loss));
	return h;
}

static uint64_t
initial_colour(const struct strategy_ilp *m, uint32_t e)
{
	bool alone = e == m->isolated || m->s->pass->opt->strategy_per_node;

	return alone ? mix_colour(hash_entity(m, e), e) : hash_entity(m, e);
}

/* One pass: an entity's colour, its producers' by value index and its readers'.
 */
static void
refine_colours(const struct strategy_ilp *m, const uint64_t *old,
               uint64_t *fresh)
{
	const struct shard *s = m->s;
	const Graph *g = s->g;
	uint64_t *readers = arena_array(s->tmp, m->c.n, sizeof *readers);

	for (NodeId i = 1; i < g->nnode; i++) {
		const Node *n = &g->node[i];

		fresh[i] = old[i];
		for (int k = 0; k < n->nin; k++) {
			uint32_t e = entity_of(s, n->in[k]);

			if (!n->in[k])
				continue;
			fresh[i] = mix_colour(fresh[i], mix_colour(old[e],
				(uint64_t)g->val[n->in[k]].result_index));
			readers[e] += mix_colour(
				mix_colour(old[i], (uint64_t)k),
				(uint64_t)g->val[n->in[k]].result_index);
		}
	}
	for (uint32_t e = g->nnode; e < m->c.n; e++)
		fresh[e] = old[e];
	for (uint32_t e = 1; e < m->c.n; e++)
		fresh[e] = mix_colour(fresh[e], readers[e]);
}

/* Classes in the order of their first entity. */
static void
number_classes(struct strategy_ilp *m, const uint64_t *colour)
{
	struct node_classes *c = &m->c;
	Arena *tmp = m->s->tmp;
	size_t size = 64;
	uint32_t *slot;

	while (size < 2 * (size_t)c->n)
		size *= 2;
	slot = arena_array(tmp, size, sizeof *slot);    /* class + 1 */
	c->of = arena_array(tmp, c->n, sizeof *c->of);
	c->first = arena_array(tmp, c->n, sizeof *c->first);
	c->count = arena_array(tmp, c->n, sizeof *c->count);
	c->col = arena_array(tmp, c->n, sizeof *c->col);
	for (uint32_t e = 1; e < c->n; e++) {
		size_t at = (size_t)colour[e] & (size - 1);

		if (strategies_of(m, e)->n == 0)
			continue;
		while (slot[at] && colour[c->first[slot[at] - 1]] != colour[e])
			at = (at + 1) & (size - 1);
		if (!slot[at]) {
			slot[at] = c->nclass + 1;
			c->first[c->nclass++] = e;
		}
		c->of[e] = slot[at] - 1;
		c->count[c->of[e]]++;
	}
}

void
strategy_find_classes(struct strategy_ilp *m)
{
	struct shard *s = m->s;
	uint64_t *old, *fresh;

	m->c.n = s->g->nnode + s->g->nval;
	old = arena_array(s->tmp, m->c.n, sizeof *old);
	fresh = arena_array(s->tmp, m->c.n, sizeof *fresh);
	for (uint32_t e = 1; e < m->c.n; e++)
		if (e != s->g->nnode)
			old[e] = initial_colour(m, e);
	/* effects of an isolated node reach further */
	for (int hop = 0; hop < (m->isolated ? 2 * HOPS : HOPS); hop++) {
		uint64_t *t = old;

		refine_colours(m, old, fresh);
		old = fresh;
		fresh = t;
	}
	number_classes(m, old);
}

static int
compare_edges(const struct strategy_edge *a, const struct strategy_edge *b)
{
	if (a->producer != b->producer)
		return a->producer < b->producer ? -1 : 1;
	if (a->result_index != b->result_index)
		return a->result_index < b->result_index ? -1 : 1;
	if (a->reader != b->reader)
		return a->reader < b->reader ? -1 : 1;
	return a->value_index < b->value_index
		? -1 : a->value_index > b->value_index;
}

/* Pairs of classes joined by a value. */
void
strategy_find_edges(struct strategy_ilp *m)
{
	const struct shard *s = m->s;
	const Graph *g = s->g;

	for (NodeId i = 1; i < g->nnode; i++)
		for (int k = 0; k < g->node[i].nin; k++) {
			ValId v = g->node[i].in[k];
			struct strategy_edge e = { .reader = m->c.of[i],
				                   .value_index = k,
				                   .v = v,
				                   .count = 1 };
			size_t low = 0, high = m->nedge;

			if (!v)
				continue;
			e.producer = m->c.of[entity_of(s, v)];
			e.result_index = g->val[v].result_index;
			while (low < high) {
				size_t mid = (low + high) / 2;

				if (compare_edges(&m->edge[mid], &e) < 0)
					low = mid + 1;
				else
					high = mid;
			}
			if (low < m->nedge
			    && compare_edges(&m->edge[low], &e) == 0) {
				m->edge[low].count++;
				continue;
			}
			m->edge = arena_grow(s->tmp, m->edge, m->nedge,
			                     &m->edge_cap, m->nedge + 1,
			                     sizeof *m->edge);
			memmove(m->edge + low + 1, m->edge + low,
			        (m->nedge - low) * sizeof *m->edge);
			m->edge[low] = e;
			m->nedge++;
		}
}
