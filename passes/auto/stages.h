/* Parts of room auto: pipelines from a model with few layers. */
#ifndef PASSES_AUTO_STAGES_H
#define PASSES_AUTO_STAGES_H

#include "ir/plan.h"
#include "passes/auto/auto.h"
#include "passes/pipeline/pipeline.h"

/* A model with few layers, without stages. */
struct few_layers {
	const Plan *plan;               /* without a budget; */
	const Graph *g;                 /* its graph; */
	const Graph *differentiated;    /* the same after pass autodiff; */
	struct forward_line line;       /* the forward nodes of that */
	const int32_t *layer;           /* by origin: its layer; -1: none */
	int32_t few, layers;            /* layers that it has; of the model */
};

/* Of a stage, or of what a layer adds to it; each of one micro-batch. */
struct stage_part {
	double turn;                    /* seconds, transfers beside
	                                 * computation; */
	double forward, weight, all;    /* without any beside each other: of
	                                 * forward; of weight turns; of all */
	double compute;                 /* of computation alone */
	double update, update_compute;  /* the same of the update */
	double sent_sec, sent;          /* transfers between ranks: seconds,
	                                 * bytes */
	double resident, live;          /* bytes; most at a time of others */
	/* alive from forward to backward, from forward to weight turns, from
	 * backward to weight turns */
	double saved, through, kept;
	/* most at a time in a backward turn of what lies in no slot: if there
	 * are several for `through`; [1][]: and for `saved`, [][1]: for `kept`
	 */
	double rest[2][2];
	double layers;                  /* of the model that it has */
};

/* Stages of the whole model, in arena memory.  False: the layers' nodes are not
 * alike, or they are too few. */
bool stages_of_layers(const struct few_layers *, int n, bool zero_bubble,
                      struct stage_part *, Arena *);

#endif
