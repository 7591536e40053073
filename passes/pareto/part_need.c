/* The measured memory of parts, beyond the values kept of earlier parts.
 *
 * what    of every part and point the bytes that plans were measured
 *         to need
 * method  The parts that stand for others take their k-th point all
 *         at once, and remat_eval says what is alive where backward is at the
 *         part, beyond what is kept of earlier ones.  Parts stand for others
 *         that have neighbours of the same classes; all are measured with two
 *         points, which tells by what constant they differ, and only
 *         those and their neighbours with all.
 * cost    two evaluations of the graph; points of the richest class
 *         times an evaluation of a few parts; linear in nodes for the rest
 */
#include "passes/remat_model/intern.h"
#include "passes/pareto/partition.h"

#include <string.h>

struct meter {
	struct partition *y;
	struct schedule *trial;         /* all parts with points, as evaluated
	                                 * last */
	int32_t *group;                 /* by part: those it is like */
	int32_t *model;                 /* by group: its part in the window */
	int32_t ngroup;
	bool *sampled;                  /* by part: in the window */
	int32_t *sample;                /* by class: the part for seconds */
	NodeId *only;                   /* the window's nodes; NULL: all */
	uint32_t nonly;
	int32_t *taken;                 /* by part: point */
	int64_t *below;                 /* by part: kept of those before */
	int64_t *beside;                /* by node: alive outside the window */
	int64_t *now;                   /* by part: as measured last */
	uint8_t *drop;
};

/* The t-th measured point of a class. */
static int32_t
measured_point(const struct part_class *k, int32_t t)
{
	int32_t i = 0;

	t %= k->nmeasured;
	for (; !k->point[i].measured || t-- > 0; i++)
		;
	return i;
}

static void
group_parts(struct meter *m)
{
	const struct partition *y = m->y;
	struct intern_table t = intern_new((size_t)y->n, y->arena);
	int32_t *count = arena_array(y->arena, (size_t)y->n + 1, 4);
	int32_t *seen = arena_array(y->arena, (size_t)y->n + 1, 4);
	int32_t nsampled = 0;

	m->group = arena_array(y->arena, (size_t)y->n, 4);
	m->model = arena_array(y->arena, (size_t)y->n, 4);
	m->sampled = arena_array(y->arena, (size_t)y->n, 1);
	m->sample = arena_array(y->arena, (size_t)y->nclass, 4);
	for (int32_t i = 0; i < y->n; i++) {
		uint64_t key[3] = {
			(uint64_t)y->part[i].class,
			i > 0 ? (uint64_t)y->part[i - 1].class + 1 : 0,
			i + 1 < y->n ? (uint64_t)y->part[i + 1].class + 1 : 0,
		};

		m->group[i] = intern_words(&t, key, 3);
		count[m->group[i]]++;
	}
	m->ngroup = t.n;
	for (int32_t i = 0; i < y->n; i++)      /* the one in the middle */
		if (seen[m->group[i]]++ == count[m->group[i]] / 2) {
			m->model[m->group[i]] = i;
			m->sample[y->part[i].class] = i;
			for (int32_t j = i - 1; j <= i + 1; j++)
				if (j >= 0 && j < y->n)
					m->sampled[j] = true;
		}
	for (int32_t i = 0; i < y->n; i++)
		nsampled += m->sampled[i];
	if (2 * nsampled > y->n)
		return;
	m->only = arena_array(y->arena, y->r->nnode, sizeof *m->only);
	for (NodeId i = 1; i < y->r->nnode; i++)
		if (m->sampled[y->node_part[i]])
			m->only[m->nonly++] = i;
}

/* Let all parts take their t-th point and read the evaluation; in the
 * window or in all of the graph. */
static void
evaluate_points(struct meter *m, int32_t t, bool window)
{
	struct partition *y = m->y;
	const struct remat *r = y->r;
	int64_t sum = 0;

	remat_keep_all(r, y->constraint, m->drop);
	for (int32_t s = 0; s < r->nstore; s++)
		if (y->forced[s] || (window && y->part_of[s] >= 0
		                     && !m->sampled[y->part_of[s]]))
			m->drop[s] = 0;
	for (int32_t i = 0; i < y->n; i++) {
		const struct curve_part *p = &y->part[i];
		const struct part_class *k = &y->class[p->class];

		m->below[i] = sum;
		if (window && !m->sampled[i])
			continue;
		m->taken[i] = measured_point(k, t);
		part_set(y, p, &k->point[m->taken[i]], m->drop);
		sum += k->point[m->taken[i]].bytes;
	}
	m->trial->only = window ? m->only : NULL;
	m->trial->nonly = m->nonly;
	schedule_set(m->trial, m->drop);
	if (!window && r->slots > 1
	    && m->trial->other_slots / (r->slots - 1) - sum > y->kept)
		y->kept = m->trial->other_slots / (r->slots - 1) - sum;
}

/* Bytes beside those of the window, where both are known. */
static void
record_beside(struct meter *m, int sign)
{
	const struct schedule *w = m->trial;

	for (int32_t k = 0; k < w->nstep; k++) {
		NodeId node = w->step[k].node;

		if (!w->step[k].clone)
			m->beside[node] += sign * (w->live[k]
				- m->below[m->y->node_part[node]]);
	}
}

/* What every part of the last evaluation needed, and the seconds of clones. */
static void
record_needs(struct meter *m)
{
	struct partition *y = m->y;
	const struct remat *r = y->r;
	const struct schedule *w = m->trial;
	int64_t worst = 0;

	memset(m->now, 0, (size_t)y->n * sizeof *m->now);
	for (int32_t i = 0; i < y->nclass; i++)
		y->class[i].point[m->taken[m->sample[i]]].sec = 0;
	for (int32_t k = 0; k < w->nstep; k++) {
		NodeId node = w->step[k].node;
		int32_t at = y->node_part[node], class = y->part[at].class;

		if (w->live[k] > worst)
			worst = w->live[k];
		if (w->step[k].clone) { /* on behalf of what follows */
			if (m->sample[class] == at)
				y->class[class].point[m->taken[at]].sec +=
					w->step[k].inlined
					? r->node[node].least_sec
					: r->node[node].sec;
			continue;
		}
		worst += m->beside[node] - m->below[at];
		if (worst > m->now[at])
			m->now[at] = worst;
		worst = 0;
	}
}

/* What a part needs more than its group's model, with two points. */
static void
find_more(struct meter *m, int32_t times)
{
	struct partition *y = m->y;

	for (int round = 0; round < 2; round++) {
		evaluate_points(m, round ? times - 1 : 0, false);
		record_needs(m);
		for (int32_t i = 0; i < y->n; i++) {
			struct curve_part *p = &y->part[i];
			int64_t more = m->now[i]
				- m->now[m->model[m->group[i]]];

			if (round == 0 || more > p->need_more)
				p->need_more = more;
		}
	}
}

void
partition_measure(struct partition *y)
{
	struct meter m = { .y = y,
	                   .trial = schedule_new(y->r, y->arena) };
	size_t n = (size_t)y->n;
	int32_t times = 0;

	group_parts(&m);
	m.taken = arena_array(y->arena, n, 4);
	m.below = arena_array(y->arena, n, sizeof *m.below);
	m.now = arena_array(y->arena, n, sizeof *m.now);
	m.beside = arena_array(y->arena, y->r->nnode, sizeof *m.beside);
	m.drop = arena_array(y->arena, (size_t)y->r->nstore + 1, 1);
	for (int32_t i = 0; i < y->nclass; i++)
		if (y->class[i].nmeasured > times)
			times = y->class[i].nmeasured;
	for (int32_t i = 0; i < m.ngroup; i++) {
		struct part_class *k = &y->class[y->part[m.model[i]].class];

		y->part[m.model[i]].need = needs_new(y, k, &k->need,
		                                     &k->nneed);
	}
	for (int32_t i = 0; i < y->n; i++)
		y->part[i].need = y->part[m.model[m.group[i]]].need;
	find_more(&m, times);
	if (m.only) {
		evaluate_points(&m, 0, false);
		record_beside(&m, 1);
		evaluate_points(&m, 0, true);
		record_beside(&m, -1);
	}
	for (int32_t t = 0; t < times && !watch_over(y->r->watch); t++) {
		evaluate_points(&m, t, m.only != NULL);
		record_needs(&m);
		for (int32_t i = 0; i < y->n; i++) {
			const struct curve_part *p = &y->part[i];
			int64_t need = m.now[i] - p->need_more;
			int64_t *of = &p->need->of[m.taken[i]];

			if ((m.only && m.model[m.group[i]] != i)
			    || need <= *of)
				continue;
			*of = need;
		}
	}
}
