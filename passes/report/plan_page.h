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

/* Its class in the page's style: what it is to memory. */
const char *page_class(const struct plan_tensor *);
/* Name, shape, bytes and steps of tensor i, escaped. */
void page_title(const struct page *, int64_t i);
/* page_arena.c: steps to the right, bytes of the arena upwards, a rectangle
 * for each tensor; those that lie in another's place stand above it. */
void page_arena(const struct page *);

#endif
