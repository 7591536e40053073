/* Bytes that a step saves for backward, by layer, and its FLOPs. */
#ifndef PASSES_REPORT_STEP_REPORT_H
#define PASSES_REPORT_STEP_REPORT_H

#include "passes/planner/one_percent.h"
#include "passes/account/memory_report.h"
#include "runtime/support/json_write.h"

/* FLOPs of products, for one micro-batch on all ranks.  `model` is what the
 * mathematics asks for: forward and both gradients, nothing twice, no causal
 * half. */
struct flop_report {
	double model, causal;           /* FLOPs of the model; the same without
	                                 * what causal masks hide */
	double hardware;                /* FLOPs of the schedule, with
	                                 * recomputation */
	double all;                     /* the same with element-wise ops */
	double paper_model;             /* FLOPs by the paper's formula; 0: no
	                                 * transformer */
	double paper_third, paper_ninth;        /* hardware, s/3h and 2s/9h */
};

/* A step of all micro-batches on all devices of a replica: predicted, or the
 * time given. */
struct step_use {
	double sec;                     /* seconds of a step, with the waits of
	                                 * stages */
	double idle;                    /* share of the step that stages wait */
	double batches, devices;
	double peak;                    /* FLOP/s of all devices together */
};

/* One stage of a pipeline, reckoned from one micro-batch on one device.  1F1B:
 * stage r holds as many micro-batches as stages follow it, and itself;
 * interleaved schedules run more parts ahead. */
struct stage_estimate {
	double layers;                  /* layers that the stage holds */
	double in_flight;               /* micro-batches whose activations it
	                                 * holds, parts of one counted as
	                                 * parts */
	double saved;                   /* bytes of saved activations under this
	                                 * plan */
	double weights;                 /* bytes of weights, gradients and
	                                 * optimizer states */
	double keep_all;                /* micro-batches that can keep
	                                 * everything; -1: memory unknown */
};

struct pipeline_estimate {
	int64_t n, interleave, microbatches;
	double memory;                  /* bytes of a device; 0: unknown */
	struct stage_estimate *stage;
};

/* n 0 if --pp was not given or there are no layers. */
struct pipeline_estimate pipeline_report(const Pass *, const Plan *,
                                const struct memory_report *, Arena *);
struct flop_report flop_report(const Pass *, const Plan *,
                               const struct memory_report *);
struct step_use step_use(const Pass *, const Plan *);
/* The member `memory` of --json; nothing if there is no account. */
void memory_write_json(struct json_out *, const Pass *, const Plan *);

#endif
