/* Roles of inputs and arrays by their names: labels, masks, positions,
 * tokens. */
#include "runtime/data/pair.h"

#include <string.h>

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
