/* Shared by all kernels of a GPU: launches, operands, faults, sums.
 *
 * A kernel of the ABI is a host function that launches one or more device
 * functions.  Only device functions read numbers of the step (seed, rates,
 * scales), from env, which is env->device there: so launches can be recorded
 * into graphs.  The order of sums depends on extents alone; no float is added
 * atomically.
 */
#ifndef CODEGEN_CUDA_KERNELS_DEVICE_CUH
#define CODEGEN_CUDA_KERNELS_DEVICE_CUH

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Without a GPU compiler, as in tests, these are defined beforehand.
 * CKR_LAUNCH_MEETING: a kernel whose threads synchronise within a block. */
#ifndef CKR_LAUNCH
#include <cuda_runtime.h>
/* a model does not use all of this */
#pragma nv_diag_suppress 177
#define CKR_LAUNCH(kernel, blocks, threads, shared, env, ...) \
	kernel<<<(unsigned)(blocks), (unsigned)(threads), (shared), \
	         (cudaStream_t)(env)->stream>>>(__VA_ARGS__)
#define CKR_LAUNCH_MEETING CKR_LAUNCH
/* Memory that the threads of a block share, as many bytes as the launch
 * gives. */
#define CKR_SHARED(type, name) \
	extern __shared__ __align__(16) unsigned char ckr_shared[]; \
	type *name = (type *)ckr_shared
#endif

/* 48 KiB are given without asking, static memory included, of which a kernel
 * has at most CKR_STATIC. */
#define CKR_LAUNCH_BLOCK(kernel, blocks, threads, shared, env, ...) do { \
	if ((shared) > (48 << 10) - CKR_STATIC) \
		cudaFuncSetAttribute((const void *)kernel, \
			cudaFuncAttributeMaxDynamicSharedMemorySize, \
			(int)(shared)); \
	CKR_LAUNCH_MEETING(kernel, blocks, threads, shared, env, \
	                   __VA_ARGS__); \
} while (0)

/* Bytes of shared memory that this GPU gives a block that asks. */
static inline int64_t
ckr_shared_limit(void)
{
	int device = 0, bytes = 0;

	cudaGetDevice(&device);
	cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
	                       device);
	return bytes;
}

#define CKR_DEVICE static __device__ inline
#define CKR_GLOBAL static __global__ void
#define CKR_LANE __host__ __device__ __forceinline__ static
/* An argument of a kernel that is indexed where it lies. */
#define CKR_ARGUMENT const __grid_constant__ struct
#define CKR_LIST(...) (ckr_list{ { __VA_ARGS__ } }.v)
#define CKR_TASK_OWNER(t) (t)

enum {
	CKR_THREADS = 256,              /* of a block */
	CKR_BLOCKS = 1 << 14,           /* at most; the rest loops */
	CKR_WARP = 32,
	CKR_STATIC = 16 << 10,          /* bytes of shared memory that a
	                                 * kernel may declare beside what its
	                                 * launch gives it */
};

/* A list of int64_t, as an argument of a kernel too. */
struct ckr_list {
	int64_t v[CKR_MAX_DIMS];
};

static inline struct ckr_list
ckr_list_of(const int64_t *v, int n)
{
	struct ckr_list list = { { 0 } };

	for (int i = 0; i < n; i++)
		list.v[i] = v[i];
	return list;
}

/* A type that is not deduced from this argument, which may be NULL. */
template <typename T> struct ckr_identity {
	typedef T type;
};
template <typename T> using ckr_is = typename ckr_identity<T>::type;

/* An operand, of the type that is wanted. */
struct ckr_arg {
	void *at;

	template <typename T> __host__ __device__
	operator T *() const
	{
		return (T *)at;
	}
};

/* Operands and numbers of a call, by value. */
template <int N> struct ckr_args {
	ckr_arg at[N];

	explicit ckr_args(void *const *p)
	{
		for (int i = 0; i < N; i++)
			at[i].at = p[i];
	}
};

template <int N> struct ckr_numbers {
	int64_t v[N];

	explicit ckr_numbers(const int64_t *c, int n)
	{
		for (int i = 0; i < N; i++)
			v[i] = i < n ? c[i] : 0;
	}
};

/* Blocks for so many tasks, each a thread's. */
static inline int64_t
ckr_blocks(int64_t tasks)
{
	int64_t n = (tasks + CKR_THREADS - 1) / CKR_THREADS;

	return n < 1 ? 1 : n < CKR_BLOCKS ? n : CKR_BLOCKS;
}

/* A thread, or a block, for each of so many tasks. */
#define CKR_EACH(kernel, tasks, env, ...) do { \
	const int64_t tasks_ = (tasks); \
	if (tasks_ > 0) \
		CKR_LAUNCH(kernel, ckr_blocks(tasks_), CKR_THREADS, 0, env, \
		           __VA_ARGS__); \
} while (0)
#define CKR_EACH_BLOCK(kernel, tasks, threads, shared, env, ...) do { \
	const int64_t tasks_ = ckr_least(tasks, INT32_MAX); \
	if (tasks_ > 0) \
		CKR_LAUNCH_BLOCK(kernel, tasks_, threads, shared, env, \
		                 __VA_ARGS__); \
} while (0)

/* for (T t = ...): this thread's of n tasks. */
#define CKR_TASKS(T, t, n) \
	for (T t = (T)blockIdx.x * (T)blockDim.x + (T)threadIdx.x; \
	     t < (T)(n); t += (T)gridDim.x * (T)blockDim.x)
/* This block's. */
#define CKR_BLOCK_TASKS(t, n) \
	for (int64_t t = blockIdx.x; t < (n); t += gridDim.x)

CKR_LANE int64_t
ckr_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

CKR_LANE int64_t
ckr_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* a / b of what is not negative: of 32 bits where that will do, which is much
 * faster. */
CKR_LANE int64_t
ckr_div(int64_t a, int64_t b)
{
	return ((uint64_t)a | (uint64_t)b) >> 32
	     ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* ---- a launch for many tensors ---- */

/* The tensor of a table that has this block: item[i] begins with block number
 * item[i].first. */
template <typename T> CKR_DEVICE uint32_t
ckr_tensor_of(const T &table, uint32_t block)
{
	uint32_t low = 0, high = table.n;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (table.item[middle].first <= block)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Blocks of tensor i. */
template <typename T> CKR_DEVICE uint32_t
ckr_blocks_of(const T &table, uint32_t i)
{
	return (i + 1 < table.n ? table.item[i + 1].first : table.blocks)
	       - table.item[i].first;
}

/* Tensors that a launch reads: with the other arguments less than 4096 bytes,
 * which is all that drivers before those of CUDA 12.1 take. */
struct ckr_read_tensor {
	const void *x;
	int64_t n;
	uint32_t first;
	uint8_t type;
};

enum { CKR_READ_TENSORS = 160 };

struct ckr_read_table {
	uint32_t n, blocks;
	struct ckr_read_tensor item[CKR_READ_TENSORS];
};

static inline void
ckr_add_tensor(struct ckr_read_table *t, const void *x, int64_t n,
               uint8_t type, int64_t blocks)
{
	t->item[t->n++] = { x, n, t->blocks, type };
	t->blocks += (uint32_t)blocks;
}

/* ---- images ---- */

/* Coordinates of element i of extents v. */
struct ckr_spatial {
	int64_t d, h, w;
};

CKR_DEVICE struct ckr_spatial
ckr_split(const int64_t *v, int64_t i)
{
	int64_t line = ckr_div(i, v[2]), d = ckr_div(line, v[1]);

	return { d, line - d * v[1], i - line * v[2] };
}

/* The window of a pool or a convolution whose tap k along dim i takes element
 * `at`; -1: there is none. */
template <typename C> CKR_DEVICE int64_t
ckr_window_at(const C &c, int64_t at, int64_t k, int i)
{
	int64_t x = at + c.begin[i] - k * c.dilation[i], o;

	if (x < 0)
		return -1;
	o = ckr_div(x, c.stride[i]);
	return o * c.stride[i] == x && o < c.out[i] ? o : -1;
}

/* ---- faults ---- */

enum ckr_bad { CKR_BAD_NONE, CKR_BAD_INDEX, CKR_BAD_LABEL, CKR_BAD_CAPACITY };

/* Bad data, as on the host; what: its text is the run time's.  The first
 * element wins.  Both words begin with its place, so that both are its own. */
CKR_DEVICE void
ckr_fault(struct ckr_env *env, enum ckr_bad what, int64_t at, int64_t value)
{
	typedef unsigned long long word;
	word place = (word)(at < 1 << 29 ? at : 1 << 29) << 2 | what;
	word *to = (word *)env->device_fault;

	atomicMax(&to[0], ~(place << 32 | (word)value >> 32));
	atomicMax(&to[1], ~(place << 32 | (uint32_t)value));
}

/* Whether the step is not to be: what outlives it must not be written. */
CKR_DEVICE bool
ckr_is_void(const struct ckr_env *env)
{
	return env->device_fault[0] || env->device_nonfinite;
}

/* ---- vectors of elements ---- */

template <typename T, int N> struct alignas(sizeof(T) * N > 16 ? 16
                                            : sizeof(T) * N) ckr_pack {
	T v[N];
};

template <int N, typename T> CKR_DEVICE ckr_pack<T, N>
ckr_load(const T *x)
{
	enum { WORDS = sizeof(T) * N / 16 };
	ckr_pack<T, N> p;

	if constexpr (sizeof p % 16 == 0) {
		uint4 word[WORDS];

#pragma unroll
		for (int i = 0; i < WORDS; i++)
			word[i] = ((const uint4 *)x)[i];
		memcpy(p.v, word, sizeof p);
	} else {
		p = *(const ckr_pack<T, N> *)x;
	}
	return p;
}

/* A word of global memory.  nvcc makes four stores of one that is assigned, if
 * it takes the sum of an index apart. */
CKR_DEVICE void
ckr_store_word(uint4 *y, uint4 x)
{
#ifdef __CUDA_EMULATED__
	emu::store_global(y, x);
#else
	asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
	             :: "l"(__cvta_generic_to_global(y)), "r"(x.x), "r"(x.y),
	                "r"(x.z), "r"(x.w) : "memory");
#endif
}

template <int N, typename T> CKR_DEVICE void
ckr_store(T *y, const ckr_pack<T, N> &x)
{
	enum { WORDS = sizeof(T) * N / 16 };

	if constexpr (sizeof x % 16 == 0) {
		uint4 word[WORDS];

		memcpy(word, x.v, sizeof x);
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			ckr_store_word((uint4 *)y + i, word[i]);
	} else {
		*(ckr_pack<T, N> *)y = x;
	}
}

/* ---- sums ---- */

CKR_DEVICE float
ckr_warp_sum(float x)
{
	for (int k = CKR_WARP / 2; k > 0; k /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, k);
	return x;
}

CKR_DEVICE float
ckr_warp_max(float x)
{
	for (int k = CKR_WARP / 2; k > 0; k /= 2) {
		float y = __shfl_xor_sync(0xffffffffu, x, k);

		x = x > y ? x : y;
	}
	return x;
}

/* Sum over all threads of a block of whole warps; every thread gets it.  room:
 * a float per warp. */
CKR_DEVICE float
ckr_block_sum(float x, float *room)
{
	int warps = (int)blockDim.x / CKR_WARP;
	float s = 0.0f;

	x = ckr_warp_sum(x);
	__syncthreads();
	if (threadIdx.x % CKR_WARP == 0)
		room[threadIdx.x / CKR_WARP] = x;
	__syncthreads();
	for (int i = 0; i < warps; i++)
		s += room[i];
	return s;
}

CKR_DEVICE float
ckr_block_max(float x, float *room)
{
	int warps = (int)blockDim.x / CKR_WARP;

	x = ckr_warp_max(x);
	__syncthreads();
	if (threadIdx.x % CKR_WARP == 0)
		room[threadIdx.x / CKR_WARP] = x;
	__syncthreads();
	x = room[0];
	for (int i = 1; i < warps; i++)
		x = x > room[i] ? x : room[i];
	return x;
}

#endif
