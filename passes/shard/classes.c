/* Equal nodes in equal surroundings: colour refinement over a few hops (after
 * Weisfeiler and Leman), so that the layers of a model count once.
 */
#include "passes/shard/layout.h"

#include <string.h>

enum { HOPS = 4 };

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h *= 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static uint64_t
hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

static uint64_t
hash_shape(uint64_t h, const Shape *s)
{
	h = mix(h, (uint64_t)s->rank);
	for (int i = 0; i < s->rank; i++)
		h = mix(h, (uint64_t)s->dim[i]);
	return h;
}

static uint64_t
hash_choice(const struct choice *c, int nport)
{
	uint64_t h = (uint64_t)c->n;

	for (int i = 0; i < c->n; i++)
		h = hash_bytes(h, c->way[i].at,
		               (size_t)nport * sizeof *c->way[i].at);
	return h;
}

/* What an entity is by itself. */
static uint64_t
looks(const struct layout *l, uint32_t e)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint64_t h;

	if (e >= g->nnode) {
		const Val *v = &g->val[e - g->nnode];

		h = mix(hash_shape(v->kind, &v->shape), v->dt);
		h = mix(h, layout_wish(s, e - g->nnode));
		return mix(h, hash_choice(&s->source[e - g->nnode], 1));
	}
	const Node *n = &g->node[e];

	h = mix(n->op, hash_choice(&s->node[e], n->nin + n->nout));
	for (int k = 0; k < n->nin; k++)
		h = hash_shape(h, &g->val[n->in[k]].shape);
	for (int k = 0; k < n->nout; k++)
		h = mix(hash_shape(h + layout_wish(s, n->out[k]),
		                   &g->val[n->out[k]].shape),
		        g->val[n->out[k]].output | 2 * (n->out[k] == g->loss));
	return h;
}

static uint64_t
own_colour(const struct layout *l, uint32_t e)
{
	bool alone = e == l->alone || l->s->pass->opt->layout_whole;

	return alone ? mix(looks(l, e), e) : looks(l, e);
}

/* One round: an entity's colour, its givers' by port and its readers'. */
static void
refine(const struct layout *l, const uint64_t *old, uint64_t *fresh)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint64_t *readers = arena_array(s->tmp, l->c.n, sizeof *readers);

	for (NodeId i = 1; i < g->nnode; i++) {
		const Node *n = &g->node[i];

		fresh[i] = old[i];
		for (int k = 0; k < n->nin; k++) {
			uint32_t e = entity_of(s, n->in[k]);

			if (!n->in[k])
				continue;
			fresh[i] = mix(fresh[i], mix(old[e], (uint64_t)
			               g->val[n->in[k]].slot));
			readers[e] += mix(mix(old[i], (uint64_t)k),
			                  (uint64_t)g->val[n->in[k]].slot);
		}
	}
	for (uint32_t e = g->nnode; e < l->c.n; e++)
		fresh[e] = old[e];
	for (uint32_t e = 1; e < l->c.n; e++)
		fresh[e] = mix(fresh[e], readers[e]);
}

/* Classes in the order of their first entity. */
static void
number(struct layout *l, const uint64_t *colour)
{
	struct classes *c = &l->c;
	Arena *tmp = l->s->tmp;
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

		if (choice_of(l, e)->n == 0)
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
layout_find_classes(struct layout *l)
{
	struct shard *s = l->s;
	uint64_t *old, *fresh;

	l->c.n = s->g->nnode + s->g->nval;
	old = arena_array(s->tmp, l->c.n, sizeof *old);
	fresh = arena_array(s->tmp, l->c.n, sizeof *fresh);
	for (uint32_t e = 1; e < l->c.n; e++)
		if (e != s->g->nnode)
			old[e] = own_colour(l, e);
	/* what follows from a node that stands alone reaches further */
	for (int hop = 0; hop < (l->alone ? 2 * HOPS : HOPS); hop++) {
		uint64_t *t = old;

		refine(l, old, fresh);
		old = fresh;
		fresh = t;
	}
	number(l, old);
}

static int
edge_order(const struct edge *a, const struct edge *b)
{
	if (a->giver != b->giver)
		return a->giver < b->giver ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->reader != b->reader)
		return a->reader < b->reader ? -1 : 1;
	return a->port < b->port ? -1 : a->port > b->port;
}

/* Pairs of classes that some value joins. */
void
layout_find_edges(struct layout *l)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;

	for (NodeId i = 1; i < g->nnode; i++)
		for (int k = 0; k < g->node[i].nin; k++) {
			ValId v = g->node[i].in[k];
			struct edge e = { .reader = l->c.of[i], .port = k,
				.v = v, .count = 1 };
			size_t low = 0, high = l->nedge;

			if (!v)
				continue;
			e.giver = l->c.of[entity_of(s, v)];
			e.slot = g->val[v].slot;
			while (low < high) {
				size_t mid = (low + high) / 2;

				if (edge_order(&l->edge[mid], &e) < 0)
					low = mid + 1;
				else
					high = mid;
			}
			if (low < l->nedge
			    && edge_order(&l->edge[low], &e) == 0) {
				l->edge[low].count++;
				continue;
			}
			l->edge = arena_grow(s->tmp, l->edge, l->nedge,
			                     &l->edge_cap, l->nedge + 1,
			                     sizeof *l->edge);
			memmove(l->edge + low + 1, l->edge + low,
			        (l->nedge - low) * sizeof *l->edge);
			l->edge[low] = e;
			l->nedge++;
		}
}
