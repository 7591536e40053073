/* Evaluation of a batch, between steps. */
#include "runtime/stepping/inside.h"

#include <stddef.h>

/* Constants that no other program has: training has overwritten them. */
static void
upload_constants(struct stepping *c, const struct loaded_program *b)
{
	for (uint32_t i = c->lib->nshared; i < b->p->ntensor; i++) {
		const struct ckr_tensor *t = &b->p->tensor[i];

		if (t->kind == CKR_CONSTANT)
			FOR_STAGE (r, c->world, t->stage)
				c->device->call->copy_h2d(c->device,
					world_at(c->world, b, r, t),
					c->lib->constants + t->data,
					t->nbytes);
	}
}

static ckr_status
run_forward(struct stepping *c, const struct loaded_program *b, int32_t end,
            double *loss)
{
	ckr_status s;
	int was;

	hyper_set_env(c, NULL);
	instr_reset(c);
	c->env.training = 0;
	c->env.micro = 0;
	c->env.nmicro = 1;
	was = instr_enter(c);
	upload_constants(c, b);
	s = world_scatter_inputs(c->world, NULL);
	if (s == CKR_OK)
		s = env_send(c);
	for (int32_t i = 0; i <= end && s == CKR_OK; i++)
		if (b->p->instr[i].phase != CKR_UPDATE)
			s = instr_defer(c, instr_run(c, b, (uint32_t)i),
			                (uint32_t)i);
	if (s == CKR_OK)
		s = instr_defer(c, instr_check_faults(c, b,
			(uint32_t)(end + 1)), (uint32_t)(end + 1));
	if (s == CKR_OK)
		s = instr_agree(c);
	instr_leave(c, was);
	if (s == CKR_OK)
		c->outputs = b;
	if (loss)
		*loss = loss_read(c, b);
	return loss && s == CKR_OK ? loss_share(c, b, loss) : s;
}

/* Run program[2].  A library without one runs program[0] until the loss and all
 * outputs are computed; that uses the statistics of the batch.  It may include
 * instructions of backward: a fused classifier computes the loss and its
 * gradient together. */
static ckr_status
run_evaluation(struct stepping *c, double *loss)
{
	const struct loaded_program *forward = &c->world->forward;

	c->evaluated = forward->p;
	if (forward->p)
		return run_forward(c, forward, (int32_t)forward->p->ninstr - 1,
		                   loss);
	if (c->lib->nstage)
		return err_set(c->err, CKR_EUNSUPPORTED, "the library has no "
		               "evaluation program, which a pipeline needs: %s",
		               stepping_why_no_eval(c));
	if (c->finite.nsaved)
		return err_set(c->err, CKR_EUNSUPPORTED, "the library has no "
		               "evaluation program, which uses running "
		               "statistics: %s", stepping_why_no_eval(c));
	return run_forward(c, &c->world->plan,
	                   program_last_output(c->world->plan.p), loss);
}

const char *
stepping_why_no_eval(const struct stepping *c)
{
	return c->world->forward.p ? NULL
	       : c->lib->no_forward ? c->lib->no_forward : "ckc compiled none";
}

ckr_status
stepping_eval(struct stepping *c, double *loss)
{
	struct observer *observer = c->observer;
	ckr_status s;

	CKR_TRY(world_need_inputs(c->world, loss));
	CKR_TRY(world_make_copies(c->world));
	/* these are of steps */
	c->observer = NULL;
	s = run_evaluation(c, loss);
	c->observer = observer;
	return s;
}

const struct loaded_program *
stepping_outputs(const struct stepping *c)
{
	return c->outputs;
}
