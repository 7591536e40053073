/* Matching of inputs with arrays.
 *
 * The source of an input is the first of these that applies:
 *
 *	--feed          the source that it names
 *	its name        the array with that name
 *	shape and kind  the one array left over whose rows fit it, if they
 *	                fit no other input left over and its name is of no
 *	                other role (mask, positions, token types); a list of
 *	                integers only beside rows that are as many, as it may
 *	                be tokens
 *	tokens          if the file holds nothing else, or an array "tokens",
 *	                and no input gets rows: ids take a window of the
 *	                stream, labels the same window one token on (or the
 *	                tokens themselves, if the graph shifts them), masks
 *	                ones, positions 0 1 2 ..., token types zeros
 *
 * Anything else is an error: silence would train on nonsense.  So are
 * windows beside rows that --feed did not ask for, as nothing relates the two,
 * and integers for a float input or the reverse without --feed float: or int:.
 */
#include "runtime/data/pair.h"

#include <string.h>

static bool
any_window(const struct pairing *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (pair_takes_window(&p->item[i]))
			return true;
	return false;
}

/* ---- inputs without --feed ---- */

/* An array of the input's own name.  If its rows do not fit, it may still be
 * the stream; check_named_arrays looks again. */
static ckr_status
pair_by_name(struct pairing *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct fed_input *it = &p->item[i];
		const struct array *a = pair_find(p, it->in.name);

		if (it->explicit || !a || (!p->whole && pair_is_stream(a)
		                           && !pair_fits(p, a, &it->in)))
			continue;
		CKR_TRY(pair_assign(p, it, a, 0));
	}
	return CKR_OK;
}

/* The only array for an input that is the only input for it. */
static const struct array *
only_candidate(const struct pairing *p, const struct fed_input *it)
{
	const struct array *a = NULL;
	size_t takers = 0;

	for (size_t k = 0; k < p->narray; k++) {
		if (!pair_could_feed(p, &p->array[k], it))
			continue;
		if (a)
			return NULL;
		a = &p->array[k];
	}
	for (size_t i = 0; a && i < p->n; i++)
		takers += p->item[i].source == FROM_NOWHERE
		          && pair_could_feed(p, a, &p->item[i]);
	return takers == 1 ? a : NULL;
}

/* Each pair found may settle the number of samples, and so others. */
static ckr_status
pair_by_shape(struct pairing *p)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			struct fed_input *it = &p->item[i];
			const struct array *a;

			if (it->source != FROM_NOWHERE)
				continue;
			a = only_candidate(p, it);
			if (!a)
				continue;
			CKR_TRY(pair_assign(p, it, a, 0));
			more = true;
		}
	}
	return CKR_OK;
}

/* The token stream: raw tokens, what --feed names, the array called "tokens",
 * or the only array there is, if it is a list of integers; if --feed asks for
 * windows, the only such list that nobody has. */
static ckr_status
find_stream(struct pairing *p)
{
	const struct array *named = pair_find(p, "tokens");
	size_t found = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct fed_input *it = &p->item[i];

		if (!pair_takes_window(it) || !it->array)
			continue;
		if (p->stream && p->stream != it->array)
			return pair_refuse(p, it, "token windows come from two "
			                   "arrays, whose positions do not "
			                   "correspond");
		p->stream = it->array;
	}
	if (!p->stream && named && pair_is_stream(named)
	    && !pair_used(p, named))
		p->stream = named;
	if (p->stream || (p->narray > 1 && !any_window(p)))
		return CKR_OK;
	for (size_t k = 0; k < p->narray; k++) {
		if (!pair_is_stream(&p->array[k])
		    || pair_used(p, &p->array[k]))
			continue;
		p->stream = &p->array[k];
		found++;
	}
	if (found == 1)
		return CKR_OK;
	p->stream = NULL;
	for (size_t i = 0; i < p->n; i++)
		if (pair_takes_window(&p->item[i]))
			return pair_refuse(p, &p->item[i], "there is no single "
			                   "token stream: expected one list of "
			                   "integers in --data, or --tokens");
	return CKR_OK;
}

/* Why an input gets nothing. */
static const char *
why_unassigned(const struct pairing *p, const struct fed_input *it)
{
	size_t could = 0, others = 0;

	for (size_t k = 0; k < p->narray; k++) {
		const struct array *a = &p->array[k];

		could += pair_could_feed(p, a, it);
		others += !p->whole && !pair_used(p, a)
		          && pair_fits(p, a, &it->in)
		          && pair_kind(a->dtype) == pair_kind(it->in.dtype);
	}
	if (could > 1)
		return "more than one array fits";
	if (could)
		return "the array that fits also fits another input";
	if (pair_samples(p) < 0)
		return "no data are assigned to the input";
	if (others)
		return "the array that fits has another number of samples than "
		       "the arrays of other inputs";
	if (p->stream && pair_kind(it->in.dtype) == 'i')
		return "other inputs read rows of samples, which token windows "
		       "do not correspond to";
	return "no data are assigned to the input";
}

/* Whether an input left over may have what its name means beside tokens: no
 * array could be meant instead, and no window comes beside rows that was not
 * asked for. */
static bool
has_meaning(const struct pairing *p, const struct fed_input *it)
{
	enum feed_source s = pair_meaning(&it->in);

	if (!p->stream || s == FROM_NOWHERE)
		return false;
	if (pair_samples(p) >= 0 && (s <= FROM_NEXT || !any_window(p)))
		return false;
	for (size_t k = 0; k < p->narray; k++)
		if (pair_could_feed(p, &p->array[k], it))
			return false;
	return true;
}

static ckr_status
pair_by_meaning(struct pairing *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		if (it->source == FROM_NOWHERE && !has_meaning(p, it))
			return pair_refuse(p, it, why_unassigned(p, it));
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->item[i].source == FROM_NOWHERE)
			p->item[i].source = pair_meaning(&p->item[i].in);
	return CKR_OK;
}

/* ---- whether it will do ---- */

/* The array of an input's own name goes to that input, or something is
 * misunderstood. */
static ckr_status
check_named_arrays(const struct pairing *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];
		const struct array *a = pair_find(p, it->in.name);
		char why[256], text[128];

		if (it->explicit || !a || a == it->array
		    || (a == p->stream && pair_meaning(&it->in) <= FROM_NEXT))
			continue;
		snprintf(why, sizeof(why), "the array with the input's name is "
		         "%s, which does not fit",
		         array_text(text, sizeof(text),
		                                       a->dtype, a->rank,
		                                       a->dim));
		return pair_refuse(p, it, why);
	}
	return CKR_OK;
}

/* Two inputs of unknown meaning would both take the tokens, or labels come
 * after tokens that nobody takes: ask. */
static ckr_status
check_ids(const struct pairing *p)
{
	const struct fed_input *ids = NULL, *labels = NULL;

	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		if (it->source == FROM_NEXT && !it->explicit)
			labels = it;
		if (it->source != FROM_TOKENS || pair_is_label(&it->in))
			continue;
		if (ids && !(ids->explicit && it->explicit))
			return pair_refuse(p, it->explicit ? ids : it,
			                   "more than "
			                   "one input could take the tokens");
		ids = it;
	}
	if (labels && !ids)
		return pair_refuse(p, labels, "no input takes the tokens that "
		                   "the labels follow");
	return CKR_OK;
}

static ckr_status
check_window(const struct pairing *p, struct fed_input *it)
{
	const struct input_spec *in = &it->in;
	uint64_t need;

	if (!in->rank || !in->nelem)
		return pair_refuse(p, it, "token windows need an input with an "
		                   "axis");
	if (pair_kind(in->dtype) != 'i')
		return pair_refuse(p, it, "tokens need an integer input");
	it->array = p->stream;
	it->rows = in->nelem / it->row;
	need = it->row + p->next;
	if (p->stream->nelem < need)
		return err_set(p->err, CKR_EARG, "%s: %llu tokens are too few "
		               "for windows of %llu tokens", p->path,
		               (unsigned long long)p->stream->nelem,
		               (unsigned long long)need);
	return CKR_OK;
}

/* Extents agree with the source. */
static ckr_status
check_item(struct pairing *p, struct fed_input *it)
{
	const struct input_spec *in = &it->in;

	it->row = in->rank ? (uint64_t)in->dim[in->rank - 1] : 1;
	if (pair_takes_window(it))
		return check_window(p, it);
	if (it->source != FROM_SAMPLES)
		return CKR_OK;
	it->rows = (uint64_t)in->dim[0];
	it->row = it->rows ? in->nelem / it->rows : 0;
	if (!it->array->dim[0])
		return pair_refuse(p, it, "the assigned array is empty");
	return CKR_OK;
}

static ckr_status
count_mismatch(const struct pairing *p, const struct fed_input *it,
               const struct fed_input *rows)
{
	char why[NAME_TEXT + 128], name[NAME_TEXT];

	snprintf(why, sizeof(why), "its array has %lld samples, but the array "
	         "of '%s' has %lld",
	         (long long)it->array->dim[0],
	         err_name(name, sizeof(name), rows->in.name),
	         (long long)rows->array->dim[0]);
	return pair_refuse(p, it, why);
}

/* All windows lie over each other, all arrays have as many samples. */
static ckr_status
check_together(const struct pairing *p)
{
	const struct fed_input *window = NULL, *rows = NULL;

	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		if (pair_takes_window(it)) {
			if (window && (window->rows != it->rows
			               || window->row != it->row))
				return pair_refuse(p, it, "its windows have "
				                   "another shape than those "
				                   "of the other inputs");
			window = it;
		}
		if (it->source != FROM_SAMPLES)
			continue;
		if (rows && rows->array->dim[0] != it->array->dim[0])
			return count_mismatch(p, it, rows);
		if (rows && rows->rows != it->rows)
			return pair_refuse(p, it, "its batch size differs from "
			                   "that of the other inputs");
		rows = it;
	}
	return CKR_OK;
}

ckr_status
pair_choose(struct pairing *p, const char *const *feed, size_t nfeed)
{
	p->feed = feed;
	p->nfeed = nfeed;
	if (p->raw)
		p->stream = p->array;
	for (size_t i = 0; i < nfeed; i++)
		CKR_TRY(pair_feed(p, feed[i]));
	CKR_TRY(pair_by_name(p));
	if (any_window(p))
		CKR_TRY(find_stream(p));
	CKR_TRY(pair_by_shape(p));
	if (!p->whole)
		CKR_TRY(find_stream(p));
	CKR_TRY(check_named_arrays(p));
	CKR_TRY(pair_by_meaning(p));
	CKR_TRY(check_ids(p));
	for (size_t i = 0; i < p->n; i++)
		p->next |= p->item[i].source == FROM_NEXT;
	for (size_t i = 0; i < p->n; i++)
		CKR_TRY(check_item(p, &p->item[i]));
	return check_together(p);
}
