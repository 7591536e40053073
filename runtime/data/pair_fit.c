/* Which arrays fit which inputs: by shapes, by kinds of types, and by the roles
 * that names suggest: labels, masks, positions, tokens. */
#include "runtime/data/pair.h"

#include <string.h>

/* ---- shapes and kinds ---- */

char
pair_kind(uint8_t dtype)
{
	return dtype_row[dtype].cls == 'u' ? 'i' : dtype_row[dtype].cls;
}

bool
pair_is_stream(const struct array *a)
{
	return a->rank == 1 && pair_kind(a->dtype) == 'i';
}

/* Rows of array a, taken along its first axis, make up the input; or both are
 * one number. */
static bool
fits_rows(const struct array *a, const struct input_spec *in)
{
	return a->rank == in->rank
	       && (!in->rank
	           || !memcmp(a->dim + 1, in->dim + 1,
	                      (size_t)(in->rank - 1) * sizeof(*a->dim)));
}

bool
pair_fits(const struct pairing *p, const struct array *a,
          const struct input_spec *in)
{
	struct pixels pixels;

	if (p->raw)
		return false;
	if (!p->whole)
		return fits_rows(a, in)
		       || (pair_kind(in->dtype) == 'f'
		           && pixels_fit(&pixels, a, in->rank, in->dim));
	if (a->rank != in->rank)
		return false;
	if (!memcmp(a->dim, in->dim, (size_t)a->rank * sizeof(*a->dim)))
		return true;
	return fits_rows(a, in) && a->dim[0] == in->dim[0] * p->nmicro;
}

/* Whether --normalize turns rows of pixels into what the input takes: bytes,
 * or, if names or --feed say so, integers that have to fit them. */
static bool
scales_pixels(const struct pairing *p, const struct array *a,
              const struct input_spec *in)
{
	struct pixels pixels;

	return p->normal.n && !p->whole && pair_kind(in->dtype) == 'f'
	       && pixels_fit(&pixels, a, in->rank, in->dim);
}

/* Truth values are 0 and 1 anywhere. */
bool
pair_accepts(const struct pairing *p, const struct array *a,
             const struct input_spec *in)
{
	char from = pair_kind(a->dtype), to = pair_kind(in->dtype);

	return from && (from == to || from == 'b' || (to == 'b' && from == 'i')
	                || scales_pixels(p, a, in));
}

const struct array *
pair_find(const struct pairing *p, const char *name)
{
	for (size_t i = 0; *name && i < p->narray; i++)
		if (!strcmp(p->array[i].name, name))
			return &p->array[i];
	return NULL;
}

bool
pair_used(const struct pairing *p, const struct array *a)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->item[i].array == a)
			return true;
	return false;
}

bool
pair_takes_window(const struct fed_input *it)
{
	return it->source == FROM_TOKENS || it->source == FROM_NEXT;
}

int64_t
pair_samples(const struct pairing *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->item[i].source == FROM_SAMPLES)
			return p->item[i].array->dim[0];
	return -1;
}

/* ---- roles ---- */

static bool
has_word(const char *name, const char *word)
{
	return strcasestr(name, word) != NULL;
}

bool
pair_is_label(const struct input_spec *in)
{
	return in->shifted || has_word(in->name, "label")
	       || has_word(in->name, "target") || !strcmp(in->name, "y");
}

enum feed_source
pair_role(const char *name)
{
	if (has_word(name, "mask"))
		return FROM_ONES;
	if (has_word(name, "position") || !strcmp(name, "pos"))
		return FROM_POSITIONS;
	if (has_word(name, "token_type") || has_word(name, "segment"))
		return FROM_ZEROS;
	return FROM_NOWHERE;
}

enum feed_source
pair_meaning(const struct input_spec *in)
{
	char kind = pair_kind(in->dtype);
	enum feed_source r = pair_role(in->name);

	if (kind == 'f' || (kind == 'b' && r != FROM_ONES))
		return FROM_NOWHERE;
	if (in->shifted)
		return FROM_TOKENS;
	if (r != FROM_NOWHERE)
		return r;
	return pair_is_label(in) ? FROM_NEXT : FROM_TOKENS;
}

bool
pair_takes_tokens(const struct pairing *p, const struct fed_input *but)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct fed_input *it = &p->item[i];

		if (it != but && (it->source == FROM_TOKENS
		                  || (it->source == FROM_NOWHERE
		                      && pair_meaning(&it->in)
		                         == FROM_TOKENS)))
			return true;
	}
	return false;
}

/* ---- all together ---- */

bool
pair_could_feed(const struct pairing *p, const struct array *a,
                const struct fed_input *it)
{
	int64_t n;

	if (!pair_fits(p, a, &it->in)
	    || (pair_kind(a->dtype) != pair_kind(it->in.dtype)
	        && !(a->dtype == CKR_U8 && scales_pixels(p, a, &it->in)))
	    || pair_role(a->name) != pair_role(it->in.name)
	    || a == p->stream || pair_used(p, a))
		return false;
	if (p->whole)           /* these go by their names */
		return !*a->name;
	n = a->rank ? pair_samples(p) : 0;
	return n < 0 ? !pair_is_stream(a) : a->dim[0] == n;
}
