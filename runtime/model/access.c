/* Access to a context: tensors by name, and queries. */
#include "runtime/model/rt.h"
#include "runtime/ranks/transfers.h"
#include "runtime/support/word_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *
tensor_kind_text(const struct ckr_tensor *t)
{
	static const char *const text[] = { "param", "buffer", "constant",
	                                    "input", "state", "grad", "other" };

	if (t->flags & CKR_METRIC)
		return "metric";
	if (t->flags & (CKR_OUTPUT | CKR_LOSS) && t->kind >= CKR_GRAD)
		return "output";
	return t->kind < sizeof(text) / sizeof(*text) ? text[t->kind] : "other";
}

/* Whether a step looks something up by the input or a view of it. */
static bool
is_index(const struct ckr_program *p, const struct ckr_tensor *t)
{
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];
		const struct ckr_tensor *by;

		if (strncmp(s->op, "gather", 6) || s->narg < 2
		    || p->arg[s->arg0 + 1] < 0)
			continue;
		by = &p->tensor[p->arg[s->arg0 + 1]];
		if (by->flags & CKR_RESIDENT && by->offset >= t->offset
		    && by->offset < t->offset + t->nbytes)
			return true;
	}
	return false;
}

static void
fill_info(const ckr_ctx *c, const struct ckr_tensor *t,
          struct ckr_info *info)
{
	struct ckr_tensor whole = rt_whole(c, t);

	*info = (struct ckr_info){
		.name = t->name, .dtype = dtype_row[t->dtype].text,
		.kind = tensor_kind_text(t), .frozen = t->flags & CKR_FROZEN,
		.loss = t->flags & CKR_LOSS,
		.shifted = t->flags & CKR_SHIFTED,
		.label = t->flags & CKR_LABEL,
		.index = t->kind == CKR_INPUT
			&& is_index(&c->lib->program[0], t),
		.rows = t->flags & CKR_OWN_ROWS ? 1
			: t->flags & CKR_NO_ROWS ? 0 : -1,
		.rank = t->rank,
		.nbytes = whole.nbytes,
	};
	memcpy(info->dim, whole.dim, sizeof(info->dim));
}

ckr_status
rt_need_ready(ckr_ctx *c)
{
	return c->ready ? CKR_OK
	       : err_set(&c->err, CKR_EARG, "no model is open");
}

ckr_status
rt_no_memory(ckr_ctx *c)
{
	return err_set(&c->err, CKR_ENOMEM, "out of memory");
}

ckr_status
ckr_tensor(ckr_ctx *c, size_t i, struct ckr_info *info)
{
	const struct ckr_program *p;

	CKR_TRY(rt_need_ready(c));
	p = &c->lib->program[0];
	for (uint32_t t = 0; t < p->ntensor; t++)
		if (rt_is_public(&p->tensor[t]) && !i--) {
			fill_info(c, &p->tensor[t], info);
			return CKR_OK;
		}
	return err_set(&c->err, CKR_EARG, "the index of the tensor is out of "
	               "range");
}

/* ---- inputs that have been set ---- */

enum { SHOWN = 8 };

static void
mark_input_set(ckr_ctx *c, const struct ckr_tensor *t)
{
	if (t->kind == CKR_INPUT)
		c->input_set[t - c->lib->program[0].tensor] = true;
}

ckr_status
rt_need_inputs(ckr_ctx *c, bool labels)
{
	char list[SHOWN * (NAME_TEXT + 4)] = "", name[NAME_TEXT];
	size_t n = 0;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &c->lib->program[0].tensor[i];
		size_t at = strlen(list);

		if (t->kind != CKR_INPUT || !rt_is_public(t) || c->input_set[i]
		    || (t->flags & CKR_LABEL && !labels) || n++ >= SHOWN)
			continue;
		snprintf(list + at, sizeof(list) - at, "%s'%s'",
		         at ? ", " : "", err_name(name, sizeof(name), t->name));
	}
	return !n ? CKR_OK
	       : err_set(&c->err, CKR_EARG, "%s: input%s %s%s %s never set",
	                 c->path, n == 1 ? "" : "s", list,
	                 n > SHOWN ? ", ..." : "", n == 1 ? "was" : "were");
}

/* What an evaluation without labels has no value of. */
static ckr_status
need_labels(ckr_ctx *c, const struct ckr_tensor *t)
{
	return t->flags & (CKR_LOSS | CKR_METRIC) ? rt_need_inputs(c, true)
	       : CKR_OK;
}

/* ---- by name ---- */

static ckr_status
find_public(ckr_ctx *c, const char *name, const struct ckr_tensor **t)
{
	char text[NAME_TEXT];

	CKR_TRY(rt_need_ready(c));
	*t = rt_find(c, name, NULL);
	if (*t)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "%s: no input, output, parameter, "
	               "buffer or state is called '%s'", c->path,
	               err_name(text, sizeof(text), name));
}

ckr_status
ckr_find(ckr_ctx *c, const char *name, struct ckr_info *info)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	fill_info(c, t, info);
	return CKR_OK;
}

static ckr_status
check_byte_count(ckr_ctx *c, const struct ckr_tensor *t, size_t nbytes)
{
	struct ckr_tensor whole = rt_whole(c, t);
	char shape[128];

	if (whole.nbytes == nbytes)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "'%s' is %s: expected %llu bytes, "
	               "got %zu", t->name,
	               array_text(shape, sizeof(shape), t->dtype, t->rank,
	                          whole.dim),
	               (unsigned long long)whole.nbytes, nbytes);
}

ckr_status
ckr_set(ckr_ctx *c, const char *name, const void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	CKR_TRY(check_byte_count(c, t, nbytes));
	if (t->kind > CKR_STATE)
		return err_set(&c->err, CKR_EARG, "'%s' is an output: it "
		               "cannot be set", t->name);
	if (t->kind != CKR_INPUT)
		CKR_TRY(rt_need_quiet(c));
	CKR_TRY(rt_scatter_whole(c, t, data));
	mark_input_set(c, t);
	return CKR_OK;
}

static bool
is_intermediate_output(const struct ckr_tensor *t)
{
	return t->flags & (CKR_OUTPUT | CKR_LOSS) && t->kind > CKR_STATE;
}

/* The program that evaluates. */
static const struct loaded_program *
forward_of(const ckr_ctx *c)
{
	return c->forward.p ? &c->forward : &c->plan;
}

ckr_status
ckr_eval_output(ckr_ctx *c, size_t i, struct ckr_info *info)
{
	const struct ckr_program *p;

	CKR_TRY(rt_need_ready(c));
	p = forward_of(c)->p;
	for (uint32_t t = c->lib->nshared; t < p->ntensor; t++)
		if (is_intermediate_output(&p->tensor[t]) && !i--) {
			fill_info(c, &p->tensor[t], info);
			return CKR_OK;
		}
	return err_set(&c->err, CKR_EARG, "the index of the output is out of "
	               "range");
}

/* What ckr_eval has made under this name; NULL: nothing. */
static const struct ckr_tensor *
find_evaluated(const ckr_ctx *c, const char *name)
{
	const struct ckr_program *p = c->forward.p;

	if (!p || c->outputs != &c->forward)
		return NULL;
	for (uint32_t t = c->lib->nshared; t < p->ntensor; t++)
		if (is_intermediate_output(&p->tensor[t])
		    && !strcmp(p->tensor[t].name, name))
			return &p->tensor[t];
	return NULL;
}

ckr_status
ckr_get(ckr_ctx *c, const char *name, void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(rt_need_ready(c));
	t = find_evaluated(c, name);
	if (t) {
		CKR_TRY(check_byte_count(c, t, nbytes));
		CKR_TRY(rt_need_quiet(c));
		CKR_TRY(need_labels(c, t));
		return rt_gather_whole(c, &c->forward, t, data);
	}
	CKR_TRY(find_public(c, name, &t));
	CKR_TRY(check_byte_count(c, t, nbytes));
	if (t->kind != CKR_INPUT)
		CKR_TRY(rt_need_quiet(c));
	if (t->kind > CKR_STATE && c->outputs != &c->plan)
		return err_set(&c->err, CKR_EARG, "output '%s' has no value "
		               "before a step has completed", t->name);
	CKR_TRY(need_labels(c, t));
	return rt_gather_whole(c, &c->plan, t, data);
}

ckr_status
ckr_input(ckr_ctx *c, const char *name, void **data)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	if (t->kind != CKR_INPUT || (rt_nelem(t) && !rt_is_dense(t))
	    || !(t->flags & CKR_RESIDENT))
		return err_set(&c->err, CKR_EARG, "'%s' is not an input",
		               t->name);
	*data = rt_input_memory(c, t);
	if (!*data)
		*data = rt_at(c, &c->plan, 0, t);
	mark_input_set(c, t);
	return CKR_OK;
}

ckr_status
ckr_set_feed(ckr_ctx *c, ckr_feed_fn *feed, void *user)
{
	c->feed = feed;
	c->feed_user = user;
	return CKR_OK;
}

ckr_status
ckr_fail(ckr_ctx *c, ckr_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err.text, sizeof(c->err.text), fmt, ap);
	va_end(ap);
	c->err.known = c->err.mute = false;
	return status;
}

/* ---- facts ---- */

/* Bytes planned for steps, and for evaluation if there was any. */
static uint64_t
planned_bytes(const ckr_ctx *c)
{
	const struct ckr_program *p = c->lib->program;
	uint64_t forward = p[0].resident_bytes + p[2].arena_bytes;

	return c->evaluated && forward > c->lib->peak_bytes ? forward
	       : c->lib->peak_bytes;
}

ckr_status
ckr_memory(ckr_ctx *c, struct ckr_memory *m)
{
	uint64_t now = mem_anonymous();

	CKR_TRY(rt_need_ready(c));
	*m = (struct ckr_memory){
		.planned_bytes = planned_bytes(c),
		.budget_bytes = c->lib->budget_bytes,
		.resident_bytes = c->lib->program[0].resident_bytes,
		.arena_bytes = c->plan.arena[0].size,
		.peak_bytes = ckr_peak_bytes(c),
		.held_bytes = c->finite.nbytes
		              * (c->async.possible ? 1 + MAX_INFLIGHT : 1),
		.transfer_bytes = c->team ? 2 * PG_BUFFER
		                  + transfers_bytes(c->transfers)
		                  : 0,
		.grown_bytes = now > c->rss_before ? now - c->rss_before : 0,
	};
	return CKR_OK;
}

const char *
ckr_blas(const ckr_ctx *c)
{
	return c->device->libraries;
}

const char *
ckr_model_name(const ckr_ctx *c)
{
	return c->lib ? c->lib->name : "";
}

int
ckr_threads(const ckr_ctx *c)
{
	return c->env.threads;
}

uint32_t
ckr_micro_batches(const ckr_ctx *c)
{
	return c->lib && c->lib->grad_accum ? c->lib->grad_accum : 1;
}

const char *
ckr_optimizer(const ckr_ctx *c)
{
	return c->lib && c->lib->optimizer ? c->lib->optimizer : "none";
}

bool
ckr_uses_hyper(const ckr_ctx *c, const char *name)
{
	static const struct {
		const char *name, *of;
	} own[] = {
		{ "beta1", "adam adamw lion" }, { "beta2", "adam adamw lion" },
		{ "eps", "adam adamw adafactor" }, { "momentum", "sgdm" },
		{ "nesterov", "sgdm" }, { "beta2_decay", "adafactor" },
		{ "clip_threshold", "adafactor" }, { "eps2", "adafactor" },
	};
	const char *optimizer = ckr_optimizer(c);

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].name, name))
			return word_is_listed(own[i].of, optimizer);
	return strcmp(optimizer, "none") != 0;
}

uint64_t
ckr_step_count(const ckr_ctx *c)
{
	return c->step;
}

ckr_status
ckr_set_samples(ckr_ctx *c, uint64_t per_step)
{
	c->per_step = per_step;
	if (c->uncounted)
		c->samples = c->step * per_step;
	c->uncounted = false;
	return CKR_OK;
}

uint64_t
ckr_sample_count(const ckr_ctx *c)
{
	return c->samples;
}

uint64_t
ckr_skipped_count(const ckr_ctx *c)
{
	return c->skipped;
}

uint64_t
ckr_peak_bytes(const ckr_ctx *c)
{
	uint64_t most = 0, n;

	if (!c->ready)
		return 0;
	if (async_is_busy(c))
		return c->peak;
	FOR_RANKS (r, c) {
		n = device_touched(c->device, &c->plan.arena[r]);
		most = n > most ? n : most;
	}
	most += c->lib->program[0].resident_bytes;
	return most > c->peak ? most : c->peak;
}

uint32_t
ckr_ranks(const ckr_ctx *c)
{
	return c->world.tp * c->world.dp;
}

uint32_t
ckr_replicas(const ckr_ctx *c)
{
	return c->world.dp;
}

const char *
ckr_float_type(const ckr_ctx *c)
{
	const struct ckr_program *p = c->lib ? &c->lib->program[0] : NULL;
	uint8_t least = CKR_F32;

	for (uint32_t t = 0; p && t < p->ntensor; t++) {
		uint8_t dt = p->tensor[t].dtype;

		if (dt == CKR_BF16 || (dt == CKR_F16 && least != CKR_BF16))
			least = dt;
	}
	return dtype_row[least].text;
}

uint64_t
ckr_seed(const ckr_ctx *c)
{
	return c->env.seed;
}

void
ckr_set_seed(ckr_ctx *c, uint64_t seed)
{
	c->env.seed = seed;
}
