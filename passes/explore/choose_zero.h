/* --zero auto. */
#ifndef PASSES_EXPLORE_CHOOSE_ZERO_H
#define PASSES_EXPLORE_CHOOSE_ZERO_H

#include "passes/pass.h"

/* Plan all stages of ZeRO for the graph, which has been through pass loss, and
 * set the least one whose step is fastest within the budget, or without one
 * within the device's memory; if none fits, the one that needs least.  A note
 * says so. */
void choose_zero(Pass *, const Graph *);

#endif
