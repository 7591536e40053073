/* Kernels whose faults races.h must see, and those that have none: races.py. */
#include <stddef.h>

static struct {
	void *stream;
} env_, *const env = &env_;

#define GLOBAL static __global__ void
#define CASE(name, ...) \
	extern "C" __attribute__((visibility("default"))) void \
	name(float *y) \
	{ \
		__VA_ARGS__; \
	}
#define BLOCK(name, threads, shared) \
	CASE(name, CKR_LAUNCH_MEETING(name##_kernel, 2, threads, shared, env, y))

/* ---- barriers ---- */

GLOBAL
block_kernel(float *y)
{
	__shared__ float room[64];

	room[threadIdx.x] = 1;
	__syncthreads();
	y[threadIdx.x] = room[63 - threadIdx.x];
}
BLOCK(block, 64, 0)

GLOBAL
no_block_kernel(float *y)
{
	CKR_SHARED(float, room);

	room[threadIdx.x] = 1;
	__syncwarp();
	y[threadIdx.x] = room[63 - threadIdx.x];
}
BLOCK(no_block, 64, 256)

GLOBAL
warp_kernel(float *y)
{
	__shared__ float room[64];

	room[threadIdx.x] = 1;
	__syncwarp();
	y[threadIdx.x] = room[threadIdx.x ^ 1];
}
BLOCK(warp, 64, 0)

/* Lanes meet, and still may not see it. */
GLOBAL
shuffle_kernel(float *y)
{
	__shared__ float room[64];

	room[threadIdx.x] = 1;
	y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
	y[threadIdx.x] += room[threadIdx.x ^ 1];
}
BLOCK(shuffle, 64, 0)

/* The next write overtakes a read. */
GLOBAL
overtaken_kernel(float *y)
{
	__shared__ float room[64];
	float x;

	room[threadIdx.x] = 1;
	__syncthreads();
	x = room[63 - threadIdx.x];
	room[threadIdx.x] = x;
	y[threadIdx.x] = x;
}
BLOCK(overtaken, 64, 0)

GLOBAL
unwritten_kernel(float *y)
{
	__shared__ float room[64];

	if (threadIdx.x)
		room[threadIdx.x] = 1;
	__syncthreads();
	y[threadIdx.x] = room[threadIdx.x];
}
BLOCK(unwritten, 64, 0)

/* ---- sizes ---- */

GLOBAL
halves_kernel(float *y)
{
	__shared__ uint16_t room[64];

	room[threadIdx.x] = 1;
	__syncthreads();
	y[threadIdx.x] = room[threadIdx.x ^ 1];
}
BLOCK(halves, 64, 0)

GLOBAL
vector_kernel(float *y)
{
	__shared__ uint4 room[64];

	room[threadIdx.x] = { 1, 2, 3, 4 };
	y[threadIdx.x] = ((unsigned *)room)[threadIdx.x * 4 + 4 & 255];
}
BLOCK(vector, 64, 0)

struct pair {
	uint16_t a, b, c;
};

static __device__ inline pair
pair_of(unsigned a)
{
	return { (uint16_t)a, 0, 0 };
}

static __device__ inline float
first_of(pair p)
{
	return p.a;
}

/* Structures that functions return and take. */
GLOBAL
structure_kernel(float *y)
{
	__shared__ pair room[64];

	room[threadIdx.x] = pair_of(threadIdx.x);
	y[threadIdx.x] = first_of(room[threadIdx.x ^ 1]);
}
BLOCK(structure, 64, 0)

/* ---- atomic updates ---- */

GLOBAL
atomic_kernel(float *y)
{
	__shared__ unsigned n;

	if (!threadIdx.x)
		n = 0;
	__syncthreads();
	atomicAdd(&n, 1u);
	__syncthreads();
	y[threadIdx.x] = n;
}
BLOCK(atomic, 64, 0)

GLOBAL
half_atomic_kernel(float *y)
{
	__shared__ unsigned n;

	if (!threadIdx.x)
		n = 0;
	__syncthreads();
	atomicAdd(&n, 1u);
	y[threadIdx.x] = n;
}
BLOCK(half_atomic, 64, 0)

/* ---- copies ---- */

template <bool WAIT, bool BARRIER> GLOBAL
copy_body(float *y)
{
	CKR_SHARED(float, room);

	emu::copy16(room + threadIdx.x * 4, y + threadIdx.x * 4, true);
	emu::copies_end();
	if (WAIT)
		emu::copies_wait(0);
	if (BARRIER)
		__syncthreads();
	y[threadIdx.x] = room[threadIdx.x * 4 + 4 & 255];
}
#define COPY(name, ...) \
	CASE(name, CKR_LAUNCH_MEETING((copy_body<__VA_ARGS__>), 1, 64, 1024, \
	                              env, y))
COPY(copy, true, true)
COPY(no_wait, false, true)
COPY(no_barrier, true, false)

/* ---- stores ---- */

GLOBAL
global_kernel(float *y)
{
	emu::store_global(y + threadIdx.x, 1.0f);
}
BLOCK(global, 64, 0)

GLOBAL
not_global_kernel(float *y)
{
	CKR_SHARED(float, room);

	emu::store_global(room + threadIdx.x, 1.0f);
	y[threadIdx.x] = room[threadIdx.x];
}
BLOCK(not_global, 64, 256)

/* ---- launches ---- */

GLOBAL
large_kernel(float *y)
{
	__shared__ float room[64];

	room[threadIdx.x] = 1;
	y[threadIdx.x] = room[threadIdx.x];
}

static void
ask(size_t bytes)
{
	cudaFuncSetAttribute((const void *)large_kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

#define LARGE(blocks, threads, shared) \
	CKR_LAUNCH_MEETING(large_kernel, blocks, threads, shared, env, y)
CASE(fits, LARGE(1, 64, (48 << 10) - 256))
CASE(with_static, LARGE(1, 64, 48 << 10))
CASE(unasked, LARGE(1, 64, (48 << 10) + 16))
CASE(asked, ask(100 << 10); LARGE(1, 64, 100 << 10))
CASE(asked_static, ask(227 << 10); LARGE(1, 64, 227 << 10))
CASE(too_much, ask(228 << 10); LARGE(1, 64, 228 << 10))
CASE(threads, LARGE(1, 1056, 0))
CASE(blocks, LARGE((int64_t)1 << 32, 32, 0))
CASE(no_blocks, LARGE(0, 32, 0))

template <int BYTES> struct argument {
	char at[BYTES];
};

template <int BYTES> GLOBAL
argument_kernel(argument<BYTES> x, float *y)
{
	y[threadIdx.x] = x.at[0];
}
#define ARGUMENT(bytes) \
	CKR_LAUNCH((argument_kernel<bytes>), 1, 32, 0, env, \
	           argument<bytes>(), y)
CASE(arguments, ARGUMENT(32764 - 8))
CASE(many_arguments, ARGUMENT(32764 - 7))

/* A stream that records a graph; what it keeps is dropped. */
static void
record(bool loaded, float *y)
{
	fake_work *end = NULL;
	fake_stream s = {};

	s.end = &end;
	s.capturing = 1;
	s.current = [] { return 0; };
	s.keep = [](fake_stream *, void (*)(void *), void (*drop)(void *),
	            void *arg) { drop(arg); };
	if (loaded)
		LARGE(1, 64, 0);
	env->stream = &s;
	LARGE(1, 64, 0);
	env->stream = NULL;
	if (cudaError_t e = cudaGetLastError()) {
		fprintf(stderr, "%s\n", cudaGetErrorString(e));
		abort();
	}
}
CASE(recorded, record(true, y))
CASE(recorded_first, record(false, y))
