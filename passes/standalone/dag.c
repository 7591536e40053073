/* Code that all planners of standalone graphs share: links, liveness, the best
 * plan so far. */
#include "passes/standalone/standalone.h"

#include <string.h>

void
dag_finish(struct dag *g, const int32_t *link, int32_t nlink, Arena *a)
{
	size_t n = (size_t)g->n;
	int32_t *at;
	int64_t *change = arena_array(a, n + 1, sizeof *change), live = 0;

	g->pred_at = arena_array(a, n + 2, sizeof *at);
	g->succ_at = arena_array(a, n + 2, sizeof *at);
	g->pred = arena_array(a, (size_t)nlink + 1, sizeof *at);
	g->succ = arena_array(a, (size_t)nlink + 1, sizeof *at);
	at = arena_array(a, n + 2, sizeof *at);
	/* links sorted by source come out sorted in both lists, as the
	 * counting sort is stable; equal links are left out */
	for (int pass = 0; pass < 2; pass++) {
		int32_t *begin = pass ? g->pred_at : g->succ_at;

		for (int32_t k = 0; k < nlink; k++)
			begin[link[2 * k + pass] + 1]++;
		for (int32_t i = 0; i < g->n; i++)
			begin[i + 1] += begin[i];
		memcpy(at, begin, (n + 1) * sizeof *at);
		for (int32_t k = 0; k < nlink; k++) {
			int32_t key = link[2 * k + pass];

			(pass ? g->pred : g->succ)[at[key]++]
				= link[2 * k + !pass];
		}
	}
	g->cost = 0;
	for (int32_t i = 0; i < g->n; i++) {
		int32_t last = i;
		int64_t sum = g->ram[i];

		g->cost += g->cpu[i];
		g->training |= g->backward[i];
		for (int32_t k = g->succ_at[i]; k < g->succ_at[i + 1]; k++)
			last = g->succ[k] > last ? g->succ[k] : last;
		for (int32_t k = g->pred_at[i]; k < g->pred_at[i + 1]; k++)
			sum += g->ram[g->pred[k]];
		change[i] += g->ram[i];
		change[last + 1] -= g->ram[i];
		g->working_set = sum > g->working_set ? sum : g->working_set;
	}
	for (int32_t i = 0; i < g->n; i++) {
		live += change[i];
		if (live > g->peak) {
			g->peak = live;
			g->turn = i + 1;
		}
	}
	for (int32_t i = g->n; i-- > 0;)
		g->turn = g->backward[i] ? i : g->turn;
}

bool
dag_lasts(const struct dag *g, const struct dag_seq *s, int32_t *last,
          int32_t *made)
{
	memset(made, 0xff, (size_t)g->n * sizeof *made);
	for (int32_t t = 0; t < s->len; t++) {
		int32_t v = s->node[t];

		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++) {
			int32_t from = made[g->pred[k]];

			if (from < 0)
				return false;
			last[from] = t;
		}
		made[v] = last[t] = t;
	}
	for (int32_t i = 0; i < g->n; i++)
		if (made[i] < 0)
			return false;
	return true;
}

/* By step: last reader of its value, and bytes in memory; false if a read has
 * no value. */
static bool
find_profile(const struct dag *g, const struct dag_seq *s, int32_t *last,
             int64_t *live, Arena *scratch)
{
	int32_t *made = arena_array(scratch, (size_t)g->n + 1, sizeof *made);

	if (!dag_lasts(g, s, last, made))
		return false;
	for (int32_t t = 0; t < s->len; t++) {
		live[t] += g->ram[s->node[t]];
		live[last[t] + 1] -= g->ram[s->node[t]];
	}
	for (int32_t t = 1; t < s->len; t++)
		live[t] += live[t - 1];
	return true;
}

bool
dag_measure(const struct dag *g, struct dag_seq *s, Arena *scratch)
{
	int32_t *last = arena_array(scratch, (size_t)s->len + 1, sizeof *last);
	int64_t *live = arena_array(scratch, (size_t)s->len + 2, sizeof *live);

	if (!find_profile(g, s, last, live, scratch))
		return false;
	s->cost = 0;
	s->peak = 0;
	for (int32_t t = 0; t < s->len; t++) {
		s->cost += g->cpu[s->node[t]];
		s->peak = live[t] > s->peak ? live[t] : s->peak;
	}
	return true;
}

int32_t
dag_alive(const struct dag *g, const struct dag_seq *s, int32_t most,
          int32_t *node, int32_t *step, Arena *scratch)
{
	int32_t *last = arena_array(scratch, (size_t)s->len + 1, sizeof *last);
	int64_t *live = arena_array(scratch, (size_t)s->len + 2, sizeof *live);
	int32_t n = 0;

	*step = 0;
	if (!find_profile(g, s, last, live, scratch))
		return 0;
	for (int32_t t = 1; t < s->len; t++)
		*step = live[t] > live[*step] ? t : *step;
	for (int32_t t = 0; t <= *step; t++) {
		int32_t k = n < most ? n : most;

		if (last[t] < *step)
			continue;
		n++;
		for (; k > 0 && g->ram[node[k - 1]] < g->ram[s->node[t]]; k--)
			if (k < most)
				node[k] = node[k - 1];
		if (k < most)
			node[k] = s->node[t];
	}
	return n;
}

/* Drop evaluations that nobody reads, and copy into the arena. */
static struct dag_seq
drop_unread(const struct dag *g, const struct dag_seq *s, Arena *a)
{
	int32_t *made = arena_array(a, (size_t)g->n + 1, sizeof *made);
	bool *first = arena_array(a, (size_t)s->len + 1, sizeof *first);
	bool *need = arena_array(a, (size_t)s->len + 1, sizeof *need);
	struct dag_seq r = { .len = 0 };

	/* backwards: an evaluation stays if it is the last one before some
	 * reader that stays, or the only one of its node */
	for (int32_t i = 0; i < g->n; i++)
		made[i] = 0;
	for (int32_t t = 0; t < s->len; t++)
		first[t] = !made[s->node[t]]++;
	/* made[v] is now "wanted by a reader that stays" */
	memset(made, 0, (size_t)g->n * sizeof *made);
	for (int32_t t = s->len - 1; t >= 0; t--) {
		int32_t v = s->node[t];

		need[t] = made[v] == 1 || (first[t] && made[v] == 0);
		if (!need[t])
			continue;
		made[v] = 2;            /* made, and not wanted above */
		for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1]; k++)
			made[g->pred[k]] = 1;
	}
	r.node = arena_array(a, (size_t)s->len + 1, sizeof *r.node);
	for (int32_t t = 0; t < s->len; t++)
		if (need[t])
			r.node[r.len++] = s->node[t];
	r.cost = s->cost;
	r.peak = s->peak;
	return r;
}

uint64_t
dag_draw(uint64_t *random)
{
	uint64_t x = *random += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

bool
dag_stopped(const struct dag_best *b)
{
	return watch_over(b->o->watch);
}

static bool
improves(const struct dag_budget *r, const struct dag_seq *s)
{
	return s->peak <= r->budget && (r->best.len == 0
		|| s->cost < r->best.cost || (s->cost == r->best.cost
		&& s->peak < r->best.peak));
}

bool
dag_offer(struct dag_best *b, const int32_t *node, int32_t len)
{
	Arena *scratch = arena_new();
	struct dag_seq s = { .len = len }, t;
	bool here, smaller, wanted;

	s.node = arena_copy(scratch, node, (size_t)len * sizeof *node);
	t = drop_unread(b->g, &s, scratch);
	if (!dag_measure(b->g, &t, scratch)) {
		arena_free(scratch);
		return false;
	}
	here = improves(&b->grid[b->at], &t);
	smaller = b->least.len == 0 || t.peak < b->least.peak
		|| (t.peak == b->least.peak && t.cost < b->least.cost);
	wanted = smaller || improves(&b->asked, &t);
	for (int32_t k = 0; k < b->ngrid && !wanted; k++)
		wanted = improves(&b->grid[k], &t);
	if (wanted)
		t.node = arena_copy(b->arena, t.node,
		                    ((size_t)t.len + 1) * sizeof *t.node);
	if (smaller)
		b->least = t;
	if (improves(&b->asked, &t))
		b->asked.best = t;
	for (int32_t k = 0; k < b->ngrid; k++)
		if (improves(&b->grid[k], &t))
			b->grid[k].best = t;
	arena_free(scratch);
	return here;
}
