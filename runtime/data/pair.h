/* Pairing of inputs with arrays, by names, shapes and kinds of types alone; no
 * contents of files are read. */
#ifndef RUNTIME_DATA_PAIR_H
#define RUNTIME_DATA_PAIR_H

#include <stdio.h>

#include "runtime/data/augment.h"
#include "runtime/data/pixels.h"
#include "runtime/file/array.h"

enum feed_source {
	FROM_NOWHERE,
	FROM_TOKENS,            /* a window of the token stream */
	FROM_NEXT,              /* the same window shifted by one token */
	FROM_SAMPLES,           /* rows of an array, in random order */
	FROM_WHOLE,             /* an array that holds the whole batch */
	FROM_ONES, FROM_ZEROS, FROM_POSITIONS
};

/* An input of the model. */
struct input_spec {
	const char *name;
	uint8_t dtype;
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem;
	bool shifted;                   /* labels that the graph shifts: feed
	                                 * the tokens */
	bool index;                     /* its values are used as indices */
	void *data;                     /* its memory */
};

struct fed_input {
	struct input_spec in;
	enum feed_source source;
	const struct array *array;      /* the source's array */
	bool explicit;                  /* chosen by --feed */
	char layout;                    /* by --feed, as in source_word */
	struct pixels pixels;           /* channels 0: elements are converted
	                                 * one by one */
	struct image_layout image;      /* --augment: of rows of the array;
	                                 * height 0: rows stay as they are */
	uint64_t rows, row;             /* samples per batch; elements of one */
};

/* What pairing failed on; input NULL: nothing, or no input's fault. */
struct pair_refusal {
	const struct fed_input *input;
	char why[NAME_TEXT + 320];
};

struct pairing {
	struct fed_input *item;         /* [n]: the caller sets `in` */
	size_t n;
	const struct array *array;      /* [narray]: arrays of the data */
	size_t narray;
	const char *path;               /* for messages */
	bool raw;                       /* the data are raw tokens */
	bool whole;                     /* arrays are batches, not samples */
	uint32_t nmicro;                /* micro-batches in a step */
	struct normalization normal;    /* for pixels */
	struct err *err;

	/* ---- set by pair_inputs ---- */
	const char *const *feed;
	size_t nfeed;
	struct pair_refusal *refused;   /* where a refusal goes */
	const struct array *stream;     /* the token stream; NULL: none */
	bool next;                      /* windows are one token longer */
};

/* Choose a source for each input; feed holds nfeed texts "INPUT=SOURCE".  Fails
 * if the choice is ambiguous, with options that would decide. */
ckr_status pair_inputs(struct pairing *, const char *const *feed, size_t nfeed);
/* Print a line for every input, and the unused arrays. */
void pair_print(const struct pairing *, FILE *);

/* ---- shared by pair*.c ---- */

/* Words of --feed, and the source that each means. */
struct source_word {
	const char *word;
	enum feed_source source;
	char kind;                      /* convert to float (f) or integer (i);
	                                 * 0: no conversion */
	char layout;                    /* layout of images: HWC (h), CHW (c);
	                                 * 0: by their extents */
	bool array;                     /* used as WORD:ARRAY */
};
extern const struct source_word source_word[];
extern const size_t source_words;

/* Kind of a type: 'f', 'i' or 'b'; 0: not supported. */
char pair_kind(uint8_t dtype);
/* Whether the input gets windows of the token stream. */
bool pair_takes_window(const struct fed_input *);
bool pair_is_stream(const struct array *);
/* Whether the input's shape is made of the array's rows, or of the whole array.
 */
bool pair_fits(const struct pairing *, const struct array *,
               const struct input_spec *);
/* Whether the array can feed the input without a change of kind, or as pixels
 * that are scaled. */
bool pair_accepts(const struct pairing *, const struct array *,
                  const struct input_spec *);
/* The array of this name; NULL: there is none. */
const struct array *pair_find(const struct pairing *, const char *name);
bool pair_used(const struct pairing *, const struct array *);
/* Whether an array that nobody reads could be the rows of an input: a mask is
 * none for labels that happen to be as large. */
bool pair_could_feed(const struct pairing *, const struct array *,
                     const struct fed_input *);
/* The source that an input gets from a token stream, by its type and name. */
enum feed_source pair_meaning(const struct input_spec *);
/* The input that a "--feed INPUT=SOURCE" is about; names may hold '='. */
struct fed_input *pair_feed_input(struct pairing *, const char *spec,
                                  const char **source);
/* Apply one text of --feed. */
ckr_status pair_feed(struct pairing *, const char *spec);
/* Assign the array to the input, converted to kind `convert` unless that is 0,
 * or fail. */
ckr_status pair_assign(struct pairing *, struct fed_input *,
                       const struct array *, char convert);
/* pair_inputs without a message: a refusal is set. */
ckr_status pair_choose(struct pairing *, const char *const *feed,
                       size_t nfeed);
/* Number of samples; -1: no input gets rows. */
int64_t pair_samples(const struct pairing *);
bool pair_is_label(const struct input_spec *);
/* The source that a name suggests for inputs beside tokens, such as a mask; the
 * same for names of inputs and of arrays. */
enum feed_source pair_role(const char *name);
/* Whether another input takes, or could take, the tokens. */
bool pair_takes_tokens(const struct pairing *, const struct fed_input *but);
/* Fail, for this reason. */
ckr_status pair_refuse(const struct pairing *, const struct fed_input *,
                       const char *why);

#endif
