/* Room pipeline: the graph of a training step becomes one graph for each stage.
 *
 * in      the forward and backward graph of one rank; the number of stages
 * out     a graph for each stage, with SEND and RECEIVE where values cross; the
 *         turns that each stage takes
 * must not know updates, memory and machines
 *
 * The nodes of forward and backward are shared out, so that every number is
 * computed as in the whole graph.  Each node is one of three kinds, by what it
 * depends on:
 *
 *   free       inputs, constants and random numbers alone: a copy runs on each
 *              stage that reads it
 *   of params  parameters, buffers and constants alone: the same
 *   bound      anything else: runs on one stage.  In forward the stages are
 *              intervals of the order of nodes (places.c).  In backward a node
 *              runs where the node that it differentiates runs (Node.place)
 *
 * A bound value goes to its readers from stage to stage: in forward to later
 * ones, in backward to earlier ones.  In each turn what is received comes
 * first.  Tags count the SENDs of a stage in their order, so that both ends of
 * a link know the same order of messages.
 *
 * A parameter that several stages read belongs to each of them.  Its gradient
 * is complete on one, which in phase update sends it to the others.
 *
 * Under ZB-H1 (Qi et al. 2023) backward is two turns: what a message depends
 * on, and the rest, phase weight, which may run later.
 */
#ifndef PASSES_PIPELINE_PIPELINE_H
#define PASSES_PIPELINE_PIPELINE_H

#include "passes/pass.h"

/* Cut the graph into opt->pp stages, or opt->chunks for each of opt->pp ranks:
 * p->planned.pipeline, with graphs to which optim and later passes are still to
 * be applied, and turns.  g itself stays as it is, and has to outlive the
 * stages.  Nothing unless opt->stages. */
PassFn pass_pipeline;

/* weights.c: in the graph of a stage with turns of weights, put into phase
 * weight the nodes of backward that no other stage waits for. */
PassFn pass_weights;

/* Frees the graphs of the stages; NULL is allowed. */
void pipeline_free(struct pipeline *);

/* verify.c: whether the stages fit each other; all faults are reported. */
bool stages_verify(const struct pipeline *, Diag *);
/* pipeline.c: the same, of which a fault is an internal one. */
bool pipeline_check(const struct pipeline *, Diag *);
/* verify.c: whether two plans of a stage send and receive in one order. */
bool stages_have_same_messages(const Graph *, const Graph *);
/* Bytes of a stage: of the plan that needs more. */
static inline int64_t
stage_peak(const struct pipeline_stage *s)
{
	int64_t peak = s->planned.plan->sum.peak;

	return s->second.graph && s->second.planned.plan->sum.peak > peak
		? s->second.planned.plan->sum.peak : peak;
}

/* The share of micro-batches that have the second plan. */
static inline double
stage_second_share(const struct pipeline_stage *s, int nmicro)
{
	int n = 0;

	for (int m = 0; m < nmicro && s->second.graph; m++)
		n += s->second.has[m % s->slots];
	return (double)n / nmicro;
}

/* The forward nodes that run on one stage alone, in their order: what decides
 * where stages are cut. */
struct forward_line {
	uint32_t n;
	NodeId *node;
	double *sec;                    /* by node: seconds, with what
	                                 * differentiates it */
	double *crosses;                /* [n + 1]: bytes that cross behind the
	                                 * first i of them */
	bool *parts;                    /* [n + 1]: one kernel computes the node
	                                 * in front and the next: no place to
	                                 * cut */
};

/* stages.c: of a graph after pass autodiff with opt->stages; in p->scratch. */
void forward_line_list(struct forward_line *, Pass *p, const Graph *g);
/* places.c: where stages begin, as pass_pipeline cuts a graph with g's ranks
 * and device: at[0..stages], the last being n.  False: there are too few
 * places. */
bool forward_line_cut(const struct forward_line *, const Graph *g, int stages,
                      uint32_t *at, Arena *);

/* turns.c: the turns and slots of all stages.  With several chunks nmicro has
 * to be a multiple of nrank. */
void turns_schedule(struct pipeline *, Arena *);
/* Most micro-batches that a rank has between their forward and their last turns
 * at once, counted once for each of its stages. */
int turns_in_flight(const struct pipeline *, int rank);
/* When all turns end if the forward, backward and weight turns of stage s take
 * forward[s], backward[s] and weight[s], and messages nothing; updates come
 * after all others and are not counted.  weight: NULL unless l->zero_bubble.
 * busy: by rank; NULL: not wanted. */
double turns_seconds(const struct pipeline *, const double *forward,
                     const double *backward, const double *weight,
                     double *busy);

#endif
