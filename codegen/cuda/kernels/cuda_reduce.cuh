/* Reductions of floats: x is [outer, n, inner], over n.
 *
 * Which elements a thread takes follows from the extents alone; where they
 * lie decides only how it reads them.  What is long is cut into parts, whose
 * results a second kernel takes in order.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_REDUCE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_REDUCE_CUH

/* The operation as a type, and the type it computes in: a product of many
 * factors close to 1 loses its second-order terms in float. */
static const struct ckr_reduce_add {
	typedef float real;
	static constexpr float start = 0.0f;

	CKR_LANE float two(float a, float b) { return a + b; }
} CKR_ADD;
static const struct ckr_reduce_mul {
	typedef double real;
	static constexpr double start = 1.0;

	CKR_LANE double two(double a, double b) { return a * b; }
} CKR_MUL;
static const struct ckr_reduce_max {
	typedef float real;
	static constexpr float start = -__builtin_inff();

	CKR_LANE float two(float a, float b) { return ckr_max(a, b); }
} CKR_MAX;
static const struct ckr_reduce_min {
	typedef float real;
	static constexpr float start = __builtin_inff();

	CKR_LANE float two(float a, float b) { return ckr_min(a, b); }
} CKR_MIN;

template <typename Op> CKR_DEVICE typename Op::real
ckr_warp_fold(typename Op::real x)
{
	for (int k = CKR_WARP / 2; k > 0; k /= 2)
		x = Op::two(x, __shfl_xor_sync(0xffffffffu, x, k));
	return x;
}

/* ---- rows ---- */

enum { CKR_ROW_WARPS = CKR_THREADS / CKR_WARP, CKR_ROW_SHORT = 2048 };

/* The partial result of thread `me` of `all` over n elements. */
template <typename Op, int N, typename T> CKR_DEVICE typename Op::real
ckr_reduce_run(const T *x, int64_t n, int me, int all, bool aligned)
{
	typename Op::real s[N];
	float v[N];

	for (int j = 0; j < N; j++)
		s[j] = Op::start;
#pragma unroll 4
	for (int64_t i = (int64_t)me * N; i < n; i += (int64_t)all * N) {
		ckr_read<N>(v, x + i, aligned);
		for (int j = 0; j < N; j++)
			s[j] = Op::two(s[j], v[j]);
	}
	for (int k = N / 2; k > 0; k /= 2)
		for (int j = 0; j < k; j++)
			s[j] = Op::two(s[j], s[j + k]);
	return s[0];
}

/* A row for each warp. */
template <typename Op, int N, typename Y, typename T> CKR_GLOBAL
ckr_reduce_short(Y *y, const T *x, int64_t rows, int64_t n, float divisor,
                 bool aligned)
{
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;

	CKR_BLOCK_TASKS(b, (rows + CKR_ROW_WARPS - 1) / CKR_ROW_WARPS) {
		int64_t i = b * CKR_ROW_WARPS + warp;
		typename Op::real s = Op::start;

		if (i < rows)
			s = ckr_reduce_run<Op, N>(x + i * n, n, lane, CKR_WARP,
			                          aligned);
		s = ckr_warp_fold<Op>(s);
		if (i < rows && lane == 0)
			ckr_put(&y[i], (float)s / divisor);
	}
}

/* A part of a row for each block. */
template <typename Op, int N, typename Y, typename T> CKR_GLOBAL
ckr_reduce_long(Y *y, const T *x, int64_t rows, int64_t n, int64_t part,
                float divisor, bool aligned)
{
	CKR_SHARED(typename Op::real, room);
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	int64_t parts = (n + part - 1) / part;

	CKR_BLOCK_TASKS(b, rows * parts) {
		int64_t i = b / parts, first = (b - i * parts) * part;
		typename Op::real s = ckr_reduce_run<Op, N>(x + i * n + first,
			ckr_least(n - first, part), threadIdx.x, CKR_THREADS,
			aligned);

		s = ckr_warp_fold<Op>(s);
		if (lane == 0)
			room[warp] = s;
		__syncthreads();
		for (int w = 1; w < CKR_ROW_WARPS && threadIdx.x == 0; w++)
			s = Op::two(s, room[w]);
		if (threadIdx.x == 0)
			ckr_put(&y[b], (float)s / divisor);
		__syncthreads();
	}
}

template <typename Op, int N, typename Y, typename T> static inline void
ckr_reduce_launch(Y *y, const T *x, int64_t rows, int64_t n, int64_t part,
                  float divisor, const struct ckr_env *env)
{
	bool aligned = (uintptr_t)x % (N * sizeof(T)) == 0;
	int64_t blocks = ckr_ceil_div(rows, CKR_ROW_WARPS);

	if (part == n && n <= CKR_ROW_SHORT)
		CKR_EACH_BLOCK((ckr_reduce_short<Op, N, Y, T>), blocks,
		               CKR_THREADS, 0, env, y, x, rows, n, divisor,
		               aligned);
	else
		CKR_EACH_BLOCK((ckr_reduce_long<Op, N, Y, T>),
		               rows * ckr_ceil_div(n, part), CKR_THREADS,
		               CKR_ROW_WARPS * sizeof(typename Op::real), env,
		               y, x, rows, n, part, divisor, aligned);
}

/* y [rows, parts of n]. */
template <typename Op, typename Y, typename T> static inline void
ckr_reduce_parts(Y *y, const T *x, int64_t rows, int64_t n, int64_t part,
                 float divisor, const struct ckr_env *env)
{
	enum { N = 16 / sizeof(T) };

	if (n % N == 0)
		ckr_reduce_launch<Op, N>(y, x, rows, n, part, divisor, env);
	else
		ckr_reduce_launch<Op, 1>(y, x, rows, n, part, divisor, env);
}

/* part: a multiple of 8, or n.  room: a float for every part, if there are
 * several. */
template <typename Op, typename Y, typename T> static inline void
ckr_reduce_rows(Op, Y *y, const T *x, int64_t outer, int64_t n, int64_t part,
                float divisor, const struct ckr_env *env, float *room = NULL)
{
	int64_t parts = ckr_ceil_div(n, part);

	if (parts == 1) {
		ckr_reduce_parts<Op>(y, x, outer, n, n, divisor, env);
		return;
	}
	ckr_reduce_parts<Op>(room, x, outer, n, part, 1.0f, env);
	ckr_reduce_parts<Op>(y, (const float *)room, outer, parts, parts,
	                     divisor, env);
}

/* ---- columns ---- */

/* A block has 32 lanes of N columns beside each other of a part of the rows,
 * which its warps share. */
template <typename Op, int N, typename Y, typename T> CKR_GLOBAL
ckr_reduce_tile(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
                int64_t part, float divisor, bool aligned)
{
	CKR_SHARED(typename Op::real, room);
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	int64_t tiles = (inner + CKR_WARP * N - 1) / (CKR_WARP * N);
	int64_t parts = (n + part - 1) / part;

	CKR_BLOCK_TASKS(b, parts * outer * tiles) {
		int64_t p = b / (outer * tiles), o = b / tiles % outer;
		int64_t at = (b % tiles * CKR_WARP + lane) * N;
		int64_t end = ckr_least(n, (p + 1) * part);
		typename Op::real s[N];
		float v[N];

		for (int j = 0; j < N; j++)
			s[j] = Op::start;
#pragma unroll 4
		for (int64_t i = p * part + warp; i < end && at < inner;
		     i += CKR_ROW_WARPS) {
			ckr_read<N>(v, x + (o * n + i) * inner + at, aligned);
			for (int j = 0; j < N; j++)
				s[j] = Op::two(s[j], v[j]);
		}
		for (int j = 0; j < N; j++)
			room[threadIdx.x * N + j] = s[j];
		__syncthreads();
		for (int j = threadIdx.x; j < CKR_WARP * N; j += CKR_THREADS) {
			int64_t to = b % tiles * CKR_WARP * N + j;
			typename Op::real t = room[j];

			for (int w = 1; w < CKR_ROW_WARPS; w++)
				t = Op::two(t, room[w * CKR_WARP * N + j]);
			if (to < inner)
				ckr_put(&y[(p * outer + o) * inner + to],
				        (float)t / divisor);
		}
		__syncthreads();
	}
}

template <typename Op, int N, typename Y, typename T> static inline void
ckr_reduce_tiles(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
                 int64_t part, float divisor, const struct ckr_env *env)
{
	int64_t blocks = outer * ckr_ceil_div(inner, CKR_WARP * N)
		* ckr_ceil_div(n, part);

	CKR_EACH_BLOCK((ckr_reduce_tile<Op, N, Y, T>), blocks, CKR_THREADS,
	               CKR_THREADS * N * sizeof(typename Op::real), env, y, x,
	               outer, n, inner, part, divisor,
	               (uintptr_t)x % (N * sizeof(T)) == 0);
}

template <typename Op, typename T> CKR_GLOBAL
ckr_reduce_last(T *y, const float *x, int64_t parts, int64_t n, float divisor)
{
	CKR_TASKS(int64_t, t, n) {
		typename Op::real s = x[t];

		for (int64_t p = 1; p < parts; p++)
			s = Op::two(s, x[p * n + t]);
		ckr_put(&y[t], (float)s / divisor);
	}
}

/* room: as many floats as there are results for every part, if there are
 * several. */
template <typename Op, typename Y, typename T> static inline void
ckr_reduce_columns(Op, Y *y, const T *x, int64_t outer, int64_t n,
                   int64_t inner, int64_t part, float divisor,
                   const struct ckr_env *env, float *room = NULL)
{
	enum { N = 4 };
	int64_t parts = ckr_ceil_div(n, part), all = outer * inner;
	float first = parts > 1 ? 1.0f : divisor;

	if (parts > 1 && inner % N == 0)
		ckr_reduce_tiles<Op, N>(room, x, outer, n, inner, part, first,
		                        env);
	else if (parts > 1)
		ckr_reduce_tiles<Op, 1>(room, x, outer, n, inner, part, first,
		                        env);
	else if (inner % N == 0)
		ckr_reduce_tiles<Op, N>(y, x, outer, n, inner, part, first,
		                        env);
	else
		ckr_reduce_tiles<Op, 1>(y, x, outer, n, inner, part, first,
		                        env);
	if (parts > 1)
		CKR_EACH((ckr_reduce_last<Op, Y>), all, env, y,
		         (const float *)room, parts, all, divisor);
}

/* x is [lead, outer, n], over lead and n.  room: lead x outer floats. */
template <typename Op, typename Y, typename T> static inline void
ckr_reduce_planes(Op op, Y *y, const T *x, int64_t lead, int64_t outer,
                  int64_t n, float divisor, const struct ckr_env *env,
                  float *room)
{
	ckr_reduce_rows(op, room, x, lead * outer, n, n, 1.0f, env);
	ckr_reduce_columns(op, y, (const float *)room, 1, lead, outer, lead,
	                   divisor, env);
}

#endif
