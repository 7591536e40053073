/* Micro-batches: their inputs, and the divisor of their losses, which is
 * counted over all of them before the step.
 *
 * The instructions of a count pass run for every micro-batch, with its inputs,
 * and add to totals, which stay in memory; then those of the next pass.  So the
 * inputs that a pass reads (ckr_needs_input) are set once more for every pass.
 * A hash checks that they are the same each time: a loss over other labels than
 * were counted would be silently wrong.
 */
#include "runtime/model/peers.h"

#include <stdlib.h>

/* ---- inputs ---- */

static bool
is_input_tensor(const struct ckr_tensor *t)
{
	return t->kind == CKR_INPUT;
}

/* Whether a count pass reads the input, or a view of it. */
static bool
is_read_by_count(const struct ckr_program *p, const struct ckr_tensor *input)
{
	int64_t from, to, lo, hi;

	rt_reach(input, &from, &to);
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];

		for (uint32_t k = 0; s->phase >= CKR_COUNT && k < s->narg;
		     k++) {
			int32_t at = p->arg[s->arg0 + k];

			if (at < 0 || !(p->tensor[at].flags & CKR_RESIDENT))
				continue;
			rt_reach(&p->tensor[at], &lo, &hi);
			if (lo < to && from < hi)
				return true;
		}
	}
	return false;
}

ckr_status
count_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct count *n = &c->count;

	for (uint32_t i = 0; i < p->ninstr; i++)
		if (p->instr[i].phase - CKR_COUNT >= n->npass)
			n->npass = p->instr[i].phase - CKR_COUNT + 1;
	if (!n->npass)
		return CKR_OK;
	n->input = calloc(c->lib->nshared + 1, 1);
	n->hash = calloc(ckr_micro_batches(c), sizeof(*n->hash));
	if (!n->input || !n->hash)
		return rt_no_memory(c);
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		n->input[i] = is_input_tensor(&p->tensor[i])
			&& is_read_by_count(p, &p->tensor[i]);
	return CKR_OK;
}

void
count_close(ckr_ctx *c)
{
	free(c->count.input);
	free(c->count.hash);
	c->count = (struct count){ .npass = 0 };
}

bool
count_wants(const ckr_ctx *c, uint32_t i)
{
	return !c->count.pass || c->count.input[i];
}

bool
ckr_needs_input(const ckr_ctx *c, const char *input)
{
	uint32_t i;

	return !c->count.pass || !rt_find(c, input, &i) || count_wants(c, i);
}

/* Hash of the inputs that count passes read, as they are set now. */
static uint64_t
hash_inputs(ckr_ctx *c)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	uint64_t h = 1;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		struct ckr_tensor whole = rt_whole(c, &t[i]);
		const void *at = rt_input_memory(c, &t[i]);

		if (c->count.input[i])
			h = mem_hash(h, at ? at : rt_at(c, &c->plan, 0, &t[i]),
			            whole.nbytes);
	}
	return h;
}

/* Fails if the inputs just set differ from those that were counted. */
static ckr_status
check_recounted_inputs(ckr_ctx *c, uint32_t micro)
{
	uint64_t h;

	if (!c->count.npass || !c->feed)
		return CKR_OK;
	h = hash_inputs(c);
	if (c->count.pass == 1)
		c->count.hash[micro] = h;
	return h == c->count.hash[micro] ? CKR_OK
	       : err_set(&c->err, CKR_EARG, "step %llu, micro-batch %u: the "
	                 "inputs differ from those of the pass that counts the "
	                 "divisor of the loss; expected the same inputs each "
	                 "time a micro-batch of a step is requested",
	                 (unsigned long long)c->step + 1, micro + 1);
}

static ckr_status
call_feed(ckr_ctx *c, uint32_t micro)
{
	ckr_status s;

	c->err.text[0] = '\0';
	c->feeding = true;
	s = c->feed(c->feed_user, c, c->step, micro);
	c->feeding = false;
	if (s != CKR_OK && !c->err.text[0])
		err_set(&c->err, s, "the function that sets inputs failed");
	return s;
}

ckr_status
rt_feed(ckr_ctx *c, uint32_t micro)
{
	if (c->feed && !c->async.inputs_placed) {
		CKR_TRY(call_feed(c, micro));
		CKR_TRY(check_recounted_inputs(c, micro));
	}
	/* what is counted reads some of them alone */
	return c->count.pass ? CKR_OK : rt_need_inputs(c, true);
}

ckr_status
rt_begin_micro(ckr_ctx *c, const struct loaded_program *b)
{
	if (!c->async.inputs_placed)
		CKR_TRY(rt_scatter_inputs(c));
	CKR_TRY(rt_send_env(c));
	for (uint32_t r = 0; r < c->world.count && c->poison; r++)
		if (b->arena[r].p)
			c->device->call->fill(c->device, b->arena[r].p, 0xff,
			                      b->arena[r].size);
	return CKR_OK;
}

/* ---- passes ---- */

static ckr_status
count_micro(ckr_ctx *c, const struct loaded_program *b)
{
	int32_t phase = CKR_COUNT + c->count.pass - 1;
	ckr_status s = rt_begin_micro(c, b);

	for (uint32_t i = 0; i < b->p->ninstr && s == CKR_OK; i++)
		if (b->p->instr[i].phase == phase)
			s = rt_defer_error(c, rt_run_one(c, b, i), i);
	CKR_TRY(s);
	CKR_TRY(rt_finish_transfers(c));
	return rt_check_faults(c, b, b->p->ninstr);
}

ckr_status
count_run_passes(ckr_ctx *c, const struct loaded_program *b)
{
	ckr_status s = CKR_OK;

	for (int r = 1; r <= c->count.npass && s == CKR_OK; r++)
		for (uint32_t m = 0; m < c->env.nmicro && s == CKR_OK; m++) {
			c->count.pass = r;
			c->env.micro = m;
			s = rt_defer_error(c, rt_feed(c, m), 0);
			if (s == CKR_OK)
				s = count_micro(c, b);
		}
	c->count.pass = 0;
	return s;
}

/* ---- losses ---- */

double
rt_loss(const ckr_ctx *c, double sum)
{
	return c->lib->loss_adds ? sum : sum / c->env.nmicro;
}

void
rt_show_loss(ckr_ctx *c, const struct loaded_program *b, double loss)
{
	const struct ckr_tensor *t = &b->p->tensor[b->p->loss];
	double value;
	size_t bad;

	if (c->env.nmicro == 1 || b->p->loss < 0 || t->placement)
		return;
	dtype_convert(&value, t->dtype, &loss, CKR_F64, 1, &bad);
	FOR_RANKS (r, c)
		c->device->call->copy_h2d(c->device, rt_at(c, b, r, t), &value,
		                          dtype_row[t->dtype].nbytes);
	c->device->call->sync(c->device);
}
