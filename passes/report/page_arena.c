/* Tensors on the page: their classes and names, and the arena over the schedule
 * as a picture of them. */
#include "passes/report/plan_page.h"
#include "runtime/support/markup.h"
#include "runtime/support/number.h"
#include "runtime/support/plot.h"

#include <inttypes.h>

enum {
	WIDTH = 1080, HEIGHT = 460, LEFT = 70, BOTTOM = 26, TOP = 18,
	MANY = 20000,                   /* places: small ones are left out */
	SMALL = 4000                    /* ... below this part of the arena */
};

const char *
page_class(const struct plan_tensor *t, Decision d)
{
	switch (t->kind) {
	case K_ACTIVATION:
		return d == D_KEEP ? "keep" : d == D_RECOMPUTE ? "drop"
		       : "free";
	case K_RECOMPUTED:
	case K_TRANSFERRED:
		return "copy";
	case K_ADJOINT:
		return "adjoint";
	case K_GRAD:
		return "grad";
	case K_WORKSPACE:
		return "work";
	default:
		return "other";
	}
}

void
page_title(const struct page *g, int64_t i)
{
	const struct plan_tensor *t = &g->plan->tensor[i];
	FILE *out = g->out;
	char buf[160];

	markup_text(t->onnx ? t->onnx : t->name, out);
	if (t->kind != K_WORKSPACE)
		fprintf(out, " %s", shape_text(buf, sizeof buf, t->dt,
		                               &t->shape));
	fprintf(out, ": %s, instructions %" PRId64 " to %" PRId64,
	        number_bytes(buf, (double)t->bytes), t->first, t->last);
}

/* ---- the arena ---- */

/* First step behind those of the phase and of what stands before it. */
static int64_t
phase_end(const Plan *plan, Phase phase)
{
	int64_t end = 0;

	for (int64_t i = 0; i < plan->nstep; i++)
		if (plan->step[i].phase == phase)
			end = i + 1;
	return end;
}

static void
put_phase(const struct plot *p, int64_t from, int64_t to, const char *name)
{
	double x = plot_x(p, (double)from);

	if (to > from)
		fprintf(p->out, "<path d=\"M%.2f %dV%d\" stroke=\"#111\" "
		        "stroke-dasharray=\"3 3\"/><text x=\"%.2f\" y=\"%d\">"
		        "%s</text>\n", x, TOP, HEIGHT - BOTTOM, x + 3,
		        HEIGHT - 8, name);
}

static void
put_phases(const struct plot *p, const Plan *plan)
{
	int64_t forward = phase_end(plan, PH_FORWARD);
	int64_t backward = phase_end(plan, PH_BACKWARD);

	put_phase(p, 0, forward, "forward");
	put_phase(p, forward, backward, "backward");
	put_phase(p, backward > forward ? backward : forward, plan->nstep,
	          "update");
}

static void
put_place(const struct page *g, int64_t i, const struct plot *p)
{
	const struct plan_tensor *t = &g->plan->tensor[i];
	double x = plot_x(p, (double)t->first);
	double y = plot_y(p, (double)(t->offset + t->bytes));
	FILE *out = g->out;

	fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
	        "height=\"%.2f\"><title>", page_class(t, t->decision),
	        x, y, plot_x(p, (double)t->last + 1) - x,
	        plot_y(p, (double)t->offset) - y);
	page_title(g, i);
	fputs("</title></rect>\n", out);
}

static bool
has_bytes(const struct plan_tensor *t)
{
	return !t->resident && t->bytes;
}

void
page_arena(const struct page *g)
{
	const Plan *plan = g->plan;
	FILE *out = g->out;
	struct plot p = { .width = WIDTH, .height = HEIGHT, .left = LEFT,
	                  .top = TOP, .bottom = BOTTOM,
	                  .x1 = (double)plan->nstep,
	                  .y1 = (double)plan->sum.arena, .out = out };
	int64_t n = 0, small = 0;
	char buf[24];

	if (!plan->nstep || !plan->sum.arena) {
		fputs("<p>The arena is empty.\n", out);
		return;
	}
	for (int64_t i = 0; i < plan->ntensor; i++)
		n += has_bytes(&plan->tensor[i]);
	fprintf(out, "<div><svg id=\"arena\" width=\"%d\" height=\"%d\" "
	        "viewBox=\"0 0 %d %d\" role=\"img\" font-size=\"11\">\n<title>"
	        "bytes of the arena over %" PRId64 " instructions</title>\n",
	        WIDTH, HEIGHT, WIDTH, HEIGHT, plan->nstep);
	for (int i = 0; i <= 4; i++)
		plot_tick_y(&p, p.y1 * i / 4, number_bytes(buf, p.y1 * i / 4));
	fputs("<g stroke=\"#fff\" stroke-width=\"0.2\">\n", out);
	for (int64_t i = 0; i < plan->ntensor; i++) {
		if (!has_bytes(&plan->tensor[i]))
			continue;
		if (n > MANY && plan->tensor[i].bytes
		    < plan->sum.arena / SMALL)
			small++;
		else
			put_place(g, i, &p);
	}
	fputs("</g>\n", out);
	put_phases(&p, plan);
	fputs("</svg></div>\n", out);
	if (small)
		fprintf(out, "<p>%" PRId64 " tensors smaller than 1/%d of the "
		        "arena are not shown.\n", small, SMALL);
}
