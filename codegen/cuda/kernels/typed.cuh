/* Elements of a type that is known when the model is compiled, in float32;
 * random words one by one.
 */
#ifndef CODEGEN_CUDA_KERNELS_TYPED_CUH
#define CODEGEN_CUDA_KERNELS_TYPED_CUH

/* Types of the ABI as C++ types.  16-bit floats are their bits. */
struct ckr_bf16 {
	uint16_t bits;
};
struct ckr_f16 {
	uint16_t bits;
};

CKR_DEVICE float ckr_get(float x) { return x; }
CKR_DEVICE float ckr_get(ckr_bf16 x) { return ckr_from_bf16(x.bits); }
CKR_DEVICE float ckr_get(ckr_f16 x) { return ckr_from_f16(x.bits); }
CKR_DEVICE void ckr_put(float *y, float x) { *y = x; }
CKR_DEVICE void ckr_put(ckr_bf16 *y, float x) { y->bits = ckr_to_bf16(x); }
CKR_DEVICE void ckr_put(ckr_f16 *y, float x) { y->bits = ckr_to_f16(x); }

/* A function of elements of type ckr_t, or of ckr_t and ckr_u. */
#define CKR_TYPED template <typename ckr_t> CKR_DEVICE
#define CKR_TYPED2 template <typename ckr_t, typename ckr_u> CKR_DEVICE

/* ---- packs ---- */

template <typename T> struct ckr_vec {
	enum { N = 16 / sizeof(T) };
};

template <typename T, int N> CKR_DEVICE void
ckr_get_pack(float *v, const ckr_pack<T, N> &p)
{
#pragma unroll
	for (int j = 0; j < N; j++)
		v[j] = ckr_get(p.v[j]);
}

/* Two from a word, an instruction each. */
template <int N> CKR_DEVICE void
ckr_get_pack(float *v, const ckr_pack<ckr_bf16, N> &p)
{
	uint32_t word[N / 2 + 1];

	memcpy(word, p.v, N / 2 * 4);
#pragma unroll
	for (int j = 0; j < N / 2 * 2; j++)
		v[j] = ckr_bits_float(j % 2 ? word[j / 2] & 0xffff0000
		                      : word[j / 2] << 16);
	if (N % 2)
		v[N - 1] = ckr_get(p.v[N - 1]);
}

/* x[at .. at + N - 1], of which those before n exist. */
template <int N, typename T> CKR_DEVICE void
ckr_fetch(float *v, const T *x, int64_t at, int64_t n, bool whole)
{
	if (whole) {
		constexpr int M = (int)ckr_vec<T>::N < N ? (int)ckr_vec<T>::N
		                                         : N;

#pragma unroll
		for (int i = 0; i < N; i += M) {
			ckr_pack<T, M> p = ckr_load<M>(x + at + i);

			ckr_get_pack(v + i, p);
		}
		return;
	}
#pragma unroll
	for (int j = 0; j < N; j++)
		v[j] = at + j < n ? ckr_get(x[at + j]) : 0.0f;
}

/* Two elements, the first one below. */
CKR_DEVICE uint32_t
ckr_pair(float a, float b, ckr_bf16)
{
#ifdef CKR_PAIRS
	return ckr_bf16_pair(a, b);
#else
	return ckr_to_bf16(a) | (uint32_t)ckr_to_bf16(b) << 16;
#endif
}

CKR_DEVICE uint32_t
ckr_pair(float a, float b, ckr_f16)
{
#ifdef CKR_PAIRS
	return ckr_f16_pair(a, b);
#else
	return ckr_to_f16(a) | (uint32_t)ckr_to_f16(b) << 16;
#endif
}

template <typename T, int N> CKR_DEVICE void
ckr_put_pack(ckr_pack<T, N> &p, const float *v)
{
#if defined CKR_PAIRS || defined __CUDA_EMULATED__
	if constexpr (sizeof(T) == 2 && N % 2 == 0) {
		uint32_t word[N / 2];

#pragma unroll
		for (int j = 0; j < N / 2; j++)
			word[j] = ckr_pair(v[2 * j], v[2 * j + 1], T());
		memcpy(p.v, word, sizeof word);
		return;
	}
#endif
#pragma unroll
	for (int j = 0; j < N; j++)
		ckr_put(&p.v[j], v[j]);
}

template <int N, typename T> CKR_DEVICE void
ckr_write(T *y, const float *v, int64_t at, int64_t n, bool whole)
{
	if (whole) {
		constexpr int M = (int)ckr_vec<T>::N < N ? (int)ckr_vec<T>::N
		                                         : N;

#pragma unroll
		for (int i = 0; i < N; i += M) {
			ckr_pack<T, M> p;

			ckr_put_pack(p, v + i);
			ckr_store<M>(y + at + i, p);
		}
		return;
	}
#pragma unroll
	for (int j = 0; j < N; j++)
		if (at + j < n)
			ckr_put(&y[at + j], v[j]);
}

/* N neighbours, which are aligned or not. */
template <int N, typename T> CKR_DEVICE void
ckr_read(float *to, const T *x, bool aligned)
{
	ckr_fetch<N>(to, x, 0, N, aligned);
}

template <int N, typename T> CKR_DEVICE void
ckr_write(T *y, const float *from, bool aligned)
{
	ckr_write<N>(y, from, 0, N, aligned);
}

/* ---- types ---- */

/* The ABI's number of an operand's type. */
static inline uint8_t ckr_type_of(const float *) { return CKR_F32; }
static inline uint8_t ckr_type_of(const ckr_bf16 *) { return CKR_BF16; }
static inline uint8_t ckr_type_of(const ckr_f16 *) { return CKR_F16; }

/* CALL with T the type of this number; other types do not come here. */
#define CKR_FLOATS(type, T, CALL) do { \
	if ((type) == CKR_BF16) { \
		typedef ckr_bf16 T; \
		CALL; \
	} else if ((type) == CKR_F16) { \
		typedef ckr_f16 T; \
		CALL; \
	} else { \
		typedef float T; \
		CALL; \
	} \
} while (0)

/* ---- sums in memory ---- */

/* to[key] += x for all lanes of a warp whose key is not negative: what has one
 * key in the order of lanes. */
CKR_DEVICE void
ckr_add_in_order(float *to, int64_t key, float x)
{
	unsigned lane = threadIdx.x % CKR_WARP;
	unsigned same = __match_any_sync(0xffffffffu, (long long)key);
	int turn = __popc(same & ((1u << lane) - 1));

	for (int i = 0; __ballot_sync(0xffffffffu, key >= 0 && turn >= i);
	     i++) {
		if (key >= 0 && turn == i)
			to[key] += x;
		__syncwarp();
	}
}

template <typename T> CKR_GLOBAL
ckr_round_device(T *y, const float *x, int64_t n, bool whole)
{
	enum { N = 8 };

	CKR_TASKS(int64_t, t, ckr_ceil_div(n, N)) {
		bool all = whole && t * N + N <= n;
		float v[N];

		ckr_fetch<N>(v, x, t * N, n, all);
		ckr_write<N>(y, v, t * N, n, all);
	}
}

/* The type in which sums of T are taken. */
static inline float *
ckr_sums_of(float *y, float *)
{
	return y;
}

template <typename T> static inline float *
ckr_sums_of(T *, float *room)
{
	return room;
}

static inline void
ckr_sums_done(float *, const float *, int64_t, const struct ckr_env *)
{
}

template <typename T> static inline void
ckr_sums_done(T *y, const float *sums, int64_t n, const struct ckr_env *env)
{
	CKR_EACH(ckr_round_device<T>, ckr_ceil_div(n, 8), env, y, sums, n,
	         ((uintptr_t)y | (uintptr_t)sums) % 16 == 0);
}

/* ---- random words ---- */

/* The words of elements index .. index + N - 1. */
template <int N> CKR_DEVICE void
ckr_draw(uint32_t *w, uint64_t index, uint32_t stream,
         const struct ckr_env *env)
{
	uint64_t block = index / 4;
	struct ckr_four f = ckr_philox(block, stream, env);

	for (int j = 0; j < N; j++) {
		uint64_t at = index + (uint64_t)j;
		unsigned k = (unsigned)at % 4;

		if (at / 4 != block) {
			block = at / 4;
			f = ckr_philox(block, stream, env);
		}
		w[j] = k == 0 ? f.w[0] : k == 1 ? f.w[1]
		     : k == 2 ? f.w[2] : f.w[3];
	}
}

#endif
