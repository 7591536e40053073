/* Suggest --tp if a budget is too small. */
#ifndef PASSES_SUGGEST_TP_H
#define PASSES_SUGGEST_TP_H

#include "passes/passes.h"

/* run.c: the table from this pass, which has that number, to stop_after. */
bool run_from(Pass *, Graph *, const struct pass_info *, int number,
              const char *stop_after, const struct dump_request *);

/* suggest_tp.c: whether a refusal of this graph, which is whole, may be
 * followed by an offer. */
bool may_suggest_tp(const Pass *, const Graph *);
/* A further line of a refusal: the least --tp that fits the budget, if one of
 * 2, 4, 8 does.  `whole`: the graph as it was before pass replicate. */
void suggest_tp(const Pass *, const Graph *whole, const struct pass_info *);

#endif
