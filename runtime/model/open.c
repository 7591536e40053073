/* Opening and closing a compiled model, and its memory. */
#include "runtime/model/peers.h"
#include "runtime/base/library.h"
#include "runtime/ranks/transfers.h"

#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- loading ---- */

/* Whether the file is shorter than its own header says: dlopen maps what is
 * not there, and the process dies.  The table of sections comes last. */
static bool
cut_off(const char *path)
{
	FILE *f = fopen(path, "rb");
	Elf64_Ehdr h;
	bool cut = false;

	if (!f)
		return false;
	if (fread(&h, sizeof(h), 1, f) == 1
	    && !memcmp(h.e_ident, ELFMAG, SELFMAG)
	    && h.e_ident[EI_CLASS] == ELFCLASS64 && !fseek(f, 0, SEEK_END)) {
		uint64_t n = (uint64_t)ftell(f);
		uint64_t table = (uint64_t)h.e_shnum * h.e_shentsize;

		cut = table > n || h.e_shoff > n - table;
	}
	fclose(f);
	return cut;
}

/* Refuse what is no library at all; dlopen's words for it help nobody. */
static ckr_status
check_elf(const char *so, struct err *e)
{
	FILE *f = fopen(so, "rb");
	char head[SELFMAG] = { 0 };
	size_t n = strlen(so);
	bool onnx = n > 5 && !strcmp(so + n - 5, ".onnx"), elf = true;

	if (f) {
		elf = fread(head, SELFMAG, 1, f) == 1
		      && !memcmp(head, ELFMAG, SELFMAG);
		fclose(f);
	}
	if (elf)
		return CKR_OK;
	if (onnx)
		return err_set(e, CKR_EFORMAT, "%s: expected a compiled model, "
		               "found an ONNX file; try: ckc %s -o %.*s.so", so,
		               so,
		               (int)(n - 5), so);
	return err_set(e, CKR_EFORMAT, "%s: not a compiled model; try: ckc "
	               "MODEL.onnx -o MODEL.so", so);
}

/* dlopen takes a name without a slash for something on the library path. */
static ckr_status
load_library(ckr_ctx *c, const char *so)
{
	size_t n = strlen(so) + 3;
	char *path = malloc(n);
	void *sym;

	if (!path)
		return rt_no_memory(c);
	snprintf(path, n, "%s%s", strchr(so, '/') ? "" : "./", so);
	c->path = path;
	if (access(path, R_OK))
		return err_set(&c->err, CKR_EIO, "%s: cannot read: %m", so);
	CKR_TRY(check_elf(so, &c->err));
	if (cut_off(path))
		return err_set(&c->err, CKR_EFORMAT, "%s: the file is shorter "
		               "than its header says; it may be cut off", so);
	CKR_TRY(library_load(&c->dl, path, &c->err));
	sym = dlsym(c->dl, "ckr_library");
	if (!sym)
		return err_set(&c->err, CKR_EFORMAT, "%s: not a model compiled "
		               "by ckc: it has no symbol ckr_library", so);
	c->lib = sym;
	if (c->lib->abi != CKR_ABI_VERSION)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s: compiled for "
		               "version %u of the runtime ABI, expected %d; "
		               "compile the model again", so,
		               c->lib->abi,
		               CKR_ABI_VERSION);
	return CKR_OK;
}

static uint64_t
max_resident_bytes(const struct ckr_library *lib)
{
	const struct ckr_program *p = lib->program;
	uint64_t a = p[0].resident_bytes;
	uint64_t b = p[1].ninstr ? p[1].resident_bytes : 0;

	return a > b ? a : b;
}

/* Constants and inputs lie side by side. */
static void
find_common(ckr_ctx *c)
{
	const struct ckr_library *lib = c->lib;
	int64_t from, to;

	for (uint32_t i = 0; i < lib->nshared; i++) {
		const struct ckr_tensor *t = &lib->program[0].tensor[i];

		if (t->kind != CKR_CONSTANT && t->kind != CKR_INPUT)
			continue;
		rt_reach(t, &from, &to);
		if (!c->common[1])
			c->common[0] = (uint64_t)from;
		c->common[1] = (uint64_t)to;
	}
}

static ckr_status
map_memory(ckr_ctx *c)
{
	const struct ckr_library *lib = c->lib;
	const struct ckr_program *p = &lib->program[0];

	c->rss_before = mem_anonymous();
	c->resident = calloc(c->world.count, sizeof(*c->resident));
	if (!c->resident)
		return rt_no_memory(c);
	FOR_RANKS (r, c)
		CKR_TRY(device_map(c->device, &c->resident[r],
		                   max_resident_bytes(lib), false, c->poison,
		                   c->env.threads, &c->err));
	if (c->world.tp > 1)
		find_common(c);
	FOR_RANKS (r, c)
		if (r && (c->world.first + r) % c->world.tp
		    && c->device->addressable)
			block_forget(&c->resident[r], c->common[0],
			             c->common[1]);
	CKR_TRY(rt_load_program(c, &c->plan, p, true, c->poison));
	if (lib->program[2].ninstr)
		CKR_TRY(rt_load_in_arena(c, &c->forward, &lib->program[2],
		                         &c->plan));
	for (uint32_t i = 0; i < lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		FOR_RANKS (r, c)
			if (t->kind == CKR_CONSTANT)
				c->device->call->copy_h2d(c->device,
					rt_at(c, &c->plan, r, t),
					lib->constants + t->data, t->nbytes);
	}
	CKR_TRY(rt_open_env(c));
	return rt_gather_inputs(c);
}

static bool
has_weights(const struct ckr_library *lib)
{
	const struct ckr_program *p = &lib->program[0];

	for (uint32_t i = 0; i < lib->nshared; i++)
		if (rt_is_weight(&p->tensor[i]))
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
	/* what adapters begin with may be there alone */
	if (path && !c->lib->nadapter)
		return rt_load_weights(c, path);
	beside = file_beside(c->path, ".safetensors");
	if (!beside)
		return rt_no_memory(c);
	if (access(beside, F_OK))
		s = err_set(&c->err, CKR_EIO, "%s: its file of weights %s is "
		            "missing; compile the model again, or give weights "
		            "with --init", c->path, beside);
	else
		s = rt_load_weights(c, beside);
	free(beside);
	return s == CKR_OK && path ? rt_load_weights(c, path) : s;
}

static bool
env_on(const char *name)
{
	const char *s = getenv(name);

	return s && *s && strcmp(s, "0") != 0;
}

static void
set_thread_count(ckr_ctx *c, int wanted)
{
	int n = wanted > 0 ? wanted : omp_get_max_threads();

	if (n > (int)c->lib->threads)
		n = (int)c->lib->threads;
	c->env.threads = n > 0 ? n : 1;
}

static void
log_model(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];

	fprintf(stderr, "ckr: %s: %s by %s, %u ranks, %u steps, %llu bytes "
	        "resident, %llu in the arena, %d threads, products by %s\n",
	        c->path, c->lib->name, c->lib->compiler,
	        c->world.tp * c->world.dp, p->ninstr,
	        (unsigned long long)c->resident[0].size,
	        (unsigned long long)c->plan.arena[0].size, c->env.threads,
	        c->device->libraries);
}

/* How many replicas there are of how many ranks; 0 ranks: as few as there can
 * be.  All of them live here. */
static ckr_status
choose_world(ckr_ctx *c, const char *so, uint32_t ranks)
{
	const struct ckr_library *lib = c->lib;
	uint32_t tp = lib->ranks > 1 ? lib->ranks : 1;
	bool fixed = lib->replicas && lib->replicas != CKR_ANY_REPLICAS;
	uint32_t dp = fixed ? lib->replicas : 1;

	if (ranks && ranks % tp)
		return err_set(&c->err, CKR_EARG, "%s: a replica is sharded "
		               "over %u ranks: expected a multiple of %u "
		               "ranks, found %u",
		               so, tp, tp, ranks);
	if (ranks && !fixed)
		dp = ranks / tp;
	if (ranks && fixed && ranks != tp * dp)
		return err_set(&c->err, CKR_EARG, "%s: compiled for %u "
		               "replicas of %u ranks each: expected %u ranks, "
		               "found %u; compile it with ckc --zero 1 --dp %u",
		               so, dp,
		               tp, tp * dp, ranks, ranks / tp);
	if (dp > 1 && !lib->replicas)
		return err_set(&c->err, CKR_EARG, "%s: compiled for one "
		               "replica (%u ranks), got %u ranks; compile it "
		               "with ckc --dp auto", so, tp, ranks);
	if (dp > CKR_MAX_GROUP)
		return err_set(&c->err, CKR_EARG, "%s: expected at most %d "
		               "replicas, got %u", so, CKR_MAX_GROUP, dp);
	c->world = (struct world){ .tp = tp, .dp = dp, .count = tp * dp };
	return CKR_OK;
}

/* Threads that ranks on one machine leave each other; bound to a processor
 * each, OpenMP knows. */
static int
fair_threads(const ckr_ctx *c, int wanted)
{
	long all = sysconf(_SC_NPROCESSORS_ONLN);

	if (!c->team || wanted > 0 || getenv("OMP_NUM_THREADS")
	    || omp_get_num_procs() < all)
		return wanted;
	all /= (long)c->team->nlocal;
	return all > 0 ? (int)all : 1;
}

static bool
is_matrix_param(const struct ckr_library *lib, int32_t i)
{
	const struct ckr_tensor *t = lib->program[0].tensor;

	return i >= 0 && i < (int64_t)lib->nshared && t[i].kind == CKR_PARAM
	       && t[i].rank == 2;
}

/* The one that evaluates has no memory but that of the first. */
static bool
programs_sane(const struct ckr_library *lib)
{
	const struct ckr_program *p = lib->program;

	for (int i = 0; i < CKR_PROGRAMS; i++)
		if ((i == 0 || p[i].ninstr) && !rt_is_sane(lib, &p[i]))
			return false;
	for (uint32_t i = 0; i < lib->nadapter; i++)
		if (!is_matrix_param(lib, lib->adapter[i].weight)
		    || !is_matrix_param(lib, lib->adapter[i].a)
		    || !is_matrix_param(lib, lib->adapter[i].b))
			return false;
	return p[2].arena_bytes <= p[0].arena_bytes
	       && p[2].resident_bytes <= p[0].resident_bytes
	       && score_is_sane(lib);
}

static ckr_status
open_library(ckr_ctx *c, const char *so, const struct ckr_options *opt)
{
	uint32_t ranks;

	CKR_TRY(load_library(c, so));
	if (!programs_sane(c->lib))
		return err_set(&c->err, CKR_EFORMAT, "%s: its tables are "
		               "damaged; compile the model again", so);
	CKR_TRY(peers_count(c, opt->ranks, &ranks));
	return choose_world(c, so, ranks);
}

/* ---- what steps move ---- */

static void *
operand_of_transfer(void *user, const struct transfer *t, uint32_t rank, int i)
{
	const struct loaded_program *b = t->of;

	(void)user;
	return b->ptr[rank][b->p->instr[t->step].arg0 + (uint32_t)i];
}

static void
copy_to_host(void *user, void *host, const void *at, uint64_t n)
{
	const ckr_ctx *c = user;

	c->device->call->copy_d2h(c->device, host, at, n);
}

static void
copy_from_host(void *user, void *at, const void *host, uint64_t n)
{
	const ckr_ctx *c = user;

	c->device->call->copy_h2d(c->device, at, host, n);
	c->device->call->sync(c->device);
}

static uint32_t
count_comm(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ninstr; i++)
		n += p->instr[i].comm != NULL;
	return n;
}

static ckr_status
open_transfers(ckr_ctx *c)
{
	bool host = c->device->addressable;
	struct comm_view view = { .team = c->team, .nccl = c->nccl,
		.program = c->lib->program, .tp = c->world.tp,
		.dp = c->world.dp, .count = c->world.count,
		.rank = c->env.rank, .replica = c->env.replica,
		.threads = c->env.threads, .user = c,
		.operand = operand_of_transfer,
		.copy_d2h = host ? NULL : copy_to_host,
		.copy_h2d = host ? NULL : copy_from_host };
	uint32_t most = 0;

	for (int i = 0; i < CKR_PROGRAMS; i++) {
		uint32_t n = count_comm(&c->lib->program[i]);

		most = n > most ? n : most;
	}
	return transfers_open(&c->transfers, &view, most, &c->err);
}

static ckr_status
make_ready(ckr_ctx *c, const struct ckr_options *opt)
{
	const char *blas = opt->blas ? opt->blas : getenv("CKR_BLAS");

	rt_select_rank(c, 0);
	set_thread_count(c, fair_threads(c, opt->threads));
	c->cpu_monitor = cpu_monitor_open(c->env.threads, c->dl);
	CKR_TRY(rt_open_device(c));
	if (c->team && c->device->call->open_transport)
		CKR_TRY(c->device->call->open_transport(&c->nccl, c->device,
		                                        &c->err));
	CKR_TRY(c->device->call->open_libraries(c->device, c->lib, blas,
	                                        &c->env, &c->err));
	c->env.seed = opt->seed;
	CKR_TRY(map_memory(c));
	CKR_TRY(open_transfers(c));
	CKR_TRY(count_open(c));
	CKR_TRY(finite_open(c));
	norm_open(c);
	CKR_TRY(async_open(c));
	c->scale.value = SCALE_FIRST;
	c->best.loss = INFINITY;
	return CKR_OK;
}

/* What fails on one process fails on all. */
static ckr_status
open_model(ckr_ctx *c, const char *so, const struct ckr_options *opt)
{
	c->log = env_on("CKR_LOG");
	c->poison = env_on("CKR_POISON");
	CKR_TRY(peers_open(c, opt));
	CKR_TRY(peers_agree(c, open_library(c, so, opt), "opening"));
	CKR_TRY(peers_assign_ranks(c));
	CKR_TRY(peers_agree(c, make_ready(c, opt), "allocating memory"));
	CKR_TRY(transfers_join(c->transfers, &c->err));
	CKR_TRY(peers_compare(c));
	CKR_TRY(first_weights(c, opt->weights));
	if (c->log && peers_first(c))
		log_model(c);
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
	/* others may not come to this */
	if (c->trace && !c->team)
		trace_close(c);
	trace_drop(c);
	profile_free(c);
	grads_free(c);
	cpu_monitor_close(c->cpu_monitor);
	async_close(c);
	count_close(c);
	finite_close(c);
	transfers_close(c->transfers);
	rt_unload_program(c, &c->forward);
	rt_unload_program(c, &c->plan);
	for (uint32_t r = 0; r < c->world.count && c->resident; r++)
		device_unmap(c->device, &c->resident[r]);
	for (uint32_t i = 0; c->whole && i < c->lib->nshared; i++)
		if (c->whole[i])
			c->device->call->free_pinned(c->device, c->whole[i]);
	rt_close_env(c);
	nccl_close(c->nccl);
	device_close(c->device);
	free(c->whole);
	free(c->input_set);
	free(c->left);
	free(c->group);
	free(c->resident);
	free(c->path);
	peers_close(c);
	if (c->dl)
		dlclose(c->dl);
	free(c);
}

const char *
ckr_error(const ckr_ctx *c)
{
	return c ? c->err.text : "out of memory";
}
