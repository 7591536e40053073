/* Values that a step saves for backward, by layer. */
#ifndef PASSES_ACCOUNT_MEMORY_REPORT_H
#define PASSES_ACCOUNT_MEMORY_REPORT_H

#include "ir/segments.h"
#include "passes/pass.h"

enum layer_block { B_NORM, B_ATTENTION, B_MLP, B_OTHER, B_STATS, B_COUNT };
extern const char *const memory_block[B_COUNT];

/* One place that is occupied across the end of forward. */
struct saved {
	const char *name, *op;          /* value; ONNX operator that makes it */
	const char *reader;             /* operator that reads it after
	                                 * forward */
	int64_t bytes;
	int32_t segment, layer;         /* segment; layer, -1: in none */
	enum layer_block block;
};

struct memory_report {
	struct segments seg;
	int64_t nsaved;
	struct saved *saved;
	int64_t unit;                   /* elements of a layer's input; 0: no
	                                 * layers */
	int64_t outside;                /* bytes saved outside of layers */
	int64_t *layer;                 /* by layer: bytes saved, without
	                                 * statistics */
	int64_t *stats;                 /* by layer: bytes of statistics */
	int64_t param;                  /* number of trained elements */
	/* a transformer's shape; 0: none was seen */
	int64_t batch, seq, hidden, heads, vocab;
};

struct memory_report *memory_report_new(const Pass *, const Plan *, Arena *);

#endif
