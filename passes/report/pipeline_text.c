/* The stages of a planned pipeline: a table, and the members of --json.
 *
 * step    1F1B: sum of T + (N - 1) max T + max U, with T the seconds of a
 *         stage's forward and backward turns of a micro-batch, U of its update
 *         (Zheng et al., Alpa, 2022); exact if stages take equally long.
 *         Interleaved, ZB-H1: when the last turn ends, and max U over ranks
 */
#include "passes/report/report.h"

#include <inttypes.h>
#include <math.h>

#include "passes/cost/lanes.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/support/number.h"

/* Seconds of a stage's turns of one micro-batch and of its update, with
 * transfers as far as computation does not hide them. */
struct stage_seconds {
	double forward, backward, weight, update;
};

/* The share of forward, backward and recomputation that runs in turns of
 * weights. */
static double
share_of_weight(const Plan *p, double all)
{
	int64_t first = p->nstep;
	double sec = 0;

	for (int64_t i = 0; i < p->nstep; i++)
		if (p->step[i].phase == PH_FORWARD
		    || p->step[i].phase == PH_BACKWARD)
			first = i + 1;
	for (int64_t i = first; i < p->nstep; i++)
		if (p->step[i].phase != PH_UPDATE)
			sec += p->step[i].seconds;
	return all > 0 ? sec / all : 0;
}

static struct stage_seconds
seconds_of_plan(const Plan *p, bool weights, Arena *a)
{
	const struct plan_summary *s = &p->sum;
	double turn = lanes_of_plan(p, true, a);
	double all = s->forward_sec + s->backward_sec + s->weight_sec
		+ s->recompute_sec;
	double forward = all > 0 ? turn * s->forward_sec / all : 0;
	double weight = weights ? turn * share_of_weight(p, all) : 0;

	return (struct stage_seconds){ forward, turn - forward - weight,
		weight, lanes_of_plan(p, false, a) - turn };
}

/* With two plans the mean of all micro-batches. */
static struct stage_seconds *
find_seconds(const struct pipeline *l, Arena *a)
{
	struct stage_seconds *sec = arena_array(a, (size_t)l->nstage,
	                                        sizeof *sec);

	for (int k = 0; k < l->nstage; k++) {
		const struct pipeline_stage *s = &l->stage[k];
		double share = stage_second_share(s, l->nmicro);
		struct stage_seconds other;

		sec[k] = seconds_of_plan(s->planned.plan, l->zero_bubble, a);
		if (share <= 0)
			continue;
		other = seconds_of_plan(s->second.planned.plan, false, a);
		sec[k].forward += share * (other.forward - sec[k].forward);
		sec[k].backward += share * (other.backward - sec[k].backward);
	}
	return sec;
}

/* The last update's seconds. */
static double
update_seconds(const struct pipeline *l, const struct stage_seconds *sec)
{
	double most = 0;

	for (int r = 0; r < l->nrank; r++) {
		double all = 0;

		for (int k = r; k < l->nstage; k += l->nrank)
			all += sec[k].update;
		most = fmax(most, all);
	}
	return most;
}

/* When the last turn ends; idle: by stage, of its rank; NULL: not wanted. */
static double
turn_seconds(const struct pipeline *l, const struct stage_seconds *sec,
             double *idle, Arena *a)
{
	size_t n = (size_t)l->nstage;
	double *forward = arena_array(a, n, sizeof *forward);
	double *backward = arena_array(a, n, sizeof *backward);
	double *weight = arena_array(a, n, sizeof *weight);
	double *busy = arena_array(a, n, sizeof *busy), all;

	for (int k = 0; k < l->nstage; k++) {
		forward[k] = sec[k].forward;
		backward[k] = sec[k].backward;
		weight[k] = sec[k].weight;
	}
	all = turns_seconds(l, forward, backward, weight, busy);
	for (int k = 0; k < l->nstage && idle; k++)
		idle[k] = all > 0 ? 1 - busy[k % l->nrank] / all : 0;
	return all;
}

/* The same of 1F1B. */
static double
plain_seconds(const struct pipeline *l, const struct stage_seconds *sec,
              double *idle)
{
	double sum = 0, most = 0, all;

	for (int k = 0; k < l->nstage; k++) {
		sum += sec[k].forward + sec[k].backward;
		most = fmax(most, sec[k].forward + sec[k].backward);
	}
	all = sum + (l->nmicro - 1) * most;
	for (int k = 0; k < l->nstage && idle; k++)
		idle[k] = all > 0 ? 1 - l->nmicro
			* (sec[k].forward + sec[k].backward) / all : 0;
	return all;
}

double
pipeline_seconds(const struct pipeline *l, double *idle)
{
	Arena *a = arena_new();
	const struct stage_seconds *sec = find_seconds(l, a);
	double all = l->nchunk > 1 || l->zero_bubble
		? turn_seconds(l, sec, idle, a) : plain_seconds(l, sec, idle);

	all += update_seconds(l, sec);
	arena_free(a);
	return all;
}

/* Bytes of a rank: nothing is shared between its stages. */
static int64_t
rank_peak(const struct pipeline *l, int rank)
{
	int64_t all = 0;

	for (int k = rank; k < l->nstage; k += l->nrank)
		all += stage_peak(&l->stage[k]);
	return all;
}

int64_t
pipeline_peak(const struct pipeline *l)
{
	int64_t most = 0;

	for (int r = 0; r < l->nrank; r++)
		if (rank_peak(l, r) > most)
			most = rank_peak(l, r);
	return most;
}

/* As --schedule has it. */
static const char *
schedule_name(const struct pipeline *l, char *room, size_t size)
{
	snprintf(room, size, l->zero_bubble ? "zb-h1" : l->nchunk > 1
	         ? "interleaved=%d" : "1f1b", l->nchunk);
	return room;
}

/* What ranks with several stages need. */
static void
print_ranks(const struct pipeline *l, const double *idle, FILE *out)
{
	fprintf(out, "%5s  %9s  %10s  %6s\n", "rank", "in flight", "peak",
	        "idle");
	for (int r = 0; r < l->nrank; r++) {
		char peak[24];

		fprintf(out, "%5d  %9d  %10s  %4.1f %%\n", r,
		        turns_in_flight(l, r),
		        number_bytes(peak, (double)rank_peak(l, r)),
		        100 * idle[r]);
	}
}

/* A row for each plan of a stage. */
static void
print_stage(int k, const Plan *p, int slots, int64_t bytes, double idle,
            FILE *out)
{
	const struct plan_summary *s = &p->sum;
	char slot[24], peak[24];

	fprintf(out, "%5d  %8.3g s  %8.3g s  %8.3g s  %5d  %10s  %10s  "
	        "%4.1f %%\n", k, s->forward_sec, s->backward_sec,
	        s->recompute_sec, slots,
	        number_bytes(slot, (double)p->slot_bytes),
	        number_bytes(peak, (double)bytes), idle);
}

/* What turns of weights read: slots from forward on, and from backward on. */
static void
print_weights(const struct pipeline *l, FILE *out)
{
	fprintf(out, "%5s  %10s  %12s  %10s  %13s  %10s\n", "stage", "weight",
	        "from forward", "slot", "from backward", "slot");
	for (int k = 0; k < l->nstage; k++) {
		const Plan *p = l->stage[k].planned.plan;
		char through[24], weight[24];

		fprintf(out, "%5d  %8.3g s  %12" PRId64 "  %10s  %13" PRId64
		        "  %10s\n", k, p->sum.weight_sec, p->through_slots,
		        number_bytes(through, (double)p->through_bytes),
		        p->weight_slots,
		        number_bytes(weight, (double)p->weight_bytes));
	}
}

void
pipeline_print(const Pass *p, FILE *out)
{
	const struct pipeline *l = p->planned.pipeline;
	double *idle = arena_array(p->keep, (size_t)l->nstage, sizeof *idle);
	double sec = pipeline_seconds(l, idle);
	char name[32];

	fprintf(out, "%5s  %10s  %10s  %10s  %5s  %10s  %10s  %6s\n", "stage",
	        "forward", "backward", "recompute", "slots", "slot", "peak",
	        "idle");
	for (int k = 0; k < l->nstage; k++) {
		const struct pipeline_stage *t = &l->stage[k];

		print_stage(k, t->planned.plan, t->slots - t->second.slots,
		            stage_peak(t), 100 * idle[k], out);
		if (t->second.graph)
			print_stage(k, t->second.planned.plan, t->second.slots,
			            stage_peak(t), 100 * idle[k], out);
	}
	fputs("cut after", out);
	for (int k = 0; k < l->nstage - 1; k++)
		fprintf(out, "%s '%s'", k ? "," : "", l->cut[k].after);
	fputc('\n', out);
	if (l->nchunk > 1)
		print_ranks(l, idle, out);
	if (l->zero_bubble)
		print_weights(l, out);
	fprintf(out, "%d micro-batch%s, %s: a step takes %.4g s\n",
	        l->nmicro, l->nmicro == 1 ? "" : "es", l->zero_bubble ? "ZB-H1"
	        : l->nchunk == 1 ? "1F1B" : schedule_name(l, name, sizeof name),
	        sec);
}

static void
put_turns(struct json_out *j, const struct pipeline_stage *t)
{
	static const char *const kind[] = { "forward", "backward", "weight",
		                            "update" };

	json_open(j, "turns", '[', JSON_LINES);
	for (int i = 0; i < t->nturn; i++) {
		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "kind", kind[t->turn[i].kind]);
		json_int(j, "micro_batch", t->turn[i].micro);
		json_int(j, "slot", t->turn[i].slot);
		json_int(j, "order", t->turn[i].order);
		json_close(j);
	}
	json_close(j);
}

static void
put_second_plan(struct json_out *j, const struct pipeline_stage *t)
{
	json_open(j, "second_plan", '{', JSON_LINES);
	json_open(j, "slots", '[', JSON_SPACED);
	for (int i = 0; i < t->slots; i++)
		if (t->second.has[i])
			json_int(j, NULL, i);
	json_close(j);
	json_int(j, "slot_bytes", t->second.slot_bytes);
	plan_write_members(j, NULL, t->second.planned.plan);
	json_close(j);
}

static void
put_stage(struct json_out *j, const struct pipeline_stage *t, double idle)
{
	json_open(j, NULL, '{', JSON_LINES);
	json_int(j, "slots", t->slots);
	json_int(j, "slot_bytes", t->slot_bytes);
	if (t->weight_slots) {
		const Plan *p = t->planned.plan;

		json_int(j, "through_slots", p->through_slots);
		json_int(j, "through_bytes", p->through_bytes);
		json_int(j, "weight_slots", p->weight_slots);
		json_int(j, "weight_bytes", p->weight_bytes);
	}
	json_real(j, "idle", 9, idle);
	put_turns(j, t);
	plan_write_members(j, NULL, t->planned.plan);
	if (t->second.graph)
		put_second_plan(j, t);
	json_close(j);
}

bool
pipeline_write_json(const Pass *p, const struct report_source *of, FILE *out)
{
	const struct pipeline *l = p->planned.pipeline;
	double *idle = arena_array(p->keep, (size_t)l->nstage, sizeof *idle);
	struct json_out j = { .f = out };
	char name[32];

	for (int k = 0; k < l->nstage; k++)
		if (!l->stage[k].planned.plan->replayed
		    || (l->stage[k].second.graph
		        && !l->stage[k].second.planned.plan->replayed))
			return false;
	json_open(&j, NULL, '{', JSON_LINES);
	plan_write_source(&j, of, "model");
	json_open(&j, "pipeline", '{', JSON_SPACED);
	json_int(&j, "stages", l->nstage);
	json_int(&j, "micro_batches", l->nmicro);
	json_int(&j, "ranks", l->nrank);
	json_text(&j, "schedule", schedule_name(l, name, sizeof name));
	json_real(&j, "step_seconds", 9, pipeline_seconds(l, idle));
	json_int(&j, "peak_bytes", pipeline_peak(l));
	json_open(&j, "cut_after", '[', JSON_SPACED);
	for (int k = 0; k < l->nstage - 1; k++)
		json_text(&j, NULL, l->cut[k].after);
	json_close(&j);
	json_close(&j);
	json_open(&j, "stages", '[', JSON_LINES);
	for (int k = 0; k < l->nstage; k++)
		put_stage(&j, &l->stage[k], idle[k]);
	json_close(&j);
	json_close(&j);
	putc('\n', out);
	return true;
}
