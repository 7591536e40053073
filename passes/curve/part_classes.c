/* Which parts are equal, and what can be chosen in them.
 *
 * what    picks of every kind; parts of a kind have equal nodes, storages and
 *         uses, word for word
 */
#include "passes/problem/numbers.h"
#include "passes/curve/parts.h"

#include <string.h>

/* An output that goes along with a larger one of its node for nothing: no
 * other node reads it, and backward not before the other. */
static bool
follows(const struct parts *y, const struct pick *k, const struct part *p,
        int32_t s)
{
	int32_t t = p->store[k->store[0]];

	return k->direct && y->first[s] >= y->first[t] && y->first[t]
		&& !y->end_forward[s] && y->must[s] == y->must[t]
		&& y->r->store[s].size <= y->r->store[t].size;
}

static void
add_pick(struct parts *y, struct kind *k, int32_t node, int32_t s)
{
	const struct part *p = &y->part[k->model];
	struct pick *last = &k->pick[k->npick - 1];

	if (k->npick > 0 && last->node == node && follows(y, last, p, s)) {
		last->store[last->nstore++] = y->local[s];
		last->bytes += y->r->store[s].size;
		return;
	}
	last = &k->pick[k->npick++];
	last->node = node;
	last->store = arena_array(y->arena,
		(size_t)y->r->node[p->node[node]].nwrite, 4);
	last->store[last->nstore++] = y->local[s];
	last->bytes = y->r->store[s].size;
	last->direct = y->first[s] != 0;
	last->crosses = y->crosses[s];
	last->dropped = y->must[s] == 'r';
	last->inlinable = y->r->node[p->node[node]].inlinable;
}

/* What bounds may count on: all outputs, if nothing else of the node can be
 * dropped, which would bring back the others for nothing. */
static void
find_leads(const struct parts *y, struct kind *k)
{
	const struct part *p = &y->part[k->model];

	for (int32_t i = 0; i < k->npick; i++) {
		struct pick *x = &k->pick[i];
		bool one = (i == 0 || x[-1].node != x->node)
			&& (i + 1 == k->npick || x[1].node != x->node);

		x->first = y->r->store[p->store[x->store[0]]].size;
		x->lead = one && !x->inlinable ? x->bytes : x->first;
	}
}

static bool
make_picks(struct parts *y, struct kind *k)
{
	const struct remat *r = y->r;
	const struct part *p = &y->part[k->model];
	int32_t *pick = arena_array(y->arena, (size_t)p->nstore + 1, 4);

	k->pick = arena_array(y->arena, (size_t)p->nstore + 1,
	                      sizeof *k->pick);
	for (int32_t i = 0; i < p->nstore; i++) {
		int32_t s = p->store[i], node = 0;

		while (p->node[node] != r->store[s].def)
			node++;
		if (part_droppable(y, s) && !y->tied[s])
			add_pick(y, k, node, s);
	}
	if (k->npick > PART_PICKS)
		return false;
	find_leads(y, k);
	memset(pick, -1, (size_t)p->nstore * sizeof *pick);
	for (int32_t i = 0; i < k->npick; i++)
		for (int j = 0; j < k->pick[i].nstore; j++)
			pick[k->pick[i].store[j]] = i;
	for (int32_t i = 0; i < k->npick; i++) {
		const struct rnode *n = &r->node[p->node[k->pick[i].node]];

		for (int j = 0; j < n->nread; j++) {
			int32_t s = n->read[j];

			if (y->part_of[s] == k->model
			    && pick[y->local[s]] >= 0)
				k->pick[i].needs |= (uint64_t)1
					<< pick[y->local[s]];
		}
	}
	return true;
}

/* Everything that choices in a part depend on, as words; returns how many.
 * NULL: none are written. */
static size_t
describe(const struct parts *y, int32_t at, uint64_t *word)
{
	const struct remat *r = y->r;
	const struct part *p = &y->part[at];
	uint64_t none[7];
	size_t len = 0;

	for (int32_t i = 0; i < p->nnode; i++) {
		const struct rnode *n = &r->node[p->node[i]];
		uint64_t *w = word ? word + len : none;

		w[0] = bits_of_double(n->sec);
		w[1] = bits_of_double(n->least_sec);
		w[2] = (uint64_t)n->workspace;
		w[3] = (uint64_t)n->nwrite;
		w[4] = (uint64_t)n->inlinable << 1 | n->clonable;
		len += 5;
		for (int k = 0; k < n->nread; k++)
			if (y->part_of[n->read[k]] == at) {
				if (word)
					word[len] = (uint64_t)
						y->local[n->read[k]];
				len++;
			}
		if (word)
			word[len] = UINT64_MAX; /* ends the operands */
		len++;
	}
	for (int32_t i = 0; i < p->nstore; i++, len += 7) {
		int32_t s = p->store[i];
		const struct storage *t = &r->store[s];
		uint64_t *w = word ? word + len : none;

		w[0] = (uint64_t)t->size;
		w[1] = t->candidate;
		w[2] = y->first[s] != 0;
		w[3] = y->end_forward[s] != 0;
		w[4] = y->crosses[s];
		w[5] = y->must[s];
		w[6] = y->tied[s];
	}
	return len;
}

static int32_t
kind_of(const struct parts *y, int32_t at, struct numbers *t)
{
	Arena *a = arena_new();
	size_t n = describe(y, at, NULL);
	uint64_t *word = arena_array(a, n + 1, sizeof *word);
	int32_t kind;

	describe(y, at, word);
	kind = numbers_of(t, word, n);
	arena_free(a);
	return kind;
}

bool
parts_kinds(struct parts *y)
{
	struct numbers t = numbers_new((size_t)y->n, y->arena);

	y->kind = arena_array(y->arena, (size_t)y->n, sizeof *y->kind);
	for (int32_t i = 0; i < y->n; i++) {
		int32_t k = kind_of(y, i, &t);

		if (k == y->nkind) {
			y->kind[y->nkind++].model = i;
			if (!make_picks(y, &y->kind[k]))
				return false;
		}
		y->part[i].kind = k;
		y->kind[k].count++;
	}
	return true;
}

