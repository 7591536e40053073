#include "passes/recursive/step_list.h"

#include <string.h>

bool
steps_add(struct step_list *s, NodeId node, bool clone, uint32_t makes)
{
	if (s->n >= s->limit)
		return false;
	if (s->n == s->cap) {
		struct rstep *old = s->step;
		int32_t cap = s->cap ? 2 * s->cap : 1024;

		s->step = arena_array(s->arena, (size_t)cap, sizeof *s->step);
		if (s->n)
			memcpy(s->step, old, (size_t)s->n * sizeof *old);
		s->cap = cap;
	}
	s->step[s->n++] = (struct rstep){ .node = node, .clone = clone,
	                                     .makes = makes };
	return true;
}
