/* Opening and closing a model. */
#include "runtime/api/context.h"
#include "runtime/file/file.h"
#include "runtime/library/tensor.h"
#include "runtime/support/env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
has_weights(const struct ckr_library *lib)
{
	const struct ckr_program *p = &lib->program[0];

	for (uint32_t i = 0; i < lib->nshared; i++)
		if (tensor_is_weight(&p->tensor[i]))
			return true;
	return false;
}

static ckr_status
first_weights(ckr_ctx *c, const char *path)
{
	ckr_status s;
	char *beside;

	if (c->with || !has_weights(c->library.lib) || (path && !*path))
		return CKR_OK;
	/* what adapters begin with may be there alone */
	if (path && !c->library.lib->nadapter)
		return files_load_weights(c->files, path);
	beside = file_beside(c->library.path, ".safetensors");
	if (!beside)
		return err_no_memory(&c->err);
	if (access(beside, F_OK))
		s = err_set(&c->err, CKR_EIO, "%s: its file of weights %s is "
		            "missing; compile the model again, or give weights "
		            "with --init", c->library.path, beside);
	else
		s = files_load_weights(c->files, beside);
	free(beside);
	return s == CKR_OK && path ? files_load_weights(c->files, path) : s;
}

static void
log_model(const ckr_ctx *c)
{
	const struct world *w = &c->world;
	const struct ckr_library *lib = w->lib;

	fprintf(stderr, "ckr: %s: %s by %s, %u ranks, %u steps, %llu bytes "
	        "resident, %llu in the arena, %d threads, products by %s\n",
	        c->library.path, lib->name, lib->compiler, w->tp * w->dp,
	        lib->program[0].ninstr,
	        (unsigned long long)world_resident_bytes(w) / w->count,
	        (unsigned long long)w->plan.arena[0].size, w->threads,
	        w->device->libraries);
}

static ckr_status
open_library(ckr_ctx *c, const char *so, uint32_t ranks)
{
	CKR_TRY(library_open(&c->library, so, &c->err));
	CKR_TRY(world_set_library(&c->world, &c->library, so,
	                          c->with ? ckr_ranks(c->with) : ranks));
	return c->with ? world_share(&c->world, &c->with->world) : CKR_OK;
}

static ckr_status
allocate(ckr_ctx *c, const struct ckr_options *opt)
{
	const char *blas = opt->blas ? opt->blas : getenv("CKR_BLAS");
	struct world *w = &c->world;

	w->offload_dir = opt->offload_dir;
	CKR_TRY(world_open_device(w, opt->threads));
	CKR_TRY(stepping_open(&c->steps, w, blas, opt->seed,
	                      c->with ? c->with->steps : NULL));
	CKR_TRY(world_open_memory(w));
	CKR_TRY(stepping_open_memory(c->steps));
	c->files = files_open(w, c->steps);
	c->measure = measure_open(w, c->steps);
	c->evaluation = evaluation_open(w, c->steps);
	return c->files && c->measure && c->evaluation ? CKR_OK
	       : err_no_memory(&c->err);
}

/* What fails on one process fails on all. */
static ckr_status
open_model(ckr_ctx *c, const char *so, const struct ckr_options *opt)
{
	const char *trace = getenv("CKR_TRACE");
	struct world *w = &c->world;

	CKR_TRY(world_join(w, opt->comm_timeout, &c->err));
	CKR_TRY(world_agree(w, open_library(c, so, opt->ranks), "opening"));
	CKR_TRY(world_assign_ranks(w));
	CKR_TRY(world_agree(w, allocate(c, opt), "allocating memory"));
	CKR_TRY(world_connect(w, stepping_progress(c->steps)->seed));
	CKR_TRY(first_weights(c, opt->weights));
	if (env_is_on("CKR_LOG") && world_is_first(w))
		log_model(c);
	w->ready = true;
	return trace && *trace ? measure_trace(c->measure, trace) : CKR_OK;
}

/* Take part in its model, which is open and at rest. */
static ckr_status
share_model(ckr_ctx *c, ckr_ctx *of)
{
	ckr_status s = need_quiet(of);

	if (s != CKR_OK)
		return err_set(&c->err, s, "%s", of->err.text);
	c->with = of->with ? of->with : of;
	c->with->users++;
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
	opt = opt ? opt : &none;
	c->users = 1;
	c->world.err = &c->err;
	if (opt->model_of)
		CKR_TRY(share_model(c, opt->model_of));
	return open_model(c, so, opt);
}

/* Nobody else could, and the others of its model would wait. */
static void
end_steps(ckr_ctx *c)
{
	bool shared = c->with || c->users > 1;

	while (shared && world_is_ready(&c->world)
	       && stepping_end(c->steps, NULL) == CKR_OK)
		;
}

void
ckr_close(ckr_ctx *c)
{
	ckr_ctx *with;

	if (!c)
		return;
	end_steps(c);
	if (--c->users)
		return;
	with = c->with;
	if (c->world.device)
		c->world.device->call->enter(c->world.device);
	evaluation_close(c->evaluation);
	measure_close(c->measure);
	files_close(c->files);
	stepping_close(c->steps);
	world_close(&c->world);
	library_close(&c->library);
	free(c);
	ckr_close(with);
}
