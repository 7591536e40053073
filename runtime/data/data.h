/* Room data: feeding the inputs of a model, step by step.
 *
 * in      files of arrays, images, CSV or tokens; the inputs of a model
 * out     the value of each input in each micro-batch
 * must not know how a model computes
 */
#ifndef RUNTIME_DATA_DATA_H
#define RUNTIME_DATA_DATA_H

#include "runtime/ckr.h"
#include "runtime/data/pair.h"
#include "runtime/data/token_windows.h"

struct data_options {
	struct dataset_options data;
	const char *normalize;          /* text of --normalize; NULL: none */
	const char *inputs;             /* file with the batch of every step;
	                                 * NULL: none */
	const char *const *feed;        /* [nfeed]: "INPUT=SOURCE" */
	size_t nfeed;
	const char *augment;            /* --augment; NULL: none */
	bool in_order;                  /* batches are set by data_batch, not
	                                 * sampled in steps */
	bool no_labels;                 /* labels are zeros unless --feed names
	                                 * them */
};

struct data {
	ckr_ctx *ctx;
	struct err err;
	struct dataset set;
	struct pairing pair;            /* source of each input */
	struct token_windows windows;   /* of inputs that get tokens */
	unsigned char *row;             /* a row of pixels, not transposed */
	float *pixels_f32;              /* the same transposed and scaled */
	unsigned char *moved;           /* the row of pixels, augmented */
	uint64_t capacity;              /* elements of these buffers */
	struct augmentation augment;
	bool in_order;
	bool sampled;                   /* an input gets windows or rows */
	uint64_t first, samples;        /* in order: first sample of the batch;
	                                 * samples in all; of whole batches, the
	                                 * batch and the number of batches */
	bool unit_tokens;               /* units are tokens, not samples */
	uint64_t units;                 /* tokens or samples per step */
	uint64_t rows;                  /* sampled rows per micro-batch, at
	                                 * least 1 */
	uint64_t whole;                 /* samples of a whole batch; 1: batches
	                                 * are sampled */
	uint64_t per_step, epoch;       /* samples of each; 0: the same batch in
	                                 * every step */
	char warning[400];              /* about the first negative index in the
	                                 * data; "": none */
};

/* Choose a source for every input; failures are reported through
 * ckr_error(ctx).  The caller calls ckr_set_samples. */
ckr_status data_open(struct data *, ckr_ctx *, const struct data_options *);
/* Print the files, if there are several, the source of each input, and the
 * length of an epoch. */
void data_print(const struct data *, FILE *);
/* Print lines "NAME: TEXT" about the libraries of file formats in this build.
 */
void data_formats(FILE *);
/* *steps: steps, counted from the start of training, until every sample has
 * been used `epochs` times; the last step may reach into the next epoch.
 * False: too many, or nothing is sampled. */
bool data_steps(const struct data *, uint64_t epochs, uint64_t *steps);
/* Epochs done, with fraction; NaN: nothing is sampled. */
double data_epoch(const struct data *);
void data_close(struct data *);
/* Set the inputs to samples first .. first + rows - 1; the last sample stands
 * for those after the end. */
ckr_status data_batch(struct data *, uint64_t first);
/* Set again the inputs that are the same in all batches, after other data of
 * the same model were used. */
ckr_status data_fill(struct data *);
/* Number of samples before the batch that is set or that the next step uses. */
uint64_t data_position(const struct data *);
/* The row of the input's array that row r of the input gets, in a micro-batch
 * of the batch that begins after n samples. */
uint64_t data_row(const struct data *, const struct fed_input *, uint64_t n,
                  uint32_t micro, uint64_t r);

/* ---- blame.c: the row of the data that caused an error, as
 * "FILE: 'y', row 3 (input 'y')"; false: none found ---- */

/* Write to buf the row of the batch that contains a number, among inputs that
 * are used as indices. */
bool data_find_number(const struct data *, int64_t, char *buf, size_t size);
/* Print "; ROW contains a non-finite value", of the samples n to
 * n + samples - 1 in order of use. */
bool data_print_nonfinite(struct data *, uint64_t n, uint64_t samples, FILE *);

/* A ckr_feed_fn; user is the struct data. */
ckr_status data_feed(void *user, ckr_ctx *, uint64_t step, uint32_t micro);

#endif
