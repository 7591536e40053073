/* A GPU on the host: what model.cu needs of CUDA's language, so that g++
 * compiles it unchanged.
 *
 * A launch is a loop over blocks.  Threads that never meet are a loop too;
 * those that do (CKR_LAUNCH_BLOCK) are fibers, each run until it waits at a
 * barrier or a shuffle.  CKR_EMULATE_ORDER=forwards|backwards|shuffled is the
 * order in which threads run between meetings: bits that change with it show
 * that a barrier is missing.  Shared memory is filled with NaNs before every
 * block.
 */
#ifndef TESTS_CUDA_EMULATE_H
#define TESTS_CUDA_EMULATE_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <tuple>
#include <utility>
#include <vector>

#include "stream.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
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

enum { MOST = 1024, STACK = 1 << 16, SHARED = 232448 };

struct group {
	unsigned alive, waiting;
	uint64_t turn;
};

struct fiber {
	jmp_buf at;
	bool begun, done;
	uint64_t slot;                  /* what a shuffle passes on */
};

static fiber fibers[MOST];
static char *stacks;
static jmp_buf home;
static unsigned count, current;
static group block, warp[MOST / 32];
static void (*call)(void *);
static void *call_arg;
alignas(128) static unsigned char dynamic[SHARED];

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
inline unsigned
pick(unsigned i, unsigned n)
{
	if (how == BACKWARDS)
		return n - 1 - i;
	/* n is a power of 2, or nearly: an odd step visits all */
	if (how == SHUFFLED && n % 7)
		return (unsigned)((uint64_t)i * 7 + 3) % n;
	return i;
}

inline void
yield()
{
	fiber *f = &fibers[current];

	if (!_setjmp(f->at))
		_longjmp(home, 1);
}

inline void
meet(group *g)
{
	uint64_t turn = g->turn;

	if (++g->waiting == g->alive) {
		g->waiting = 0;
		g->turn++;
		return;
	}
	while (g->turn == turn)
		yield();
}

/* ---- copies that land when they are waited for ---- */

struct copy {
	void *to;
	const void *from;
	bool exists;
	unsigned group;
};

static std::vector<copy> copies[MOST];
static unsigned groups[MOST];

inline void
copy16(void *to, const void *from, bool exists)
{
	copies[current].push_back({ to, from, exists, groups[current] });
}

inline void
copies_end()
{
	groups[current]++;
}

/* All groups of this thread but the last n. */
inline void
copies_wait(unsigned n)
{
	std::vector<copy> left;

	for (const copy &c : copies[current])
		if (c.group + n >= groups[current])
			left.push_back(c);
		else if (c.exists)
			memcpy(c.to, c.from, 16);
		else
			memset(c.to, 0, 16);
	copies[current].swap(left);
}

/* ---- tensor cores ---- */

static uint32_t factors[MOST][6];
static const uint16_t *rows[MOST];

/* c[16, 8] += a[16, 16] b[16, 8], spread over a warp as the hardware does. */
template <typename Get> void
mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, Get get)
{
	unsigned lane = current % 32, base = current - lane;
	uint32_t *own = factors[current];

	memcpy(own, a, 4 * sizeof *a);
	own[4] = b0, own[5] = b1;
	meet(&warp[current / 32]);
	for (unsigned e = 0; e < 4; e++) {
		unsigned row = lane / 4, col = lane % 4 * 2 + e % 2;

		for (unsigned k = 0; k < 16; k++) {
			unsigned of = k % 8 / 2, high = k / 8, bit = k % 2 * 16;
			uint32_t x = factors[base + row * 4 + of]
				[e / 2 + 2 * high] >> bit;
			uint32_t y = factors[base + col * 4 + of][4 + high]
				>> bit;

			c[e] += get((uint16_t)x) * get((uint16_t)y);
		}
	}
	meet(&warp[current / 32]);
}

/* Four matrices of 8 x 8, whose rows lanes point to. */
inline void
matrices(uint32_t *r, const void *row, bool trans)
{
	unsigned lane = current % 32, base = current - lane;

	rows[current] = (const uint16_t *)row;
	meet(&warp[current / 32]);
	for (unsigned m = 0; m < 4; m++) {
		const uint16_t **at = rows + base + m * 8;
		unsigned i = lane / 4, j = lane % 4 * 2;

		r[m] = trans ? at[j][i] | (uint32_t)at[j + 1][i] << 16
		             : at[i][j] | (uint32_t)at[i][j + 1] << 16;
	}
	meet(&warp[current / 32]);
}

inline void
leave(group *g)
{
	g->alive--;
	if (g->alive && g->waiting == g->alive) {
		g->waiting = 0;
		g->turn++;
	}
}

/* A fiber does one block's work after another: to begin anew would be a system
 * call. */
inline void
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

inline void
resume(unsigned i)
{
	static ucontext_t start, back;
	fiber *f = &fibers[i];

	current = i;
	threadIdx.x = i % blockDim.x;
	threadIdx.y = i / blockDim.x % blockDim.y;
	if (_setjmp(home))
		return;
	if (f->begun)
		_longjmp(f->at, 1);
	f->begun = true;
	getcontext(&start);
	start.uc_stack.ss_sp = stacks + (size_t)i * STACK;
	start.uc_stack.ss_size = STACK;
	start.uc_link = &back;
	makecontext(&start, trampoline, 0);
	setcontext(&start);
}

inline void
run_block(unsigned threads)
{
	count = threads;
	if (!stacks)
		stacks = (char *)malloc((size_t)MOST * STACK);
	block = { threads, 0, 0 };
	for (unsigned i = 0; i < (threads + 31) / 32; i++)
		warp[i] = { threads - i * 32 < 32 ? threads - i * 32 : 32,
			    0, 0 };
	for (unsigned i = 0; i < threads; i++) {
		fibers[i].done = false;
		fibers[i].slot = 0;
		copies[i].clear();
		groups[i] = 0;
	}
	for (bool left = true; left;) {
		left = false;
		for (unsigned i = 0; i < threads; i++) {
			unsigned k = pick(i, threads);

			if (!fibers[k].done) {
				left = true;
				resume(k);
			}
		}
	}
}

template <typename F> void
run(bool meets, unsigned blocks, unsigned threads, size_t shared, F body)
{
	if (blocks == 0 || threads == 0 || threads > MOST || shared > SHARED) {
		fprintf(stderr, "emulated GPU: a launch of %u blocks of %u "
		        "threads and %zu bytes\n", blocks, threads, shared);
		abort();
	}
	how = order_wanted();
	gridDim = { blocks, 1, 1 };
	blockDim = { threads, 1, 1 };
	call = [](void *f) { (*(F *)f)(); };
	call_arg = &body;
	for (unsigned b = 0; b < blocks; b++) {
		blockIdx = { pick(b, blocks), 0, 0 };
		memset(dynamic, 0xff, shared);
		if (meets) {
			run_block(threads);
			continue;
		}
		for (unsigned i = 0; i < threads; i++) {
			threadIdx = { pick(i, threads), 0, 0 };
			body();
		}
	}
}

static unsigned long launches;
static int error;                       /* of the last launch */

/* At once, or when the graph runs that is being captured; body holds its
 * arguments by value. */
template <typename F> void
launch(void *on, bool meets, unsigned blocks, unsigned threads, size_t shared,
       F body)
{
	fake_stream *stream = (fake_stream *)on;
	auto work = [=] { run(meets, blocks, threads, shared, body); };
	typedef decltype(work) kept;
	static const char *fail = getenv("CKR_EMULATE_FAIL");

	if (fail && launches++ == strtoul(fail, NULL, 10)) {
		error = 701;
		return;
	}

	if (!stream || !stream->end) {
		if (stream)
			stream->enter();
		work();
		if (stream)
			stream->leave();
		return;
	}
	stream->keep(stream, [](void *w) { (*(kept *)w)(); },
	             [](void *w) { delete (kept *)w; }, new kept(work));
}

}

#define EMU_LAUNCH(meets, kernel, blocks, threads, shared, env, ...) \
	emu::launch((env)->stream, meets, (unsigned)(blocks), \
	            (unsigned)(threads), (shared), \
	            [args = std::make_tuple(__VA_ARGS__)] { \
	                    std::apply([](auto... a) { kernel(a...); }, args); \
	            })
#define CKR_LAUNCH(...) EMU_LAUNCH(false, __VA_ARGS__)
#define CKR_LAUNCH_BLOCK(...) EMU_LAUNCH(true, __VA_ARGS__)
#define CKR_LARGE(kernel, bytes) ((void)0)
/* extern __shared__ memory of a launch. */
#define CKR_SHARED(type, name) type *name = (type *)emu::dynamic

/* CKR_EMULATE_FAIL=N: launch N fails, as it does for want of registers. */
typedef int cudaError_t;

inline cudaError_t
cudaGetLastError()
{
	return std::exchange(emu::error, 0);
}

inline const char *
cudaGetErrorString(cudaError_t)
{
	return "too many resources requested for launch";
}

#define __syncthreads() emu::meet(&emu::block)
#define __syncwarp() emu::meet(&emu::warp[emu::current / 32])
#define __threadfence() ((void)0)

template <typename T> T
emu_shuffle(T x, unsigned from)
{
	unsigned base = emu::current / 32 * 32;
	T y;

	static_assert(sizeof(T) <= 8, "a shuffle passes 8 bytes");
	memcpy(&emu::fibers[emu::current].slot, &x, sizeof x);
	__syncwarp();
	memcpy(&y, &emu::fibers[base + from % 32].slot, sizeof y);
	__syncwarp();
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

inline unsigned
__ballot_sync(unsigned, int is)
{
	unsigned base = emu::current / 32 * 32, bits = 0;

	emu::fibers[emu::current].slot = is != 0;
	__syncwarp();
	for (unsigned i = 0; i < 32 && base + i < emu::count; i++)
		bits |= (unsigned)emu::fibers[base + i].slot << i;
	__syncwarp();
	return bits;
}

/* Lanes that have the same x. */
template <typename T> unsigned
__match_any_sync(unsigned, T x)
{
	unsigned base = emu::current / 32 * 32, bits = 0;
	uint64_t mine = (uint64_t)x;

	emu::fibers[emu::current].slot = mine;
	__syncwarp();
	for (unsigned i = 0; i < 32 && base + i < emu::count; i++)
		bits |= (unsigned)(emu::fibers[base + i].slot == mine) << i;
	__syncwarp();
	return bits;
}

#define __popc(x) __builtin_popcount(x)
#define __ffs(x) __builtin_ffs((int)(x))

template <typename T> T
atomicCAS(T *p, T was, T is)
{
	T old = *p;

	if (old == was)
		*p = is;
	return old;
}

template <typename T> T
atomicExch(T *p, T is)
{
	T old = *p;

	*p = is;
	return old;
}

template <typename T> T
atomicAdd(T *p, T x)
{
	T old = *p;

	*p = old + x;
	return old;
}

template <typename T> T
atomicMin(T *p, T x)
{
	T old = *p;

	*p = x < old ? x : old;
	return old;
}

template <typename T> T
atomicOr(T *p, T x)
{
	T old = *p;

	*p = old | x;
	return old;
}

#endif
