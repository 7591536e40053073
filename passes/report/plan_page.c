/* --report: the plan as an HTML page.
 *
 * what    one HTML file, nothing loaded from elsewhere, no script: totals, the
 *         arena over the schedule, time against budget, layers with what is
 *         kept and what is computed again, the largest values
 * note    numbers are those of --json; names on hover (title)
 */
#include "passes/planner/pareto_front.h"
#include "passes/report/plan_page.h"
#include "passes/report/report.h"
#include "runtime/support/markup.h"
#include "runtime/support/path.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	LARGEST = 24,                   /* rows of the table of values */
	BUDGETS = 8                     /* rows of the table of budgets */
};

static const char style[] =
	".keep{background:#2563eb;fill:#2563eb}"
	".drop{background:#f59e0b;fill:#f59e0b}"
	".free{background:#cbd5e1;fill:#cbd5e1}"
	".copy{background:#c2410c;fill:#c2410c}"
	".adjoint{background:#16a34a;fill:#16a34a}"
	".grad{background:#0f766e;fill:#0f766e}"
	".work{background:#9ca3af;fill:#9ca3af}"
	".other{background:#7c3aed;fill:#7c3aed}\n";

static const struct {
	const char *name, *text;
} page_key[] = {
	{ "keep", "kept for backward" },
	{ "drop", "recomputed in backward: first copy" },
	{ "copy", "recomputed copy" },
	{ "free", "not needed in backward" },
	{ "adjoint", "gradient of an activation" },
	{ "grad", "gradient of a parameter" },
	{ "work", "workspace of a step" },
	{ "other", "other" },
};

/* ---- totals ---- */

static void
put_fact(const char *what, int64_t bytes, FILE *out)
{
	char buf[24];

	if (bytes > 0)
		fprintf(out, "<tr><td>%s<td class=\"n\">%s<td class=\"n\">%"
		        PRId64 " B\n", what, number_bytes(buf, (double)bytes),
		        bytes);
}

static void
put_facts(const struct page *g)
{
	const Pass *p = g->pass;
	FILE *out = g->out;
	const struct plan_summary *s = &g->plan->sum;

	fprintf(out, "<p>A step takes %.4g s by the cost model, of which "
	        "%.2f %% is recomputation; no plan of class '%s' within this "
	        "memory is faster by more than %.2f %%.\n",
	        s->step_sec, 100 * s->overhead, s->bound_class, 100 * s->gap);
	fputs("<table id=\"totals\">\n", out);
	put_fact("peak", s->peak, out);
	put_fact("budget", s->budget, out);
	if (p->planned.pareto_front && p->planned.pareto_front->n)
		put_fact("smallest budget that works",
		         p->planned.pareto_front->point[0].budget, out);
	if (p->planned.pareto_front)
		put_fact("everything kept", p->planned.pareto_front->whole,
		         out);
	put_fact("arena", s->arena, out);
	put_fact("... of that saved for backward", s->saved, out);
	put_fact("parameters", s->param, out);
	put_fact("optimizer state", s->optimizer, out);
	put_fact("accumulated gradients", s->grad, out);
	put_fact("running statistics", s->buffer, out);
	put_fact("constants", s->constant, out);
	put_fact("inputs", s->input, out);
	fputs("</table>\n", out);
}

/* ---- time against budget ---- */

static void
put_budget(const struct pareto_point *q, FILE *out)
{
	char buf[24];

	fprintf(out, "<tr><td><code>--memory-budget %" PRId64 "B</code>"
	        "<td class=\"n\">%s<td class=\"n\">%.4g s<td class=\"n\">"
	        "+%.2f %%\n", q->budget, number_bytes(buf, (double)q->peak),
	        q->step_sec, 100 * pareto_overhead(q, q->step_sec));
}

/* What other budgets would cost: some of the curve, least and most among. */
static void
put_budget_table(const struct page *g)
{
	const struct pareto_front *c = g->pass->planned.pareto_front;
	FILE *out = g->out;
	int n = c ? c->n : 0, rows = n < BUDGETS ? n : BUDGETS;

	if (!n)
		return;
	fputs("<h2>Time against budget</h2>\n", out);
	pareto_front_svg(g->pass, "Step time against memory budget", out);
	fputs("<table id=\"budgets\">\n<tr><th>option<th>peak<th>step"
	      "<th>recompute\n", out);
	for (int i = 0; i < rows; i++)
		put_budget(&c->point[rows > 1 ? (n - 1) * i / (rows - 1) : 0],
		           out);
	fputs("</table>\n", out);
}

/* ---- layers ---- */

struct sums {
	int64_t layer;                  /* -1: in none */
	int64_t bytes[3];               /* kept, recomputed, neither */
	int64_t count[3];
};

static int
which_sum(Decision d)
{
	return d == D_KEEP ? 0 : d == D_RECOMPUTE ? 1 : 2;
}

/* By layer; the last is what lies in none. */
static struct sums *
sum_places_by_layer(const struct page *g, int64_t *nlayer)
{
	const Pass *p = g->pass;
	const Plan *plan = g->plan;
	struct sums *sums;
	int64_t n = 0;

	for (int64_t i = 0; i < plan->ntensor; i++)
		if (g->place[i].layer >= n)
			n = g->place[i].layer + 1;
	sums = arena_array(p->keep, (size_t)n + 1, sizeof *sums);
	for (int64_t i = 0; i <= n; i++)
		sums[i].layer = i < n ? i : -1;
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		int32_t layer = g->place[i].layer;
		struct sums *s = &sums[layer < 0 ? n : layer];
		int which = which_sum(g->place[i].decision);

		if (!report_is_row(g->plan, i))
			continue;
		s->bytes[which] += t->bytes;
		s->count[which]++;
	}
	*nlayer = n;
	return sums;
}

static bool
are_alike(const struct sums *a, const struct sums *b)
{
	return a->layer >= 0 && b->layer >= 0
		&& !memcmp(a->bytes, b->bytes, sizeof a->bytes)
		&& !memcmp(a->count, b->count, sizeof a->count);
}

static void
put_cells(const struct page *g, int64_t layer)
{
	for (int64_t i = 0; i < g->plan->ntensor; i++) {
		if (!report_is_row(g->plan, i) || g->place[i].layer != layer)
			continue;
		fprintf(g->out, "<i class=\"%s\" title=\"",
		        page_class(&g->plan->tensor[i], g->place[i].decision));
		page_title(g, i);
		fputs("\"></i>", g->out);
	}
}

static void
put_layer_table(const struct page *g)
{
	int64_t n, k;
	const struct sums *s = sum_places_by_layer(g, &n);
	FILE *out = g->out;
	char a[24], b[24], c[24];

	fputs("<h2>Kept and recomputed, by layer</h2>\n<p>One cell per forward "
	      "value that takes memory, in schedule order; equal layers show "
	      "the cells of the first.\n<table id=\"layers\">\n<tr><th>layer"
	      "<th>kept<th>recomputed<th>neither<th>values\n", out);
	for (int64_t i = 0; i <= n; i = k) {
		for (k = i + 1; k <= n && are_alike(&s[i], &s[k]); k++)
			;
		if (i == n)
			fputs("<tr><td>outside layers", out);
		else if (k == i + 1)
			fprintf(out, "<tr><td>%" PRId64, i);
		else
			fprintf(out, "<tr><td>%" PRId64 " to %" PRId64
			        ", each", i, k - 1);
		fprintf(out, "<td class=\"n\">%s<td class=\"n\">%s"
		        "<td class=\"n\">%s<td class=\"cells\">",
		        number_bytes(a, (double)s[i].bytes[0]),
		        number_bytes(b, (double)s[i].bytes[1]),
		        number_bytes(c, (double)s[i].bytes[2]));
		put_cells(g, s[i].layer);
		putc('\n', out);
	}
	fputs("</table>\n", out);
}

/* ---- the largest ---- */

struct sized_place {
	int64_t id, bytes;
};

static int
by_place_bytes(const void *a, const void *b)
{
	const struct sized_place *p = a, *q = b;

	if (p->bytes != q->bytes)
		return p->bytes > q->bytes ? -1 : 1;
	return p->id < q->id ? -1 : p->id > q->id;
}

static void
put_large(const struct page *g, int64_t i)
{
	Decision d = g->place[i].decision;
	const char *what = page_class(&g->plan->tensor[i], d);
	FILE *out = g->out;

	fprintf(out, "<tr><td class=\"n\">%" PRId64 "<td><i class=\"%s\">"
	        "</i> %s<td>", g->plan->tensor[i].bytes, what, what);
	page_title(g, i);
	if (d == D_KEEP || d == D_RECOMPUTE || d == D_OFFLOAD) {
		fputs("; ", out);
		report_reason(g->plan, g->place, i, d, markup_text, out);
	}
	putc('\n', out);
}

static void
put_largest(const struct page *g)
{
	const Plan *plan = g->plan;
	struct sized_place *place = arena_array(g->pass->keep,
		(size_t)plan->ntensor + 1, sizeof *place);
	FILE *out = g->out;
	int64_t n = 0;

	for (int64_t i = 0; i < plan->ntensor; i++)
		if (!plan->tensor[i].resident && plan->tensor[i].alias_of < 0)
			place[n++] = (struct sized_place){
				i, plan->tensor[i].bytes };
	qsort(place, (size_t)n, sizeof *place, by_place_bytes);
	fputs("<h2>Largest values in the arena</h2>\n<table id=\"largest\">\n"
	      "<tr><th>bytes<th>kind<th>value\n", out);
	for (int64_t i = 0; i < n && i < LARGEST; i++)
		put_large(g, place[i].id);
	fputs("</table>\n", out);
}

/* ---- the page ---- */

static void
put_plan_head(const struct page *g, const struct report_source *of)
{
	FILE *out = g->out;

	markup_page(path_base(of->model), "memory plan", style, out);
	fputs("<p><code>ckc", out);
	for (int i = 0; i < of->nflag; i++) {
		putc(' ', out);
		markup_text(of->flag[i], out);
	}
	fputs("</code>\n", out);
}

void
page_print(const Pass *p, const Plan *plan, const struct report_source *of,
           FILE *out)
{
	struct page g = { p, plan, report_places(p, plan), out };

	put_plan_head(&g, of);
	put_facts(&g);
	fputs("<h2>The arena over the schedule</h2>\n<p>", out);
	for (size_t i = 0; i < sizeof page_key / sizeof *page_key; i++)
		fprintf(out, "<span><i class=\"%s\"></i> %s</span>\n",
		        page_key[i].name, page_key[i].text);
	page_arena(&g);
	put_budget_table(&g);
	put_layer_table(&g);
	put_largest(&g);
	markup_page_end(out);
}
