/* What must be equal in all processes, so that all compute the same. */
#include "runtime/file/file.h"
#include "runtime/support/hash.h"
#include "runtime/world/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		s = err_no_memory(e);
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
find_facts(struct world *w, uint64_t seed, struct facts *f)
{
	const struct ckr_library *lib = w->lib;
	char (*t)[sizeof(f->text[0])] = f->text;
	uint64_t hash;

	memset(f, 0, sizeof(*f));
	CKR_TRY(hash_file(w->library->path, &hash, w->err));
	snprintf(t[LIBRARY], sizeof(*t), "%.40s %016llx, version %u, %llu "
	         "bytes", lib->name, (unsigned long long)hash, lib->abi,
	         (unsigned long long)lib->peak_bytes);
	snprintf(t[PRODUCTS], sizeof(*t), "%.100s", w->device->libraries);
	snprintf(t[PROCESSOR], sizeof(*t), "%s%s%.60s", processor_kind(),
	         *w->device->name ? ", " : "", w->device->name);
	snprintf(t[THREADS], sizeof(*t), "%d", w->threads);
	snprintf(t[SEED], sizeof(*t), "%llu", (unsigned long long)seed);
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
compare_processes(struct world *w, uint64_t seed)
{
	struct pg_task task = { .op = "comparing libraries", .patient = true };
	struct facts mine, *all;
	ckr_status s;

	if (!w->team)
		return CKR_OK;
	all = calloc(w->team->size, sizeof(*all));
	s = all ? find_facts(w, seed, &mine) : err_no_memory(w->err);
	s = world_agree(w, s, task.op);
	if (s == CKR_OK)
		s = pg_allgather_equal(w->team, &mine, sizeof(mine), all, &task,
		                       w->err);
	for (int k = 0; s == CKR_OK && k < FACTS; k++)
		if (check_fact(all, w->team->size, k, w->err)) {
			s = CKR_EARG;
			w->err->known = true;
			w->err->mute = w->team->rank;
		}
	free(all);
	return s;
}
