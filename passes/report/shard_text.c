/* How values lie on ranks, and what goes between them, for people. */
#include "passes/report/report.h"
#include "ir/split.h"

#include <inttypes.h>

static const char *const phase_name[PH_COUNT] = {
	"forward", "recompute", "backward", "update"
};

static void
put_state(const struct plan_tensor *t, FILE *out)
{
	const Split *s = &t->split;
	int n = 1;

	if (s->kind != SPLIT_S) {
		fprintf(out, "%-18s", s->kind == SPLIT_R ? "R" : s->kind
		        == SPLIT_P ? "P" : "I");
		return;
	}
	n = fprintf(out, "S%d [", s->axis);
	for (int i = 0; i < s->npart; i++)
		n += fprintf(out, "%s%" PRId64, i ? "," : "", s->part[i]);
	n += fprintf(out, "]");
	if (s->shared > 1)
		n += fprintf(out, " x%" PRId64, s->shared);
	fprintf(out, "%*s", n < 18 ? 18 - n : 1, "");
}

/* What has a name of its own: parameters and forward's activations. */
static bool
is_shown(const Plan *plan, int64_t i)
{
	const struct plan_tensor *t = &plan->tensor[i];

	return t->shape.rank >= 0 && t->dt != DT_NONE && t->of < 0
		&& ((t->kind == K_PARAM && t->alias_of < 0)
		    || (t->kind == K_ACTIVATION && t->onnx));
}

static void
put_values(const Plan *plan, FILE *out)
{
	fprintf(out, "%-18s %12s  %-20s %s\n", "state", "bytes here",
	        "whole", "value");
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		Shape whole = split_whole(&t->split, &t->shape);
		char text[160];

		if (!is_shown(plan, i))
			continue;
		put_state(t, out);
		fprintf(out, " %12" PRId64 "  %-20s %s\n", t->bytes,
		        shape_text(text, sizeof text, t->dt, &whole),
		        t->name);
	}
}

/* Collectives in the order of the schedule; totals by phase. */
static void
put_collectives(const Plan *plan, FILE *out)
{
	double sent[PH_COUNT] = { 0 }, sec[PH_COUNT] = { 0 };

	fprintf(out, "\n%-15s %-10s %14s %12s  %s\n", "collective", "phase",
	        "bytes sent", "seconds", "of");
	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];

		if (s->sent <= 0)
			continue;
		sent[s->phase] += s->sent;
		sec[s->phase] += s->seconds;
		fprintf(out, "%-15s %-10s %14.0f %12.3g  %s\n", s->op,
		        phase_name[s->phase], s->sent, s->seconds,
		        plan->tensor[s->read[0]].name);
	}
	fputs("\nbetween ranks, in a step of one rank\n", out);
	for (int p = 0; p < PH_COUNT; p++)
		if (sent[p] > 0)
			fprintf(out, "  %-10s %14.0f B  %.3g s\n",
			        phase_name[p], sent[p], sec[p]);
	fprintf(out, "  %-10s %14.0f B  %.3g s\n", "all", plan->sum.sent,
	        plan->sum.sent_sec);
}

void
plan_print_shard(const Plan *plan, FILE *out)
{
	if (!plan->ranks) {
		fputs("not sharded: --tp T cuts it over T ranks\n", out);
		return;
	}
	fprintf(out, "one of %" PRId64 " ranks\n\n", plan->ranks);
	put_values(plan, out);
	put_collectives(plan, out);
}

void
plan_explain_split(const Plan *plan, int64_t id, FILE *out)
{
	if (!plan->ranks)
		return;
	fputs("  on ranks: ", out);
	put_state(&plan->tensor[id], out);
	putc('\n', out);
	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];
		bool reads = s->nread > 0 && s->read[0] == id;
		bool writes = s->nwrite > 0 && s->write[0] == id;

		if (s->sent > 0 && (reads || writes))
			fprintf(out, "  %s %s in %s sends %.0f B, %.3g s\n",
			        reads ? "read by" : "made by", s->op,
			        phase_name[s->phase], s->sent, s->seconds);
	}
}
