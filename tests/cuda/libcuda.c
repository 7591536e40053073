/* A driver for a GPU that is the host: memory is malloc's, a stream carries
 * out what it is given at once.  Built as libcuda.so.1.
 *
 * Memory handed out cannot be touched from outside kernels, products and
 * copies: who takes an address of the GPU for one of the host dies.
 * CKR_FAKE_GPU_BYTES limits how much there is, CKR_FAKE_GPU=none|lost|old tells
 * what is wrong with it (lost: after CKR_FAKE_GPU_LOST=N copies, 40), and
 * CKR_FAKE_GPU_ARCH is its architecture (90).  CKR_FAKE_GPUS of them are there
 * (1): each is all of the process that uses it.
 *
 * CKR_FAKE_GPU_LATE=N: streams do nothing before somebody waits for it (N = 1),
 * or carry out some of it at any call, in an order that N chooses.  What a copy
 * will write in pinned memory is NaN until then, and who changes what one will
 * read there gets a message and an error.  Copies out of memory that is not
 * pinned read it at once, and copies into such memory wait for the stream, as
 * the driver's do.  CKR_FAKE_GPU_COUNT=FILE: calls are counted.
 *
 * The current context is a thread's, as the driver's is: without one calls give
 * 201, but for those that find a device and make its context current.
 */
#include "tests/cuda/fake.h"

#include <stdio.h>
#include <sys/mman.h>

struct block {
	struct block *next;
	uint64_t at, size, mapped;
	void *base;                     /* of what the system gave */
};

/* Blocks begin where large pages do: protection changes with every launch. */
enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

static struct block *blocks;
static struct block *pinned;            /* of the host */
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
cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

EXPORT CUresult
cuDeviceGetCount(int *n)
{
	const char *s = getenv("CKR_FAKE_GPUS");

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

static int retained;

EXPORT CUresult
cuDevicePrimaryCtxRetain(void **context, int device)
{
	(void)device;
	retained++;
	*context = &blocks;
	return 0;
}

static void
write_count(void)
{
	const char *path = getenv("CKR_FAKE_GPU_COUNT");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "{\"stops\": %lu, \"waits\": %lu, \"launches\": %lu, "
	        "\"graphs\": %lu}\n", fake_count.stops, fake_count.waits,
	        fake_count.launches, fake_count.graphs);
	fclose(f);
}

EXPORT CUresult
cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	write_count();
	if (--retained || !blocks)
		return 0;
	fprintf(stderr, "emulated GPU: memory was not given back\n");
	return 1;
}

static _Thread_local void *current;

EXPORT CUresult
cuCtxSetCurrent(void *context)
{
	current = context;
	return 0;
}

CUresult
fake_context(void)
{
	return current ? 0 : 201;
}

EXPORT CUresult
cuGetErrorString(CUresult r, const char **text)
{
	*text = r == 2 ? "out of memory" : r == 201 ? "invalid device context"
	      : r == 719 ? "unspecified launch failure"
	      : "error of the emulated driver";
	return 0;
}

EXPORT CUresult
cuMemGetInfo_v2(size_t *left, size_t *all)
{
	if (fake_context())
		return 201;
	*all = all_bytes();
	*left = *all - taken;
	return 0;
}

EXPORT CUresult
cuMemAlloc_v2(unsigned long long *at, size_t n)
{
	struct block *b;

	if (fake_context())
		return 201;
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

/* Take the block that begins at `at` out of a list. */
static struct block *
remove_block(struct block **list, uint64_t at)
{
	for (struct block **b = list; *b; b = &(*b)->next)
		if ((*b)->at == at) {
			struct block *gone = *b;

			*b = gone->next;
			return gone;
		}
	return NULL;
}

EXPORT CUresult
cuMemFree_v2(unsigned long long at)
{
	struct block *gone;

	if (fake_context())
		return 201;
	fake_finish();
	gone = remove_block(&blocks, at);
	if (!gone)
		return 1;
	taken -= gone->size;
	munmap(gone->base, gone->mapped + LARGE_PAGE);
	free(gone);
	return 0;
}

EXPORT CUresult
cuMemAllocHost_v2(void **at, size_t n)
{
	struct block *b = calloc(1, sizeof *b);

	if (fake_context())
		return 201;
	*at = malloc(n);
	*b = (struct block){ pinned, (uintptr_t)*at, n, n, NULL };
	pinned = b;
	return *at ? 0 : 2;
}

EXPORT CUresult
cuMemFreeHost(void *at)
{
	struct block *gone;

	if (fake_context())
		return 201;
	fake_finish();
	gone = remove_block(&pinned, (uintptr_t)at);
	if (!gone)
		return 1;
	free(gone);
	free(at);
	return 0;
}

/* Whether bytes from..from + n - 1 are in one block. */
static int
is_in(const struct block *list, uint64_t from, size_t n)
{
	for (const struct block *b = list; b; b = b->next) {
		uint64_t first = b->at;

		if (from >= first && from - first <= b->size
		    && n <= b->size - (from - first))
			return 1;
	}
	return 0;
}

CUresult
fake_lost(void)
{
	const char *s = getenv("CKR_FAKE_GPU_LOST");

	return is("lost") && ++copies > (s ? strtoull(s, NULL, 10) : 40)
	       ? 719 : 0;
}

/* ---- copies ---- */

/* Between a device and pinned memory: the host must not write what is read, nor
 * read what is written, before that is done.  Streams may, in the order that
 * events give them. */
struct copy {
	struct copy *next;              /* that has not run either */
	void *to;
	const void *from;
	size_t n;
	int byte;                       /* from NULL: what is filled in */
	int watched;                    /* from is pinned: it stays `was` */
	char was[];
};

static struct copy *pending;

static void
take_off(struct copy *c)
{
	struct copy **at = &pending;

	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
}

static void
drop_copy(void *c)
{
	take_off(c);
	free(c);
}

/* Whether a copy that has not run reads some of these bytes, or writes them. */
static int
is_pending(const void *bytes, size_t n, int write)
{
	const char *from = bytes;

	for (const struct copy *c = pending; c; c = c->next) {
		const char *at = write ? c->to : c->from;

		if (at && at < from + n && from < at + c->n)
			return 1;
	}
	return 0;
}

static void
run_copy(void *arg)
{
	struct copy *c = arg;

	take_off(c);
	if (!c->from) {
		memset(c->to, c->byte, c->n);
		return;
	}
	if (c->watched && memcmp(c->from, c->was, c->n) && !fake_broken) {
		fprintf(stderr, "emulated GPU: pinned memory was changed "
		        "before it had been copied\n");
		fake_broken = 999;
	}
	memmove(c->to, c->from, c->n);
}

static struct copy *
new_copy(void *to, const void *from, size_t n, size_t room)
{
	struct copy *c = malloc(sizeof *c + room);

	*c = (struct copy){ pending, to, from, n, 0, 0 };
	pending = c;
	if (room)
		memcpy(c->was, from, room);
	return c;
}

/* What a graph copies is what is there when it runs. */
static void
give_captured(struct fake_stream *stream, void *to, const void *from, size_t n)
{
	struct copy *c = malloc(sizeof *c);

	*c = (struct copy){ NULL, to, from, n, 0, 0 };
	fake_give(stream, run_copy, drop_copy, c);
}

EXPORT CUresult
cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n,
                     struct fake_stream *stream)
{
	struct copy *c;
	int by_device = is_pending(from, n, 1);

	if (fake_context())
		return 201;
	if (stream->capturing && !is_in(pinned, (uintptr_t)from, n))
		return 900;
	if (fake_lost())
		return 719;
	if (!is_in(blocks, to, n))
		return 700;
	if (stream->capturing) {
		give_captured(stream, (void *)(uintptr_t)to, from, n);
		return fake_broken;
	}
	c = new_copy((void *)(uintptr_t)to, from, n, n);
	c->watched = !by_device && is_in(pinned, (uintptr_t)from, n);
	if (!c->watched && !by_device)
		c->from = c->was;
	fake_give(stream, run_copy, drop_copy, c);
	return fake_broken;
}

EXPORT CUresult
cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n,
                     struct fake_stream *stream)
{
	if (fake_context())
		return 201;
	if (stream->capturing && !is_in(pinned, (uintptr_t)to, n))
		return 900;
	if (fake_lost())
		return 719;
	if (!is_in(blocks, from, n))
		return 700;
	if (stream->capturing) {
		give_captured(stream, to, (const void *)(uintptr_t)from, n);
		return fake_broken;
	}
	fake_give(stream, run_copy, drop_copy,
	     new_copy(to, (const void *)(uintptr_t)from, n, 0));
	if (!is_in(pinned, (uintptr_t)to, n)) {
		fake_count.stops++;
		fake_wait(stream, stream->given);
	} else if (stream->done < stream->given && !is_pending(to, n, 0)) {
		memset(to, 0xff, n);
	}
	return fake_broken;
}

EXPORT CUresult
cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t n,
                struct fake_stream *stream)
{
	struct copy *c;

	if (fake_context())
		return 201;
	if (stream->capturing)
		return 900;
	if (!is_in(blocks, to, n))
		return 700;
	c = new_copy((void *)(uintptr_t)to, NULL, n, 0);
	c->byte = byte;
	fake_give(stream, run_copy, drop_copy, c);
	return 0;
}

EXPORT CUresult
cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n,
                     struct fake_stream *stream)
{
	if (fake_context())
		return 201;
	if (stream->capturing)
		return 900;
	if (fake_lost())
		return 719;
	if (!is_in(blocks, to, n) || !is_in(blocks, from, n))
		return 700;
	fake_give(stream, run_copy, drop_copy,
	          new_copy((void *)(uintptr_t)to,
	                   (const void *)(uintptr_t)from, n, 0));
	return 0;
}

static void
run_rows(void *arg)
{
	const struct cu_copy *m = arg;

	for (size_t i = 0; i < m->rows; i++)
		memmove((char *)(uintptr_t)m->to + i * m->to_pitch,
		        (const char *)(uintptr_t)m->from + i * m->from_pitch,
		        m->width);
}

EXPORT CUresult
cuMemcpy2DAsync_v2(const struct cu_copy *m, struct fake_stream *stream)
{
	struct cu_copy *c;

	if (fake_context())
		return 201;
	if (m->from_kind != 2 || m->to_kind != 2 || m->width > m->to_pitch
	    || m->width > m->from_pitch || m->to_pitch > INT32_MAX
	    || m->from_pitch > INT32_MAX)
		return 1;
	if (stream->capturing)
		return 900;
	if (fake_lost())
		return 719;
	if (!is_in(blocks, m->to, (m->rows - 1) * m->to_pitch + m->width)
	    || !is_in(blocks, m->from, (m->rows - 1) * m->from_pitch
	                               + m->width))
		return 700;
	c = malloc(sizeof *c);
	*c = *m;
	fake_give(stream, run_rows, free, c);
	return 0;
}
