/* Axes of SVG pictures. */
#include "runtime/support/plot.h"

#include <math.h>

double
plot_x(const struct plot *p, double x)
{
	return p->left + (p->width - p->left - p->right) * (x - p->x0)
		/ (p->x1 - p->x0);
}

double
plot_y(const struct plot *p, double y)
{
	return p->height - p->bottom - (p->height - p->top - p->bottom)
		* (y - p->y0) / (p->y1 - p->y0);
}

/* Distance of ticks: 1, 2 or 5 times a power of ten, so that span > 0 has few
 * enough. */
static double
tick_step(double span)
{
	double step = pow(10, floor(log10(span / PLOT_TICKS)));
	double n = span / step;

	return n <= PLOT_TICKS ? step : n <= 2 * PLOT_TICKS ? 2 * step
		: n <= 5 * PLOT_TICKS ? 5 * step : 10 * step;
}

void
plot_tick_y(const struct plot *p, double y, const char *label)
{
	double at = plot_y(p, y);

	fprintf(p->out, "<path d=\"M%d %.1fH%d\" stroke=\"#e4e4e4\"/><text "
	        "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
	        p->left, at, p->width - p->right, p->left - 6, at + 4, label);
}

void
plot_ticks_x(const struct plot *p, double unit, double least, bool lines)
{
	double step = fmax(tick_step((p->x1 - p->x0) / unit), least);
	int bottom = p->height - p->bottom;

	for (double k = ceil(p->x0 / unit / step); k * step <= p->x1 / unit;
	     k++) {
		double at = plot_x(p, k * step * unit);

		if (lines)
			fprintf(p->out, "<path d=\"M%.1f %dV%d\" stroke="
			        "\"#e4e4e4\"/>", at, p->top, bottom);
		fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor="
		        "\"middle\">%.10g</text>\n", at, bottom + 16,
		        k * step + 0.0);
	}
}

void
plot_ticks_y(const struct plot *p, int digits)
{
	double step = tick_step(p->y1 - p->y0);
	char text[24];

	for (double k = ceil(p->y0 / step); k * step <= p->y1; k++) {
		snprintf(text, sizeof(text), "%.*g", digits, k * step + 0.0);
		plot_tick_y(p, k * step, text);
	}
}

void
plot_axes(const struct plot *p)
{
	fprintf(p->out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke="
	        "\"#333333\"/>\n", p->left, p->top, p->height - p->bottom,
	        p->width - p->right);
}
