/* SVG charts of curves. */
#include "runtime/ckrun/run_report/chart.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/support/markup.h"
#include "runtime/support/plot.h"

enum {
	WIDTH = 540, HEIGHT = 300, LEFT = 62, RIGHT = 14, TOP = 36,
	BOTTOM = 34
};

struct chart_frame {
	struct plot p;                  /* y as drawn: of a logarithm, too */
	bool any, log;
	double factor;
};

/* A series of a run, rows that have it. */
struct run_curve {
	const struct history *h;
	enum series s;
	size_t n;
	double *x, *y;                  /* y: NaN where it is no number */
};

size_t
chart_half(size_t rows)
{
	return rows < CHART_SMOOTH ? 0 : rows / (2 * CHART_SMOOTH) + 1;
}

const char *
chart_color(size_t i)
{
	static const char *const color[] = {
		"#2563eb", "#f59e0b", "#16a34a", "#7c3aed", "#0f766e",
		"#db2777", "#475569", "#c2410c"
	};

	return color[i % (sizeof(color) / sizeof(*color))];
}

/* A run alone has another colour for --valid. */
static const char *
valid_color(size_t i, size_t runs)
{
	return chart_color(runs == 1 ? 7 : i);
}

/* ---- a curve ---- */

/* False: no memory. */
static bool
curve_make(struct run_curve *c, const struct history *h, enum series s)
{
	*c = (struct run_curve){ .h = h, .s = s };
	c->x = malloc(2 * h->n * sizeof(*c->x));
	if (!c->x)
		return false;
	c->y = c->x + h->n;
	for (size_t i = 0; i < h->n; i++) {
		if (!history_has(h, i, s))
			continue;
		c->x[c->n] = h->row[i].step;
		c->y[c->n++] = h->row[i].v[s];
	}
	return true;
}

/* Over what lies around a row that has a number; from running sums a single
 * large value would take the digits of all behind it. */
static double
mean_at(const struct run_curve *c, size_t i, size_t half)
{
	size_t from = i > half ? i - half : 0;
	size_t to = i + half < c->n ? i + half + 1 : c->n, n = 0;
	double sum = 0;

	for (size_t k = from; k < to; k++) {
		if (isnan(c->y[k]))
			continue;
		sum += c->y[k];
		n++;
	}
	return sum / (double)n;
}

/* ---- the frame ---- */

static void
extend_range(struct chart_frame *f, const struct history *h, enum series s)
{
	for (size_t i = 0; i < h->n; i++) {
		double y = h->row[i].v[s] * f->factor;

		if (!history_has(h, i, s) || isnan(y))
			continue;
		f->p.y0 = f->any ? fmin(f->p.y0, y) : y;
		f->p.y1 = f->any ? fmax(f->p.y1, y) : y;
		f->any = true;
	}
}

/* Some room at the ends, and never none. */
static void
open_up(double *from, double *to, double share)
{
	double span = *to - *from;

	if (!(span > 0))
		span = fmax(fabs(*from) / 4, 1e-12);
	*from -= share * span;
	*to += share * span;
}

static struct chart_frame
fit_frame(const struct chart *c, const struct history *h, size_t runs,
          FILE *out)
{
	struct chart_frame f = { .p = {
		WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM,
		.x0 = h->row->step, .x1 = h->row->step, .out = out
	}, .factor = c->factor };

	for (size_t i = 0; i < runs; i++) {
		f.p.x0 = fmin(f.p.x0, h[i].row->step);
		f.p.x1 = fmax(f.p.x1, h[i].row[h[i].n - 1].step);
		extend_range(&f, &h[i], c->s);
		if (c->beside >= 0)
			extend_range(&f, &h[i], (enum series)c->beside);
	}
	f.log = c->may_log && f.p.y0 > 0 && f.p.y1 >= 10 * f.p.y0;
	if (f.log) {
		f.p.y0 = log10(f.p.y0);
		f.p.y1 = log10(f.p.y1);
	}
	if (f.p.x0 == f.p.x1)
		open_up(&f.p.x0, &f.p.x1, 1);
	open_up(&f.p.y0, &f.p.y1, f.p.y0 == f.p.y1 ? 1 : 0.05);
	return f;
}

static double
chart_x(const struct chart_frame *f, double step)
{
	return plot_x(&f->p, step);
}

static double
chart_y(const struct chart_frame *f, double value)
{
	double y = value * f->factor;

	return plot_y(&f->p, f->log ? log10(y) : y);
}

/* Powers of ten, and if those are few, 2 and 5 times as much. */
static void
put_log_ticks(const struct chart_frame *f)
{
	double every = ceil((f->p.y1 - f->p.y0) / PLOT_TICKS);
	bool few = f->p.y1 - f->p.y0 < 2.5;

	for (double p = floor(f->p.y0); p <= f->p.y1; p += every)
		for (int i = 0; i < (few ? 3 : 1); i++) {
			double value = pow(10, p) * (i == 2 ? 5 : 1 + i);
			double y = log10(value);
			char text[24];

			snprintf(text, sizeof(text), "%.4g", value);
			if (y >= f->p.y0 && y <= f->p.y1)
				plot_tick_y(&f->p, y, text);
		}
}

static void
put_chart_axes(const struct chart_frame *f)
{
	if (f->log)
		put_log_ticks(f);
	else
		plot_ticks_y(&f->p, 4);
	plot_ticks_x(&f->p, 1, 1, false);
	plot_axes(&f->p);
	fprintf(f->p.out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step"
	        "</text>\n", WIDTH - RIGHT, HEIGHT - 4);
}

/* ---- lines ---- */

struct pen {
	const struct chart_frame *f;
	const char *attributes;
	char color[8];
	bool down;
};

static void
pen_up(struct pen *p)
{
	if (p->down)
		fputs("\"/>\n", p->f->p.out);
	p->down = false;
}

static void
pen_to(struct pen *p, double step, double value)
{
	if (!p->down)
		fprintf(p->f->p.out, "<polyline fill=\"none\" stroke=\"%s\" %s "
		        "points=\"", p->color, p->attributes);
	fprintf(p->f->p.out, "%s%.2f,%.2f", p->down ? " " : "",
	        chart_x(p->f, step), chart_y(p->f, value));
	p->down = true;
}

static struct pen
make_pen(const struct chart_frame *f, const char *color, const char *attributes)
{
	struct pen p = { .f = f, .attributes = attributes };

	snprintf(p.color, sizeof(p.color), "%s", color);
	return p;
}

/* Rows that share a place in the picture: one if they are few. */
static size_t
points_per_place(const struct run_curve *c)
{
	return c->n <= CHART_POINTS ? 1
	       : (c->n + CHART_POINTS / 2 - 1) / (CHART_POINTS / 2);
}

/* The least and the largest of rows from..to-1, in their order. */
static void
put_extremes(struct pen *p, const struct run_curve *c, size_t from, size_t to)
{
	size_t low = from, high = from;

	for (size_t i = from; i < to; i++) {
		if (c->y[i] < c->y[low])
			low = i;
		if (c->y[i] > c->y[high])
			high = i;
	}
	pen_to(p, c->x[low < high ? low : high], c->y[low < high ? low : high]);
	if (low != high)
		pen_to(p, c->x[low < high ? high : low],
		       c->y[low < high ? high : low]);
}

/* All rows; where one is no number there is a gap. */
static void
put_all_points(struct pen *p, const struct run_curve *c)
{
	size_t share = points_per_place(c), from = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (isnan(c->y[i])) {
			if (from < i)
				put_extremes(p, c, from, i);
			pen_up(p);
			from = i + 1;
		} else if (i + 1 - from == share || i + 1 == c->n) {
			put_extremes(p, c, from, i + 1);
			from = i + 1;
		}
	}
	pen_up(p);
}

static void
put_means(struct pen *p, const struct run_curve *c)
{
	size_t half = chart_half(c->n), share = points_per_place(c);

	for (size_t i = 0; i < c->n; i += share) {
		if (isnan(c->y[i]))
			pen_up(p);
		else
			pen_to(p, c->x[i], mean_at(c, i, half));
	}
	pen_up(p);
}

static void
put_marks(const struct chart_frame *f, const struct run_curve *c,
          const char *color)
{
	if (c->n > CHART_POINTS / 20)
		return;
	for (size_t i = 0; i < c->n; i++)
		if (!isnan(c->y[i]))
			fprintf(f->p.out, "<circle cx=\"%.2f\" cy=\"%.2f\" "
			        "r=\"2.5\" fill=\"%s\"><title>step %.0f: %.6g"
			        "</title></circle>\n", chart_x(f, c->x[i]),
			        chart_y(f, c->y[i]), color, c->x[i],
			        c->y[i] * f->factor);
}

/* On the axis, a mark for each stretch of rows without a number. */
static void
put_holes(const struct chart_frame *f, const struct run_curve *c)
{
	for (size_t i = 0, from; i < c->n; i++) {
		if (!isnan(c->y[i]))
			continue;
		for (from = i; i + 1 < c->n && isnan(c->y[i + 1]); i++)
			;
		fprintf(f->p.out, "<path class=\"hole\" d=\"M%.2f %dv-8\" "
		        "stroke=\"#dc2626\" stroke-width=\"2\"><title>not a "
		        "number: steps %.0f to %.0f</title></path>\n",
		        chart_x(f, c->x[from]), HEIGHT - BOTTOM, c->x[from],
		        c->x[i]);
	}
}

static bool
put_run_curve(const struct chart *c, const struct chart_frame *f,
              const struct history *h, size_t runs, size_t i, bool beside)
{
	struct run_curve curve;
	bool mean;
	struct pen pen;

	if (!curve_make(&curve, &h[i], beside ? (enum series)c->beside : c->s))
		return false;
	mean = c->mean && !beside && chart_half(curve.n);
	pen = make_pen(f, beside ? valid_color(i, runs) : chart_color(i),
	               beside ? "class=\"valid\" stroke-dasharray=\"5 3\""
	               : mean ? "class=\"rows\" stroke-opacity=\"0.35\""
	               : "class=\"rows\" stroke-width=\"1.5\"");
	put_all_points(&pen, &curve);
	pen.attributes = "class=\"mean\" stroke-width=\"2\"";
	if (mean)
		put_means(&pen, &curve);
	else
		put_marks(f, &curve, pen.color);
	put_holes(f, &curve);
	free(curve.x);
	return true;
}

bool
chart_put(const struct chart *c, const struct history *h, size_t runs,
          FILE *out)
{
	struct chart_frame f = fit_frame(c, h, runs, out);
	bool ok = true;

	if (!f.any)
		return true;
	markup_picture(c->title, WIDTH, HEIGHT, out);
	fprintf(out, "<text x=\"%d\" y=\"20\" font-weight=\"bold\">%s%s"
	        "</text>\n", LEFT, c->title, f.log ? " (logarithmic)" : "");
	put_chart_axes(&f);
	for (size_t i = 0; i < runs && ok; i++) {
		ok = put_run_curve(c, &f, h, runs, i, false);
		if (ok && c->beside >= 0)
			ok = put_run_curve(c, &f, h, runs, i, true);
	}
	fputs("</svg>\n", out);
	return ok;
}
