/* The stages of a pipeline, interpreted turn by turn in double precision: each
 * with all its ranks in lockstep, and between stages one message for each tag
 * on its way at most.
 *
 * From its forward turn to its backward turn, and from there to its weight turn
 * if there is one, a micro-batch has what its slot keeps and nothing else: other
 * values are not numbers in the meantime.
 */
#ifndef TESTS_REF_STAGES_H
#define TESTS_REF_STAGES_H

#include "passes/results.h"
#include "tests/ref/train.h"

struct stages_run;

/* r: what was compiled, with r->pipeline; borrowed.  DIR/setup is read for each
 * stage; what has no contents is filled as run_fill does. */
struct stages_run *stages_run_new(struct run *r);
void stages_run_free(struct stages_run *);
/* One step of all stages; false after a message: a turn that cannot run, or
 * stages that wait for each other. */
bool stages_run_step(struct stages_run *, int step);
/* The loss of the last step. */
double stages_run_loss(const struct stages_run *);
/* The run of one stage, for its contents. */
struct run *stages_run_stage(struct stages_run *, int stage);

#endif
