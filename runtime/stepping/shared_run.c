/* The run that libraries of one model share: who takes part, and what one of
 * them changes for all. */
#include "runtime/stepping/inside.h"

#include <math.h>
#include <stdlib.h>

ckr_status
run_start(struct stepping *c, uint64_t seed)
{
	c->next = c;
	c->run = calloc(1, sizeof(*c->run));
	if (!c->run)
		return err_no_memory(c->err);
	c->progress = &c->run->progress;
	c->progress->seed = seed;
	c->progress->scale = SCALE_FIRST;
	c->progress->best = INFINITY;
	return CKR_OK;
}

/* The shared arena may move, and loses its values, when memory is opened. */
void
run_join(struct stepping *c, struct stepping *with)
{
	c->run = with->run;
	c->progress = with->progress;
	c->next = with->next;
	with->next = c;
	run_forget_graphs(c);
	run_forget_outputs(c);
}

void
run_leave(struct stepping *c)
{
	struct stepping *before = c;

	while (before->next != c)
		before = before->next;
	before->next = c->next;
	if (before != c || !c->run)
		return;
	free(c->run->group);
	free(c->run);
}

void
run_forget_graphs(struct stepping *c)
{
	struct stepping *o = c;

	do
		o->async.stale = true;
	while ((o = o->next) != c);
}

void
run_forget_outputs(struct stepping *c)
{
	struct stepping *o = c;

	do
		o->outputs = NULL;
	while ((o = o->next) != c);
}
