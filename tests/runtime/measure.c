/* measure MODEL.so INPUTS.safetensors|- STEPS: what a training step does to
 * memory, seen from outside the model's own tables.
 *
 *   allocs    calls of malloc and the like, of mmap and sbrk, in all steps
 *   openmp    those by OpenMP's run time, which takes and frees the record of
 *             a team for each parallel region that runs on one thread
 *   anon      the process's anonymous memory after opening and each step,
 *             less what it was before the model's blocks were taken
 *   highest   end of the highest byte of the arena that a step writes
 *   outside   bytes written before, between and behind the two blocks
 *   pure      1: a step's results do not depend on what the arena held
 *
 * For the last three the blocks are moved between wide stretches of paint, and
 * one step is run from the same state with two paints: a byte that it writes
 * differs from one of them.  `-`: inputs and weights are zero.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "runtime/api/context.h"
#include "runtime/file/array.h"
#include "runtime/library/tensor.h"
#include "runtime/world/inside.h"
#include "tests/sanitize/sanitized.h"

enum { GUARD = 4 << 20, MAX_STEPS = 64, THREADS = 2 };

/* ---- allocations ---- */

/* Whether a step is running, and calls since. */
static atomic_int counting, allocs, openmp;

/* A sanitizer brings allocators of its own. */
#if !SANITIZED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* libgomp's code. */
static uintptr_t openmp_from, openmp_to;

static int
find_openmp(struct dl_phdr_info *info, size_t size, void *user)
{
	(void)size;
	(void)user;
	if (!strstr(info->dlpi_name, "libgomp"))
		return 0;
	openmp_from = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t end = info->dlpi_addr + h->p_vaddr + h->p_memsz;

		if (h->p_type == PT_LOAD && end > openmp_to)
			openmp_to = end;
	}
	return 1;
}

static void
count_from(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (!counting)
		return;
	if (openmp_from <= at && at < openmp_to)
		openmp++;
	else
		allocs++;
}

#define count() count_from(__builtin_return_address(0))

void *
malloc(size_t n)
{
	count();
	return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	count();
	return __libc_realloc(p, n);
}

void *
memalign(size_t align, size_t n)
{
	count();
	return __libc_memalign(align, n);
}

void *
aligned_alloc(size_t align, size_t n)
{
	count();
	return __libc_memalign(align, n);
}

int
posix_memalign(void **p, size_t align, size_t n)
{
	count();
	*p = __libc_memalign(align, n);
	return *p ? 0 : 12;
}

void *
mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);

	count();
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mmap");
	return real(at, n, prot, flags, fd, from);
}

void *
sbrk(intptr_t n)
{
	static void *(*real)(intptr_t);

	count();
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sbrk");
	return real(n);
}
#endif

/* ---- the model ---- */

static int
fail(const ckr_ctx *c)
{
	fprintf(stderr, "measure: %s\n", ckr_error(c));
	return 1;
}

/* They are zero already, but nobody has said so. */
static ckr_status
leave_inputs(ckr_ctx *c)
{
	struct ckr_info info;
	void *at;

	for (size_t i = 0; !ckr_tensor(c, i, &info); i++)
		if (!strcmp(info.kind, "input"))
			CKR_TRY(ckr_input(c, info.name, &at));
	return CKR_OK;
}

static ckr_status
set_inputs(ckr_ctx *c, const char *path)
{
	struct array_file f;
	struct ckr_info info;
	ckr_status s;

	if (!strcmp(path, "-"))
		return leave_inputs(c);
	s = array_open(&f, path, &c->err);

	for (size_t i = 0; s == CKR_OK && !ckr_tensor(c, i, &info); i++) {
		const struct array *a = array_find(&f, info.name);
		void *to;

		if (strcmp(info.kind, "input") != 0)
			continue;
		if (!a)
			s = err_set(&c->err, CKR_EARG, "no '%s'", info.name);
		else if ((s = ckr_input(c, info.name, &to)) == CKR_OK)
			s = array_read(&f, a, 0, a->nelem,
			               library_find(c->library.lib, info.name, NULL)->dtype, to,
			               &c->err);
	}
	array_close(&f);
	return s;
}

/* ---- anonymous memory ---- */

/* As a user's program would: nothing is moved. */
static ckr_status
run_steps(ckr_ctx *c, int steps, uint64_t *anon)
{
	anon[0] = mem_anonymous() - c->world.memory->anonymous;
	for (int i = 1; i <= steps; i++) {
		ckr_status s;

		counting = 1;
		s = ckr_step(c, NULL, NULL);
		counting = 0;
		CKR_TRY(s);
		anon[i] = mem_anonymous() - c->world.memory->anonymous;
	}
	return CKR_OK;
}

/* ---- ranks ---- */

/* Tensors that are whole on every rank and yet differ in a bit. */
static int
count_apart(const ckr_ctx *c)
{
	int n = 0;

	for (uint32_t i = 0; i < c->library.lib->nshared; i++) {
		const struct ckr_tensor *t = &c->library.lib->program[0].tensor[i];
		bool apart = false;

		for (uint32_t r = 1; r < c->world.count && !t->placement; r++)
			apart |= memcmp(world_at(&c->world, &c->world.plan, 0, t),
			                world_at(&c->world, &c->world.plan, r, t),
			                tensor_nbytes(t)) != 0;
		n += apart;
	}
	return n;
}

/* ---- paint ---- */

struct painted {
	unsigned char *all, *resident, *arena;
	uint64_t size;
};

static uint64_t
pages(uint64_t n)
{
	return (n + 4095) / 4096 * 4096;
}

/* Move both blocks; the old ones stay mapped until the process ends. */
static bool
move_blocks(ckr_ctx *c, struct painted *p)
{
	uint64_t resident = pages(c->world.memory->resident->size);

	p->size = 3 * (uint64_t)GUARD + resident + pages(c->world.plan.arena->size);
	p->all = mmap(NULL, p->size, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->all == MAP_FAILED)
		return false;
	p->resident = p->all + GUARD;
	p->arena = p->resident + resident + GUARD;
	memcpy(p->resident, c->world.memory->resident->p, c->world.memory->resident->size);
	c->world.memory->resident[0] = (struct block){ p->resident, c->world.memory->resident->size, NULL, 0,
	                              false };
	c->world.plan.arena[0] = (struct block){ p->arena, c->world.plan.arena->size, NULL, 0, false };
	return world_set_operands(&c->world, &c->world.plan);
}

/* One step from the state `saved` of all ranks, with `paint` everywhere else of
 * the first one's memory. */
static ckr_status
painted_step(ckr_ctx *c, const struct painted *p, const char *saved, int paint,
             double *loss)
{
	stepping_progress(c->steps)->step = 0;
	memset(p->all, paint, p->size);
	FOR_RANKS (r, &c->world)
		memcpy(c->world.memory->resident[r].p, saved + r * c->world.memory->resident->size,
		       c->world.memory->resident->size);
	return ckr_step(c, NULL, loss);
}

/* Bytes outside both blocks that do not hold paint. */
static uint64_t
count_outside(const ckr_ctx *c, const struct painted *p, int paint)
{
	uint64_t n = 0;

	for (unsigned char *b = p->all; b < p->all + p->size; b++) {
		if (b == p->resident)
			b += c->world.memory->resident->size;
		if (b == p->arena)
			b += c->world.plan.arena->size;
		n += *b != paint;
	}
	return n;
}

static uint64_t
end_of_written(const ckr_ctx *c, int paint)
{
	uint64_t n = c->world.plan.arena->size;

	while (n && c->world.plan.arena->p[n - 1] == paint)
		n--;
	return n;
}

static ckr_status
run_painted(ckr_ctx *c)
{
	static const int paint[] = { 0xa5, 0x5a };
	uint64_t highest = 0, outside = 0;
	char *saved = malloc(c->world.memory->resident->size * c->world.count + 1);
	unsigned char *after = malloc(c->world.memory->resident->size + 1);
	uint64_t nhost = world_host_bytes(&c->world);
	char *host = calloc(3, nhost + 1);      /* before and after the steps */
	bool pure = true;
	struct painted p;
	double loss[2];

	if (!saved || !after || !host || !move_blocks(c, &p))
		return err_set(&c->err, CKR_ENOMEM, "out of memory");
	FOR_RANKS (r, &c->world)
		memcpy(saved + r * c->world.memory->resident->size, c->world.memory->resident[r].p,
		       c->world.memory->resident->size);
	CKR_TRY(world_copy_host(&c->world, host, false));
	for (int i = 0; i < 2; i++) {
		uint64_t end;

		CKR_TRY(world_copy_host(&c->world, host, true));
		CKR_TRY(painted_step(c, &p, saved, paint[i], &loss[i]));
		end = end_of_written(c, paint[i]);
		highest = end > highest ? end : highest;
		outside += count_outside(c, &p, paint[i]);
		CKR_TRY(world_copy_host(&c->world,
		                        host + (uint64_t)(i + 1) * nhost,
		                        false));
		if (!i)
			memcpy(after, p.resident, c->world.memory->resident->size);
	}
	pure = !memcmp(after, p.resident, c->world.memory->resident->size)
	       && !memcmp(&loss[0], &loss[1], sizeof(*loss))
	       && !memcmp(host + nhost, host + 2 * nhost, nhost);
	printf("\"highest\": %llu, \"outside\": %llu, \"pure\": %d, ",
	       (unsigned long long)highest, (unsigned long long)outside, pure);
	free(saved);
	free(after);
	free(host);
	munmap(p.all, p.size);
	c->world.memory->resident->p = c->world.plan.arena->p = NULL;
	return CKR_OK;
}

/* OpenMP's threads are there before anything is measured. */
static void
start_threads(void)
{
#pragma omp parallel num_threads(THREADS)
	{
		volatile char stack[1 << 16];

		memset((char *)stack, 1, sizeof(stack));
	}
}

int
main(int argc, char **argv)
{
	struct ckr_options opt = { .blas = "own", .threads = THREADS };
	int steps = argc == 4 ? atoi(argv[3]) : 0;
	uint64_t anon[MAX_STEPS + 1];
	struct ckr_memory m;
	ckr_ctx *c;

	if (steps < 2 || steps > MAX_STEPS) {
		fputs("usage: measure MODEL.so INPUTS|- STEPS\n", stderr);
		return 2;
	}
#if !SANITIZED
	dl_iterate_phdr(find_openmp, NULL);
#endif
	/* a large page is touched whole */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	start_threads();
	if (!strcmp(argv[2], "-"))
		opt.weights = "";
	if (ckr_open(&c, argv[1], &opt) != CKR_OK
	    || set_inputs(c, argv[2]) != CKR_OK
	    || run_steps(c, steps, anon) != CKR_OK
	    || ckr_memory(c, &m) != CKR_OK)
		return fail(c);
	printf("{ \"planned\": %llu, \"peak\": %llu, \"resident\": %llu, "
	       "\"arena\": %llu, \"held\": %llu, \"allocs\": %d, "
	       "\"openmp\": %d, \"apart\": %d, \"anon\": [",
	       (unsigned long long)m.planned_bytes,
	       (unsigned long long)m.peak_bytes,
	       (unsigned long long)m.resident_bytes,
	       (unsigned long long)m.arena_bytes,
	       (unsigned long long)m.held_bytes, allocs, openmp,
	       count_apart(c));
	for (int i = 0; i <= steps; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)anon[i]);
	printf("], ");
	if (run_painted(c) != CKR_OK)
		return fail(c);
	printf("\"sanitized\": %d }\n", SANITIZED);
	ckr_close(c);
	return 0;
}
