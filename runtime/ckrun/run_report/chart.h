/* An SVG chart of one or two series of several runs over their steps. */
#ifndef RUNTIME_CKRUN_RUN_REPORT_CHART_H
#define RUNTIME_CKRUN_RUN_REPORT_CHART_H

#include <stdio.h>

#include "runtime/ckrun/run_report/history.h"

enum {
	CHART_POINTS = 2000,            /* points of a curve, at most */
	CHART_SMOOTH = 40               /* rows of a smoothed curve, at least */
};

struct chart {
	const char *title;
	enum series s;
	int beside;                     /* second series, of --valid; or -1 */
	double factor;                  /* multiplies values */
	bool may_log;                   /* logarithmic axis if values span a
	                                 * power of ten */
	bool mean;                      /* also draw a smoothed curve */
};

/* Rows on either side of a row over which its mean is taken. */
size_t chart_half(size_t rows);
/* Colour of run i, as #rrggbb. */
const char *chart_color(size_t i);
/* Write the chart, or nothing if no run has a finite value.  False: no memory.
 */
bool chart_put(const struct chart *, const struct history *, size_t runs,
               FILE *);

#endif
