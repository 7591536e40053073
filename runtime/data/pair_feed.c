/* Parsing of --feed INPUT=SOURCE.
 *
 * SOURCE is a word, WORD:ARRAY, or an array, which wins over a word of its
 * name if it fits:
 *
 *	tokens, next    windows of the array, or of the only stream there is
 *	rows            its rows, or those of the only array there is
 *	float, int      the same, converted from the other kind
 *	hwc, chw        the same, images that lie so
 *	ones, zeros, positions
 */
#include "runtime/data/pair.h"

#include <stdio.h>
#include <string.h>

const struct source_word source_word[] = {
	{ "tokens", FROM_TOKENS, 0, 0, true },
	{ "next", FROM_NEXT, 0, 0, true }, { "rows", FROM_SAMPLES, 0, 0, true },
	{ "float", FROM_SAMPLES, 'f', 0, true },
	{ "int", FROM_SAMPLES, 'i', 0, true },
	{ "hwc", FROM_SAMPLES, 0, 'h', true },
	{ "chw", FROM_SAMPLES, 0, 'c', true },
	{ "ones", FROM_ONES, 0, 0, false },
	{ "zeros", FROM_ZEROS, 0, 0, false },
	{ "positions", FROM_POSITIONS, 0, 0, false },
};
const size_t source_words = sizeof(source_word) / sizeof(*source_word);

ckr_status
pair_refuse(const struct pairing *p, const struct fed_input *it,
            const char *why)
{
	p->refused->input = it;
	snprintf(p->refused->why, sizeof(p->refused->why), "%s", why);
	return CKR_EARG;
}

/* What would come of an array of another kind. */
static const char *
conversion_hint(const struct array *a, const struct input_spec *in)
{
	char from = pair_kind(a->dtype), to = pair_kind(in->dtype);

	if (a->dtype == CKR_U8 && to == 'f')
		return ": integers would stay unscaled, pixels from 0 to 255; "
		       "--normalize MEAN,STD scales pixels: 0,1 to the range 0 "
		       "to 1";
	if (from == 'i' && to == 'f')
		return ": integers would stay unscaled, pixels from 0 to 255";
	return from == 'f' && to == 'i' ? ": floats are not integers" : "";
}

/* How pixels go in, if they are not converted as any numbers are. */
static ckr_status
assign_pixels(const struct pairing *p, struct fed_input *it,
              const struct array *a, char convert)
{
	const struct input_spec *in = &it->in;
	struct pixels x;

	it->pixels = (struct pixels){ 0 };
	if (p->whole || pair_kind(in->dtype) != 'f'
	    || !pixels_fit(&x, a, in->rank, in->dim))
		return CKR_OK;
	if (it->layout && x.transposed
	    && (it->layout == 'h') != !strncmp(x.transposed, "HWC", 3))
		return pair_refuse(p, it, "the shape of the images determines "
		                   "their layout, and --feed names another "
		                   "one");
	if (!convert && x.ambiguous && !it->layout)
		return pair_refuse(p, it, "images with as many rows and "
		                   "columns as channels may be HWC or CHW");
	if (x.ambiguous)
		pixels_transpose(&x, a, it->layout == 'h');
	if (!convert && !pixels_split(&x, &p->normal, in->rank, in->dim))
		return pair_refuse(p, it, "--normalize has one mean per "
		                   "channel, but no single axis of the input "
		                   "has that many channels");
	x.normal = convert ? NULL : &p->normal;
	if (x.normal || x.transposed)
		it->pixels = x;
	return CKR_OK;
}

ckr_status
pair_assign(struct pairing *p, struct fed_input *it, const struct array *a,
            char convert)
{
	char why[320], text[128];

	array_text(text, sizeof(text), a->dtype, a->rank, a->dim);
	if (!pair_fits(p, a, &it->in)) {
		snprintf(why, sizeof(why), "the assigned array is %s, which "
		         "does not fit", text);
		return pair_refuse(p, it, why);
	}
	if (convert ? pair_kind(it->in.dtype) != convert
	              || !pair_kind(a->dtype) : !pair_accepts(p, a, &it->in)) {
		snprintf(why, sizeof(why), "the assigned array is %s, of "
		         "another kind%s", text, conversion_hint(a, &it->in));
		return pair_refuse(p, it, why);
	}
	CKR_TRY(assign_pixels(p, it, a, convert));
	it->array = a;
	it->source = p->whole || !it->in.rank ? FROM_WHOLE : FROM_SAMPLES;
	return CKR_OK;
}

/* The word at the head of "WORD" or "WORD:ARRAY"; *array: what follows the
 * colon, NULL if there is none. */
static const struct source_word *
find_source_word(const char *text, const char **array)
{
	size_t n = strcspn(text, ":");

	*array = text[n] ? text + n + 1 : NULL;
	for (size_t i = 0; i < source_words; i++)
		if (strlen(source_word[i].word) == n
		    && !memcmp(source_word[i].word, text, n)
		    && (!*array || source_word[i].array))
			return &source_word[i];
	return NULL;
}

static ckr_status
assign_word(struct pairing *p, struct fed_input *it,
            const struct source_word *w, const char *name)
{
	const struct array *a = name ? pair_find(p, name) : NULL;

	if (name && !a)
		return pair_refuse(p, it, "--feed names an array that is not "
		                   "in the file");
	it->layout = w->layout;
	if (w->source == FROM_SAMPLES) {
		if (!a && p->narray == 1 && !p->raw)
			a = p->array;
		return a ? pair_assign(p, it, a, w->kind)
		         : pair_refuse(p, it, "--feed does not name an array "
		                       "of the file");
	}
	if (p->whole && w->source <= FROM_NEXT)
		return pair_refuse(p, it, "--inputs holds batches, not a token "
		                   "stream");
	if (a && !pair_is_stream(a))
		return pair_refuse(p, it, "the array that --feed names is not "
		                   "a token stream; expected a list of "
		                   "integers");
	it->source = w->source;
	it->array = a;
	return CKR_OK;
}

struct fed_input *
pair_feed_input(struct pairing *p, const char *spec, const char **source)
{
	struct fed_input *found = NULL;
	size_t most = 0;

	for (size_t i = 0; i < p->n; i++) {
		size_t n = strlen(p->item[i].in.name);

		if (strncmp(p->item[i].in.name, spec, n) || spec[n] != '='
		    || (found && n < most))
			continue;
		found = &p->item[i];
		most = n;
		*source = spec + n + 1;
	}
	return found;
}

static ckr_status
unknown_input(const struct pairing *p, const char *spec)
{
	char list[600] = "", text[NAME_TEXT], name[NAME_TEXT];

	for (size_t i = 0; i < p->n; i++)
		err_append(list, sizeof(list), "%s'%s'",
		           i ? ", " : "; expected one of ",
		           err_name(name, sizeof(name), p->item[i].in.name));
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(spec, "="), spec);
	return err_set(p->err, CKR_EARG, "--feed '%s': the model has no input "
	               "'%s'%s", err_name(name, sizeof(name), spec), text,
	               list);
}

ckr_status
pair_feed(struct pairing *p, const char *spec)
{
	const char *eq = strchr(spec, '='), *source = "", *name;
	struct fed_input *it = pair_feed_input(p, spec, &source);
	const struct source_word *w;
	const struct array *a;
	char text[NAME_TEXT];

	if (!eq || !eq[1])
		return err_set(p->err, CKR_EARG, "--feed '%s': expected "
		               "INPUT=SOURCE", err_name(text, sizeof(text),
		                                        spec));
	if (!it)
		return unknown_input(p, spec);
	if (it->explicit)
		return pair_refuse(p, it, "--feed names the input twice");
	a = pair_find(p, source);
	w = find_source_word(source, &name);
	if (a && w && pair_fits(p, a, &it->in)) {
		if (pair_is_stream(a) && w->source <= FROM_NEXT)
			return pair_refuse(p, it, "--feed is ambiguous: token "
			                   "windows, or rows of the array with "
			                   "that name");
		w = NULL;
	}
	it->explicit = true;
	if (w)
		return assign_word(p, it, w, name);
	return a ? pair_assign(p, it, a, 0)
	         : pair_refuse(p, it, "--feed names neither a source nor an "
	                       "array of the file");
}
