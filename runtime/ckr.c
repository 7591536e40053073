/* Contexts: loading a compiled model, its memory, its tensors. */
#include "runtime/rt.h"

#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- loading ---- */

/* dlopen takes a name without a slash for something on the library path. */
static ckr_status
load(ckr_ctx *c, const char *so)
{
	size_t n = strlen(so) + 3;
	char *path = malloc(n);
	void *sym;

	if (!path)
		return err_set(&c->err, CKR_ENOMEM, "out of memory");
	snprintf(path, n, "%s%s", strchr(so, '/') ? "" : "./", so);
	c->path = path;
	if (access(path, R_OK))
		return err_set(&c->err, CKR_EIO, "%s: cannot read: %m", so);
	/* a library built by clang brings an OpenMP run time of its own, whose
	 * threads outlive dlclose and must not lose their code */
	c->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!c->dl)
		return err_set(&c->err, CKR_EFORMAT, "%s: cannot load: %s", so,
		               dlerror());
	sym = dlsym(c->dl, "ckr_library");
	if (!sym)
		return err_set(&c->err, CKR_EFORMAT, "%s: not a model compiled "
		               "by ckc: it has no symbol ckr_library", so);
	c->lib = sym;
	if (c->lib->abi != CKR_ABI_VERSION)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s: compiled for "
		               "version %u of the run time's interface, this "
		               "is %d; compile the model again", so,
		               c->lib->abi,
		               CKR_ABI_VERSION);
	return CKR_OK;
}

/* A library that disagrees with itself would write outside its memory. */
static bool
sane_tensor(const struct ckr_library *lib, const struct ckr_program *p,
            const struct ckr_tensor *t)
{
	uint64_t room = t->flags & CKR_RESIDENT ? p->resident_bytes
	                : p->arena_bytes;
	int64_t from, to;

	if (t->rank > CKR_MAX_RANK || t->dtype >= CKR_DTYPE_COUNT)
		return false;
	if (t->offset > room)
		return false;
	rt_reach(t, &from, &to);
	if (from < 0 || to > (int64_t)room)
		return false;
	if (t->owner >= (int64_t)p->ntensor)
		return false;
	if (t->kind == CKR_CONSTANT
	    && (t->nbytes != (uint64_t)(to - from)
	        || t->data > lib->constants_bytes
	        || t->nbytes > lib->constants_bytes - t->data))
		return false;
	return true;
}

static bool
sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->nshared > p->ntensor || p->loss >= (int64_t)p->ntensor
	    || p->update > p->nstep)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_tensor(lib, p, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		for (uint32_t k = 0; k < p->step[i].narg; k++)
			if (p->arg[p->step[i].arg0 + k] >= (int64_t)p->ntensor)
				return false;
	return true;
}

static uint64_t
resident_bytes(const struct ckr_library *lib)
{
	uint64_t a = lib->program[0].resident_bytes;
	uint64_t b = lib->program[1].nstep ? lib->program[1].resident_bytes : 0;

	return a > b ? a : b;
}

static ckr_status
take_memory(ckr_ctx *c)
{
	const struct ckr_library *lib = c->lib;
	const struct ckr_program *p = &lib->program[0];

	c->rss_before = mem_anonymous();
	CKR_TRY(block_map(&c->resident, resident_bytes(lib), false, c->poison,
	                  c->env.threads, &c->err));
	CKR_TRY(block_map(&c->arena, p->arena_bytes, true, c->poison,
	                  c->env.threads, &c->err));
	for (uint32_t i = 0; i < lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (t->kind == CKR_CONSTANT)
			memcpy(rt_at(c, &c->arena, t), lib->constants + t->data,
			       t->nbytes);
	}
	c->ptr = rt_bind(c, p, &c->arena);
	if (!c->ptr)
		return err_set(&c->err, CKR_ENOMEM, "out of memory");
	return CKR_OK;
}

static bool
has_weights(const struct ckr_library *lib)
{
	const struct ckr_program *p = &lib->program[0];

	for (uint32_t i = 0; i < lib->nshared; i++)
		if (p->tensor[i].kind == CKR_PARAM
		    || p->tensor[i].kind == CKR_BUFFER)
			return true;
	return false;
}

static ckr_status
first_weights(ckr_ctx *c, const char *path)
{
	ckr_status s;
	char *beside;

	if (!has_weights(c->lib) || (path && !*path))
		return CKR_OK;
	if (path)
		return rt_load_weights(c, path);
	beside = file_beside(c->path, ".safetensors");
	if (!beside)
		return err_set(&c->err, CKR_ENOMEM, "out of memory");
	if (access(beside, F_OK))
		s = err_set(&c->err, CKR_EIO, "%s: no weights beside it in %s; "
		            "compile the model again or give a file with "
		            "weights (--init)", c->path, beside);
	else
		s = rt_load_weights(c, beside);
	free(beside);
	return s;
}

static bool
env_on(const char *name)
{
	const char *s = getenv(name);

	return s && *s && strcmp(s, "0") != 0;
}

static void
set_threads(ckr_ctx *c, int wanted)
{
	int n = wanted > 0 ? wanted : omp_get_max_threads();

	if (n > (int)c->lib->threads)
		n = (int)c->lib->threads;
	c->env.threads = n > 0 ? n : 1;
}

static void
tell(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];

	fprintf(stderr, "ckr: %s: %s by %s, %u steps, %llu bytes resident, "
	        "%llu in the arena, %d threads, products by %s\n", c->path,
	        c->lib->name, c->lib->compiler, p->nstep,
	        (unsigned long long)c->resident.size,
	        (unsigned long long)c->arena.size, c->env.threads,
	        c->gemm.text);
}

static ckr_status
open_model(ckr_ctx *c, const char *so, const struct ckr_options *opt)
{
	const char *blas = opt->blas ? opt->blas : getenv("CKR_BLAS");

	c->log = env_on("CKR_LOG");
	c->poison = env_on("CKR_POISON");
	CKR_TRY(load(c, so));
	if (!sane(c->lib, &c->lib->program[0])
	    || (c->lib->program[1].nstep
	        && !sane(c->lib, &c->lib->program[1])))
		return err_set(&c->err, CKR_EFORMAT, "%s: its tables are "
		               "damaged; compile the model again", so);
	set_threads(c, opt->threads);
	CKR_TRY(gemm_choose(&c->gemm, blas, c->env.threads, &c->err));
	c->env.sgemm = c->gemm.fn;
	c->env.seed = opt->seed;
	CKR_TRY(take_memory(c));
	CKR_TRY(first_weights(c, opt->weights));
	if (c->log)
		tell(c);
	c->ready = true;
	if (getenv("CKR_TRACE") && *getenv("CKR_TRACE"))
		CKR_TRY(ckr_trace(c, getenv("CKR_TRACE")));
	return CKR_OK;
}

ckr_status
ckr_open(ckr_ctx **out, const char *so, const struct ckr_options *opt)
{
	static const struct ckr_options none;
	ckr_ctx *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return CKR_ENOMEM;
	return open_model(c, so, opt ? opt : &none);
}

void
ckr_close(ckr_ctx *c)
{
	if (!c)
		return;
	if (c->trace)
		trace_close(c);
	profile_free(c);
	grads_free(c);
	block_unmap(&c->resident);
	block_unmap(&c->arena);
	free(c->ptr);
	free(c->path);
	if (c->dl)
		dlclose(c->dl);
	free(c);
}

const char *
ckr_error(const ckr_ctx *c)
{
	return c ? c->err.text : "out of memory";
}

/* ---- tensors ---- */

void *
rt_at(const ckr_ctx *c, const struct block *arena, const struct ckr_tensor *t)
{
	const struct block *b = t->flags & CKR_RESIDENT ? &c->resident : arena;

	return b->p + t->offset;
}

void **
rt_bind(const ckr_ctx *c, const struct ckr_program *p,
        const struct block *arena)
{
	uint64_t n = 0;
	void **ptr;

	for (uint32_t i = 0; i < p->nstep; i++)
		if (n < (uint64_t)p->step[i].arg0 + p->step[i].narg)
			n = (uint64_t)p->step[i].arg0 + p->step[i].narg;
	ptr = malloc((n + 1) * sizeof(*ptr));
	if (!ptr)
		return NULL;
	for (uint64_t i = 0; i < n; i++)
		ptr[i] = p->arg[i] < 0 ? NULL
		         : rt_at(c, arena, &p->tensor[p->arg[i]]);
	return ptr;
}

/* What the world outside may see. */
static bool
is_public(const struct ckr_tensor *t)
{
	return t->name && (t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	                   || t->kind == CKR_INPUT || t->kind == CKR_STATE
	                   || t->flags & (CKR_OUTPUT | CKR_LOSS));
}

const struct ckr_tensor *
rt_find(const ckr_ctx *c, const char *name, uint32_t *index)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++)
		if (is_public(&p->tensor[i]) && !strcmp(p->tensor[i].name,
		                                        name)) {
			if (index)
				*index = i;
			return &p->tensor[i];
		}
	return NULL;
}

uint64_t
rt_nelem(const struct ckr_tensor *t)
{
	uint64_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= (uint64_t)t->dim[i];
	return n;
}

void
rt_reach(const struct ckr_tensor *t, int64_t *from, int64_t *to)
{
	int64_t size = dtype_row[t->dtype].nbytes;
	int64_t lo = (int64_t)t->offset, hi = lo + size;

	/* workspace has bytes, but neither type nor shape */
	if (t->dtype == CKR_NONE)
		hi = lo + (int64_t)t->nbytes;
	for (int i = 0; i < t->rank; i++) {
		int64_t step = (t->dim[i] - 1) * t->stride[i] * size;

		if (step < 0)
			lo += step;
		else
			hi += step;
	}
	*from = lo;
	*to = hi;
	if (rt_nelem(t) == 0)
		*from = *to = (int64_t)t->offset;
}

bool
rt_is_dense(const struct ckr_tensor *t)
{
	int64_t want = 1;

	for (int i = t->rank - 1; i >= 0; i--) {
		if (t->dim[i] != 1 && t->stride[i] != want)
			return false;
		want *= t->dim[i];
	}
	return true;
}

/* Copy between a strided tensor and dense elements, row by row. */
static void
move(const struct ckr_tensor *t, char *tensor, char *dense, bool pack)
{
	size_t size = dtype_row[t->dtype].nbytes;
	uint64_t n = rt_nelem(t);
	int64_t i[CKR_MAX_RANK] = { 0 };

	if (rt_is_dense(t)) {
		memcpy(pack ? dense : tensor, pack ? tensor : dense, n * size);
		return;
	}
	for (uint64_t e = 0; e < n; e++, dense += size) {
		int64_t at = 0;
		char *p;

		for (int d = 0; d < t->rank; d++)
			at += i[d] * t->stride[d];
		p = tensor + at * (int64_t)size;
		memcpy(pack ? dense : p, pack ? p : dense, size);
		for (int d = t->rank - 1; d >= 0 && ++i[d] == t->dim[d]; d--)
			i[d] = 0;
	}
}

void
rt_pack(const struct ckr_tensor *t, const void *tensor, void *dense)
{
	move(t, (char *)(uintptr_t)tensor, dense, true);
}

void
rt_unpack(const struct ckr_tensor *t, void *tensor, const void *dense)
{
	move(t, tensor, (char *)(uintptr_t)dense, false);
}

static const char *
kind_text(const struct ckr_tensor *t)
{
	static const char *const text[] = { "param", "buffer", "constant",
	                                    "input", "state", "grad", "other" };

	if (t->flags & (CKR_OUTPUT | CKR_LOSS) && t->kind >= CKR_GRAD)
		return "output";
	return t->kind < sizeof(text) / sizeof(*text) ? text[t->kind] : "other";
}

static void
fill_info(const struct ckr_tensor *t, struct ckr_info *info)
{
	*info = (struct ckr_info){
		.name = t->name, .dtype = dtype_row[t->dtype].text,
		.kind = kind_text(t), .frozen = t->flags & CKR_FROZEN,
		.loss = t->flags & CKR_LOSS, .rank = t->rank,
		.nbytes = rt_nelem(t) * dtype_row[t->dtype].nbytes,
	};
	memcpy(info->dim, t->dim, sizeof(info->dim));
}

static ckr_status
not_ready(ckr_ctx *c)
{
	return err_set(&c->err, CKR_EARG, "no model is open");
}

ckr_status
ckr_tensor(ckr_ctx *c, size_t i, struct ckr_info *info)
{
	const struct ckr_program *p;

	if (!c->ready)
		return not_ready(c);
	p = &c->lib->program[0];
	for (uint32_t t = 0; t < p->ntensor; t++)
		if (is_public(&p->tensor[t]) && !i--) {
			fill_info(&p->tensor[t], info);
			return CKR_OK;
		}
	return err_set(&c->err, CKR_EARG, "no tensor of that number");
}

static ckr_status
find(ckr_ctx *c, const char *name, const struct ckr_tensor **t)
{
	char text[NAME_TEXT];

	if (!c->ready)
		return not_ready(c);
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

	CKR_TRY(find(c, name, &t));
	fill_info(t, info);
	return CKR_OK;
}

static ckr_status
check_size(ckr_ctx *c, const struct ckr_tensor *t, size_t nbytes)
{
	uint64_t want = rt_nelem(t) * dtype_row[t->dtype].nbytes;
	char shape[128];

	if (want == nbytes)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "'%s' is %s: expected %llu bytes, "
	               "got %zu", t->name,
	               array_text(shape, sizeof(shape), t->dtype, t->rank,
	                          t->dim), (unsigned long long)want, nbytes);
}

ckr_status
ckr_set(ckr_ctx *c, const char *name, const void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(find(c, name, &t));
	CKR_TRY(check_size(c, t, nbytes));
	if (t->kind > CKR_STATE)
		return err_set(&c->err, CKR_EARG, "'%s' is an output: it "
		               "cannot be set", t->name);
	rt_unpack(t, rt_at(c, &c->arena, t), data);
	return CKR_OK;
}

ckr_status
ckr_get(ckr_ctx *c, const char *name, void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(find(c, name, &t));
	CKR_TRY(check_size(c, t, nbytes));
	if (t->kind > CKR_STATE && !c->valid_outputs)
		return err_set(&c->err, CKR_EARG, "output '%s' has no value "
		               "before the first step", t->name);
	rt_pack(t, rt_at(c, &c->arena, t), data);
	return CKR_OK;
}

ckr_status
ckr_input(ckr_ctx *c, const char *name, void **data)
{
	const struct ckr_tensor *t;

	CKR_TRY(find(c, name, &t));
	if (t->kind != CKR_INPUT || !rt_is_dense(t)
	    || !(t->flags & CKR_RESIDENT))
		return err_set(&c->err, CKR_EARG, "'%s' is not an input",
		               t->name);
	*data = rt_at(c, &c->arena, t);
	return CKR_OK;
}

ckr_status
ckr_set_feed(ckr_ctx *c, ckr_feed *feed, void *user)
{
	c->feed = feed;
	c->feed_user = user;
	return CKR_OK;
}

/* ---- facts ---- */

ckr_status
ckr_memory(ckr_ctx *c, struct ckr_memory *m)
{
	uint64_t now = mem_anonymous();

	if (!c->ready)
		return not_ready(c);
	*m = (struct ckr_memory){
		.planned_bytes = c->lib->peak_bytes,
		.budget_bytes = c->lib->budget_bytes,
		.resident_bytes = c->lib->program[0].resident_bytes,
		.arena_bytes = c->arena.size,
		.peak_bytes = c->lib->program[0].resident_bytes + c->bound,
		.touched_bytes = c->lib->program[0].resident_bytes
		                 + block_touched(&c->arena),
		.grown_bytes = now > c->rss_before ? now - c->rss_before : 0,
	};
	return CKR_OK;
}

const char *
ckr_blas(const ckr_ctx *c)
{
	return c->gemm.text;
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
	static const char *const text[] = { "none", "sgd", "adamw" };

	return c->lib && c->lib->optimizer >= 0 && c->lib->optimizer < 3
	       ? text[c->lib->optimizer] : "none";
}

uint64_t
ckr_step_count(const ckr_ctx *c)
{
	return c->step;
}

uint64_t
ckr_seed(const ckr_ctx *c)
{
	return c->env.seed;
}
