/* Where a model's inputs come from, step by step. */
#ifndef CKR_DATA_H
#define CKR_DATA_H

#include "runtime/rt.h"

struct data_options {
	const char *data;               /* file with samples or tokens */
	const char *tokens;             /* raw: "u16", "u32", "bytes"; NULL */
	const char *inputs;             /* the same batch at every step */
	const char *const *feed;        /* "INPUT=SOURCE" */
	size_t nfeed;
};

enum source {
	FROM_NOWHERE,
	FROM_TOKENS,            /* a window of the token stream */
	FROM_NEXT,              /* the same window, one token on */
	FROM_SAMPLES,           /* rows of an array, in random order */
	FROM_WHOLE,             /* an array that is the batch */
	FROM_ONES, FROM_ZEROS, FROM_POSITIONS
};

struct item {
	const struct ckr_tensor *t;
	enum source source;
	const struct array *array;
	uint64_t rows, row;             /* samples per batch, elements of one */
};

struct data {
	ckr_ctx *ctx;
	struct array_file file;
	const struct array *stream;     /* tokens; NULL: none */
	struct item *item;
	size_t n;
	bool next;                      /* windows are one token longer */
	bool unit_tokens;
	uint64_t units;                 /* tokens or samples per step */
};

/* Decide what every input gets; failures are told through ckr_error(ctx). */
ckr_status data_open(struct data *, ckr_ctx *, const struct data_options *);
void data_close(struct data *);
/* A ckr_feed; user is the struct data. */
ckr_status data_feed(void *user, ckr_ctx *, uint64_t step, uint32_t micro);
/* "input_ids = tokens, labels = next" into buf. */
void data_text(const struct data *, char *buf, size_t size);

#endif
