/* What names say: labels, masks, positions, tokens. */
#include "runtime/data/pair.h"

#include <string.h>

static bool
holds(const char *name, const char *word)
{
	return strcasestr(name, word) != NULL;
}

bool
pair_is_label(const struct input *in)
{
	return in->shifted || holds(in->name, "label")
	       || holds(in->name, "target") || !strcmp(in->name, "y");
}

enum source
pair_role(const char *name)
{
	if (holds(name, "mask"))
		return FROM_ONES;
	if (holds(name, "position") || !strcmp(name, "pos"))
		return FROM_POSITIONS;
	if (holds(name, "token_type") || holds(name, "segment"))
		return FROM_ZEROS;
	return FROM_NOWHERE;
}

enum source
pair_meaning(const struct input *in)
{
	char kind = pair_kind(in->dtype);
	enum source r = pair_role(in->name);

	if (kind == 'f' || (kind == 'b' && r != FROM_ONES))
		return FROM_NOWHERE;
	if (in->shifted)
		return FROM_TOKENS;
	if (r != FROM_NOWHERE)
		return r;
	return pair_is_label(in) ? FROM_NEXT : FROM_TOKENS;
}

bool
pair_takes_tokens(const struct pairing *p, const struct item *but)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct item *it = &p->item[i];

		if (it != but && (it->source == FROM_TOKENS
		                  || (it->source == FROM_NOWHERE
		                      && pair_meaning(&it->in)
		                         == FROM_TOKENS)))
			return true;
	}
	return false;
}
