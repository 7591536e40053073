/* Feeding inputs.
 *
 * What an input gets: what --feed says; else the array of its own name; else,
 * with one stream of tokens, the obvious: ids take a window of tokens, labels
 * the same window one token on (or the tokens themselves, if the graph shifts
 * them), masks ones, positions 0 1 2 ..., token types zeros.  Anything else
 * is refused with a list of the inputs: silence would train on nonsense.
 *
 * Windows begin at random places, rows of arrays come in a new random order
 * every epoch; both are functions of (seed, step, micro-batch, sample) alone,
 * so that a resumed run sees the data it would have seen.
 */
#include "runtime/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/rng.h"

/* ---- telling ---- */

/* Where "name" alone says what is meant. */
static const struct {
	const char *word;
	enum source source;
} word_of[] = {
	{ "tokens", FROM_TOKENS }, { "next", FROM_NEXT },
	{ "ones", FROM_ONES }, { "zeros", FROM_ZEROS },
	{ "positions", FROM_POSITIONS },
};

static const char *
source_text(const struct item *it, char *buf, size_t size)
{
	for (size_t i = 0; i < sizeof(word_of) / sizeof(*word_of); i++)
		if (word_of[i].source == it->source)
			return word_of[i].word;
	if (it->source == FROM_NOWHERE)
		return "?";
	if (!*it->array->name)
		return "samples";
	return err_name(buf, size, it->array->name);
}

static void
add(char *buf, size_t size, const char *text)
{
	size_t n = strlen(buf);

	if (n + 1 < size)
		snprintf(buf + n, size - n, "%s", text);
}

void
data_text(const struct data *d, char *buf, size_t size)
{
	char name[NAME_TEXT], from[NAME_TEXT];

	*buf = '\0';
	for (size_t i = 0; i < d->n; i++) {
		if (i)
			add(buf, size, ", ");
		add(buf, size, err_name(name, sizeof(name),
		                        d->item[i].t->name));
		add(buf, size, " = ");
		add(buf, size, source_text(&d->item[i], from, sizeof(from)));
	}
}

static const char *
tensor_text(char *buf, size_t size, const struct ckr_tensor *t)
{
	return array_text(buf, size, t->dtype, t->rank, t->dim);
}

/* Refuse, listing all inputs and all that could be given to them. */
static ckr_status
refuse(struct data *d, const struct item *it, const char *why)
{
	char text[1900], name[NAME_TEXT], shape[128], from[NAME_TEXT];
	struct err *e = &d->ctx->err;

	snprintf(text, sizeof(text), "input '%s' %s: %s\n  inputs:",
	         err_name(name, sizeof(name), it->t->name),
	         tensor_text(shape, sizeof(shape), it->t), why);
	for (size_t i = 0; i < d->n; i++) {
		const struct ckr_tensor *t = d->item[i].t;

		add(text, sizeof(text), "\n    ");
		add(text, sizeof(text), err_name(name, 60, t->name));
		add(text, sizeof(text), " ");
		add(text, sizeof(text), tensor_text(shape, sizeof(shape), t));
		add(text, sizeof(text), " = ");
		add(text, sizeof(text), source_text(&d->item[i], from, 60));
	}
	for (size_t i = 0; i < d->file.n && i < 8; i++) {
		const struct array *a = &d->file.v[i];

		add(text, sizeof(text), i ? ", " : "\n  the file holds: ");
		add(text, sizeof(text), err_name(name, 60, a->name));
		add(text, sizeof(text), *a->name ? " " : "");
		add(text, sizeof(text), array_text(shape, sizeof(shape),
		                                   a->dtype, a->rank, a->dim));
	}
	add(text, sizeof(text), "\n  say what it gets: --feed INPUT=SOURCE, "
	    "SOURCE being tokens, next, positions, zeros, ones or an array");
	return err_set(e, CKR_EARG, "%s", text);
}

/* ---- deciding ---- */

static bool
is_int(uint8_t dtype)
{
	return dtype_row[dtype].cls == 'i' || dtype_row[dtype].cls == 'u';
}

static bool
holds(const char *name, const char *word)
{
	return strcasestr(name, word) != NULL;
}

/* Rows of array a, taken along its first axis, make up the input. */
static bool
fits_rows(const struct array *a, const struct ckr_tensor *t)
{
	return a->rank == t->rank && t->rank > 0
	       && !memcmp(a->dim + 1, t->dim + 1,
	                  (size_t)(t->rank - 1) * sizeof(*a->dim));
}

static bool
fits_whole(const struct data *d, const struct array *a,
           const struct ckr_tensor *t)
{
	if (a->rank != t->rank)
		return false;
	if (!memcmp(a->dim, t->dim, (size_t)a->rank * sizeof(*a->dim)))
		return true;
	return fits_rows(a, t)
	       && a->dim[0] == t->dim[0] * ckr_micro_batches(d->ctx);
}

static ckr_status
give_array(struct data *d, struct item *it, const struct array *a, bool whole)
{
	char why[256], shape[128];

	if (whole ? fits_whole(d, a, it->t) : fits_rows(a, it->t)) {
		it->array = a;
		it->source = whole ? FROM_WHOLE : FROM_SAMPLES;
		return CKR_OK;
	}
	snprintf(why, sizeof(why), "the array given to it is %s",
	         array_text(shape, sizeof(shape), a->dtype, a->rank, a->dim));
	return refuse(d, it, why);
}

/* --feed INPUT=SOURCE */
static ckr_status
feed_one(struct data *d, const char *spec, bool whole)
{
	const char *eq = strchr(spec, '='), *source = eq ? eq + 1 : "";
	size_t n = eq ? (size_t)(eq - spec) : strlen(spec);
	struct item *it = NULL;
	const struct array *a;
	char text[NAME_TEXT];

	if (!eq || !*source)
		return err_set(&d->ctx->err, CKR_EARG, "--feed '%s': expected "
		               "INPUT=SOURCE", err_name(text, sizeof(text),
		                                        spec));
	for (size_t i = 0; i < d->n; i++)
		if (!strncmp(d->item[i].t->name, spec, n)
		    && !d->item[i].t->name[n])
			it = &d->item[i];
	if (!it)
		return d->n ? refuse(d, &d->item[0], "--feed names an input "
		                     "that does not exist")
		       : err_set(&d->ctx->err, CKR_EARG, "--feed: the model "
		                 "has no inputs");
	a = array_find(&d->file, source);
	for (size_t i = 0; i < sizeof(word_of) / sizeof(*word_of); i++)
		if (!strcmp(word_of[i].word, source)
		    && !(a && fits_rows(a, it->t))) {
			it->source = word_of[i].source;
			return CKR_OK;
		}
	if (a)
		return give_array(d, it, a, whole);
	return refuse(d, it, "--feed names neither a source nor an array of "
	              "the file");
}

/* The token stream: raw tokens, or the only list of integers in the file, or
 * the one called "tokens". */
static const struct array *
find_stream(const struct array_file *f)
{
	const struct array *named = array_find(f, "tokens"), *only = NULL;

	if (named && named->rank == 1 && is_int(named->dtype))
		return named;
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].rank != 1 || !is_int(f->v[i].dtype))
			continue;
		if (only)
			return NULL;
		only = &f->v[i];
	}
	return only;
}

static bool
is_label(const struct ckr_tensor *t)
{
	return t->flags & CKR_SHIFTED || holds(t->name, "label")
	       || holds(t->name, "target") || !strcmp(t->name, "y");
}

/* What an input gets from a stream of tokens, by type and name. */
static enum source
by_meaning(const struct ckr_tensor *t)
{
	if (!is_int(t->dtype) && t->dtype != CKR_BOOL)
		return FROM_NOWHERE;
	if (t->flags & CKR_SHIFTED)
		return FROM_TOKENS;
	if (holds(t->name, "mask"))
		return FROM_ONES;
	if (t->dtype == CKR_BOOL)
		return FROM_NOWHERE;
	if (holds(t->name, "position") || !strcmp(t->name, "pos"))
		return FROM_POSITIONS;
	if (holds(t->name, "token_type") || holds(t->name, "segment"))
		return FROM_ZEROS;
	if (is_label(t))
		return FROM_NEXT;
	return FROM_TOKENS;
}

static ckr_status
give_default(struct data *d, struct item *it, bool whole)
{
	const struct array *a = array_find(&d->file, it->t->name);

	if (a && d->stream == a && !whole && !fits_rows(a, it->t))
		a = NULL;
	if (!a && d->file.n == 1 && !*d->file.v[0].name && !d->stream
	    && d->n == 1)
		a = &d->file.v[0];
	if (a)
		return give_array(d, it, a, whole);
	if (d->stream && !whole)
		it->source = by_meaning(it->t);
	return CKR_OK;
}

/* Two inputs of unknown meaning would both take the tokens: ask. */
static ckr_status
check_ids(struct data *d, const bool *said)
{
	const struct item *first = NULL;

	for (size_t i = 0; i < d->n; i++) {
		const struct item *it = &d->item[i];

		if (said[i] || it->source != FROM_TOKENS || is_label(it->t))
			continue;
		if (first)
			return refuse(d, it, "more than one input could take "
			              "the tokens");
		first = it;
	}
	return CKR_OK;
}

/* Extents agree with the source. */
static ckr_status
check_item(struct data *d, struct item *it)
{
	const struct ckr_tensor *t = it->t;
	uint64_t n = rt_nelem(t), need;

	it->row = t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
	switch (it->source) {
	case FROM_NOWHERE:
		return refuse(d, it, "nothing says what it gets");
	case FROM_TOKENS:
	case FROM_NEXT:
		if (!d->stream)
			return refuse(d, it, "there is no stream of tokens: "
			              "a list of integers in --data, or "
			              "--tokens");
		if (!t->rank || !n)
			return refuse(d, it, "windows of tokens need an axis");
		if (!is_int(t->dtype))
			return refuse(d, it, "tokens are integers");
		it->rows = n / it->row;
		need = it->row + d->next;
		if (d->stream->nelem < need)
			return err_set(&d->ctx->err, CKR_EARG, "%s: %llu "
			               "tokens are too few for windows of %llu",
			               d->file.path,
			               (unsigned long long)d->stream->nelem,
			               (unsigned long long)need);
		return CKR_OK;
	case FROM_SAMPLES:
		it->rows = (uint64_t)t->dim[0];
		it->row = it->rows ? n / it->rows : 0;
		if (!it->array->dim[0])
			return refuse(d, it, "the array given to it is empty");
		return CKR_OK;
	default:
		return CKR_OK;
	}
}

/* All windows lie over each other, all arrays have as many samples. */
static ckr_status
check_together(struct data *d)
{
	const struct item *window = NULL, *rows = NULL;

	for (size_t i = 0; i < d->n; i++) {
		struct item *it = &d->item[i];
		bool w = it->source == FROM_TOKENS || it->source == FROM_NEXT;

		if (w && window && (window->rows != it->rows
		                    || window->row != it->row))
			return refuse(d, it, "its windows do not match those "
			              "of the other inputs");
		if (it->source == FROM_SAMPLES && rows
		    && rows->array->dim[0] != it->array->dim[0])
			return refuse(d, it, "its array has another number of "
			              "samples");
		if (it->source == FROM_SAMPLES && rows
		    && rows->rows != it->rows)
			return refuse(d, it, "its first axis differs from that "
			              "of the other inputs");
		if (w)
			window = it;
		else if (it->source == FROM_SAMPLES)
			rows = it;
	}
	return CKR_OK;
}

/* ---- filling ---- */

static ckr_status
read_into(struct data *d, const struct item *it, const struct array *a,
          uint64_t first, uint64_t n, uint64_t at)
{
	const struct ckr_tensor *t = it->t;
	char *to = rt_at(d->ctx, &d->ctx->arena, t);

	return array_read(&d->file, a, first, n, t->dtype,
	                  to + at * dtype_row[t->dtype].nbytes, &d->ctx->err);
}

static void
fill(struct data *d, const struct item *it)
{
	const struct ckr_tensor *t = it->t;
	char *to = rt_at(d->ctx, &d->ctx->arena, t);
	uint64_t n = rt_nelem(t);
	size_t bad;

	for (uint64_t i = 0; i < n; i++) {
		int64_t x = it->source == FROM_ONES ? 1
		            : it->source == FROM_POSITIONS
		            ? (int64_t)(i % it->row) : 0;

		dtype_convert(to + i * dtype_row[t->dtype].nbytes, t->dtype,
		              &x, CKR_I64, 1, &bad);
	}
}

/* Contents that never change are set once. */
static ckr_status
fill_once(struct data *d)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct item *it = &d->item[i];

		if (it->source >= FROM_ONES)
			fill(d, it);
		else if (it->source == FROM_WHOLE)
			CKR_TRY(read_into(d, it, it->array, 0, rt_nelem(it->t),
			                  0));
	}
	return CKR_OK;
}

static ckr_status
feed_windows(struct data *d, const struct item *it, uint64_t batch)
{
	uint64_t seed = ckr_seed(d->ctx);
	uint64_t starts = d->stream->nelem - it->row - d->next + 1;

	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t at = rng_below(seed, RNG_WINDOW, batch * it->rows + r,
		                        starts);

		CKR_TRY(read_into(d, it, d->stream,
		                  at + (it->source == FROM_NEXT), it->row,
		                  r * it->row));
	}
	return CKR_OK;
}

static ckr_status
feed_rows(struct data *d, const struct item *it, uint64_t batch)
{
	uint64_t seed = ckr_seed(d->ctx);
	uint64_t all = (uint64_t)it->array->dim[0];

	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t i = batch * it->rows + r;

		i = rng_shuffled(seed, i / all, i % all, all);
		CKR_TRY(read_into(d, it, it->array, i * it->row, it->row,
		                  r * it->row));
	}
	return CKR_OK;
}

ckr_status
data_feed(void *user, ckr_ctx *ctx, uint64_t step, uint32_t micro)
{
	struct data *d = user;
	uint32_t nmicro = ckr_micro_batches(ctx);
	uint64_t batch = step * nmicro + micro;

	for (size_t i = 0; i < d->n; i++) {
		const struct item *it = &d->item[i];
		uint64_t n = rt_nelem(it->t);

		if (it->source == FROM_TOKENS || it->source == FROM_NEXT)
			CKR_TRY(feed_windows(d, it, batch));
		else if (it->source == FROM_SAMPLES)
			CKR_TRY(feed_rows(d, it, batch));
		else if (it->source == FROM_WHOLE && it->array->nelem > n)
			CKR_TRY(read_into(d, it, it->array, micro * n, n, 0));
	}
	return CKR_OK;
}

/* ---- opening ---- */

static ckr_status
open_file(struct data *d, const struct data_options *o)
{
	struct err *e = &d->ctx->err;
	uint8_t raw = CKR_NONE;

	if (o->inputs)
		return array_open(&d->file, o->inputs, e);
	if (!o->data)
		return CKR_OK;
	if (!o->tokens)
		return array_open(&d->file, o->data, e);
	if (!strcmp(o->tokens, "u16"))
		raw = CKR_U16;
	else if (!strcmp(o->tokens, "u32"))
		raw = CKR_U32;
	else if (!strcmp(o->tokens, "bytes"))
		raw = CKR_U8;
	else
		return err_set(e, CKR_EARG, "--tokens '%s': expected u16, u32 "
		               "or bytes", o->tokens);
	return array_open_raw(&d->file, o->data, raw, e);
}

static ckr_status
list_inputs(struct data *d)
{
	const struct ckr_library *lib = d->ctx->lib;
	const struct ckr_tensor *tensor = lib->program[0].tensor;

	d->item = calloc(lib->nshared + 1, sizeof(*d->item));
	if (!d->item)
		return err_set(&d->ctx->err, CKR_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < lib->nshared; i++)
		if (tensor[i].kind == CKR_INPUT)
			d->item[d->n++].t = &tensor[i];
	return CKR_OK;
}

static ckr_status
decide(struct data *d, const struct data_options *o)
{
	bool whole = o->inputs != NULL;
	bool *said = calloc(d->n + 1, sizeof(*said));
	ckr_status s = CKR_OK;

	if (!said)
		return err_set(&d->ctx->err, CKR_ENOMEM, "out of memory");
	if (!whole)
		d->stream = find_stream(&d->file);
	for (size_t i = 0; i < o->nfeed && s == CKR_OK; i++)
		s = feed_one(d, o->feed[i], whole);
	for (size_t i = 0; i < d->n && s == CKR_OK; i++) {
		said[i] = d->item[i].source != FROM_NOWHERE;
		if (!said[i])
			s = give_default(d, &d->item[i], whole);
	}
	if (s == CKR_OK)
		s = check_ids(d, said);
	free(said);
	return s;
}

/* What a step's throughput counts: tokens if there are any, else samples. */
static void
count_units(struct data *d)
{
	uint32_t nmicro = ckr_micro_batches(d->ctx);

	for (size_t i = 0; i < d->n; i++) {
		const struct ckr_tensor *t = d->item[i].t;

		if (!d->units)
			d->units = nmicro * (t->rank ? (uint64_t)t->dim[0] : 1);
		if (is_int(t->dtype) && t->rank >= 2 && !d->unit_tokens
		    && by_meaning(t) == FROM_TOKENS) {
			d->unit_tokens = true;
			d->units = nmicro * rt_nelem(t);
		}
	}
}

ckr_status
data_open(struct data *d, ckr_ctx *ctx, const struct data_options *o)
{
	*d = (struct data){ .ctx = ctx, .file = { .fd = -1 } };
	CKR_TRY(open_file(d, o));
	CKR_TRY(list_inputs(d));
	CKR_TRY(decide(d, o));
	for (size_t i = 0; i < d->n; i++)
		d->next |= d->item[i].source == FROM_NEXT;
	for (size_t i = 0; i < d->n; i++)
		CKR_TRY(check_item(d, &d->item[i]));
	CKR_TRY(check_together(d));
	count_units(d);
	return fill_once(d);
}

void
data_close(struct data *d)
{
	array_close(&d->file);
	free(d->item);
	*d = (struct data){ .file = { .fd = -1 } };
}
