/* Room evaluation: what the loss and the outputs of a data set are.
 *
 * in      the forward graph that training starts from
 * out     the graph that evaluates; the loss of a data set as a formula over
 *         its batches; which outputs have a row for each sample
 * must not know the program's memory, and how batches are read
 */
#ifndef PASSES_EVALUATION_EVALUATION_H
#define PASSES_EVALUATION_EVALUATION_H

#include "passes/pass.h"

/* evaluate.c: pass loss for an evaluation graph, the p->forward of another
 * pass: outputs, no dropout, running statistics instead of the batch's.  Takes
 * the options of a graph without training. */
bool evaluation_graph(Pass *, Graph *);

/* loss_formula.c: the loss of a data set as a formula over its batches, if it
 * is independent of their size; operands become outputs.  False after a
 * diagnostic. */
bool loss_formula_find(Pass *, Graph *g, struct loss_formula *);
/* The same for a graph whose only output is the loss. */
void loss_formula_of_loss_alone(struct loss_formula *);
/* The rows of an output, without its name. */
struct output_rows loss_formula_find_rows(Pass *, const Graph *, ValId output);

#endif
