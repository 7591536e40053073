/* An SVG chart of one or two series of several runs over their steps. */
#ifndef RUNTIME_CKRUN_RUN_REPORT_CHART_H
#define RUNTIME_CKRUN_RUN_REPORT_CHART_H

#include <stdio.h>

#include "runtime/ckrun/run_report/history.h"

enum {
	CHART_POINTS = 2000,            /* of a curve, at most */
	CHART_SMOOTH = 40               /* rows from which on means are drawn */
};

struct chart {
	const char *title;
	enum series s;
	int beside;                     /* another series, of --valid; -1 */
	double factor;                  /* what is drawn of a value */
	bool may_log;                   /* where it spans a power of ten */
	bool mean;                      /* smoothed, too */
};

/* Rows on either side of one that its mean is taken over. */
size_t chart_half(size_t rows);
/* Of run i, as #rrggbb. */
const char *chart_color(size_t i);
/* Nothing is drawn where no run has a finite value.  False: no memory. */
bool chart_put(const struct chart *, const struct history *, size_t runs,
               FILE *);

#endif
