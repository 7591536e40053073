/* Running nodes again with all that they miss. */
#include "passes/recursive/rerun.h"

#include <stdlib.h>

void
rerun_open(struct rerun *a, const struct remat *r, struct step_list *out,
           Arena *arena)
{
	size_t n = (size_t)r->nstore + 1, m = r->nnode;

	*a = (struct rerun){
		.r = r, .out = out, .ok = true,
		.here = arena_array(arena, n, sizeof *a->here),
		.made = arena_array(arena, 2 * n, sizeof *a->made),
		.wanted = arena_array(arena, n, sizeof *a->wanted),
		.chosen = arena_array(arena, m, sizeof *a->chosen),
		.need = arena_array(arena, m + 1, sizeof *a->need),
	};
}

void
rerun_first(struct rerun *a, NodeId i)
{
	a->ok = a->ok && steps_add(a->out, i, false, 0);
}

void
rerun_begin(struct rerun *a)
{
	a->stamp++;
	a->nneed = 0;
}

void
rerun_want(struct rerun *a, int32_t s)
{
	NodeId d = a->r->store[s].def;

	if (a->here[s] || a->wanted[s] == a->stamp)
		return;
	a->wanted[s] = a->stamp;
	if (a->chosen[d] == a->stamp)
		return;
	a->chosen[d] = a->stamp;
	a->need[a->nneed++] = d;
}

static int
by_node(const void *a, const void *b)
{
	NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;

	return x < y ? -1 : x > y;
}

void
nodes_sort(NodeId *node, int32_t n)
{
	int32_t k = 1;

	/* along a chain they come the other way round */
	while (k < n && node[k] < node[k - 1])
		k++;
	if (k < n) {
		qsort(node, (size_t)n, sizeof *node, by_node);
		return;
	}
	for (k = 0; k < n / 2; k++) {
		NodeId t = node[k];

		node[k] = node[n - 1 - k];
		node[n - 1 - k] = t;
	}
}

static void
rerun_node(struct rerun *a, const struct rnode *n, uint32_t makes)
{
	for (int i = 0; i < n->nwrite; i++) {
		int32_t s = n->write[i];

		if (a->wanted[s] == a->stamp)
			makes |= (uint32_t)1 << i;
		if (!(makes >> i & 1) || a->here[s])
			continue;
		a->here[s] = true;
		a->made[a->nmade++] = s;
	}
	a->ok = n->clonable && steps_add(a->out, n->node, true, makes);
}

void
rerun_missing(struct rerun *a,
              uint32_t (*more)(void *data, const struct rnode *), void *data)
{
	for (int32_t k = 0; k < a->nneed; k++) {
		const struct rnode *n = &a->r->node[a->need[k]];

		for (int i = 0; i < n->nread; i++)
			rerun_want(a, n->read[i]);
	}
	nodes_sort(a->need, a->nneed);
	for (int32_t k = 0; k < a->nneed && a->ok; k++) {
		const struct rnode *n = &a->r->node[a->need[k]];

		rerun_node(a, n, more ? more(data, n) : 0);
	}
}
