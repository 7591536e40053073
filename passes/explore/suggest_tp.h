/* Suggest --tp if a budget is too small. */
#ifndef PASSES_EXPLORE_SUGGEST_TP_H
#define PASSES_EXPLORE_SUGGEST_TP_H

#include "passes/passes.h"

/* Whether a refusal of this graph, which is whole, may be followed by a
 * suggestion. */
bool may_suggest_tp(const Pass *, const Graph *);
/* A further line of a refusal: the least --tp that fits the budget, if one of
 * 2, 4, 8 does.  `whole`: the graph as it was after pass loss. */
void suggest_tp(const Pass *, const Graph *whole);

#endif
