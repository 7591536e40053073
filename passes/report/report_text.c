/* The plan as text: the table of decisions, and the explanation of one value.
 */
#include "passes/report/report.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <string.h>

/* "1.2 ms": three digits and a unit. */
static const char *
sec_text(char buf[24], double s)
{
	if (s >= 1)
		snprintf(buf, 24, "%.3f s", s);
	else if (s >= 1e-3)
		snprintf(buf, 24, "%.2f ms", s * 1e3);
	else
		snprintf(buf, 24, "%.2f us", s * 1e6);
	return buf;
}

static void
put_escaped_name(const char *name, FILE *out)
{
	diag_escape(out, name);
}

static const char *
report_decision(Decision d)
{
	return d == D_KEEP ? "keep" : d == D_RECOMPUTE ? "recompute"
		: d == D_OFFLOAD ? "offload" : "free";
}

bool
report_is_row(const Plan *plan, int64_t i)
{
	const struct plan_tensor *t = &plan->tensor[i];

	return t->kind == K_ACTIVATION && !t->resident && t->alias_of < 0;
}

static const char *
step_name(const Plan *plan, int64_t i)
{
	const struct plan_step *s = &plan->step[i];

	return s->nonnx ? s->onnx[0] : s->op;
}

void
report_reason(const Plan *plan, const struct report_place *place, int64_t i,
              Decision decision, void (*put)(const char *, FILE *), FILE *out)
{
	const struct plan_tensor *t = &plan->tensor[i];
	const int64_t *read = place[i].read;
	char buf[24];

	if (decision == D_OFFLOAD) {
		fputs("in host memory until backward", out);
	} else if (decision == D_RECOMPUTE) {
		double sec = place[i].recompute_sec;
		double per = t->bytes ? sec / (double)t->bytes * 0x1p20 : 0;

		if (!t->saved && sec > 0)
			fprintf(out, "recomputation costs %s per MiB",
			        sec_text(buf, per));
		else if (!t->saved)
			fputs("recomputed by the op of another row", out);
		else
			fputs("part of its op is recomputed", out);
	} else if (read[PH_BACKWARD] >= 0) {
		fprintf(out, "read by backward of ");
		put(step_name(plan, read[PH_BACKWARD]), out);
	} else if (read[PH_RECOMPUTE] >= 0) {
		fputs("input of the recomputation of ", out);
		put(step_name(plan, read[PH_RECOMPUTE]), out);
	} else {
		fputs(t->output ? "output of the step" : "", out);
	}
}

/* Returns the seconds of recomputation that the row stands for. */
static double
put_value_row(const Plan *plan, const struct report_place *places, int64_t i,
              FILE *out)
{
	const struct plan_tensor *t = &plan->tensor[i];
	const struct report_place *place = &places[i];
	double cost = place->decision == D_RECOMPUTE ? place->recompute_sec
		: place->forward_sec;
	char bytes[24], sec[24], num[16] = "-";

	if (place->layer >= 0)
		snprintf(num, sizeof num, "%d", (int)place->layer);
	fprintf(out, "%5s  %-12s  %10s  %-9s  %10s  ", num,
	        place->written < 0 ? "" : plan->step[place->written].op,
	        number_bytes(bytes, (double)t->bytes),
	        report_decision(place->decision),
	        cost > 0 ? sec_text(sec, cost) : "-");
	diag_escape(out, t->onnx ? t->onnx : t->name);
	fputs("  (", out);
	report_reason(plan, places, i, place->decision, put_escaped_name, out);
	fputs(")\n", out);
	return place->decision == D_RECOMPUTE ? cost : 0;
}

void
report_bytes(const char *what, int width, int64_t n, FILE *out)
{
	char buf[24];

	fprintf(out, "  %-28s %*" PRId64 " B  %10s\n", what, width, n,
	        number_bytes(buf, (double)n));
}

static void
put_alternatives(const Pass *p, FILE *out)
{
	char a[24], b[24], c[24];

	if (!p->planned.nalternative)
		return;
	fprintf(out, "\n%-10s  %16s  %10s  %10s  %10s\n", "preset", "peak",
	        "", "step", "recompute");
	for (int i = 0; i < p->planned.nalternative; i++) {
		const struct alternative *t = &p->planned.alternative[i];

		fprintf(out, "%-10s  %14" PRId64 " B  %10s  %10s  %10s%s\n",
		        t->name, t->peak, number_bytes(a, (double)t->peak),
		        sec_text(b, t->step_sec),
		        sec_text(c, t->recompute_sec),
		        p->planned.budget > 0 && t->peak > p->planned.budget
		        ? "  over budget" : "");
	}
}

static void
put_totals(const Pass *p, const struct plan_summary *s, FILE *out)
{
	char a[24], b[24], c[24], d[24];

	report_bytes("peak", 15, s->peak, out);
	if (s->budget >= 0)
		report_bytes("budget", 15, s->budget, out);
	if (s->baseline_peak >= 0)
		report_bytes("peak without recomputation", 15,
			     s->baseline_peak, out);
	if (p->planned.minimum_peak > 0 && p->planned.minimum_peak <= s->peak)
		report_bytes("smallest budget that works", 15,
			     p->planned.minimum_peak, out);
	report_bytes("saved for backward", 15, s->saved, out);
	if (s->nlow_precision)
		report_bytes("... of that in 16 bits", 15,
			     s->low_precision_bytes, out);
	if (s->host > 0)
		report_bytes("in host memory", 15, s->host, out);
	fprintf(out, "  arena %" PRId64 " B, live bytes %" PRId64 " B%s\n",
	        s->arena, s->live_bound,
	        s->arena == s->live_bound ? " (layout optimal)" : "");
	fprintf(out, "  step %s, recompute %s (+%.3f %%), lower bound %s for "
	        "plans of class '%s', gap %.3f %%\n",
	        sec_text(a, s->host > 0 ? s->exposed_sec : s->step_sec),
	        sec_text(b, s->recompute_sec), s->overhead * 100,
	        sec_text(c, s->bound_sec), s->bound_class, s->gap * 100);
	if (s->host > 0)
		fprintf(out, "  transfers: %s from host memory and %s to it, "
		        "%s in all, of which the step waits %s\n",
		        number_bytes(a, s->fetched),
		        number_bytes(b, s->offloaded),
		        sec_text(c, s->host_sec),
		        sec_text(d, plan_waits(s)));
}

void
plan_print_table(const Pass *p, const Plan *plan, FILE *out)
{
	const struct report_place *place = report_places(p, plan);
	int64_t free_bytes = 0, free_count = 0;
	double rest = plan->sum.recompute_sec;
	char buf[24];

	fprintf(out, "%5s  %-12s  %10s  %-9s  %10s  %s\n", "layer", "op",
	        "bytes", "decision", "recompute", "value (reason)");
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];

		if (!report_is_row(plan, i))
			continue;
		if (place[i].decision != D_FREE) {
			rest -= put_value_row(plan, place, i, out);
		} else {
			free_bytes += t->bytes;
			free_count++;
		}
	}
	fprintf(out, "not listed: %" PRId64 " value%s, %s, that backward does "
	        "not read\n", free_count, free_count == 1 ? "" : "s",
	        number_bytes(buf, (double)free_bytes));
	if (rest > 1e-9 * plan->sum.recompute_sec)
		fprintf(out, "not listed: %s of recomputation, of values that "
		        "are kept in part or have no row\n",
		        sec_text(buf, rest));
	putc('\n', out);
	put_totals(p, &plan->sum, out);
	put_alternatives(p, out);
}

/* ---- explain ---- */

static void
put_step_line(const char *what, const Plan *plan, int64_t i, FILE *out)
{
	const struct plan_step *s = &plan->step[i];

	fprintf(out, "  %-12s instruction %" PRId64 ", %s, %s", what, i,
	        report_phase[s->phase], s->op);
	for (int k = 0; k < s->nonnx; k++) {
		fputs(k ? ", " : " of ", out);
		diag_escape(out, s->onnx[k]);
	}
	putc('\n', out);
}

static void
explain_tensor(const Plan *plan, const struct report_place *place, int64_t i,
               FILE *out)
{
	static const char *const kind[K_COUNT] = {
		"parameter", "buffer", "constant", "input", "gradient",
		"optimizer state", "activation", "adjoint",
		"recomputed value", "workspace",
		"copy from or in host memory"
	};
	const struct plan_tensor *t = &plan->tensor[i];
	char buf[160];

	diag_escape(out, t->name);
	fprintf(out, ": %s %s, %" PRId64 " B\n", kind[t->kind],
	        shape_text(buf, sizeof buf, t->dt, &t->shape), t->bytes);
	if (t->resident)
		fprintf(out, "  resident: allocated for the whole step%s\n",
		        t->host ? ", in host memory" : "");
	else
		fprintf(out, "  live         instructions %" PRId64 " to %"
		        PRId64 "%s\n", t->first, t->last,
		        t->saved ? ", saved for backward" : "");
	if (t->offset >= 0)
		fprintf(out, "  memory       bytes %" PRId64 " to %" PRId64 " "
		        "of the arena\n", t->offset, t->offset + t->bytes);
	if (t->alias_of >= 0) {
		fputs("  alias of     ", out);
		diag_escape(out, plan->tensor[t->alias_of].name);
		putc('\n', out);
	}
	for (int64_t k = 0; k < plan->nstep; k++)
		for (int j = 0; j < plan->step[k].nwrite; j++)
			if (plan->step[k].write[j] == i)
				put_step_line("written by", plan, k, out);
	for (int64_t k = 0; k < plan->nstep; k++)
		for (int j = 0; j < plan->step[k].nread; j++)
			if (plan->step[k].read[j] == i)
				put_step_line("read by", plan, k, out);
	if (t->decision == D_NULL)
		return;
	fprintf(out, "  decision     %s", report_decision(t->decision));
	if (t->decision != D_FREE) {
		fputs(": ", out);
		report_reason(plan, place, i, t->decision, put_escaped_name,
		              out);
	}
	putc('\n', out);
}

/* How many characters both begin with. */
static size_t
prefix_length(const char *a, const char *b)
{
	size_t n = 0;

	while (a && a[n] && a[n] == b[n])
		n++;
	return n;
}

/* No value has this name: say which ones begin most like it. */
static bool
explain_nothing(const Pass *p, const Plan *plan, const char *value)
{
	enum { FEW = 3, MOST = 8 };
	size_t longest = FEW;
	int shown = 0;

	diag_error(p->diag, "--explain: the plan has no value named '%s'; "
	           "--dump=plan and --report list all values", value);
	for (int64_t i = 0; i < plan->ntensor; i++)
		if (prefix_length(plan->tensor[i].name, value) > longest)
			longest = prefix_length(plan->tensor[i].name, value);
	for (int64_t i = 0; i < plan->ntensor && shown < MOST; i++) {
		const struct plan_tensor *t = &plan->tensor[i];

		if (t->kind == K_WORKSPACE || t->kind == K_RECOMPUTED
		    || prefix_length(t->name, value) < longest)
			continue;
		diag_more(p->diag, "%s '%s'", shown++ ? "or" : "perhaps",
		          t->name);
	}
	return false;
}

bool
plan_explain(const Pass *p, const Plan *plan, const char *value, FILE *out)
{
	const struct report_place *place = report_places(p, plan);
	bool found = false;

	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];

		if (strcmp(t->name, value) != 0
		    && (!t->onnx || strcmp(t->onnx, value) != 0))
			continue;
		if (t->kind == K_WORKSPACE)
			continue;
		explain_tensor(plan, place, i, out);
		plan_explain_split(p, plan, i, out);
		found = true;
	}
	return found || explain_nothing(p, plan, value);
}
