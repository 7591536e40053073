/* Room evaluate: the loss and the metrics of a data set, from those of its
 * batches.
 *
 * in      evaluations of batches by stepping; the library's formula of the loss
 * out     a loss, accuracy, perplexity
 * must not know   data sets, files
 */
#ifndef RUNTIME_EVALUATE_EVALUATE_H
#define RUNTIME_EVALUATE_EVALUATE_H

#include "runtime/stepping/stepping.h"

struct evaluation;

/* NULL: no memory. */
struct evaluation *evaluation_open(struct world *, struct stepping *);
void evaluation_close(struct evaluation *);

/* As ckr_score_begin, ckr_score_add and ckr_score_end, for an open model and
 * between steps. */
void evaluation_begin(struct evaluation *);
ckr_status evaluation_add(struct evaluation *, double times);
ckr_status evaluation_end(struct evaluation *, struct ckr_score *);

#endif
