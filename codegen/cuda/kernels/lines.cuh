/* Rows of a matrix, each a block's: its threads take packs of neighbours in
 * turn and keep them in registers where the row is short enough.
 *
 * How a row is shared out depends on its length alone, and so does the shape
 * of every sum; whether packs are read as vectors does not matter to it.
 */
#ifndef CODEGEN_CUDA_KERNELS_LINES_CUH
#define CODEGEN_CUDA_KERNELS_LINES_CUH

enum {
	CKR_LINE_THREADS = 256,         /* of a row, at most */
	CKR_LINE_PACKS = 4,             /* that a thread keeps, at most */
	CKR_LOSS_PARTS = 256,           /* ORDER WORK */
};

/* A pointer, not a number, for overloads: rules print NULL for absent operands.
 */
#undef NULL
#define NULL nullptr

/* ---- operands of a type that only the call knows ---- */

/* An operand as p_in() and p_out() print it: a pointer with its type, or NULL.
 */
struct ckr_any {
	void *at;
	int type;

	ckr_any(decltype(nullptr) = nullptr) : at(nullptr), type(CKR_NONE) {}
	ckr_any(const float *x) : at((void *)x), type(CKR_F32) {}
	ckr_any(const ckr_bf16 *x) : at((void *)x), type(CKR_BF16) {}
	ckr_any(const ckr_f16 *x) : at((void *)x), type(CKR_F16) {}
};

CKR_DEVICE bool
ckr_is_given(const ckr_any &x)
{
	return x.at;
}

CKR_DEVICE float
ckr_at(const ckr_any &x, int64_t i)
{
	if (x.type == CKR_F32)
		return ((const float *)x.at)[i];
	return x.type == CKR_BF16
	     ? ckr_from_bf16(((const uint16_t *)x.at)[i])
	     : ckr_from_f16(((const uint16_t *)x.at)[i]);
}

CKR_DEVICE void
ckr_set(const ckr_any &y, int64_t i, float x)
{
	if (y.type == CKR_F32)
		((float *)y.at)[i] = x;
	else
		((uint16_t *)y.at)[i] = y.type == CKR_BF16 ? ckr_to_bf16(x)
		                                           : ckr_to_f16(x);
}

/* ---- packs ---- */

/* Whether vectors from x on are aligned; NULL: yes. */
static __host__ __device__ inline bool
ckr_on_16(const void *x)
{
	return (uintptr_t)x % 16 == 0;
}

/* Whether those of rows of n elements are. */
template <typename T> bool
ckr_whole(const T *x, int64_t n)
{
	return ckr_on_16(x) && n * (int64_t)sizeof(T) % 16 == 0;
}

/* ---- rows ---- */

/* A thread's part of a row.  PER: packs that it keeps; 0: the row is too long
 * and read again each time. */
template <typename T, int PER> struct ckr_line {
	enum { N = ckr_vec<T>::N, KEPT = PER ? PER : 1 };
	const T *x;
	int64_t n;
	bool whole;
	float v[KEPT][N];

	__device__ __forceinline__ static int64_t
	place(int64_t k)
	{
		return (k * blockDim.x + threadIdx.x) * N;
	}

	__device__ __forceinline__ void
	load(const T *row, int64_t length, bool is_whole)
	{
		x = row, n = length, whole = is_whole;
		if constexpr (PER > 0)
#pragma unroll
			for (int k = 0; k < KEPT; k++)
				if (place(k) < n)
					ckr_fetch<N>(v[k], x, place(k), n,
					             whole);
	}

	/* f(k, at, v) for its packs: k counts those that are kept. */
	template <typename F> __device__ __forceinline__ void
	packs(F f)
	{
		if constexpr (PER > 0) {
#pragma unroll
			for (int k = 0; k < KEPT; k++)
				if (place(k) < n)
					f(k, place(k), v[k]);
		} else {
			for (int64_t k = 0; place(k) < n; k++) {
				ckr_fetch<N>(v[0], x, place(k), n, whole);
				f(0, place(k), v[0]);
			}
		}
	}

	/* f(v, at) for its elements; what it makes of v is kept if v is. */
	template <typename F> __device__ __forceinline__ void
	each(F f)
	{
		packs([&](int, int64_t at, float *p) {
#pragma unroll
			for (int j = 0; j < N; j++)
				if (at + j < n)
					f(p[j], at + j);
		});
	}

	/* y = f(v, at). */
	template <typename F> __device__ __forceinline__ void
	store(T *y, bool y_whole, F f)
	{
		packs([&](int, int64_t at, float *p) {
			float r[N];

#pragma unroll
			for (int j = 0; j < N; j++)
				r[j] = at + j < n ? f(p[j], at + j) : 0.0f;
			ckr_write<N>(y, r, at, n, y_whole);
		});
	}

	/* Of all of the row. */
	__device__ __forceinline__ float
	max(float *room)
	{
		float m = -__builtin_inff();

		each([&](float &a, int64_t) { m = a > m ? a : m; });
		return ckr_block_max(m, room);
	}
};

template <typename T> CKR_LANE int64_t
ckr_line_packs(int64_t n)
{
	return (n + ckr_vec<T>::N - 1) / ckr_vec<T>::N;
}

/* Threads for a row of n. */
template <typename T> int
ckr_line_threads(int64_t n)
{
	int64_t warps = (ckr_line_packs<T>(n) + CKR_WARP - 1) / CKR_WARP;

	warps = ckr_least(warps, CKR_LINE_THREADS / (int)CKR_WARP);
	return (int)(warps < 1 ? 1 : warps) * CKR_WARP;
}

/* CALL with PER the packs that threads keep of rows of n. */
#define CKR_LINES(T, n, CALL) do { \
	int64_t packs_ = ckr_line_packs<T>(n); \
	if (packs_ <= CKR_LINE_THREADS) { \
		constexpr int PER = 1; \
		CALL; \
	} else if (packs_ <= CKR_LINE_THREADS * CKR_LINE_PACKS) { \
		constexpr int PER = CKR_LINE_PACKS; \
		CALL; \
	} else { \
		constexpr int PER = 0; \
		CALL; \
	} \
} while (0)

/* ---- sums of columns ---- */

/* Of s in 32 warps, where warp w has rows w, w + 32, ... of the columns that
 * its lanes have: lane 0 of warp j gets the sum of column j. */
CKR_DEVICE float
ckr_column_sum(float s, float part[CKR_WARP][CKR_WARP + 1])
{
	int lane = (int)threadIdx.x % CKR_WARP, w = (int)threadIdx.x / CKR_WARP;

	__syncthreads();
	part[w][lane] = s;
	__syncthreads();
	return ckr_warp_sum(part[lane][w]);
}

/* Rows that a block of ckr_columns_kernel() adds up side by side: few columns
 * to a block, a sector of float32, make enough blocks of a narrow matrix. */
enum { CKR_COLUMNS = 8, CKR_COLUMN_ROWS = 1024 / CKR_COLUMNS };

/* y[j] = sum of x[i * ld + j] over rows i, or that added to it; what is beyond
 * n columns of y goes to z. */
template <typename T> CKR_GLOBAL
__launch_bounds__(1024)
ckr_columns_kernel(ckr_any y, ckr_any z, const T *x, int64_t rows, int64_t n,
                   int64_t all, int64_t ld, bool more)
{
	__shared__ float part[CKR_WARP][CKR_COLUMNS + 1];
	int lane = (int)threadIdx.x % CKR_WARP, w = (int)threadIdx.x / CKR_WARP;

	CKR_BLOCK_TASKS(t, (all + CKR_COLUMNS - 1) / CKR_COLUMNS) {
		int64_t j = t * CKR_COLUMNS + lane % CKR_COLUMNS;
		float s = 0.0f;

		if (j < all)
#pragma unroll 8
			for (int64_t i = threadIdx.x / CKR_COLUMNS; i < rows;
			     i += CKR_COLUMN_ROWS)
				s += ckr_get(x[i * ld + j]);
		for (int k = CKR_COLUMNS; k < CKR_WARP; k *= 2)
			s += __shfl_xor_sync(0xffffffffu, s, k);
		__syncthreads();
		if (lane < CKR_COLUMNS)
			part[w][lane] = s;
		__syncthreads();
		j = t * CKR_COLUMNS + w;
		if (w >= CKR_COLUMNS)
			continue;
		s = ckr_warp_sum(part[lane][w]);
		if (lane > 0 || j >= all)
			continue;
		if (j < n)
			ckr_set(y, j, more ? ckr_at(y, j) + s : s);
		else
			ckr_set(z, j - n, s);
	}
}

template <typename T> void
ckr_add_columns(ckr_any y, const T *x, int64_t rows, int64_t n, int64_t ld,
                bool more, struct ckr_env *env)
{
	CKR_EACH_BLOCK(ckr_columns_kernel<T>, ckr_ceil_div(n, CKR_COLUMNS),
	               1024, 0, env, y, ckr_any(), x, rows, n, n, ld, more);
}

/* Sums of the columns of x [rows, 2, n]: y and z. */
static inline void
ckr_column_pairs(ckr_any y, ckr_any z, const float *x, int64_t rows, int64_t n,
                 struct ckr_env *env)
{
	if (y.at && z.at)
		CKR_EACH_BLOCK(ckr_columns_kernel<float>,
		               ckr_ceil_div(2 * n, CKR_COLUMNS), 1024, 0, env,
		               y, z, x, rows, n, 2 * n, 2 * n, false);
	else if (y.at)
		ckr_add_columns(y, x, rows, n, 2 * n, false, env);
	else if (z.at)
		ckr_add_columns(z, x + n, rows, n, 2 * n, false, env);
}

#endif
