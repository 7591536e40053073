/* A model on a device: its environment, and copies of tensors to and from
 * device memory.
 *
 * Kernels of a GPU read numbers of the step from a copy of the environment in
 * its memory, and leave faults there.
 */
#include "runtime/model/rt.h"
#include "runtime/support/half.h"
#include "runtime/team/process_group.h"

#include <stdlib.h>
#include <string.h>

/* ORDER FAULT: enum ckr_bad of codegen/cuda/kernels/device.cuh. */
static const char *const fault_text[] = { NULL, "index out of range",
	"label out of range" };

/* The processes of a machine take one after the other. */
static int
choose_gpu(const ckr_ctx *c)
{
	const char *wish = getenv("CKR_GPU"), *place = getenv("LOCAL_RANK");

	if (wish)
		return atoi(wish);
	if (!c->team)
		return 0;
	return place ? atoi(place) : (int)c->team->local_rank;
}

ckr_status
rt_open_device(ckr_ctx *c)
{
	if (!c->lib->arch)
		return device_open_host(&c->device, &c->err);
	return device_open_cuda(&c->device, c->lib->arch, choose_gpu(c),
	                        &c->err);
}

ckr_status
rt_open_env(ckr_ctx *c)
{
	if (!c->device->deferred)
		return CKR_OK;
	c->device_env = c->device->call->alloc(c->device, c->world.count
	                                      * sizeof(*c->device_env));
	return device_failed(c->device, &c->err) ? CKR_ENOMEM : CKR_OK;
}

void
rt_close_env(ckr_ctx *c)
{
	if (c->device_env)
		c->device->call->free(c->device, c->device_env);
	c->device_env = NULL;
}

ckr_status
rt_send_env(ckr_ctx *c)
{
	if (!c->device->deferred)
		return CKR_OK;
	c->env.device_fault = c->env.device_lock = c->env.device_nonfinite = 0;
	FOR_RANKS (r, c) {
		rt_select_rank(c, r);
		c->device->call->copy_h2d(c->device, &c->device_env[r], &c->env,
		                          sizeof(c->env));
	}
	rt_select_rank(c, 0);
	return device_status(c->device, &c->err);
}

static void
set_fault(ckr_ctx *c, const struct ckr_env *found)
{
	c->env.fault = fault_text[found->device_fault];
	c->env.fault_at = found->fault_at;
	c->env.fault_value = found->fault_value;
}

/* What kernels of a GPU have found since the environment was sent: a fault as
 * on the host, in c->env; CKR_EIO if the GPU failed. */
static ckr_status
read_env_back(ckr_ctx *c)
{
	struct ckr_env env;

	if (!c->device->deferred)
		return CKR_OK;
	FOR_RANKS (r, c) {
		c->device->call->copy_d2h(c->device, &env, &c->device_env[r],
		                          sizeof(env));
		CKR_TRY(device_status(c->device, &c->err));
		if (env.device_fault && !c->env.fault)
			set_fault(c, &env);
	}
	return CKR_OK;
}

bool
rt_found_nonfinite(ckr_ctx *c)
{
	static const int32_t none;
	int32_t *at = &c->env.device->device_nonfinite, bad = 0;

	c->device->call->copy_d2h(c->device, &bad, at, sizeof(bad));
	if (bad)
		c->device->call->copy_h2d(c->device, at, &none, sizeof(none));
	return bad;
}

/* ---- faults ---- */

/* Which step met the bad data in c->env nobody can say. */
static ckr_status
fault_somewhere(ckr_ctx *c)
{
	const struct ckr_instr none = { .op = "unknown op" };

	if (!c->env.fault)
		c->env.fault = "bad data";
	return rt_fault(c, &none);
}

ckr_status
rt_fault_in_updates(ckr_ctx *c, const struct ckr_env *found)
{
	set_fault(c, found);
	return fault_somewhere(c);
}

/* Kernels of a GPU have met bad data before step `end`: in which step, unless
 * there were updates, which would be done twice. */
static ckr_status
find_fault(ckr_ctx *c, const struct loaded_program *b, uint32_t end)
{
	for (uint32_t i = 0; i < end && end <= b->p->apply; i++) {
		c->env.fault = NULL;
		CKR_TRY(rt_send_env(c));
		CKR_TRY(rt_run_one(c, b, i));
		CKR_TRY(read_env_back(c));
		if (c->env.fault)
			return rt_fault(c, &b->p->instr[i]);
	}
	return fault_somewhere(c);
}

ckr_status
rt_check_launches(ckr_ctx *c, uint32_t i)
{
	const char *why = c->device->deferred ? c->lib->launch_error()
	                                     : NULL;

	if (!why)
		return CKR_OK;
	return err_set(&c->err, CKR_EIO, "GPU %s: a kernel launch failed "
	               "before step %u: %s; compile the model for this GPU "
	               "(ckc --arch)", c->device->name, i, why);
}

ckr_status
rt_check_faults(ckr_ctx *c, const struct loaded_program *b, uint32_t i)
{
	CKR_TRY(rt_check_launches(c, i));
	CKR_TRY(read_env_back(c));
	return c->env.fault ? find_fault(c, b, i) : CKR_OK;
}

/* ---- tensors ---- */

double
rt_number(ckr_ctx *c, const struct ckr_tensor *t, const void *at)
{
	uint64_t room = 0;

	c->device->call->copy_d2h(c->device, &room, at,
	                          dtype_row[t->dtype].nbytes);
	return dtype_double(t->dtype, &room);
}

/* The bytes that a tensor with gaps reaches, on the host; *at: its first
 * element there. */
static char *
copy_reach_to_host(ckr_ctx *c, const struct ckr_tensor *t, const void *tensor,
                   char **at, uint64_t *n)
{
	int64_t from, to;
	char *p;

	rt_reach(t, &from, &to);
	*n = (uint64_t)(to - from);
	p = malloc(*n + 1);
	if (!p)
		return NULL;
	*at = p + ((int64_t)t->offset - from);
	c->device->call->copy_d2h(c->device, p, (const char *)tensor
	                          - ((int64_t)t->offset - from), *n);
	return p;
}

ckr_status
rt_pull(ckr_ctx *c, const struct ckr_tensor *t, const void *tensor,
        void *dense)
{
	char *p, *at;
	uint64_t n;

	if (c->device->addressable) {
		rt_pack(t, tensor, dense);
		return CKR_OK;
	}
	if (rt_is_dense(t)) {
		c->device->call->copy_d2h(c->device, dense, tensor,
		                          rt_nbytes(t));
	} else {
		p = copy_reach_to_host(c, t, tensor, &at, &n);
		if (!p)
			return rt_no_memory(c);
		rt_pack(t, at, dense);
		free(p);
	}
	return device_status(c->device, &c->err);
}

ckr_status
rt_push(ckr_ctx *c, const struct ckr_tensor *t, void *tensor,
        const void *dense)
{
	char *p, *at;
	uint64_t n;

	if (c->device->addressable) {
		rt_unpack(t, tensor, dense);
		return CKR_OK;
	}
	if (rt_is_dense(t)) {
		c->device->call->copy_h2d(c->device, tensor, dense,
		                          rt_nbytes(t));
	} else {
		p = copy_reach_to_host(c, t, tensor, &at, &n);
		if (!p)
			return rt_no_memory(c);
		rt_unpack(t, at, dense);
		c->device->call->copy_h2d(c->device, (char *)tensor - (at - p),
		                          p, n);
		c->device->call->sync(c->device);
		free(p);
	}
	return device_status(c->device, &c->err);
}

/* ---- copies of parameters in 16 bits ----
 *
 * Products read them and updates write them.  Files hold float32 alone.
 */

/* On rank r, by way of `dense`, which has room for both. */
static ckr_status
make_copy(ckr_ctx *c, const struct ckr_tensor *t, uint32_t r, float *dense)
{
	const struct ckr_tensor *p = &c->lib->program[0].tensor[t->param];
	uint64_t n = rt_nelem(p);
	uint16_t *half = (uint16_t *)(dense + n);

	CKR_TRY(rt_pull(c, p, rt_at(c, &c->plan, r, p), dense));
	for (uint64_t i = 0; i < n; i++)
		half[i] = t->dtype == CKR_BF16 ? float_to_bf16(dense[i])
		                               : float_to_half(dense[i]);
	CKR_TRY(rt_push(c, t, rt_at(c, &c->plan, r, t), half));
	c->device->call->sync(c->device);
	return CKR_OK;
}

ckr_status
rt_make_copies(ckr_ctx *c)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	ckr_status s = CKR_OK;

	for (uint32_t i = 0; i < c->lib->nshared && !c->copied; i++) {
		float *dense;

		if (!rt_is_copy(&t[i]))
			continue;
		dense = malloc(rt_nelem(&t[i])
		               * (sizeof *dense + sizeof(uint16_t)) + 1);
		if (!dense)
			return rt_no_memory(c);
		for (uint32_t r = 0; r < c->world.count && s == CKR_OK; r++)
			s = make_copy(c, &t[i], r, dense);
		free(dense);
		CKR_TRY(s);
	}
	c->copied = true;
	return CKR_OK;
}
