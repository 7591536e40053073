/* A GPU on the host: what model.cu needs of CUDA's language, so that g++
 * compiles it unchanged.
 *
 * A launch is a loop over blocks.  Threads that never meet are a loop too;
 * those that do (CKR_LAUNCH_BLOCK) are fibers, each run until it waits at a
 * barrier or a shuffle.  CKR_EMULATE_ORDER=forwards|backwards|shuffled is the
 * order in which threads run between meetings: bits that change with it show
 * that a barrier is missing.  Shared memory is filled with NaNs before every
 * block; compiled with CKR_EMULATE_RACES=1, every access to it is checked
 * (races.h).
 */
#ifndef TESTS_CUDA_EMULATE_H
#define TESTS_CUDA_EMULATE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "races.h"
#include "stream.h"

#define __global__
#ifdef __SANITIZE_THREAD__
/* Or structures that are passed and returned would not be seen. */
#define __device__ __attribute__((always_inline))
#else
#define __device__
#endif
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local
#define __restrict__
#define __align__(n) alignas(n)
#define __CUDA_EMULATED__ 1

struct emu_index {
	unsigned x, y, z;
};

static emu_index threadIdx, blockIdx, blockDim, gridDim;
enum { warpSize = 32 };

struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };

namespace emu {

/* The rest is compiled as quickly as that goes. */
#pragma GCC push_options
#pragma GCC optimize ("O2")

/* Stacks do not begin at a power of two from each other, or all of them would
 * lie in the same lines of a cache. */
enum { MOST = 1024, STACK = (1 << 16) + 320 };

/* ---- stacks that take turns ---- */

#if defined __x86_64__
/* Where a stack that does not run ends; what calls preserve lies there. */
struct context { void **top; };

/* A change takes a tenth of the time of setjmp() and longjmp(). */
void change(context *from, const context *to) __asm__("emu_change");
__asm__(".text\n"
	"emu_change:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
	"	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n	movq (%rsi), %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n"
	"	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n");

EMU_UNSEEN inline void
begin(context *c, char *stack, void (*f)())
{
	void **top = (void **)(stack + STACK) - 2;

	c->top = top - 6;
	memset(c->top, 0, 8 * sizeof *top);
	*top = (void *)f;
}
#else
struct context { ucontext_t u; };

inline void
change(context *from, const context *to)
{
	swapcontext(&from->u, &to->u);
}

EMU_UNSEEN inline void
begin(context *c, char *stack, void (*f)())
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = STACK;
	makecontext(&c->u, f, 0);
}
#endif

struct group {
	unsigned alive, waiting;
	uint64_t turn;
	bool orders;                    /* memory, when all have come */
};

struct fiber {
	context at;                     /* while another one runs */
	bool begun, done;
	const group *waits;             /* for a turn after this one */
	uint64_t turn;
	uint64_t slot;                  /* what a shuffle passes on */
};

static fiber fibers[MOST];
static char *stacks;
static context home;
static unsigned count, current;
static group block, warp[MOST / 32];
static void (*call)(void *);
static void *call_arg;
static uint32_t orders[MOST / 32];      /* of each warp's memory */

enum order { FORWARDS, BACKWARDS, SHUFFLED };

static order how;                       /* of this launch */

inline order
order_wanted()
{
	const char *s = getenv("CKR_EMULATE_ORDER");

	return !s ? FORWARDS : !strcmp(s, "backwards") ? BACKWARDS
	       : !strcmp(s, "shuffled") ? SHUFFLED : FORWARDS;
}

/* The i-th of n in this order. */
EMU_UNSEEN inline unsigned
pick(unsigned i, unsigned n)
{
	if (how == BACKWARDS)
		return n - 1 - i;
	/* n is a power of 2, or nearly: an odd step visits all */
	if (how == SHUFFLED && n % 7)
		return (unsigned)((uint64_t)i * 7 + 3) % n;
	return i;
}

EMU_UNSEEN inline void
yield()
{
	change(&fibers[current].at, &home);
}

/* All of a group have come. */
EMU_UNSEEN inline void
go_on(group *g)
{
	g->waiting = 0;
	g->turn++;
	if (g == &block)
		now++;
	else if (g->orders)
		orders[g - warp]++;
}

/* A barrier; orders: what was written before it is seen behind it. */
EMU_UNSEEN inline void
meet(group *g, bool orders)
{
	fiber *f = &fibers[current];

	g->orders = orders;
	if (++g->waiting == g->alive) {
		go_on(g);
		return;
	}
	f->waits = g;
	f->turn = g->turn;
	yield();
}

/* ---- instructions ---- */

/* ex2.approx.ftz */
inline float
exp2(float x)
{
	float y = exp2f(x);

	return y < 0x1p-126f ? 0.0f : y;
}

/* st.global */
template <typename T> EMU_UNSEEN void
store_global(T *y, T x)
{
	if ((uintptr_t)y - (uintptr_t)dynamic < sizeof dynamic) {
		fprintf(stderr, "emulated GPU: a store to global memory "
		        "writes shared memory\n");
		abort();
	}
	*y = x;
}

/* ---- copies that land when they are waited for ---- */

struct copy {
	void *to;
	const void *from;
	bool exists;
	unsigned group;
};

enum { COPIES = 256 };          /* of a thread, begun and not waited for */

static copy copies[MOST][COPIES];
static unsigned ncopies[MOST], groups[MOST];

EMU_UNSEEN inline void
copy16(void *to, const void *from, bool exists)
{
	if (ncopies[current] == COPIES) {
		fprintf(stderr, "emulated GPU: more than %d copies of a thread "
		        "that nothing waits for\n", COPIES);
		abort();
	}
	touch(to, 16, COPY, __builtin_return_address(0));
	copies[current][ncopies[current]++] = { to, from, exists,
	                                        groups[current] };
}

inline void
copies_end()
{
	groups[current]++;
}

/* All groups of this thread but the last n. */
EMU_UNSEEN inline void
copies_wait(unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0; i < ncopies[current]; i++) {
		const copy c = copies[current][i];

		if (c.group + n >= groups[current]) {
			copies[current][left++] = c;
			continue;
		}
		land(c.to, 16);
		if (c.exists)
			memcpy(c.to, c.from, 16);
		else
			memset(c.to, 0, 16);
	}
	ncopies[current] = left;
}

/* ---- tensor cores ---- */

/* Factors of a warp's product: rows of a, columns of b. */
static struct { float a[16][16], b[8][16]; } factors[MOST / 32];
static const uint16_t *rows[MOST];

/* c[16, 8] += a[16, 16] b[16, 8], spread over a warp as the hardware does. */
template <typename Get> EMU_UNSEEN void
mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, Get get)
{
	unsigned row = current % 32 / 4, k = current % 4 * 2;
	auto *f = &factors[current / 32];
	const uint32_t b[2] = { b0, b1 };

	for (unsigned i = 0; i < 4; i++) {
		float *to = &f->a[row + i % 2 * 8][k + i / 2 * 8];

		to[0] = get((uint16_t)a[i]);
		to[1] = get((uint16_t)(a[i] >> 16));
	}
	for (unsigned i = 0; i < 2; i++) {
		float *to = &f->b[row][k + i * 8];

		to[0] = get((uint16_t)b[i]);
		to[1] = get((uint16_t)(b[i] >> 16));
	}
	meet(&warp[current / 32], false);
	for (unsigned e = 0; e < 4; e++) {
		const float *x = f->a[row + e / 2 * 8], *y = f->b[k + e % 2];
		float sum = c[e];

		for (unsigned i = 0; i < 16; i++)
			sum += x[i] * y[i];
		c[e] = sum;
	}
	meet(&warp[current / 32], false);
}

/* Four matrices of 8 x 8, whose rows lanes point to. */
EMU_UNSEEN inline void
matrices(uint32_t *r, const void *row, bool trans)
{
	unsigned lane = current % 32, base = current - lane;

	touch(row, 16, READ, __builtin_return_address(0));
	rows[current] = (const uint16_t *)row;
	meet(&warp[current / 32], false);
	for (unsigned m = 0; m < 4; m++) {
		const uint16_t **at = rows + base + m * 8;
		unsigned i = lane / 4, j = lane % 4 * 2;

		r[m] = trans ? at[j][i] | (uint32_t)at[j + 1][i] << 16
		             : at[i][j] | (uint32_t)at[i][j + 1] << 16;
	}
	meet(&warp[current / 32], false);
}

EMU_UNSEEN inline void
leave(group *g)
{
	g->alive--;
	if (g->alive && g->waiting == g->alive)
		go_on(g);
}

/* A fiber does one block's work after another: to begin anew would be a system
 * call. */
EMU_UNSEEN inline void
trampoline()
{
	for (;;) {
		call(call_arg);
		fibers[current].done = true;
		leave(&warp[current / 32]);
		leave(&block);
		yield();
	}
}

EMU_UNSEEN inline void
resume(unsigned i)
{
	fiber *f = &fibers[i];

	current = now_thread = i;
	threadIdx = { i, 0, 0 };
	if (!f->begun)
		begin(&f->at, stacks + (size_t)i * STACK, trampoline);
	f->begun = true;
	change(&home, &f->at);
}

/* Until all of its threads wait for other warps or are done; whether one
 * went on. */
EMU_UNSEEN inline bool
run_warp(unsigned w)
{
	unsigned n = count - w * 32 < 32 ? count - w * 32 : 32;
	bool any = false;

	for (bool on = true; on; any |= on) {
		on = false;
		for (unsigned i = 0; i < n; i++) {
			unsigned k = w * 32 + pick(i, n);
			const fiber *f = &fibers[k];

			if (f->done || (f->waits && f->waits->turn == f->turn))
				continue;
			resume(k);
			on = true;
		}
	}
	return any;
}

EMU_UNSEEN inline void
run_block(unsigned threads)
{
	unsigned warps = (threads + 31) / 32;

	count = threads;
	if (!stacks)
		stacks = (char *)malloc((size_t)MOST * STACK);
	block = { threads, 0, 0, true };
	for (unsigned i = 0; i < warps; i++)
		warp[i] = { threads - i * 32 < 32 ? threads - i * 32 : 32,
			    0, 0, false };
	for (unsigned i = 0; i < threads; i++) {
		fibers[i].done = false;
		fibers[i].waits = NULL;
		fibers[i].slot = 0;
		ncopies[i] = 0;
		groups[i] = 0;
	}
	for (bool left = true; left;) {
		left = false;
		for (unsigned i = 0; i < warps; i++)
			left |= run_warp(pick(i, warps));
	}
	for (unsigned i = 0; i < threads; i++)
		if (!fibers[i].done) {
			fprintf(stderr, "emulated GPU: thread %u of %u waits "
			        "for ever\n", i, threads);
			abort();
		}
}

/* What a launch runs in every thread: a kernel with its arguments, which a copy
 * of its bytes keeps; those may lie right behind. */
struct alignas(16) launch {
	const char *name;
	const void *kernel;
	bool meets;
	unsigned blocks, threads;
	size_t shared;
	void (*body)(void *);
	void *arg;
};

EMU_UNSEEN static void
run(const launch &l)
{
	how = order_wanted();
	gridDim = { l.blocks, 1, 1 };
	blockDim = { l.threads, 1, 1 };
	call = l.body;
	call_arg = l.arg;
	warp_order = orders;
	begin_launch(l.name, l.kernel, l.threads, l.shared);
	for (unsigned b = 0; b < l.blocks; b++) {
		blockIdx = { pick(b, l.blocks), 0, 0 };
		begin_block(blockIdx.x);
		memset(dynamic, 0xff, l.shared);
		if (l.meets) {
			run_block(l.threads);
			continue;
		}
		for (unsigned i = 0; i < l.threads; i++) {
			now_thread = pick(i, l.threads);
			threadIdx = { now_thread, 0, 0 };
			l.body(l.arg);
		}
	}
	end_launch();
}

#pragma GCC pop_options

static unsigned long launches;
static int error;                       /* of the last launch */

/* At once, or when the graph runs that is being captured. */
static void
start(void *on, launch l, size_t bytes)
{
	fake_stream *stream = (fake_stream *)on;
	static const char *fail = getenv("CKR_EMULATE_FAIL");
	launch *kept;

	if (fail && launches++ == strtoul(fail, NULL, 10)) {
		error = 701;
		return;
	}
	if (stream && stream->current()) {
		error = stream->current();
		return;
	}
	/* lazy loading may have to wait for the GPU */
	if (stream && stream->capturing && !asked_by(l.kernel)->loaded) {
		fprintf(stderr, "emulated GPU: %s: the first launch is recorded "
		        "into a graph\n", l.name);
		abort();
	}
	if (stream && stream->invalid) {
		error = 901;
		return;
	}
	asked_by(l.kernel)->loaded = true;
	if (!stream || !stream->end) {
		if (stream)
			stream->enter();
		run(l);
		if (stream)
			stream->leave();
		return;
	}
	kept = (launch *)malloc(sizeof *kept + bytes);
	*kept = l;
	kept->arg = memcpy(kept + 1, l.arg, bytes);
	stream->keep(stream, [](void *k) { run(*(launch *)k); }, free, kept);
}

template <typename... P, typename... A> void
launch_kernel(const char *name, void *on, bool meets, int64_t blocks,
              int64_t threads, size_t shared, void (*kernel)(P...), A... arg)
{
	auto body = [=] { kernel(arg...); };
	typedef decltype(body) bound;

	check_launch(name, (const void *)kernel, blocks, threads, shared,
	             (sizeof(A) + ... + 0));
	start(on, { name, (const void *)kernel, meets, (unsigned)blocks,
	            (unsigned)threads, shared,
	            [](void *b) { (*(bound *)b)(); }, &body }, sizeof body);
}

}

#define EMU_LAUNCH(meets, kernel, blocks, threads, shared, env, ...) \
	emu::launch_kernel(#kernel, (env)->stream, meets, blocks, threads, \
	                   (shared), kernel, __VA_ARGS__)
#define CKR_LAUNCH(...) EMU_LAUNCH(false, __VA_ARGS__)
#define CKR_LAUNCH_MEETING(...) EMU_LAUNCH(true, __VA_ARGS__)
/* extern __shared__ memory of a launch. */
#define CKR_SHARED(type, name) type *name = (type *)emu::dynamic

/* CKR_EMULATE_FAIL=N: launch N fails, as it does for want of registers. */
typedef int cudaError_t;

inline cudaError_t
cudaGetLastError()
{
	cudaError_t was = emu::error;

	emu::error = 0;
	return was;
}

enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

/* The error stays until it is asked for, as that of a launch does. */
inline cudaError_t
cudaFuncSetAttribute(const void *kernel, int, int bytes)
{
	if (bytes < 0 || (size_t)bytes > emu::block_limit())
		return emu::error = 1;
	emu::asked_by(kernel)->bytes = (size_t)bytes;
	return 0;
}

enum { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };

inline cudaError_t
cudaGetDevice(int *device)
{
	*device = 0;
	return 0;
}

inline cudaError_t
cudaDeviceGetAttribute(int *value, int what, int)
{
	*value = what == cudaDevAttrMaxSharedMemoryPerBlockOptin
	       ? (int)emu::block_limit() : 0;
	return 0;
}

inline const char *
cudaGetErrorString(cudaError_t e)
{
	return e == 201 ? "invalid device context"
	     : e == 901 ? "operation failed due to a previous error during capture"
	     : "too many resources requested for launch";
}

#define __syncthreads() emu::meet(&emu::block, true)
#define __syncwarp() emu::meet(&emu::warp[emu::current / 32], true)
#define __threadfence() ((void)0)

/* Lanes meet, which orders no memory. */
EMU_UNSEEN inline void
emu_vote()
{
	emu::meet(&emu::warp[emu::current / 32], false);
}

template <typename T> EMU_UNSEEN T
emu_shuffle(T x, unsigned from)
{
	unsigned base = emu::current / 32 * 32;
	T y;

	static_assert(sizeof(T) <= 8, "a shuffle passes 8 bytes");
	memcpy(&emu::fibers[emu::current].slot, &x, sizeof x);
	emu_vote();
	memcpy(&y, &emu::fibers[base + from % 32].slot, sizeof y);
	emu_vote();
	return y;
}

template <typename T> T
__shfl_xor_sync(unsigned, T x, int k)
{
	return emu_shuffle(x, emu::current % 32 ^ (unsigned)k);
}

template <typename T> T
__shfl_sync(unsigned, T x, int k)
{
	return emu_shuffle(x, (unsigned)k);
}

template <typename T> T
__shfl_down_sync(unsigned, T x, unsigned k)
{
	unsigned lane = emu::current % 32;

	return emu_shuffle(x, lane + k < 32 ? lane + k : lane);
}

EMU_UNSEEN inline unsigned
__ballot_sync(unsigned, int is)
{
	unsigned base = emu::current / 32 * 32, bits = 0;

	emu::fibers[emu::current].slot = is != 0;
	emu_vote();
	for (unsigned i = 0; i < 32 && base + i < emu::count; i++)
		bits |= (unsigned)emu::fibers[base + i].slot << i;
	emu_vote();
	return bits;
}

/* Lanes that have the same x. */
template <typename T> EMU_UNSEEN unsigned
__match_any_sync(unsigned, T x)
{
	unsigned base = emu::current / 32 * 32, bits = 0;
	uint64_t mine = (uint64_t)x;

	emu::fibers[emu::current].slot = mine;
	emu_vote();
	for (unsigned i = 0; i < 32 && base + i < emu::count; i++)
		bits |= (unsigned)(emu::fibers[base + i].slot == mine) << i;
	emu_vote();
	return bits;
}

#define __popc(x) __builtin_popcount(x)
#define __ffs(x) __builtin_ffs((int)(x))

#define EMU_UPDATE(p) (emu::touch(p, sizeof *(p), emu::UPDATE, \
	__builtin_return_address(0)), p)

template <typename T> EMU_UNSEEN T
atomicAdd(T *p, T x)
{
	T old = *EMU_UPDATE(p);

	*p = old + x;
	return old;
}

template <typename T> EMU_UNSEEN T
atomicMin(T *p, T x)
{
	T old = *EMU_UPDATE(p);

	*p = x < old ? x : old;
	return old;
}

template <typename T> EMU_UNSEEN T
atomicMax(T *p, T x)
{
	T old = *EMU_UPDATE(p);

	*p = x > old ? x : old;
	return old;
}

template <typename T> EMU_UNSEEN T
atomicOr(T *p, T x)
{
	T old = *EMU_UPDATE(p);

	*p = old | x;
	return old;
}

#endif
