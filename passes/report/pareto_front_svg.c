/* The Pareto front of time against budget as a picture.
 *
 * what    one SVG: memory budget to the right, extra step time upwards; the
 *         curve as steps, its lower bound, the presets as labelled points
 * note    Nothing but shapes and text; what comes from outside is escaped.
 */
#include "passes/planner/pareto_front.h"
#include "runtime/support/markup.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 760, HEIGHT = 460, LEFT = 76, RIGHT = 24, TOP = 56,
	BOTTOM = 64, LABELS = 16, TICKS = 6
};

struct plot_frame {
	double x0, x1, y1;              /* budget, extra time in %; y from 0 */
	double unit;                    /* bytes of the axis */
	const char *unit_name;
	FILE *out;
};

struct label {
	double x, y, w;                 /* left, middle, width */
};

/* ---- the frame ---- */

static double
plot_x(const struct plot_frame *f, double bytes)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (bytes - f->x0)
		/ (f->x1 - f->x0);
}

static double
plot_y(const struct plot_frame *f, double pct)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * pct / f->y1;
}

static double
extra_percent(const struct pareto_point *q)
{
	double base = q->step_sec - q->recompute_sec;

	return base > 0 ? 100 * q->recompute_sec / base : 0;
}

static double
bound_extra_percent(const struct pareto_point *q)
{
	double base = q->step_sec - q->recompute_sec;

	return base > 0 ? 100 * fmax(q->bound_sec - base, 0) / base : 0;
}

static void
choose_unit(struct plot_frame *f)
{
	static const char *const name[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int i = 0;

	f->unit = 1;
	while (i < 4 && f->x1 / f->unit >= 4096) {
		f->unit *= 1024;
		i++;
	}
	f->unit_name = name[i];
}

static void
extend_range(struct plot_frame *f, const struct pareto_point *q, int n)
{
	for (int i = 0; i < n; i++) {
		f->x0 = fmin(f->x0, (double)q[i].budget);
		f->x1 = fmax(f->x1, (double)q[i].budget);
		f->y1 = fmax(f->y1, extra_percent(&q[i]));
	}
}

static struct plot_frame
make_plot_frame(const struct pareto_front *c, FILE *out)
{
	struct plot_frame f = { .x0 = (double)c->whole, .x1 = (double)c->whole,
	                        .out = out };
	double margin;

	extend_range(&f, c->point, c->n);
	extend_range(&f, c->preset, c->npreset);
	margin = fmax((f.x1 - f.x0) / 25, 1);
	f.x0 = fmax(f.x0 - margin, 0);
	f.x1 += margin;
	f.y1 = f.y1 > 0 ? f.y1 * 1.08 : 1;
	choose_unit(&f);
	return f;
}

static void
put_path(const struct plot_frame *f, double x1, double y1, double x2, double y2,
         const char *color)
{
	fprintf(f->out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\"/>\n",
	        x1, y1, x2, y2, color);
}

static void
put_plot_axes(const struct plot_frame *f)
{
	double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
	double step = markup_tick((f->x1 - f->x0) / f->unit, TICKS);

	for (double t = ceil(f->x0 / f->unit / step) * step;
	     t <= f->x1 / f->unit; t += step) {
		double x = plot_x(f, t * f->unit);

		put_path(f, x, TOP, x, bottom, "#e4e4e4");
		fprintf(f->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor="
		        "\"middle\">%.10g</text>\n", x, bottom + 18, t);
	}
	step = markup_tick(f->y1, TICKS);
	for (double t = 0; t <= f->y1; t += step) {
		double y = plot_y(f, t);

		put_path(f, LEFT, y, right, y, "#e4e4e4");
		fprintf(f->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\""
		        ">%.10g</text>\n", LEFT - 8, y + 4, t);
	}
	put_path(f, LEFT, bottom, right, bottom, "#333333");
	put_path(f, LEFT, TOP, LEFT, bottom, "#333333");
	fprintf(f->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">"
	        "memory budget, %s</text>\n", (LEFT + WIDTH - RIGHT) / 2,
	        HEIGHT - 20, f->unit_name);
	fprintf(f->out, "<text x=\"22\" y=\"%d\" text-anchor=\"middle\" "
	        "transform=\"rotate(-90 22 %d)\">extra step time, %%</text>\n",
	        (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2);
}

/* ---- what is shown ---- */

/* From the least budget to the right: a point's time holds up to the next.  If
 * not in one piece, there is a gap where the bound's class changes. */
static void
put_steps(const struct plot_frame *f, const struct pareto_front *c, bool whole,
          double (*value)(const struct pareto_point *), const char *style)
{
	for (int i = 0; i < c->n; i++) {
		double y = plot_y(f, value(&c->point[i]));

		double x = plot_x(f, (double)c->point[i].budget);

		if (i == 0)
			fprintf(f->out, "<path d=\"M%.1f %.1f", x, y);
		else if (whole || !strcmp(c->point[i].bound_class,
		                          c->point[i - 1].bound_class))
			fprintf(f->out, "H%.1fV%.1f", x, y);
		else
			fprintf(f->out, "H%.1fM%.1f %.1f", x, x, y);
	}
	if (c->n)
		fprintf(f->out, "H%d\" fill=\"none\" %s/>\n", WIDTH - RIGHT,
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
put_presets(const struct plot_frame *f, const struct pareto_front *c)
{
	struct label placed[LABELS];
	int n = 0;

	for (int i = 0; i < c->npreset; i++) {
		const struct pareto_point *q = &c->preset[i];
		double x = plot_x(f, (double)q->budget);
		double y = plot_y(f, extra_percent(q));
		double w = 6.4 * (double)strlen(q->name);
		struct label a = find_place(x, y, w, placed, n);

		if (n < LABELS)
			placed[n++] = a;
		fprintf(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" "
		        "fill=\"#c2410c\" stroke=\"#ffffff\"/>\n"
		        "<text x=\"%.1f\" y=\"%.1f\" fill=\"#9a3412\">%s"
		        "</text>\n", x, y, a.x, a.y + 4, q->name);
	}
}

static void
put_legend(const struct plot_frame *f, bool bound)
{
	fprintf(f->out, "<path d=\"M%d 44h22\" stroke=\"#1d4ed8\" "
	        "stroke-width=\"2\"/>\n<text x=\"%d\" y=\"48\">ckc's plans"
	        "</text>\n<circle cx=\"%d\" cy=\"44\" r=\"4.5\" fill="
	        "\"#c2410c\"/>\n<text x=\"%d\" y=\"48\">presets</text>\n",
	        LEFT, LEFT + 28, LEFT + 128, LEFT + 140);
	if (bound)
		fprintf(f->out, "<path d=\"M%d 44h22\" stroke=\"#6b7280\" "
		        "stroke-dasharray=\"4 3\"/>\n<text x=\"%d\" y=\"48\">"
		        "lower bound</text>\n", LEFT + 210, LEFT + 238);
}

void
pareto_front_svg(const Pass *p, const char *title, FILE *out)
{
	const struct pareto_front *c = p->planned.pareto_front;
	struct plot_frame f = make_plot_frame(c, out);
	bool bound = false;

	for (int i = 0; i < c->n; i++)
		bound |= bound_extra_percent(&c->point[i]) > 0;
	markup_picture(title, WIDTH, HEIGHT, out);
	fprintf(out, "<rect width=\"%d\" height=\"%d\" fill="
	        "\"#ffffff\"/>\n<text x=\"%d\" y=\"26\" font-size=\"15\" "
	        "font-weight=\"bold\">", WIDTH, HEIGHT, LEFT);
	markup_text(title, out);
	fputs("</text>\n", out);
	put_plot_axes(&f);
	if (bound)
		put_steps(&f, c, false, bound_extra_percent,
		          "stroke=\"#6b7280\" stroke-dasharray=\"4 3\"");
	put_steps(&f, c, true, extra_percent,
	          "stroke=\"#1d4ed8\" stroke-width=\"2\"");
	for (int i = 0; i < c->n; i++)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill="
		        "\"#1d4ed8\"/>\n",
		        plot_x(&f, (double)c->point[i].budget),
		        plot_y(&f, extra_percent(&c->point[i])));
	put_presets(&f, c);
	put_legend(&f, bound);
	fputs("</svg>\n", out);
}
