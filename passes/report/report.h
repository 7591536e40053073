/* Room report: reads the plan, changes nothing.
 *
 * in      a plan and what the passes left
 * out     tables, JSON and pictures
 * unaware of how anything was decided
 */
#ifndef PASSES_REPORT_REPORT_H
#define PASSES_REPORT_REPORT_H

#include "passes/pass.h"

/* False, and nothing is written: the plan was not replayed. */
bool plan_write_json(const Plan *, FILE *);
/* "12.6 MB": three digits and a unit. */
const char *report_bytes(char buf[24], double);
void plan_print_table(const Pass *, const Plan *, FILE *);   /* --dump=plan */
void plan_print_memory(const Pass *, const Plan *, FILE *);  /* --dump=memory */
void plan_print_shard(const Pass *, const Plan *, FILE *);   /* --dump=shard */
/* A line or more about one tensor; nothing if there are no ranks. */
void plan_explain_split(const Pass *, const Plan *, int64_t id, FILE *);
bool plan_explain(const Pass *, const Plan *, const char *value, FILE *);

#endif
