/* Pairing with messages: the source of each input, and suggestions of --feed
 * options, which are tried. */
#include "runtime/data/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LISTED = 8, SHORT_NAME = 60 };

/* "'x' f32[2000,20]", without the name if it has none. */
static const char *
named_array(char *buf, size_t size, const struct array *a)
{
	char name[SHORT_NAME], shape[128];

	*buf = '\0';
	if (*a->name)
		err_append(buf, size, "'%s' ",
		           err_name(name, sizeof(name), a->name));
	err_append(buf, size, "%s", array_text(shape, sizeof(shape), a->dtype,
	                                       a->rank, a->dim));
	return buf;
}

static const char *
named_input(char *buf, size_t size, const struct input_spec *in)
{
	char name[SHORT_NAME], shape[128];

	snprintf(buf, size, "%s %s", err_name(name, sizeof(name), in->name),
	         array_text(shape, sizeof(shape), in->dtype, in->rank,
	                    in->dim));
	return buf;
}

static bool
is_guess(const struct fed_input *it)
{
	return !it->explicit && it->source >= FROM_ONES;
}

/* What becomes of the elements, if they are of another kind or order. */
static const char *
conversion(const struct pairing *p, const struct fed_input *it, char *buf,
           size_t size)
{
	const struct pixels *x = &it->pixels;
	const struct array *a = it->array;
	const struct input_spec *in = &it->in;
	char from = pair_kind(a->dtype), to = pair_kind(in->dtype);

	if (x->channels) {
		snprintf(buf, size, "%s%s%s", x->transposed ? ", " : "",
		         x->transposed ? x->transposed : "",
		         !x->normal ? ", converted"
		         : p->normal.n == 1 ? ", (x / 255 - mean) / std"
		         : ", (x / 255 - mean) / std by channel");
		return buf;
	}
	return from == to ? "" : to == 'b' ? ", true where not 0"
	       : from == 'b' ? ", 1 where true" : ", converted";
}

static const char *
source_text(const struct pairing *p, const struct fed_input *it, char *buf,
            size_t size)
{
	char array[220], how[80];
	const char *one_on = it->source == FROM_NEXT ? ", shifted by one "
	"token" : "";

	switch (it->source) {
	case FROM_NOWHERE:
		return "?";
	case FROM_TOKENS:
	case FROM_NEXT:
		if (*one_on && pair_takes_tokens(p, it))
			return "the same windows, shifted by one token";
		snprintf(buf, size, "token windows%s%s%s", one_on,
		         p->stream ? ", " : "", !p->stream ? ""
		         : named_array(array, sizeof(array), p->stream));
		return buf;
	case FROM_ONES:
		return "ones";
	case FROM_ZEROS:
		return "zeros";
	case FROM_POSITIONS:
		return "positions 0 1 2 ...";
	default:
		snprintf(buf, size, "%s of %s%s",
		         it->source == FROM_WHOLE ? "all" : "rows",
		         named_array(array, sizeof(array), it->array),
		         conversion(p, it, how, sizeof(how)));
		return buf;
	}
}

void
pair_print(const struct pairing *p, FILE *out)
{
	char text[300];
	bool guess = false;
	size_t unused = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		fprintf(out, "  %s", named_input(text, sizeof(text), &it->in));
		fprintf(out, " = %s%s\n", source_text(p, it, text,
		                                      sizeof(text)),
		        is_guess(it) ? " (a guess)" : "");
		guess |= is_guess(it);
	}
	for (size_t i = 0; i < p->narray; i++) {
		const struct array *a = &p->array[i];

		if (pair_used(p, a))
			continue;
		if (unused++ < MAX_LISTED)
			fprintf(out, "  not used: %s\n",
			        named_array(text, sizeof(text), a));
	}
	if (unused > MAX_LISTED)
		fprintf(out, "  and %zu more unused arrays\n",
		        unused - MAX_LISTED);
	if (guess)
		fputs("  to change a guess, try: --feed INPUT=SOURCE\n",
		      out);
}

/* ---- refusing ---- */

/* A line to type: --feed INPUT=WORD:ARRAY, either part of the source being
 * optional, in quotes if a shell would see more in it than a word. */
static void
add_line(char *buf, size_t size, const struct fed_input *it, const char *word,
         const char *array)
{
	char arg[3 * NAME_TEXT], input[NAME_TEXT], name[NAME_TEXT];
	const char *quote;

	snprintf(arg, sizeof(arg), "%s=%s%s%s",
	         err_name(input, sizeof(input), it->in.name), word,
	         *word && *array ? ":" : "",
	         err_name(name, sizeof(name), array));
	quote = strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
	               "XYZ0123456789_=:./,-") == strlen(arg) ? "" : "'";
	err_append(buf, size, "\n    --feed %s%s%s", quote, arg, quote);
}

/* The word that turns the array into the input's rows; "" if its name alone
 * will do, NULL if nothing does. */
static const char *
rows_word(const struct pairing *p, const struct array *a,
          const struct input_spec *in)
{
	if (!pair_accepts(p, a, in)) {
		if (!pair_kind(a->dtype) || pair_kind(in->dtype) == 'b')
			return NULL;
		return pair_kind(in->dtype) == 'f' ? "float" : "int";
	}
	for (size_t i = 0; i < source_words; i++)
		if (!strcmp(source_word[i].word, a->name))
			return "rows";
	return *a->name ? "" : "rows";
}

/* Whether another input has the array, or will by its name. */
static bool
is_taken(const struct pairing *p, const struct array *a,
         const struct fed_input *it)
{
	for (size_t i = 0; i < p->n; i++)
		if (&p->item[i] != it
		    && (p->item[i].array == a
		        || !strcmp(p->item[i].in.name, a->name)))
			return true;
	return false;
}

/* Whether a list of integers may well be tokens: one as long as an array of
 * samples rather belongs to those. */
static bool
may_be_tokens(const struct pairing *p, const struct array *a)
{
	for (size_t i = 0; i < p->narray; i++) {
		const struct array *b = &p->array[i];

		if (b->rank > 0 && !pair_is_stream(b)
		    && b->dim[0] == a->dim[0])
			return false;
	}
	return pair_is_stream(a) && !p->whole;
}

/* Whether the array has samples, as many as those that other inputs have. */
static bool
has_samples(const struct pairing *p, const struct array *a,
            const struct fed_input *it)
{
	if (p->whole || !a->rank)
		return true;
	for (size_t i = 0; i < p->n; i++)
		if (&p->item[i] != it && p->item[i].source == FROM_SAMPLES
		    && p->item[i].array->dim[0] != a->dim[0])
			return false;
	return a->dim[0] > 0;
}

/* What makes the array the input's; NULL: nothing, or what it has already.
 * Windows are one on only beside windows. */
static const char *
array_word(const struct pairing *p, const struct array *a,
           const struct fed_input *it)
{
	if (it->array == a)
		return NULL;
	if (pair_fits(p, a, &it->in))
		return has_samples(p, a, it) ? rows_word(p, a, &it->in)
		                             : NULL;
	if (!may_be_tokens(p, a) || !it->in.rank
	    || (p->stream && p->stream != a) || pair_kind(it->in.dtype) != 'i')
		return NULL;
	if (pair_meaning(&it->in) != FROM_NEXT)
		return "tokens";
	return pair_takes_tokens(p, it) ? "next"
	       : pair_samples(p) < 0 ? "tokens" : NULL;
}

/* Whether what another input has may be meant once more: what an autoencoder
 * is to give, but neither what goes beside tokens nor what has an array of its
 * own or could have one. */
static bool
can_reuse_array(const struct pairing *p, const struct fed_input *it)
{
	if (pair_role(it->in.name) != FROM_NOWHERE
	    || pair_find(p, it->in.name))
		return false;
	for (size_t i = 0; i < p->narray; i++)
		if (!pair_used(p, &p->array[i])
		    && !is_taken(p, &p->array[i], it))
			return false;
	return true;
}

/* Images that may lie so or so. */
static bool
has_ambiguous_layout(const struct pairing *p, const struct array *a,
                     const struct input_spec *in)
{
	struct pixels x;

	return p->normal.n && pair_kind(in->dtype) == 'f'
		&& pixels_fit(&x, a, in->rank, in->dim) && x.ambiguous;
}

/* All decided anew, in a copy without messages. */
static bool
try_feed(const struct pairing *p, const struct fed_input *it,
         struct fed_input *item, const char **feed, char *line)
{
	struct pair_refusal r = { 0 };
	struct err err;
	struct pairing t = { .item = item, .n = p->n, .array = p->array,
		.narray = p->narray, .path = p->path, .raw = p->raw,
		.whole = p->whole, .nmicro = p->nmicro,
		.normal = p->normal, .err = &err, .refused = &r };
	const char *source;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		item[i] = (struct fed_input){ .in = p->item[i].in };
	for (size_t i = 0; i < p->nfeed; i++) {
		struct fed_input *of = pair_feed_input(&t, p->feed[i], &source);

		if (of && of - item != it - p->item)
			feed[n++] = p->feed[i];
	}
	feed[n++] = line;
	return pair_choose(&t, feed, n) == CKR_OK
	       || (r.input && r.input - item != it - p->item);
}

/* Whether --feed INPUT=WORD:ARRAY would be accepted in place of the input's
 * --feed; word or array may be "". */
static bool
would_accept(const struct pairing *p, const struct fed_input *it,
             const char *word, const char *array)
{
	size_t size = strlen(it->in.name) + strlen(word) + strlen(array) + 3;
	struct fed_input *item = malloc(p->n * sizeof(*item));
	const char **feed = malloc((p->nfeed + 1) * sizeof(*feed));
	char *line = malloc(size);
	bool ok = false;

	if (item && feed && line) {
		snprintf(line, size, "%s=%s%s%s", it->in.name, word,
		         *word && *array ? ":" : "", array);
		ok = try_feed(p, it, item, feed, line);
	}
	free(item);
	free(feed);
	free(line);
	return ok;
}

/* Arrays that other inputs have, only if asked for.  How many. */
static size_t
add_arrays(const struct pairing *p, const struct fed_input *it, bool taken,
           char *buf, size_t size)
{
	size_t n = 0, tried = 0;

	for (size_t i = 0; i < p->narray && n < MAX_LISTED; i++) {
		const struct array *a = &p->array[i];
		bool ambiguous = has_ambiguous_layout(p, a, &it->in);
		const char *word = ambiguous ? "hwc" : array_word(p, a, it);

		if (!word || is_taken(p, a, it) != taken
		    || (taken && !pair_accepts(p, a, &it->in))
		    || tried++ > 4 * MAX_LISTED
		    || !would_accept(p, it, word, a->name))
			continue;
		add_line(buf, size, it, word, a->name);
		if (ambiguous)
			add_line(buf, size, it, "chw", a->name);
		n++;
	}
	return n;
}

/* What is missing: "f32[2000,3], a row for every sample". */
static void
add_missing(const struct pairing *p, const struct fed_input *it, char *buf,
            size_t size)
{
	const struct input_spec *in = &it->in;
	int64_t dim[CKR_MAX_DIMS], n = p->whole ? -1 : pair_samples(p);
	char shape[128];

	memcpy(dim, in->dim, sizeof(dim));
	if (n > 0)
		dim[0] = n;
	err_append(buf, size, " no array of the file fits; expected %s%s; "
	           "--feed INPUT=SOURCE also takes ones, zeros and positions",
	           array_text(shape, sizeof(shape), in->dtype, in->rank, dim),
	           p->whole || !in->rank ? "" : n <= 0 ? " or more rows"
	           : ", one row per sample");
}

/* Every line that could decide what an input gets. */
static void
add_lines(const struct pairing *p, const struct fed_input *it, char *buf,
          size_t size)
{
	size_t n;

	err_append(buf, size, "\n  possible sources:");
	n = add_arrays(p, it, false, buf, size);
	if (!n && can_reuse_array(p, it))
		n = add_arrays(p, it, true, buf, size);
	for (size_t i = 0; i < source_words; i++)
		if (source_word[i].source >= FROM_ONES
		    && (pair_meaning(&it->in) == source_word[i].source
		        || (source_word[i].source == FROM_ONES
		            && strcasestr(it->in.name, "mask")))) {
			add_line(buf, size, it, source_word[i].word, "");
			n++;
		}
	if (n)
		return;
	if (p->narray)
		add_missing(p, it, buf, size);
	else
		err_append(buf, size, " --data FILE");
}

/* What is known, cut before it takes the room of the lines. */
static void
add_lists(const struct pairing *p, char *buf, size_t size)
{
	char part[300], from[300];

	err_append(buf, size, "\n  inputs:");
	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		err_append(buf, size, "\n    %s = %s",
		           named_input(part, sizeof(part), &it->in),
		           source_text(p, it, from, sizeof(from)));
	}
	for (size_t i = 0; i < p->narray && i < MAX_LISTED; i++)
		err_append(buf, size, "%s%s", i ? ", " : "\n  the file holds: ",
		           named_array(part, sizeof(part), &p->array[i]));
	if (p->narray > MAX_LISTED)
		err_append(buf, size, ", ...");
}

/* Fail with a list of all inputs and arrays, and lines of options that would
 * decide. */
static ckr_status
explain(const struct pairing *p, const struct pair_refusal *r)
{
	const struct input_spec *in = &r->input->in;
	char text[1950], name[SHORT_NAME], shape[128];

	snprintf(text, sizeof(text), "input '%s' %s: %s",
	         err_name(name, sizeof(name), in->name),
	         array_text(shape, sizeof(shape), in->dtype, in->rank,
	                    in->dim), r->why);
	add_lists(p, text, 1200);
	add_lines(p, r->input, text, sizeof(text));
	return err_set(p->err, CKR_EARG, "%s", text);
}

ckr_status
pair_inputs(struct pairing *p, const char *const *feed, size_t nfeed)
{
	struct pair_refusal r = { 0 };
	ckr_status s;

	p->refused = &r;
	s = pair_choose(p, feed, nfeed);
	p->refused = NULL;
	return r.input ? explain(p, &r) : s;
}
