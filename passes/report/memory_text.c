/* --dump=memory: memory by layer, and FLOPs. */
#include "passes/cost/cost.h"
#include "passes/report/step_report.h"
#include "passes/report/report.h"
#include "runtime/support/number.h"

#include <inttypes.h>

static void
put_step_memory(const struct plan_summary *s, FILE *out)
{
	fputs("memory of one step\n", out);
	report_bytes("parameters", 17, s->param, out);
	report_bytes("buffers", 17, s->buffer, out);
	report_bytes("constants", 17, s->constant, out);
	report_bytes("inputs", 17, s->input, out);
	report_bytes("accumulated gradients", 17, s->grad, out);
	report_bytes("optimizer state", 17, s->optimizer, out);
	report_bytes("arena", 17, s->arena, out);
	report_bytes("peak", 17, s->peak, out);
	if (s->host > 0)
		report_bytes("in host memory", 17, s->host, out);
}

/* ---- a layer ---- */

static void
put_per_unit(const struct memory_report *r, int64_t bytes, FILE *out)
{
	if (r->unit > 0)
		fprintf(out, "  %10.3f", (double)bytes / (double)r->unit);
}

static void
put_saved_value(const struct memory_report *r, const struct saved *s, FILE *out)
{
	fputs("    ", out);
	fprintf(out, "%-18.18s %-16.16s %15" PRId64 " B", s->op, s->reader,
	        s->bytes);
	put_per_unit(r, s->bytes, out);
	fputs("  ", out);
	diag_escape(out, s->name);
	putc('\n', out);
}

/* The rows of one block and their sum; layer -1: outside of layers. */
static void
put_block(const struct memory_report *r, enum layer_block block, int32_t layer,
          FILE *out)
{
	int64_t sum = 0, count = 0;

	for (int64_t i = 0; i < r->nsaved; i++)
		if (r->saved[i].layer == layer && r->saved[i].block == block) {
			sum += r->saved[i].bytes;
			count++;
		}
	if (!count)
		return;
	fprintf(out, "  %-37s %15" PRId64 " B", memory_block[block], sum);
	put_per_unit(r, sum, out);
	putc('\n', out);
	for (int64_t i = 0; i < r->nsaved; i++)
		if (r->saved[i].layer == layer && r->saved[i].block == block)
			put_saved_value(r, &r->saved[i], out);
}

static void
put_theory(const struct memory_report *r, FILE *out)
{
	double as = (double)r->heads * (double)r->seq / (double)r->hidden;

	if (r->vocab)
		fprintf(out, "\n  32-bit logits would take 4 s b v = %.6g B; a "
		        "fused classifier does not store them", 4.0
		        * (double)r->seq * (double)r->batch
		        * (double)r->vocab);
	fprintf(out, "\n  b %" PRId64 ", s %" PRId64 ", h %" PRId64 ", a %"
	        PRId64 ", v %" PRId64 ", %d layers.  16-bit GPT, everything "
	        "kept:\n  34 + 5 a s / h = %.3f; selective 34; full 2 bytes "
	        "per element\n", r->batch, r->seq, r->hidden, r->heads,
	        r->vocab, r->seg.nlayer, 34 + 5 * as);
}

/* The middle layer of what 1 % of a step's time buys. */
static void
put_cheap(const struct memory_report *r, const struct one_percent *c, FILE *out)
{
	int32_t k = r->seg.nlayer / 2;

	if (!c || c->nlayer != r->seg.nlayer)
		return;
	fprintf(out, "\nauto at <= 1 %% extra time: layer %d %*s%15" PRId64
	        " B", k, k < 10 ? 2 : k < 100 ? 1 : 0, "", c->layer[k]);
	put_per_unit(r, c->layer[k], out);
	fprintf(out, "  and %" PRId64 " B of statistics, +%.2f %% of a step"
	        "\n", c->stats[k], 100 * c->extra);
}

static void
put_layer_bytes(const Pass *p, const struct memory_report *r, FILE *out)
{
	int32_t n = r->seg.nlayer, middle = n / 2;

	for (int32_t i = 0; i < n; i++) {
		int32_t k = i;

		while (k + 1 < n && r->layer[k + 1] == r->layer[i]
		       && r->stats[k + 1] == r->stats[i])
			k++;
		fprintf(out, i == k ? "  layer %d" : "  layers %d to %d", i, k);
		fprintf(out, "%*s%15" PRId64 " B", i == k ? 30 : 20, "",
		        r->layer[i]);
		put_per_unit(r, r->layer[i], out);
		fprintf(out, "  and %" PRId64 " B of statistics each\n",
		        r->stats[i]);
		i = k;
	}
	fprintf(out, "\nsaved by layer %d%s\n", middle,
	        r->unit ? "  (last number: bytes per element of the layer's "
	        "input)"
	        : "");
	for (int b = 0; b < B_COUNT; b++)
		put_block(r, (enum layer_block)b, middle, out);
	put_cheap(r, p->planned.one_percent, out);
	if (r->seq && r->hidden)
		put_theory(r, out);
	fputs("\nsaved outside of layers\n", out);
}

static void
put_saved(const Pass *p, const struct memory_report *r, const Plan *plan,
          FILE *out)
{
	fputs("\nsaved for backward\n", out);
	if (r->seg.nlayer)
		put_layer_bytes(p, r, out);
	for (int b = 0; b < B_COUNT; b++)
		put_block(r, (enum layer_block)b, -1, out);
	report_bytes("all", 17, plan->sum.saved, out);
	if (plan->sum.nlow_precision) {
		report_bytes("... of that in 16 bits", 17,
			     plan->sum.low_precision_bytes, out);
		fprintf(out, "  ... values %38" PRId64 "\n",
		        plan->sum.nlow_precision);
	}
	if (p->planned.one_percent)
		report_bytes("all, at <= 1 % extra time", 17,
			     p->planned.one_percent->saved, out);
}

/* ---- FLOPs, pipeline ---- */

static void
put_flop_line(const char *what, double flops, FILE *out)
{
	if (flops > 0)
		fprintf(out, "  %-44s %12.6g\n", what, flops);
}

static void
put_utilisation(const Pass *p, const Plan *plan, const struct flop_report *f,
                FILE *out)
{
	struct step_use u = step_use(p, plan);
	double percent = 100 * u.batches / u.sec / u.peak;

	if (u.sec <= 0)
		return;
	fprintf(out, "  %s %.6g s a step", p->opt->step_time > 0 ? "given"
	        : "predicted", u.sec);
	if (p->opt->pp)
		fprintf(out, " of %.0f micro-batches", u.batches);
	fprintf(out, " on %.0f x %s: MFU %.2f %%, HFU %.2f %%", u.devices,
	        device_of(p->planned.reference)->name, percent * f->model,
	        percent * f->hardware);
	if (f->paper_model > 0)
		fprintf(out, "; by the formulas MFU %.2f %%, HFU %.2f %% "
		        "(s/3h) or %.2f %% (2s/9h)",
		        percent * f->paper_model, percent * f->paper_third,
		        percent * f->paper_ninth);
	if (u.idle > 0)
		fprintf(out, "; pipeline bubble %.2f %%, MFU without it %.2f "
		        "%%", 100 * u.idle,
		        percent * f->model / (1 - u.idle));
	putc('\n', out);
}

static void
put_flops(const Pass *p, const Plan *plan, const struct memory_report *r,
          FILE *out)
{
	struct flop_report f = flop_report(p, plan, r);

	fprintf(out, "\nFLOPs of a micro-batch%s\n",
	        plan->ranks ? ", all ranks" : "");
	put_flop_line("model: without recomputation", f.model, out);
	if (f.causal < f.model)
		put_flop_line("... without masked positions", f.causal, out);
	put_flop_line("hardware: with recomputation", f.hardware, out);
	put_flop_line("all ops as scheduled", f.all, out);
	put_flop_line("72 B L s h^2 (1 + s/6h + v/12hL)", f.paper_model, out);
	put_flop_line("... s/3h: selective, recompute counted thrice",
	              f.paper_third, out);
	put_flop_line("... 2s/9h: selective, recompute counted once",
	              f.paper_ninth, out);
	put_utilisation(p, plan, &f, out);
}

static void
put_pipeline(const struct pipeline_estimate *l, FILE *out)
{
	char a[24], b[24];

	if (!l->n)
		return;
	fprintf(out, "\npipeline of %" PRId64 " stages, %" PRId64 " part%s "
	        "each, %" PRId64 " micro-batches (accounting only)\n"
	        "  stage  layers  in flight       saved  weights and state"
	        "  can keep everything\n", l->n, l->interleave,
	        l->interleave == 1 ? "" : "s", l->microbatches);
	for (int64_t i = 0; i < l->n; i++) {
		const struct stage_estimate *s = &l->stage[i];

		if (i > 2 && i < l->n - 2) {
			if (i == 3)
				fputs("    ...\n", out);
			continue;
		}
		fprintf(out, "  %5" PRId64 "  %6.2f  %9.3f  %10s  %17s", i,
		        s->layers, s->in_flight, number_bytes(a, s->saved),
		        number_bytes(b, s->weights));
		if (s->keep_all >= 0)
			fprintf(out, "  %14.0f of them", s->keep_all);
		putc('\n', out);
	}
}

void
plan_print_memory(const Pass *p, const Plan *plan, FILE *out)
{
	Arena *arena = arena_new();
	struct memory_report *r = memory_report_new(p, plan, arena);
	struct pipeline_estimate l;

	put_step_memory(&plan->sum, out);
	if (r) {
		l = pipeline_report(p, plan, r, arena);
		put_saved(p, r, plan, out);
		put_flops(p, plan, r, out);
		put_pipeline(&l, out);
	}
	arena_free(arena);
}
