/* The runner-up: the best sharding strategy in which a value has another
 * placement.
 *
 * The program once more, in which the value's node is like no other, so that
 * the equals of its layer elsewhere stay as they are wanted there, and may not
 * give the state chosen.
 */
#include "passes/shard/layout.h"

#include <string.h>

static bool
is_named(const Val *v, const char *name)
{
	return strcmp(v->name, name) == 0
		|| (v->onnx && strcmp(v->onnx, name) == 0);
}

static struct second
find_second(struct shard *s, ValId v)
{
	struct layout l = { .s = s, .alone = entity_of(s, v),
		.not = shard_state(s, v) };
	const struct choice *c = shard_giver(s, v, &l.port);
	struct ilp_answer a = layout_solve(&l);
	struct second x = { .value = s->g->val[v].name, .sec = -1 };

	if (!a.x)
		return x;
	x.sec = a.objective / 1e3;
	x.state = split_plain(c->way[layout_taken(&l, &a, l.alone)]
	                      .at[l.port]);
	return x;
}

void
shard_find_second(struct shard *s)
{
	Pass *p = s->pass;
	size_t cap = 0;

	FOR_VALS (v, s->g) {
		int port;

		if (!is_named(v, p->opt->explain)
		    || !shard_giver(s, val_id(s->g, v), &port)->n)
			continue;
		p->second = arena_grow(p->keep, p->second, (size_t)p->nsecond,
		                       &cap, (size_t)p->nsecond + 1,
		                       sizeof *p->second);
		p->second[p->nsecond++] = find_second(s, val_id(s->g, v));
	}
}
