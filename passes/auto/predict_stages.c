/* Pipelines: seconds and bytes from those of the whole model, or of all stages.
 *
 * step    sum of T + (N - 1) max T + U, with T the seconds of a stage's turns
 *         of a micro-batch and U those of its update (Zheng et al., Alpa,
 *         2022).  Of other schedules than 1F1B, when the last turn ends
 * predict stages are those of stage_parts.c, and take the turns of pass
 *         pipeline.  The seconds that a budget adds to a layer rise as the
 *         square of the bytes that a micro-batch lacks there (curve.c)
 */
#include "passes/auto/stages.h"

#include <math.h>

/* The turns of all stages. */
static struct pipeline *
list_turns_of(const struct auto_request *r, const struct auto_config *c,
             Arena *a)
{
	struct pipeline *l = arena_array(a, 1, sizeof *l);

	l->nrank = (int)c->pp;
	l->nchunk = r->chunks > 1 ? (int)r->chunks : 1;
	l->nstage = l->nrank * l->nchunk;
	l->nmicro = (int)c->accum;
	l->zero_bubble = r->zero_bubble;
	l->stage = arena_array(a, (size_t)l->nstage, sizeof *l->stage);
	turns_schedule(l, a);
	return l;
}

/* Seconds of a step but for updates. */
static double
turns_end(const struct pipeline *l, const struct stage_part *s, Arena *a)
{
	size_t n = (size_t)l->nstage;
	double *part[TURN_UPDATE], sum = 0, most = 0;

	for (int k = 0; k < TURN_UPDATE; k++)
		part[k] = arena_array(a, n, sizeof *part[k]);
	for (int k = 0; k < l->nstage; k++) {
		double by = s[k].all > 0 ? s[k].turn / s[k].all : 0;

		part[TURN_FORWARD][k] = by * s[k].forward;
		part[TURN_WEIGHT][k] = by * s[k].weight;
		part[TURN_BACKWARD][k] = s[k].turn
			- by * (s[k].forward + s[k].weight);
		sum += s[k].turn;
		most = fmax(most, s[k].turn);
	}
	return l->nchunk > 1 || l->zero_bubble
		? turns_seconds(l, part[TURN_FORWARD], part[TURN_BACKWARD],
		                part[TURN_WEIGHT], NULL)
		: sum + (l->nmicro - 1) * most;
}

/* Bytes of a stage without a budget.  With weight turns, what lies in no slot
 * finds no room in slots of other micro-batches (passes/place/pack_slots.c). */
static double
stage_bytes(const struct pipeline_stage *s, const struct stage_part *part)
{
	bool saved = s->slots > 1, kept = s->weight_slots > 1;
	double more = (saved ? s->slots - 1 : 0) * part->saved
		+ (s->through_slots > 1 ? s->through_slots - 1 : 0)
		* part->through + (kept ? s->weight_slots - 1 : 0) * part->kept;
	double live = part->live;

	if (s->through_slots > 1)
		live = fmax(live, part->rest[saved][kept] + part->through
		            + (saved ? part->saved : 0)
		            + (kept ? part->kept : 0));
	return part->resident + more + live;
}

/* Micro-batches that hold less if values of forward are not kept.  What weight
 * turns read is computed again in backward turns, and kept from there on. */
static double
slots_held(const struct pipeline_stage *s, const struct stage_part *part)
{
	double all = part->saved + part->through;
	double through = s->through_slots - fmax(s->weight_slots - 1, 0);
	double held = s->slots * part->saved + through * part->through;

	return all > 0 ? fmax(held / all, 1) : s->slots;
}

/* Bytes that each layer of a rank's stages has to hold less for a micro-batch.
 * The last layer of each is whole again when its backward turn begins. */
static double
lack_of(const struct pipeline *l, const struct stage_part *s, int rank,
        double budget)
{
	double peak = 0, held = 0;

	for (int k = rank; k < l->nstage; k += l->nrank) {
		peak += stage_bytes(&l->stage[k], &s[k]);
		held += fmax(s[k].layers * slots_held(&l->stage[k], &s[k]) - 1,
		             0.5);
	}
	return fmax(peak - budget, 0) / held;
}

/* Layers of a stage that hold less: of one that holds one micro-batch not the
 * last. */
static double
lean_layers(const struct pipeline_stage *s, const struct stage_part *part)
{
	double last = s->slots > 1 || s->through_slots > 1 ? 0 : 1;

	return fmax(part->layers - last, 0);
}

/* Seconds that a step takes more if a budget adds `sec` to a micro-batch of the
 * whole model: lack of a stage by that of the one that lacks most. */
static double
step_gain(const struct pipeline *l, const struct stage_part *s,
          const double *lack, double layers, double sec, Arena *a)
{
	struct stage_part *more = arena_array(a, (size_t)l->nstage,
	                                      sizeof *more);

	for (int k = 0; k < l->nstage; k++) {
		double x = lack[k % l->nrank];

		more[k] = s[k];
		more[k].turn += sec * x * x * lean_layers(&l->stage[k], &s[k])
			/ (layers - 1);
		more[k].all *= more[k].turn / s[k].turn;
	}
	return turns_end(l, more, a) - turns_end(l, s, a);
}

/* What a budget does: see struct auto_plan. */
static void
set_curve(const struct auto_request *r, const struct pipeline *l,
          const struct stage_part *s, double layers, struct auto_plan *to,
          Arena *a)
{
	double *lack = arena_array(a, (size_t)l->nrank, sizeof *lack);
	double budget = (double)r->budget, most = 0;

	for (int k = 0; k < l->nrank; k++) {
		lack[k] = lack_of(l, s, k, budget);
		most = fmax(most, lack[k]);
	}
	for (int k = 0; k < l->nrank; k++)
		lack[k] /= most;
	to->curve_bytes = (layers - 1) * most / ((double)to->peak - budget);
	for (int i = 0; i < AUTO_GAINS; i++)
		to->gain[i] = step_gain(l, s, lack, layers,
		                        auto_gain_at(i) * to->micro_shown, a);
}

static void
share_out(struct auto_plan *p, double stages)
{
	p->compute /= stages;
	p->recompute /= stages;
	p->sent_sec /= stages;
	p->sent /= stages;
	p->swapped /= stages;
	p->update_sec /= stages;
}

static void
collect_stages(const struct pipeline *l, const struct stage_part *s,
           struct auto_plan *to)
{
	const double micro = l->nmicro;

	to->compute = to->sent_sec = to->sent = to->update_sec = 0;
	to->micro_sec = to->micro_shown = 0;
	for (int k = 0; k < l->nstage; k++) {
		to->compute += micro * s[k].compute + s[k].update_compute;
		to->sent_sec += micro * s[k].sent_sec;
		to->sent += micro * s[k].sent;
		to->update_sec += s[k].update_compute;
		to->micro_sec += s[k].compute;
		to->micro_shown += s[k].turn;
	}
	share_out(to, l->nrank);
}

bool
auto_pipeline(const struct auto_request *r, const struct auto_config *c,
              const struct few_layers *f, struct auto_plan *to, Arena *a)
{
	const struct pipeline *l = list_turns_of(r, c, a);
	struct stage_part *s = arena_array(a, (size_t)l->nstage, sizeof *s);
	double turns, updates = 0, own = 0, peak = 0, resident = 0;

	if (!stages_of_layers(f, l->nstage, l->zero_bubble, s, a))
		return false;
	for (int rank = 0; rank < l->nrank; rank++) {
		double update = 0, bytes = 0, stays = 0;

		for (int k = rank; k < l->nstage; k += l->nrank) {
			update += s[k].update;
			bytes += stage_bytes(&l->stage[k], &s[k]);
			stays += s[k].resident;
			own += (double)c->accum * s[k].turn + s[k].update;
		}
		updates = fmax(updates, update);
		peak = fmax(peak, bytes);
		resident = fmax(resident, stays);
	}
	turns = turns_end(l, s, a);
	collect_stages(l, s, to);
	to->needs /= c->pp;
	to->states /= c->pp;
	to->sec = to->busiest = turns + updates;
	to->idle = to->sec - own / (double)c->pp;
	to->peak = (int64_t)peak;
	to->resident = (int64_t)resident;
	to->curve_bytes = 1;
	if (r->budget > 0 && to->peak > r->budget)
		set_curve(r, l, s, (double)f->layers, to, a);
	return true;
}

/* What the stages of a rank take together. */
static struct auto_plan
join_rank(const struct auto_plan *stage, int n, int ranks, int rank)
{
	struct auto_plan all = { 0 };

	for (int k = rank; k < n; k += ranks) {
		all.sec += stage[k].sec;
		all.micro_shown += stage[k].micro_shown;
		all.peak += stage[k].peak;
		all.resident += stage[k].resident;
		all.needs = stage[k].needs > all.needs ? stage[k].needs
			: all.needs;
	}
	return all;
}

void
auto_join_stages(const struct auto_plan *stage, int n, int ranks, int64_t accum,
                 double sec, struct auto_plan *to)
{
	const double micro = (double)accum;
	double most = 0, sum = 0, update = 0, own = 0;

	*to = (struct auto_plan){ .ok = true };
	for (int k = 0; k < n; k++) {
		to->compute += stage[k].compute;
		to->recompute += stage[k].recompute;
		to->sent_sec += stage[k].sent_sec;
		to->sent += stage[k].sent;
		to->update_sec += stage[k].update_sec;
	}
	for (int k = 0; k < ranks; k++) {
		const struct auto_plan s = join_rank(stage, n, ranks, k);

		sum += s.micro_shown;
		most = fmax(most, s.micro_shown);
		update = fmax(update, s.sec - micro * s.micro_shown);
		own += s.sec;
		to->peak = s.peak > to->peak ? s.peak : to->peak;
		to->resident = s.resident > to->resident ? s.resident
			: to->resident;
		to->needs = s.needs > to->needs ? s.needs : to->needs;
	}
	share_out(to, ranks);
	to->micro_shown = sum;
	to->sec = sec > 0 ? sec : sum + (micro - 1) * most + update;
	to->busiest = to->sec;
	to->idle = to->sec - own / ranks;
}

double
auto_step_gain(const struct auto_plan *p, int64_t accum, double sec)
{
	double from = 0, last = 0;
	int i = 0;

	if (p->curve_bytes <= 0)
		return (double)accum * sec;
	sec /= p->micro_shown;
	while (i < AUTO_GAINS - 1 && auto_gain_at(i) < sec)
		i++;
	if (i > 0) {
		from = auto_gain_at(i - 1);
		last = p->gain[i - 1];
	}
	return last + (p->gain[i] - last) * (sec - from)
		/ (auto_gain_at(i) - from);
}
