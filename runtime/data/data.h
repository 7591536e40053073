/* Feeding the inputs of a model, step by step. */
#ifndef RUNTIME_DATA_DATA_H
#define RUNTIME_DATA_DATA_H

#include "runtime/ckr.h"
#include "runtime/data/pair.h"
#include "runtime/data/token_windows.h"

struct data_options {
	struct dataset_options data;
	const char *normalize;          /* what normal_parse reads; NULL */
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
	struct dataset set;
	struct pairing pair;            /* which input gets what of it */
	struct token_windows windows;   /* if an input gets some */
	unsigned char *row;             /* of pixels, before transposition */
	float *pixels_f32;              /* ... and after */
	uint64_t capacity;              /* of both, in elements */
	bool in_order;
	bool sampled;                   /* an item gets windows or rows */
	uint64_t first, samples;        /* in order: of the batch; in all */
	bool unit_tokens;
	uint64_t units;                 /* tokens or samples per step */
	uint64_t rows;                  /* sampled, per micro-batch; at
	                                 * least 1 */
	uint64_t per_step, epoch;       /* samples; 0: the same batch always */
	char warning[400];              /* of the first number below 0 that
	                                 * something is looked up by */
};

/* Decide what every input gets; failures are reported through ckr_error(ctx).
 * ckr_set_samples is the caller's. */
ckr_status data_open(struct data *, ckr_ctx *, const struct data_options *);
/* The files, if there are several, who gets what of them, and how long an epoch
 * is. */
void data_print(const struct data *, FILE *);
/* Lines "NAME: TEXT" of the libraries that files are read by, if this was built
 * with them. */
void data_formats(FILE *);
/* Steps until every sample has been taken `epochs` times, those done so far
 * included; the last one goes on into the next epoch.  false: too many, or
 * nothing is sampled. */
bool data_steps(const struct data *, uint64_t epochs, uint64_t *steps);
/* How often they have been gone through; NaN: nothing is sampled. */
double data_epoch(const struct data *);
void data_close(struct data *);
/* In order: the inputs of samples first .. first + rows - 1, the last one again
 * for those behind the end. */
ckr_status data_batch(struct data *, uint64_t first);
/* Anew what no batch changes, after other data of the model. */
ckr_status data_fill(struct data *);
/* How many samples come before the batch that is set, or that the next step
 * takes. */
uint64_t data_position(const struct data *);
/* The row of an item's array that is row r of its input in a micro-batch of the
 * batch that begins behind n samples. */
uint64_t data_row(const struct data *, const struct fed_input *, uint64_t n,
                  uint32_t micro, uint64_t r);

/* ---- blame.c: the row of the data that caused an error, as
 * "FILE: 'y', row 3 (input 'y')"; false: none found ---- */

/* Write to buf where the batch that is set has a number by which something is
 * looked up. */
bool data_find_number(const struct data *, int64_t, char *buf, size_t size);
/* Print "; ROW contains a non-finite value", of the batch that begins behind n
 * samples. */
bool data_print_nonfinite(struct data *, uint64_t n, FILE *);

/* A ckr_feed_fn; user is the struct data. */
ckr_status data_feed(void *user, ckr_ctx *, uint64_t step, uint32_t micro);

#endif
