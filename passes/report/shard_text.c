/* Placements of values on ranks, and collectives, as text. */
#include "passes/report/report.h"
#include "ir/placement.h"

#include <inttypes.h>
#include <string.h>

enum { PLACEMENT_TEXT = 200 };          /* bytes of a placement in words */

/* "S1 [64,64]" */
static const char *
placement_code(char *buf, size_t size, const Placement *s)
{
	size_t n;

	if (s->kind != PLACEMENT_SHARD) {
		snprintf(buf, size, "%s",
		         s->kind == PLACEMENT_REPLICATE_PARTIAL ? "R"
		         : s->kind == PLACEMENT_PARTIAL ? "P" : "I");
		return buf;
	}
	n = (size_t)snprintf(buf, size, "S%d [", s->axis);
	for (int i = 0; i < s->nsegment && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64,
		                      i ? "," : "", s->segment[i]);
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "]");
	if (s->replication > 1 && n < size)
		snprintf(buf + n, size - n, " x%" PRId64, s->replication);
	return buf;
}

/* What has a name of its own: parameters and forward's activations. */
static bool
is_named_value(const Plan *plan, int64_t i)
{
	const struct plan_tensor *t = &plan->tensor[i];

	return t->shape.rank >= 0 && t->dt != DT_NONE && t->of < 0
		&& ((t->kind == K_PARAM && t->alias_of < 0)
		    || (t->kind == K_ACTIVATION && t->onnx));
}

static void
print_sharded_values(const Plan *plan, FILE *out)
{
	fprintf(out, "%-18s %12s  %-20s %s\n", "placement", "bytes/rank",
	        "full shape", "value");
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		Shape whole = placement_whole(&t->placement, &t->shape);
		char text[160], placement[PLACEMENT_TEXT];

		if (!is_named_value(plan, i))
			continue;
		fprintf(out, "%-18s %12" PRId64 "  %-20s %s\n",
		        placement_code(placement, sizeof placement,
		                       &t->placement),
		        t->bytes, shape_text(text, sizeof text, t->dt, &whole),
		        t->name);
	}
}

/* Collectives in the order of the schedule; totals by phase. */
static void
print_collectives(const Plan *plan, FILE *out)
{
	double sent[PH_COUNT] = { 0 }, sec[PH_COUNT] = { 0 };

	fprintf(out, "\n%-15s %-10s %14s %12s  %s\n", "collective", "phase",
	        "bytes sent", "seconds", "of");
	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];

		if (!lane_is_link(s->lane))
			continue;
		sent[s->phase] += s->sent;
		sec[s->phase] += s->seconds;
		fprintf(out, "%-15s %-10s %14.0f %12.3g  %s\n", s->op,
		        report_phase[s->phase], s->sent, s->seconds,
		        plan->tensor[s->read[0]].name);
	}
	fputs("\ncommunication of one rank in a step\n", out);
	for (int p = 0; p < PH_COUNT; p++)
		if (sent[p] > 0)
			fprintf(out, "  %-10s %14.0f B  %.3g s\n",
			        report_phase[p], sent[p], sec[p]);
	fprintf(out, "  %-10s %14.0f B  %.3g s\n", "all", plan->sum.sent,
	        plan->sum.sent_sec);
}

void
plan_print_shard(const Pass *p, const Plan *plan, FILE *out)
{
	if (!plan->ranks) {
		fputs("not sharded; --tp T shards over T ranks\n", out);
		return;
	}
	fprintf(out, "sizes are those of one of %" PRId64 " ranks\n",
	        plan->ranks);
	if (p->result.strategy_sec > 0)
		fprintf(out, "sharding strategy estimated at %.6g s per step\n",
		        p->result.strategy_sec);
	putc('\n', out);
	print_sharded_values(plan, out);
	print_collectives(plan, out);
}

static void
print_runner_up(const Pass *p, const struct runner_up *x, FILE *out)
{
	char placement[PLACEMENT_TEXT];

	fprintf(out, "  strategy     estimated at %.6g s per step; ",
	        p->result.strategy_sec);
	if (x->sec < 0) {
		fputs("no other placement of this value is possible\n", out);
		return;
	}
	fprintf(out, "with %s here at least %.6g s, %.3g %% more\n",
	        placement_code(placement, sizeof placement, &x->placement),
	        x->sec,
	        100 * (x->sec - p->result.strategy_sec)
	                / p->result.strategy_sec);
}

void
plan_explain_split(const Pass *p, const Plan *plan, int64_t id, FILE *out)
{
	char placement[PLACEMENT_TEXT];

	if (!plan->ranks)
		return;
	fprintf(out, "  placement    %s\n",
	        placement_code(placement, sizeof placement,
	                       &plan->tensor[id].placement));
	for (int i = 0; i < p->result.nrunner_up; i++)
		if (!strcmp(p->result.runner_up[i].value,
		            plan->tensor[id].name))
			print_runner_up(p, &p->result.runner_up[i], out);
	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];
		bool reads = s->nread > 0 && s->read[0] == id;
		bool writes = s->nwrite > 0 && s->write[0] == id;

		if (lane_is_link(s->lane) && (reads || writes))
			fprintf(out, "  %s %s in %s sends %.0f B, %.3g s\n",
			        reads ? "read by" : "made by", s->op,
			        report_phase[s->phase], s->sent, s->seconds);
	}
}
