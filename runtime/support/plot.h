/* Axes of SVG pictures: where a value lies, ticks with labels. */
#ifndef RUNTIME_SUPPORT_PLOT_H
#define RUNTIME_SUPPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { PLOT_TICKS = 6 };                /* of an axis, at most */

struct plot {
	int width, height;              /* of the picture */
	int left, right, top, bottom;   /* margins around what is drawn */
	double x0, x1, y0, y1;          /* values at the ends of the axes */
	FILE *out;
};

double plot_x(const struct plot *, double x);
double plot_y(const struct plot *, double y);
/* A line across the picture at y, with a label at its left. */
void plot_tick_y(const struct plot *, double y, const char *label);
/* Numbers below the picture, each `unit` of the axis worth, at distances of at
 * least `least`; lines: across the picture, too. */
void plot_ticks_x(const struct plot *, double unit, double least, bool lines);
/* Lines at round numbers of the y axis, with so many digits. */
void plot_ticks_y(const struct plot *, int digits);
/* The axes themselves. */
void plot_axes(const struct plot *);

#endif
