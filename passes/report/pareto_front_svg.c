/* The Pareto front of time against budget as a picture.
 *
 * what    one SVG: memory budget to the right, extra step time upwards; the
 *         curve as steps, its lower bound, the presets as labelled points
 * note    Nothing but shapes and text; what comes from outside is escaped.
 */
#include "passes/planner/pareto_front.h"
#include "runtime/support/markup.h"
#include "runtime/support/plot.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 760, HEIGHT = 460, LEFT = 76, RIGHT = 24, TOP = 56,
	BOTTOM = 64, LABELS = 16
};

/* Budget in bytes against extra time in %. */
struct budget_plot {
	struct plot p;
	double unit;                    /* bytes of the axis */
	const char *unit_name;
};

struct label {
	double x, y, w;                 /* left, middle, width */
};

/* ---- the frame ---- */

static double
extra_percent(const struct pareto_point *q)
{
	return 100 * pareto_overhead(q, q->step_sec);
}

static double
bound_extra_percent(const struct pareto_point *q)
{
	return 100 * fmax(pareto_overhead(q, q->bound_sec), 0);
}

static void
choose_unit(struct budget_plot *b)
{
	static const char *const name[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int i = 0;

	b->unit = 1;
	while (i < 4 && b->p.x1 / b->unit >= 4096) {
		b->unit *= 1024;
		i++;
	}
	b->unit_name = name[i];
}

static void
extend_range(struct plot *p, const struct pareto_point *q, int n)
{
	for (int i = 0; i < n; i++) {
		p->x0 = fmin(p->x0, (double)q[i].budget);
		p->x1 = fmax(p->x1, (double)q[i].budget);
		p->y1 = fmax(p->y1, extra_percent(&q[i]));
	}
}

static struct budget_plot
make_budget_plot(const struct pareto_front *c, FILE *out)
{
	struct budget_plot b = { .p = {
		WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM,
		.x0 = (double)c->whole, .x1 = (double)c->whole, .out = out
	} };
	struct plot *p = &b.p;
	double margin;

	extend_range(p, c->point, c->n);
	extend_range(p, c->preset, c->npreset);
	margin = fmax((p->x1 - p->x0) / 25, 1);
	p->x0 = fmax(p->x0 - margin, 0);
	p->x1 += margin;
	p->y1 = p->y1 > 0 ? p->y1 * 1.08 : 1;
	choose_unit(&b);
	return b;
}

static void
put_plot_axes(const struct budget_plot *b)
{
	FILE *out = b->p.out;

	plot_ticks_x(&b->p, b->unit, 0, true);
	plot_ticks_y(&b->p, 10);
	plot_axes(&b->p);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">memory "
	        "budget, %s</text>\n", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 20,
	        b->unit_name);
	fprintf(out, "<text x=\"22\" y=\"%d\" text-anchor=\"middle\" "
	        "transform=\"rotate(-90 22 %d)\">extra step time, %%</text>\n",
	        (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2);
}

/* ---- what is shown ---- */

/* From the least budget to the right: a point's time holds up to the next.  If
 * not in one piece, there is a gap where the bound's class changes. */
static void
put_steps(const struct plot *p, const struct pareto_front *c, bool whole,
          double (*value)(const struct pareto_point *), const char *style)
{
	for (int i = 0; i < c->n; i++) {
		double y = plot_y(p, value(&c->point[i]));

		double x = plot_x(p, (double)c->point[i].budget);

		if (i == 0)
			fprintf(p->out, "<path d=\"M%.1f %.1f", x, y);
		else if (whole || !strcmp(c->point[i].bound_class,
		                          c->point[i - 1].bound_class))
			fprintf(p->out, "H%.1fV%.1f", x, y);
		else
			fprintf(p->out, "H%.1fM%.1f %.1f", x, x, y);
	}
	if (c->n)
		fprintf(p->out, "H%d\" fill=\"none\" %s/>\n", WIDTH - RIGHT,
		        style);
}

static bool
label_overlaps(const struct label *a, const struct label *placed, int n)
{
	for (int i = 0; i < n; i++)
		if (a->x < placed[i].x + placed[i].w
		    && placed[i].x < a->x + a->w
		    && fabs(a->y - placed[i].y) < 14)
			return true;
	return a->x < LEFT || a->x + a->w > WIDTH - RIGHT
		|| a->y < TOP || a->y > HEIGHT - BOTTOM - 8;
}

/* Where a point's name goes: right or left of it, or a little higher. */
static struct label
find_place(double x, double y, double w, const struct label *placed, int n)
{
	struct label a = { x + 9, y, w };

	for (int i = 0; i < 12; i++) {
		a.x = i % 2 ? x - 9 - w : x + 9;
		a.y = y - 7 * (i / 2);
		if (!label_overlaps(&a, placed, n))
			break;
	}
	return a;
}

static void
put_presets(const struct plot *p, const struct pareto_front *c)
{
	struct label placed[LABELS];
	int n = 0;

	for (int i = 0; i < c->npreset; i++) {
		const struct pareto_point *q = &c->preset[i];
		double x = plot_x(p, (double)q->budget);
		double y = plot_y(p, extra_percent(q));
		double w = 6.4 * (double)strlen(q->name);
		struct label a = find_place(x, y, w, placed, n);

		if (n < LABELS)
			placed[n++] = a;
		fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" "
		        "fill=\"#c2410c\" stroke=\"#ffffff\"/>\n"
		        "<text x=\"%.1f\" y=\"%.1f\" fill=\"#9a3412\">%s"
		        "</text>\n", x, y, a.x, a.y + 4, q->name);
	}
}

static void
put_legend(const struct plot *p, bool bound)
{
	fprintf(p->out, "<path d=\"M%d 44h22\" stroke=\"#1d4ed8\" "
	        "stroke-width=\"2\"/>\n<text x=\"%d\" y=\"48\">ckc's plans"
	        "</text>\n<circle cx=\"%d\" cy=\"44\" r=\"4.5\" fill="
	        "\"#c2410c\"/>\n<text x=\"%d\" y=\"48\">presets</text>\n",
	        LEFT, LEFT + 28, LEFT + 128, LEFT + 140);
	if (bound)
		fprintf(p->out, "<path d=\"M%d 44h22\" stroke=\"#6b7280\" "
		        "stroke-dasharray=\"4 3\"/>\n<text x=\"%d\" y=\"48\">"
		        "lower bound</text>\n", LEFT + 210, LEFT + 238);
}

void
pareto_front_svg(const Pass *pass, const char *title, FILE *out)
{
	const struct pareto_front *c = pass->planned.pareto_front;
	struct budget_plot b = make_budget_plot(c, out);
	const struct plot *p = &b.p;
	bool bound = false;

	for (int i = 0; i < c->n; i++)
		bound |= bound_extra_percent(&c->point[i]) > 0;
	markup_picture(title, WIDTH, HEIGHT, out);
	fprintf(out, "<rect width=\"%d\" height=\"%d\" fill="
	        "\"#ffffff\"/>\n<text x=\"%d\" y=\"26\" font-size=\"15\" "
	        "font-weight=\"bold\">", WIDTH, HEIGHT, LEFT);
	markup_text(title, out);
	fputs("</text>\n", out);
	put_plot_axes(&b);
	if (bound)
		put_steps(p, c, false, bound_extra_percent,
		          "stroke=\"#6b7280\" stroke-dasharray=\"4 3\"");
	put_steps(p, c, true, extra_percent,
	          "stroke=\"#1d4ed8\" stroke-width=\"2\"");
	for (int i = 0; i < c->n; i++)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill="
		        "\"#1d4ed8\"/>\n",
		        plot_x(p, (double)c->point[i].budget),
		        plot_y(p, extra_percent(&c->point[i])));
	put_presets(p, c);
	put_legend(p, bound);
	fputs("</svg>\n", out);
}
