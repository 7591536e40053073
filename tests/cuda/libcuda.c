/* A driver for a GPU that is the host: memory is malloc's, a stream carries
 * out what it is given at once, or when it can.  Built as libcuda.so.1.
 *
 * Memory handed out cannot be touched from outside kernels, products and copies:
 * who takes an address of the GPU for one of the host dies.  CKR_FAKE_GPU_BYTES limits how much there is,
 * CKR_FAKE_GPU=none|lost|old tells what is wrong with it, and
 * CKR_FAKE_GPU_ARCH is its architecture (90).  CKR_FAKE_GPU_COUNT of them are
 * there (1): each is all of the process that uses it.
 */
#include "tests/cuda/fake.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct block {
	struct block *next;
	uint64_t at, size, mapped;
	void *base;                     /* of what the system gave */
};

/* Blocks begin where large pages do: protection changes with every launch. */
enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

static struct block *blocks;
static uint64_t taken, copies;

static int
is(const char *what)
{
	const char *s = getenv("CKR_FAKE_GPU");

	return s && !strcmp(s, what);
}

static uint64_t
all_bytes(void)
{
	const char *s = getenv("CKR_FAKE_GPU_BYTES");

	return s ? strtoull(s, NULL, 10) : (uint64_t)64 << 30;
}

/* ---- memory ---- */

static void
protect(int how)
{
	for (struct block *b = blocks; b; b = b->next)
		mprotect((void *)(uintptr_t)b->at, b->mapped - PAGE, how);
}

void
fake_enter(void)
{
	protect(PROT_READ | PROT_WRITE);
}

void
fake_leave(void)
{
	protect(PROT_NONE);
}

EXPORT CUresult
cuInit(unsigned flags)
{
	(void)flags;
	return is("none") ? 100 : 0;
}

EXPORT CUresult
cuDeviceGetCount(int *n)
{
	const char *s = getenv("CKR_FAKE_GPU_COUNT");

	*n = s ? atoi(s) : 1;
	return 0;
}

EXPORT CUresult
cuDeviceGet(int *device, int i)
{
	*device = i;
	return 0;
}

EXPORT CUresult
cuDeviceGetName(char *name, int n, int device)
{
	(void)device;
	snprintf(name, (size_t)n, "emulated GPU");
	return 0;
}

EXPORT CUresult
cuDeviceGetAttribute(int *value, int what, int device)
{
	const char *s = getenv("CKR_FAKE_GPU_ARCH");
	int arch = s ? atoi(s) : 90;

	(void)device;
	*value = what == 75 ? arch / 10 : what == 76 ? arch % 10 : 0;
	return 0;
}

EXPORT CUresult
cuDeviceGetUuid_v2(char *uuid, int device)
{
	memset(uuid, 0, 16);
	snprintf(uuid, 16, "emulated %d", device);
	return 0;
}

EXPORT CUresult
cuDevicePrimaryCtxRetain(void **context, int device)
{
	(void)device;
	*context = &blocks;
	return 0;
}

EXPORT CUresult
cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	if (blocks)
		fprintf(stderr, "emulated GPU: memory was not given back\n");
	return blocks ? 1 : 0;
}

EXPORT CUresult
cuCtxSetCurrent(void *context)
{
	(void)context;
	return 0;
}

EXPORT CUresult
cuGetErrorString(CUresult r, const char **text)
{
	*text = r == 2 ? "out of memory" : r == 719 ? "unspecified launch failure"
	      : "error of the emulated driver";
	return 0;
}

EXPORT CUresult
cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*all = all_bytes();
	*left = *all - taken;
	return 0;
}

EXPORT CUresult
cuMemAlloc_v2(unsigned long long *at, size_t n)
{
	struct block *b;

	if (n > all_bytes() - taken)
		return 2;
	b = calloc(1, sizeof *b);
	b->size = n;
	b->mapped = (n + PAGE - 1) / PAGE * PAGE + PAGE;
	b->base = mmap(NULL, b->mapped + LARGE_PAGE, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b->at = ((uintptr_t)b->base + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	/* few large pages are protected sooner than many small ones */
	madvise((void *)(uintptr_t)b->at, b->mapped, MADV_HUGEPAGE);
	b->next = blocks;
	blocks = b;
	taken += n;
	memset((void *)(uintptr_t)b->at, 0xa5, n);
	*at = b->at;
	fake_leave();
	return 0;
}

EXPORT CUresult
cuMemFree_v2(unsigned long long at)
{
	for (struct block **b = &blocks; *b; b = &(*b)->next)
		if ((*b)->at == at) {
			struct block *gone = *b;

			*b = gone->next;
			taken -= gone->size;
			munmap(gone->base, gone->mapped + LARGE_PAGE);
			free(gone);
			return 0;
		}
	return 1;
}

EXPORT CUresult
cuMemAllocHost_v2(void **at, size_t n)
{
	*at = malloc(n);
	return *at ? 0 : 2;
}

EXPORT CUresult
cuMemFreeHost(void *at)
{
	free(at);
	return 0;
}

/* Whether bytes from..from + n - 1 were taken here. */
int
fake_mine(uint64_t from, size_t n)
{
	for (struct block *b = blocks; b; b = b->next) {
		uint64_t first = b->at;

		if (from >= first && from - first <= b->size
		    && n <= b->size - (from - first))
			return 1;
	}
	return 0;
}

int
fake_lost(void)
{
	return is("lost") && ++copies > 40 ? 719 : 0;
}
