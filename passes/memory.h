/* What a step saves for backward, by layer; and what the step computes. */
#ifndef PASSES_MEMORY_H
#define PASSES_MEMORY_H

#include "passes/passes.h"

/* The forward graph cut where one activation crosses it.  Segments first,
 * first + 1, ... repeat with a period; `period` of them are a layer. */
struct segments {
	int32_t n;
	int32_t *of_node;               /* by node of the reference; -1 */
	bool *attention;                /* by segment: holds a softmax */
	NodeId *product, *last_product; /* the first and last one; 0 */
	ValId *cut;                     /* by segment: the activation before
	                                 * it; 0: none */
	int32_t first, period, nlayer;
};

enum block { B_NORM, B_ATTENTION, B_MLP, B_OTHER, B_STATS, B_COUNT };
extern const char *const memory_block[B_COUNT];

/* One place that is occupied across the end of forward. */
struct saved {
	const char *name, *op;          /* value, ONNX operator that makes it */
	const char *reader;             /* op that reads it afterwards */
	int64_t bytes;
	int32_t segment, layer;         /* -1: in no layer */
	enum block block;
	bool split;                     /* by tensor parallelism */
};

struct memory_report {
	struct segments seg;
	int64_t nsaved;
	struct saved *saved;
	int64_t unit;                   /* elements of a layer's input; 0 */
	int64_t outside;                /* saved by no layer */
	int64_t *layer;                 /* by layer: bytes without statistics */
	int64_t *device;                /* the same on one device of --tp */
	int64_t *stats;                 /* by layer */
	int64_t param;                  /* elements that are trained */
	/* a transformer's shape; 0: none was seen */
	int64_t batch, seq, hidden, heads, vocab;
};

/* What is left when at most 1 % of the step's time may go into computing
 * things again (cheap.c). */
struct cheap {
	double extra;                   /* fraction of a step */
	int64_t saved;                  /* bytes in all */
	int32_t nlayer;
	int64_t *layer, *stats;         /* as above */
	int64_t outside;
};

struct remat;

/* Into p->cheap; `must` as in remat_wishes. */
void cheap_account(Pass *, const Graph *, struct remat *, const uint8_t *must);

/* FLOPs of products, for one micro-batch.  `model` is what the mathematics
 * asks for: forward and both gradients, nothing twice, no causal half. */
struct flop_report {
	double model, causal;           /* causal: halves what masks hide */
	double hardware;                /* the schedule, recomputation too */
	double all;                     /* with everything element-wise */
	double paper_model;             /* 0: no transformer */
	double paper_third, paper_ninth;        /* hardware, s/3h and 2s/9h */
};

/* One stage of a pipeline, reckoned from one micro-batch on one device.  1F1B:
 * stage r holds as many micro-batches as stages follow it, and itself;
 * interleaved schedules run more parts ahead. */
struct stage {
	double layers;                  /* that it holds */
	double in_flight;               /* micro-batches, parts counted so */
	double saved;                   /* bytes under this plan */
	double weights;                 /* with gradients and optimizer */
	double keep_all;                /* micro-batches that can keep
	                                 * everything; -1: memory unknown */
};

struct pipeline {
	int64_t n, interleave, microbatches;
	double memory;                  /* of a device; 0: not known */
	struct stage *stage;
};

/* n 0 if --pp was not given or there are no layers. */
struct pipeline pipeline_report(const Pass *, const Plan *,
                                const struct memory_report *, Arena *);
void segments_find(struct segments *, const Graph *, Arena *);
/* What is alive behind the nodes begin .. end - 1. */
struct crossing {
	NodeId *begin, *end;
	uint32_t *id;                   /* > 0 */
	uint32_t n;
};

/* By node: the only one that is alive behind it; 0: none, or several.  Linear
 * in both. */
uint32_t *segments_crossing(const struct crossing *, NodeId nnode, Arena *);
/* By value: depends on a parameter. */
bool *segments_active(const Graph *, Arena *);
struct memory_report *memory_report_new(const Pass *, const Plan *, Arena *);
struct flop_report flop_report(const Pass *, const Plan *,
                               const struct memory_report *);
/* The object `memory` of --json, as text. */
char *memory_json(const Pass *, const Plan *, Arena *);

#endif
