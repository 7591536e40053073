/* Room explore: search over pipelines.  Forms of the graph that the passes
 * alone cannot choose among are planned one after the other, and the best one
 * is kept.
 *
 * in      the graph of a model, the options
 * out     the graph after all passes, and what they left behind (results.h)
 * must not know which tool asks, files
 *
 *     bind | fold .. loss | precision .. autodiff | optim .. plan | overlap ..
 *
 *     fold .. plan      once more in halves            (halves.c)
 *     fold .. loss      once more with other samples   (other_batch.c)
 *     optim .. plan     once more with less memory     (variants.c)
 *     precision ..      once for each stage of ZeRO    (choose_zero.c)
 *     precision ..      once more for more ranks       (suggest_tp.c)
 *     precision ..      once more without training     (evaluation_program.c)
 */
#ifndef PASSES_EXPLORE_EXPLORE_H
#define PASSES_EXPLORE_EXPLORE_H

#include "passes/passes.h"

/* Run the whole table, from where the graph stands, up to and including
 * stop_after (NULL: to the end), with the searches.  False after a diagnostic,
 * which "interrupted" is one of. */
bool explore(Pass *, Graph *, const char *stop_after,
             const struct dump_request *);
/* The part of it up to and including pass loss; a copy of the graph goes on
 * with trial_plan.  False after a diagnostic, or if the graph was beyond. */
bool explore_to_loss(Pass *, Graph *);

#endif
