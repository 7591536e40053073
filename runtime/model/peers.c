#include "runtime/model/peers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/support/hash.h"

enum { TIMEOUT = 600 };                 /* seconds */

ckr_status
peers_open(ckr_ctx *c, const struct ckr_options *opt)
{
	return pg_open(&c->team, opt->comm_timeout > 0 ? opt->comm_timeout
	               : TIMEOUT, &c->err);
}

void
peers_close(ckr_ctx *c)
{
	pg_close(c->team);
}

ckr_status
peers_count(ckr_ctx *c, uint32_t wanted, uint32_t *ranks)
{
	*ranks = c->team ? c->team->size : wanted;
	if (!wanted || wanted == *ranks)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "%u processes were started, one per "
	               "rank, but %u ranks were requested", *ranks, wanted);
}

bool
peers_first(const ckr_ctx *c)
{
	return !c->team || c->team->rank == 0;
}

ckr_status
peers_assign_ranks(ckr_ctx *c)
{
	if (!c->team)
		return CKR_OK;
	c->world.first = c->team->rank;
	c->world.count = 1;
	return pg_split(c->team, c->world.tp, &c->err);
}

/* ---- agreement ---- */

enum { ANY = 1, BAD = 2, OVERFLOW = 4 };

ckr_status
peers_agree(ckr_ctx *c, ckr_status s, const char *what)
{
	struct pg_task w = { .op = what, .patient = true };
	struct pg_vote v = { .status = s };

	/* what all know already they all have come here with */
	if (!c->team || s == CKR_ERANK || (s != CKR_OK && c->err.known))
		return s;
	return pg_agree(c->team, &v, &w, &c->err);
}

ckr_status
peers_agree_step(ckr_ctx *c, ckr_status s, uint64_t order)
{
	struct finite_check *g = &c->finite;
	struct pg_task w = { .op = "agreement on the step",
		.step = c->step + 1 };
	struct pg_vote v = { .status = s, .order = order };

	if (!c->team)
		return s;
	v.flags = (g->nonfinite ? BAD : 0) | (g->overflow ? OVERFLOW : 0);
	v.most = ckr_peak_bytes(c);
	s = pg_agree(c->team, &v, &w, &c->err);
	c->peak = v.most;
	g->nonfinite = v.flags & BAD;
	g->overflow = v.flags & OVERFLOW;
	return s;
}

ckr_status
peers_any(ckr_ctx *c, bool here, bool *any)
{
	struct pg_task w = { .op = "the end of the step", .step = c->step };
	struct pg_vote v = { .flags = here ? ANY : 0 };

	if (c->team)
		CKR_TRY(pg_agree(c->team, &v, &w, &c->err));
	*any = v.flags & ANY;
	return CKR_OK;
}

/* ---- comparison ---- */

/* What must be equal, so that all compute the same: in words. */
enum { LIBRARY, PRODUCTS, PROCESSOR, THREADS, SEED, FACTS };

static const char *const fact_name[] = { "compiled model", "BLAS library",
	"CPU type", "number of threads", "seed" };

struct facts {
	char text[FACTS][120];
};

static ckr_status
hash_file(const char *path, uint64_t *h, struct err *e)
{
	enum { BLOCK = 1 << 16 };
	uint64_t *block = malloc(BLOCK), size;
	int fd;
	ckr_status s = file_open(path, &fd, &size, e);

	if (s == CKR_OK && !block)
		s = err_set(e, CKR_ENOMEM, "out of memory");
	*h = size;
	for (uint64_t at = 0; s == CKR_OK && at < size; at += BLOCK) {
		uint64_t n = size - at < BLOCK ? size - at : BLOCK;

		memset(block, 0, BLOCK);
		s = file_read(fd, path, block, n, at, e);
		for (uint64_t i = 0; i < (n + 7) / 8; i++)
			*h = hash_number(*h, block[i]);
	}
	if (fd >= 0)
		close(fd);
	free(block);
	return s;
}

/* Kernels were compiled for one, products choose by another. */
static const char *
processor_kind(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx512bf16") ? "x86, avx512bf16"
	       : __builtin_cpu_supports("avx512f") ? "x86, avx512f"
	       : __builtin_cpu_supports("avx2") ? "x86, avx2"
	       : __builtin_cpu_supports("avx") ? "x86, avx" : "x86";
#else
	return "unknown";
#endif
}

static ckr_status
find_facts(ckr_ctx *c, struct facts *f)
{
	const struct ckr_library *lib = c->lib;
	char (*t)[sizeof(f->text[0])] = f->text;
	uint64_t hash;

	memset(f, 0, sizeof(*f));
	CKR_TRY(hash_file(c->path, &hash, &c->err));
	snprintf(t[LIBRARY], sizeof(*t), "%.40s %016llx, version %u, %llu "
	         "bytes", lib->name, (unsigned long long)hash, lib->abi,
	         (unsigned long long)lib->peak_bytes);
	snprintf(t[PRODUCTS], sizeof(*t), "%.100s", c->device->libraries);
	snprintf(t[PROCESSOR], sizeof(*t), "%s%s%.60s", processor_kind(),
	         *c->device->name ? ", " : "", c->device->name);
	snprintf(t[THREADS], sizeof(*t), "%d", c->env.threads);
	snprintf(t[SEED], sizeof(*t), "%llu", (unsigned long long)c->env.seed);
	return CKR_OK;
}

/* Fails and lists the processes that differ from the first one in fact k. */
static bool
check_fact(const struct facts *all, uint32_t n, int k, struct err *e)
{
	char list[200] = "";
	uint32_t other = 0;

	for (uint32_t r = 1; r < n; r++) {
		size_t at = strlen(list);

		if (!strcmp(all[r].text[k], all[0].text[k]))
			continue;
		snprintf(list + at, sizeof(list) - at, "%s%u",
		         other ? ", " : "", r);
		other = other ? other : r;
	}
	if (!other)
		return false;
	err_set(e, CKR_EARG, "rank%s %s and rank 0 differ in their %s: '%s' "
	        "and '%s'", strchr(list, ',') ? "s" : "", list, fact_name[k],
	        all[other].text[k], all[0].text[k]);
	return true;
}

ckr_status
peers_compare(ckr_ctx *c)
{
	struct pg_task w = { .op = "comparing libraries", .patient = true };
	struct facts mine, *all;
	ckr_status s;

	if (!c->team)
		return CKR_OK;
	all = calloc(c->team->size, sizeof(*all));
	s = all ? find_facts(c, &mine) : rt_no_memory(c);
	s = peers_agree(c, s, w.op);
	if (s == CKR_OK)
		s = pg_allgather_equal(c->team, &mine, sizeof(mine), all, &w,
		                       &c->err);
	for (int k = 0; s == CKR_OK && k < FACTS; k++)
		if (check_fact(all, c->team->size, k, &c->err)) {
			s = CKR_EARG;
			c->err.known = true;
			c->err.mute = c->team->rank;
		}
	free(all);
	return s;
}

/* ---- from outside ---- */

uint32_t
ckr_rank(const ckr_ctx *c)
{
	return c->team ? c->team->rank : 0;
}

uint32_t
ckr_processes(const ckr_ctx *c)
{
	return c->team ? c->team->size : 1;
}

ckr_status
ckr_agree(ckr_ctx *c, ckr_status s)
{
	return c ? peers_agree(c, s, "agreement") : s;
}

ckr_status
ckr_agree_any(ckr_ctx *c, bool here, bool *any)
{
	return peers_any(c, here, any);
}

bool
ckr_is_reporter(const ckr_ctx *c)
{
	return !c || !c->err.mute;
}

void
ckr_abort(ckr_ctx *c, ckr_status s)
{
	/* who speaks is to be heard first */
	enum { SOON = 2 };

	if (!c || !c->team || s == CKR_OK
	    || (c->err.known && s != CKR_ERANK))
		return;
	if (c->err.mute)
		sleep(SOON);
	pg_abort(c->team, s == CKR_ERANK ? 3 : 1);
}
