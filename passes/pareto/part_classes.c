/* Equivalence classes of parts, and their decision variables.
 *
 * what    decisions of every class; parts of a class have equal nodes, storages
 *         and uses, word for word
 */
#include "passes/remat_model/intern.h"
#include "passes/pareto/partition.h"

#include <string.h>

/* An output that goes along with a larger one of its node for nothing: no
 * other node reads it, and backward not before the other. */
static bool
follows_larger_output(const struct partition *y, const struct decision *k,
                      const struct curve_part *p, int32_t s)
{
	int32_t t = p->store[k->store[0]];

	return k->direct && y->first[s] >= y->first[t] && y->first[t]
		&& !y->end_forward[s] && y->constraint[s] == y->constraint[t]
		&& y->r->store[s].size <= y->r->store[t].size;
}

static void
add_decision(struct partition *y, struct part_class *k, int32_t node, int32_t s)
{
	const struct curve_part *p = &y->part[k->model];
	struct decision *last = &k->decision[k->ndecision - 1];

	if (k->ndecision > 0 && last->node == node
	    && follows_larger_output(y, last, p, s)) {
		last->store[last->nstore++] = y->local[s];
		last->bytes += y->r->store[s].size;
		return;
	}
	last = &k->decision[k->ndecision++];
	last->node = node;
	last->store = arena_array(y->arena,
		(size_t)y->r->node[p->node[node]].nwrite, 4);
	last->store[last->nstore++] = y->local[s];
	last->bytes = y->r->store[s].size;
	last->direct = y->first[s] != 0;
	last->crosses = y->crosses[s];
	last->dropped = y->constraint[s] == 'r';
	last->inlinable = y->r->node[p->node[node]].inlinable;
}

/* What bounds may count on: all outputs, if nothing else of the node can be
 * dropped, which would bring back the others for nothing. */
static void
find_min_bytes(const struct partition *y, struct part_class *k)
{
	const struct curve_part *p = &y->part[k->model];

	for (int32_t i = 0; i < k->ndecision; i++) {
		struct decision *x = &k->decision[i];
		bool one = (i == 0 || x[-1].node != x->node)
			&& (i + 1 == k->ndecision || x[1].node != x->node);

		x->first = y->r->store[p->store[x->store[0]]].size;
		x->min_bytes = one && !x->inlinable ? x->bytes : x->first;
	}
}

static bool
make_decisions(struct partition *y, struct part_class *k)
{
	const struct remat *r = y->r;
	const struct curve_part *p = &y->part[k->model];
	int32_t *decision_of = arena_array(y->arena, (size_t)p->nstore + 1, 4);

	k->decision = arena_array(y->arena, (size_t)p->nstore + 1,
	                          sizeof *k->decision);
	for (int32_t i = 0; i < p->nstore; i++) {
		int32_t s = p->store[i], node = 0;

		while (p->node[node] != r->store[s].def)
			node++;
		if (part_droppable(y, s) && !y->forced[s])
			add_decision(y, k, node, s);
	}
	if (k->ndecision > PART_DECISIONS)
		return false;
	find_min_bytes(y, k);
	memset(decision_of, -1, (size_t)p->nstore * sizeof *decision_of);
	for (int32_t i = 0; i < k->ndecision; i++)
		for (int j = 0; j < k->decision[i].nstore; j++)
			decision_of[k->decision[i].store[j]] = i;
	for (int32_t i = 0; i < k->ndecision; i++) {
		const struct rnode *n = &r->node[p->node[k->decision[i].node]];

		for (int j = 0; j < n->nread; j++) {
			int32_t s = n->read[j];

			if (y->part_of[s] == k->model
			    && decision_of[y->local[s]] >= 0)
				k->decision[i].needs |= (uint64_t)1
					<< decision_of[y->local[s]];
		}
	}
	return true;
}

/* Everything that choices in a part depend on, as words; returns how many.
 * NULL: none are written. */
static size_t
describe_part(const struct partition *y, int32_t at, uint64_t *word)
{
	const struct remat *r = y->r;
	const struct curve_part *p = &y->part[at];
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
		w[5] = y->constraint[s];
		w[6] = y->forced[s];
	}
	return len;
}

static int32_t
class_of_part(const struct partition *y, int32_t at, struct intern_table *t)
{
	Arena *a = arena_new();
	size_t n = describe_part(y, at, NULL);
	uint64_t *word = arena_array(a, n + 1, sizeof *word);
	int32_t class;

	describe_part(y, at, word);
	class = intern_words(t, word, n);
	arena_free(a);
	return class;
}

bool
partition_classify(struct partition *y)
{
	struct intern_table t = intern_new((size_t)y->n, y->arena);

	y->class = arena_array(y->arena, (size_t)y->n, sizeof *y->class);
	for (int32_t i = 0; i < y->n; i++) {
		int32_t k = class_of_part(y, i, &t);

		if (k == y->nclass) {
			y->class[y->nclass++].model = i;
			if (!make_decisions(y, &y->class[k]))
				return false;
		}
		y->part[i].class = k;
		y->class[k].count++;
	}
	return true;
}

