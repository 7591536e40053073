/* Micro-batches: their inputs, and the divisor of their losses, which is
 * counted over all of them before the step.
 *
 * The instructions of a count pass run for every micro-batch, with its inputs,
 * and add to totals, which stay in memory; then those of the next pass.  So the
 * inputs that a pass reads (ckr_needs_input) are set once more for every pass.
 * A hash checks that they are the same each time: a loss over other labels than
 * were counted would be silently wrong.
 */
#include "runtime/stepping/inside.h"

#include <stdlib.h>

/* Whether a count pass reads the input, or a view of it. */
static bool
is_read_by_count(const struct ckr_program *p, const struct ckr_tensor *input)
{
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];

		for (uint32_t k = 0; s->phase >= CKR_COUNT && k < s->narg;
		     k++) {
			int32_t at = p->arg[s->arg0 + k];

			if (at >= 0 && p->tensor[at].flags & CKR_RESIDENT
			    && tensor_overlaps(&p->tensor[at], input))
				return true;
		}
	}
	return false;
}

ckr_status
count_open(struct stepping *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct count *n = &c->count;

	for (uint32_t i = 0; i < p->ninstr; i++)
		if (p->instr[i].phase - CKR_COUNT >= n->npass)
			n->npass = p->instr[i].phase - CKR_COUNT + 1;
	if (!n->npass)
		return CKR_OK;
	n->input = calloc(c->lib->nshared + 1, 1);
	n->hash = calloc(library_micro_batches(c->lib), sizeof(*n->hash));
	if (!n->input || !n->hash)
		return err_no_memory(c->err);
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		uint32_t tied = p->tensor[i].tied;

		n->input[tied ? tied - 1 : i] |= p->tensor[i].kind == CKR_INPUT
			&& is_read_by_count(p, &p->tensor[i]);
	}
	return CKR_OK;
}

void
count_close(struct stepping *c)
{
	free(c->count.input);
	free(c->count.hash);
	c->count = (struct count){ .npass = 0 };
}

void
stepping_set_feed(struct stepping *c, step_feed_fn *feed, void *user)
{
	c->feed = feed;
	c->feed_user = user;
}

ckr_status
stepping_need_fed(struct stepping *c)
{
	CKR_TRY(world_need_ready(c->world));
	return c->feeding ? err_set(c->err, CKR_EARG, "inputs of a step are "
	                            "being set: return from the feed function "
	                            "first") : CKR_OK;
}

bool
stepping_reads_input(const struct stepping *c, uint32_t i)
{
	return !c->count.pass || c->count.input[i];
}

/* Hash of the inputs that count passes read, as they are set now. */
static uint64_t
hash_inputs(struct stepping *c)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	uint64_t h = 1;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		struct ckr_tensor whole = world_whole(c->world, &t[i]);
		const void *at = world_input(c->world, &t[i]);

		if (c->count.input[i])
			h = mem_hash(h, at ? at : world_plan_at(c->world, 0,
				&t[i]), whole.nbytes);
	}
	return h;
}

/* Fails if the inputs just set differ from those that were counted. */
static ckr_status
check_recounted_inputs(struct stepping *c, uint32_t micro)
{
	uint64_t h;

	if (!c->count.npass || !c->feed)
		return CKR_OK;
	h = hash_inputs(c);
	if (c->count.pass == 1)
		c->count.hash[micro] = h;
	return h == c->count.hash[micro] ? CKR_OK
	       : err_set(c->err, CKR_EARG, "step %llu, micro-batch %u: the "
	                 "inputs differ from those of the pass that counts the "
	                 "divisor of the loss; expected the same inputs each "
	                 "time a micro-batch of a step is requested",
	                 (unsigned long long)c->progress->step + 1, micro + 1);
}

static ckr_status
call_feed(struct stepping *c, uint32_t micro)
{
	ckr_status s;

	c->err->text[0] = '\0';
	c->feeding = true;
	s = c->feed(c->feed_user, c->progress->step, micro);
	c->feeding = false;
	if (s != CKR_OK && !c->err->text[0])
		err_set(c->err, s, "the function that sets inputs failed");
	return s;
}

ckr_status
count_feed(struct stepping *c, uint32_t micro)
{
	if (c->feed && !c->async.inputs_placed) {
		CKR_TRY(call_feed(c, micro));
		CKR_TRY(check_recounted_inputs(c, micro));
	}
	/* what is counted reads some of them alone */
	return c->count.pass ? CKR_OK : world_need_inputs(c->world, true);
}

ckr_status
count_begin_micro(struct stepping *c, const struct loaded_program *b)
{
	if (!c->async.inputs_placed)
		CKR_TRY(world_scatter_inputs(c->world, c->count.pass
		                             ? c->count.input : NULL));
	CKR_TRY(env_send(c));
	for (uint32_t r = 0; r < c->world->count && c->world->poison
	     && c->world->stages == 1; r++)
		if (b->arena[r].p)
			c->device->call->fill(c->device, b->arena[r].p, 0xff,
			                      b->arena[r].size);
	return CKR_OK;
}
