/* The stages of a planned pipeline: a table, and the members of --json.
 *
 * step    sum of T + (N - 1) max T + max U, with T the seconds of a stage's
 *         forward and backward turns of a micro-batch, U of its update (Zheng
 *         et al., Alpa, 2022); exact for 1F1B if stages take equally long
 */
#include "passes/report/report.h"
#include "passes/cost/lanes.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/support/number.h"

double
pipeline_seconds(const struct pipeline *l, double *idle)
{
	Arena *a = arena_new();
	double *turn = arena_array(a, (size_t)l->nstage, sizeof *turn);
	double sum = 0, most = 0, update = 0, all;

	for (int k = 0; k < l->nstage; k++) {
		const Plan *p = l->stage[k].planned.plan;

		turn[k] = lanes_of_plan(p, true, a);
		sum += turn[k];
		most = fmax(most, turn[k]);
		update = fmax(update, lanes_of_plan(p, false, a) - turn[k]);
	}
	all = sum + (l->nmicro - 1) * most;
	for (int k = 0; k < l->nstage && idle; k++)
		idle[k] = all > 0 ? 1 - l->nmicro * turn[k] / all : 0;
	arena_free(a);
	return all + update;
}

int64_t
pipeline_peak(const struct pipeline *l)
{
	int64_t most = 0;

	for (int k = 0; k < l->nstage; k++)
		if (l->stage[k].planned.plan->sum.peak > most)
			most = l->stage[k].planned.plan->sum.peak;
	return most;
}

void
pipeline_print(const Pass *p, FILE *out)
{
	const struct pipeline *l = p->planned.pipeline;
	double *idle = arena_array(p->keep, (size_t)l->nstage, sizeof *idle);
	double sec = pipeline_seconds(l, idle);

	fprintf(out, "%5s  %10s  %10s  %10s  %5s  %10s  %10s  %6s\n", "stage",
	        "forward", "backward", "recompute", "slots", "slot", "peak",
	        "idle");
	for (int k = 0; k < l->nstage; k++) {
		const struct pipeline_stage *t = &l->stage[k];
		const struct plan_summary *s = &t->planned.plan->sum;
		char slot[24], peak[24];

		fprintf(out, "%5d  %8.3g s  %8.3g s  %8.3g s  %5d  %10s  %10s  "
		        "%4.1f %%\n", k, s->forward_sec, s->backward_sec,
		        s->recompute_sec, t->slots,
		        number_bytes(slot, (double)t->slot_bytes),
		        number_bytes(peak, (double)s->peak), 100 * idle[k]);
	}
	fprintf(out, "%d micro-batches, 1F1B: a step takes %.4g s\n",
	        l->nmicro, sec);
}

static void
put_turns(struct json_out *j, const struct pipeline_stage *t)
{
	static const char *const kind[] = { "forward", "backward", "update" };

	json_open(j, "turns", '[', JSON_LINES);
	for (int i = 0; i < t->nturn; i++) {
		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "kind", kind[t->turn[i].kind]);
		json_int(j, "micro_batch", t->turn[i].micro);
		json_int(j, "slot", t->turn[i].slot);
		json_close(j);
	}
	json_close(j);
}

static void
put_stage(struct json_out *j, const struct pipeline_stage *t, double idle)
{
	json_open(j, NULL, '{', JSON_LINES);
	json_int(j, "slots", t->slots);
	json_int(j, "slot_bytes", t->slot_bytes);
	json_real(j, "idle", 9, idle);
	put_turns(j, t);
	plan_write_members(j, NULL, t->planned.plan);
	json_close(j);
}

bool
pipeline_write_json(const Pass *p, const struct report_source *of, FILE *out)
{
	const struct pipeline *l = p->planned.pipeline;
	double *idle = arena_array(p->keep, (size_t)l->nstage, sizeof *idle);
	struct json_out j = { .f = out };

	for (int k = 0; k < l->nstage; k++)
		if (!l->stage[k].planned.plan->replayed)
			return false;
	json_open(&j, NULL, '{', JSON_LINES);
	plan_write_source(&j, of, "model");
	json_open(&j, "pipeline", '{', JSON_SPACED);
	json_int(&j, "stages", l->nstage);
	json_int(&j, "micro_batches", l->nmicro);
	json_text(&j, "schedule", "1f1b");
	json_real(&j, "step_seconds", 9, pipeline_seconds(l, idle));
	json_int(&j, "peak_bytes", pipeline_peak(l));
	json_close(&j);
	json_open(&j, "stages", '[', JSON_LINES);
	for (int k = 0; k < l->nstage; k++)
		put_stage(&j, &l->stage[k], idle[k]);
	json_close(&j);
	json_close(&j);
	putc('\n', out);
	return true;
}
