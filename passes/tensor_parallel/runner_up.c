/* The runner-up: the best sharding strategy in which a value has another
 * placement.
 *
 * Solve the program again with the chosen placement excluded and the value's
 * node in a class alone, so that equal nodes elsewhere keep their placements.
 */
#include "passes/tensor_parallel/strategy_ilp.h"

static struct runner_up
find_runner_up(struct shard *s, ValId v)
{
	struct strategy_ilp m = { .s = s, .isolated = entity_of(s, v),
		.excluded = shard_placement(s, v) };
	const struct strategy_set *c = shard_producer(s, v, &m.value_index);
	struct ilp_answer a = strategy_ilp_solve(&m);
	struct runner_up x = { .value = s->g->val[v].name, .sec = -1 };

	if (!a.x)
		return x;
	x.sec = a.objective / 1e3;
	x.placement = placement_unmerged(c->strategy[strategy_ilp_choice(&m, &a,
	                             m.isolated)].at[m.value_index]);
	return x;
}

void
shard_find_runner_up(struct shard *s)
{
	Pass *p = s->pass;
	size_t cap = 0;

	FOR_VALS (v, s->g) {
		int value_index;

		if (!val_is_named(v, p->opt->explain)
		    || !shard_producer(s, val_id(s->g, v), &value_index)->n)
			continue;
		p->result.runner_up = arena_grow(p->keep, p->result.runner_up,
		                          (size_t)p->result.nrunner_up, &cap,
		                          (size_t)p->result.nrunner_up + 1,
		                          sizeof *p->result.runner_up);
		p->result.runner_up[p->result.nrunner_up++] = find_runner_up(s,
		                                               val_id(s->g, v));
	}
}
