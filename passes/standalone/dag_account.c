/* The plan of a standalone graph, as --json writes it.
 *
 * what    a tensor and a step for every evaluation of the sequence, placed if
 *         that is wanted; passes/account adds them up
 */
#include "passes/account/account.h"
#include "passes/standalone/standalone.h"
#include "passes/place/pack.h"

#define PLACE_WORK INT64_C(1000000000)

/* Steps and tensors have equal numbers: each step writes one.  `made` says
 * which evaluation of a node was the last. */
static void
append_dag_step(const struct dag *g, Plan *p, int32_t v, const int64_t *made,
                int64_t first, Arena *arena)
{
	int64_t at = p->nstep++, nread = g->pred_at[v + 1] - g->pred_at[v];
	struct plan_step *s = &p->step[at];

	p->tensor[p->ntensor++] = (struct plan_tensor){
		.name = g->name[v], .node = v, .dt = DT_NONE,
		.kind = first < 0 ? K_ACTIVATION : K_RECOMPUTED,
		.bytes = g->ram[v], .offset = -1, .of = first,
		.low_precision_of = -1, .alias_of = -1, .first = -1, .last = -1,
	};
	*s = (struct plan_step){
		.op = g->backward[v] ? "backward" : "forward", .node = v,
		.phase = first >= 0 ? PH_RECOMPUTE
			: g->backward[v] ? PH_BACKWARD : PH_FORWARD,
		.of = first, .nread = (int)nread, .nwrite = 1,
		.seconds = g->cpu[v], .lane_sec = g->cpu[v],
	};
	s->read = arena_array(arena, (size_t)nread + 1, sizeof *s->read);
	s->write = arena_array(arena, 1, sizeof *s->write);
	for (int64_t k = 0; k < nread; k++)
		s->read[k] = made[g->pred[g->pred_at[v] + k]];
	s->write[0] = at;
}

static void
fill_plan(const struct dag *g, const struct dag_seq *seq, Plan *p, Arena *arena)
{
	size_t n = (size_t)g->n, len = (size_t)seq->len;
	int64_t *made = arena_array(arena, n, sizeof *made);
	int64_t *first = arena_array(arena, n, sizeof *first);

	p->from_graph = true;
	p->nstep = p->ntensor = 0;
	p->tensor = arena_array(arena, len, sizeof *p->tensor);
	p->step = arena_array(arena, len, sizeof *p->step);
	for (int32_t i = 0; i < g->n; i++)
		first[i] = -1;
	for (int32_t t = 0; t < seq->len; t++) {
		int32_t v = seq->node[t];

		append_dag_step(g, p, v, made, first[v], arena);
		made[v] = t;
		if (first[v] < 0)
			first[v] = t;
	}
}

/* Offsets; false if the arena exceeds the budget. */
static bool
place_tensors(Plan *p, const struct dag_options *o, Arena *arena)
{
	size_t n = (size_t)p->ntensor;
	struct buffer *b = arena_array(arena, n + 1, sizeof *b);
	struct pack_limit limit = { .work = PLACE_WORK, .enough = o->budget,
	                            .stop = o->watch };
	struct plan_summary *s = &p->sum;

	for (size_t i = 0; i < n; i++)
		b[i] = (struct buffer){ p->tensor[i].first,
			p->tensor[i].last + 1, p->tensor[i].bytes, 0 };
	s->arena = s->peak = pack_within(b, n, &limit, arena).height;
	for (size_t i = 0; i < n; i++)
		p->tensor[i].offset = b[i].offset;
	return s->peak <= o->budget;
}

bool
dag_account(const struct dag *g, const struct dag_answer *r,
            const struct dag_options *o, bool placed, Plan *p, Diag *diag,
            Arena *arena)
{
	int64_t tried = INT64_MAX;

	for (int32_t k = -1; k < r->ngrid && r->found; k++) {
		const struct dag_seq *q = k < 0 ? &r->seq : &r->grid[k].best;

		if (!q->len || q->peak > o->budget || q->peak >= tried)
			continue;
		tried = q->peak;
		fill_plan(g, q, p, arena);
		p->sum = (struct plan_summary){
			.budget = o->budget, .baseline_peak = g->peak,
			.alignment = 1, .bound_sec = r->bound,
			.bound_class = r->bound_class,
		};
		plan_sum(p, diag, arena);
		if (!placed || place_tensors(p, o, arena))
			return true;
		if (watch_off(o->watch))
			break;
	}
	return false;
}
