/* The parts of --report's page. */
#ifndef PASSES_REPORT_PLAN_PAGE_H
#define PASSES_REPORT_PLAN_PAGE_H

#include "passes/report/report.h"

struct page {
	const Pass *pass;
	const Plan *plan;
	const struct report_place *place;       /* by tensor that owns one */
	FILE *out;
};

/* ---- page_arena.c ---- */

/* Its class in the page's style: what it is to memory; of an activation, what
 * was decided about it. */
const char *page_class(const struct plan_tensor *, Decision);
/* Name, shape, bytes and steps of tensor i, escaped. */
void page_title(const struct page *, int64_t i);
/* Steps to the right, bytes of the arena upwards, a rectangle for each tensor;
 * those that lie in another's place stand above it. */
void page_arena(const struct page *);

#endif
