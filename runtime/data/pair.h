/* Matching of inputs with arrays, by names, shapes and kinds alone: no file
 * contents are read here. */
#ifndef RUNTIME_DATA_PAIR_H
#define RUNTIME_DATA_PAIR_H

#include <stdio.h>

#include "runtime/data/pixels.h"
#include "runtime/file/array.h"

enum feed_source {
	FROM_NOWHERE,
	FROM_TOKENS,            /* a window of the token stream */
	FROM_NEXT,              /* the same window, one token on */
	FROM_SAMPLES,           /* rows of an array, in random order */
	FROM_WHOLE,             /* an array that is the batch */
	FROM_ONES, FROM_ZEROS, FROM_POSITIONS
};

/* An input of the model. */
struct input_spec {
	const char *name;
	uint8_t dtype;
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem;
	bool shifted;                   /* labels that are the tokens */
	bool index;                     /* something is looked up by it */
	void *data;                     /* where it lies */
};

struct fed_input {
	struct input_spec in;
	enum feed_source source;
	const struct array *array;      /* what it is rows of, or all of */
	bool explicit;                  /* given by --feed */
	char layout;                    /* as of source_word: by --feed */
	struct pixels pixels;           /* channels 0: elements are converted
	                                 * each by itself */
	uint64_t rows, row;             /* samples per batch, elements of one */
};

struct pairing {
	struct fed_input *item;         /* in is set */
	size_t n;
	const struct array *array;      /* what the file holds */
	size_t narray;
	const char *path;               /* for messages */
	bool raw;                       /* which is nothing but tokens */
	bool whole;                     /* arrays are batches, not samples */
	uint32_t nmicro;                /* micro-batches in a step */
	struct normalization normal;    /* what is done to pixels */
	struct err *err;

	/* ---- pair_all's ---- */
	const char *const *feed;
	size_t nfeed;
	const struct fed_input **refused;    /* only tried: who is, without a
	                                 * message; NULL: in earnest */
	const struct array *stream;     /* tokens; NULL: none */
	bool next;                      /* windows are one token longer */
};

/* Decide; feed holds nfeed texts "INPUT=SOURCE".  What is ambiguous is refused
 * with what to say instead. */
ckr_status pair_inputs(struct pairing *, const char *const *feed, size_t nfeed);
/* One line for every input, and what of the file nobody reads. */
void pair_print(const struct pairing *, FILE *);

/* ---- shared by pair*.c ---- */

/* Words of --feed, and the source that each means. */
struct source_word {
	const char *word;
	enum feed_source source;
	char kind;                      /* converts to f or i; 0: neither */
	char layout;                    /* images lie HWC (h) or CHW (c); 0: as
	                                 * their extents say */
	bool array;                     /* WORD:ARRAY */
};
extern const struct source_word source_word[];
extern const size_t source_words;

/* 'f', 'i' or 'b'; 0: a type that is not supported. */
char pair_kind(uint8_t dtype);
bool pair_is_stream(const struct array *);
/* Whether rows of the array make up the input, or all of it. */
bool pair_fits(const struct pairing *, const struct array *,
               const struct input_spec *);
/* Whether it needs no conversion that changes the kind, or pixels are scaled
 * for it. */
bool pair_accepts(const struct pairing *, const struct array *,
                  const struct input_spec *);
/* NULL: none of that name. */
const struct array *pair_find(const struct pairing *, const char *name);
bool pair_used(const struct pairing *, const struct array *);
/* What an input gets from a stream of tokens, by type and name. */
enum feed_source pair_meaning(const struct input_spec *);
/* One --feed. */
ckr_status pair_feed(struct pairing *, const char *spec);
/* The input gets the array, converted to kind `convert` unless that is 0, or
 * the pair is refused. */
ckr_status pair_assign(struct pairing *, struct fed_input *,
                       const struct array *, char convert);
/* Whether --feed INPUT=WORD:ARRAY, of which one part may be "", in place of
 * the input's --feed, would be accepted. */
bool pair_would_accept(const struct pairing *, const struct fed_input *,
                       const char *word, const char *array);
/* How many samples there are; -1: nobody gets rows. */
int64_t pair_samples(const struct pairing *);
bool pair_is_label(const struct input_spec *);
/* What a name says of what goes beside tokens, in inputs and arrays alike. */
enum feed_source pair_role(const char *name);
/* Whether another input takes, or could take, the tokens. */
bool pair_takes_tokens(const struct pairing *, const struct fed_input *but);
/* Refuse, listing all inputs, all arrays, and lines that would decide. */
ckr_status pair_refuse(const struct pairing *, const struct fed_input *,
                       const char *why);

#endif
