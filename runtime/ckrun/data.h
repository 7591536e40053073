/* Where a model's inputs come from, step by step. */
#ifndef CKR_DATA_H
#define CKR_DATA_H

#include "runtime/ckr.h"
#include "runtime/ckrun/pair.h"

struct data_options {
	const char *data;               /* file with samples or tokens */
	const char *tokens;             /* raw: "u16", "u32", "bytes"; NULL */
	const char *inputs;             /* the same batch at every step */
	const char *const *feed;        /* "INPUT=SOURCE" */
	size_t nfeed;
	bool in_order;                  /* by data_batch, not by steps */
	bool no_labels;                 /* what only the loss needs is zeros
	                                 * unless --feed names it */
};

struct data {
	ckr_ctx *ctx;
	struct err err;
	struct array_file file;
	struct pairing pair;            /* who gets what of the file */
	bool in_order, dealt;           /* dealt: sample by sample */
	uint64_t first, samples;        /* in order: of the batch; in all */
	bool unit_tokens;
	uint64_t units;                 /* tokens or samples per step */
	uint64_t rows;                  /* of what is dealt, per micro-batch; at
	                                 * least 1 */
	char warning[400];              /* of the first number below 0 that
	                                 * something is looked up by */
};

/* Decide what every input gets; failures are told through ckr_error(ctx). */
ckr_status data_open(struct data *, ckr_ctx *, const struct data_options *);
void data_close(struct data *);
/* In order: the inputs of samples first .. first + rows - 1, the last one again
 * for those behind the end. */
ckr_status data_batch(struct data *, uint64_t first);
/* Anew what no batch changes, after other data of the model. */
ckr_status data_fill(struct data *);
/* A ckr_feed; user is the struct data. */
ckr_status data_feed(void *user, ckr_ctx *, uint64_t step, uint32_t micro);

#endif
