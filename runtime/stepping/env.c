/* The environment that kernels are called with.
 *
 * Kernels of a GPU read numbers of the step from a copy of the environment in
 * its memory, and leave faults there.
 */
#include "runtime/stepping/inside.h"

/* ORDER FAULT: enum ckr_bad of codegen/cuda/kernels/device.cuh. */
static const char *const fault_text[] = { NULL, "index out of range",
	"label out of range",
	"--expert-capacity is too small: expected at least" };

bool
stepping_is_last(const struct stepping *c)
{
	return c->env.micro + 1 == c->env.nmicro;
}

void
env_select_rank(struct stepping *c, uint32_t r)
{
	c->env.rank = world_rank(c->world, r);
	c->env.ranks = c->world->tp;
	c->env.replica = world_replica(c->world, r);
	c->env.replicas = c->world->dp;
	c->env.device = c->device_env ? &c->device_env[r] : NULL;
}

ckr_status
env_open(struct stepping *c)
{
	if (!c->device->deferred)
		return CKR_OK;
	c->device_env = c->device->call->alloc(c->device, c->world->count
	                                      * sizeof(*c->device_env));
	return device_failed(c->device, c->err) ? CKR_ENOMEM : CKR_OK;
}

void
env_close(struct stepping *c)
{
	if (c->device_env)
		c->device->call->free(c->device, c->device_env);
	c->device_env = NULL;
}

ckr_status
env_send(struct stepping *c)
{
	if (!c->device->deferred)
		return CKR_OK;
	c->env.device_fault[0] = c->env.device_fault[1] = 0;
	c->env.device_nonfinite = 0;
	FOR_RANKS (r, c->world) {
		env_select_rank(c, r);
		c->device->call->copy_h2d(c->device, &c->device_env[r], &c->env,
		                          sizeof(c->env));
	}
	env_select_rank(c, 0);
	return device_status(c->device, c->err);
}

void
env_set_fault(struct stepping *c, const struct ckr_env *found)
{
	uint64_t upper = ~found->device_fault[0];
	uint64_t lower = ~found->device_fault[1];

	c->env.fault = fault_text[upper >> 32 & 3];
	c->env.fault_value = (int64_t)(upper << 32 | (uint32_t)lower);
}

ckr_status
env_read_back(struct stepping *c)
{
	struct ckr_env env;

	if (!c->device->deferred)
		return CKR_OK;
	FOR_RANKS (r, c->world) {
		c->device->call->copy_d2h(c->device, &env, &c->device_env[r],
		                          sizeof(env));
		CKR_TRY(device_status(c->device, c->err));
		if (env.device_fault[0] && !c->env.fault)
			env_set_fault(c, &env);
	}
	return CKR_OK;
}

bool
env_found_nonfinite(struct stepping *c)
{
	static const int32_t none;
	int32_t *at = &c->env.device->device_nonfinite, bad = 0;

	c->device->call->copy_d2h(c->device, &bad, at, sizeof(bad));
	if (bad)
		c->device->call->copy_h2d(c->device, at, &none, sizeof(none));
	return bad;
}
