/* Optimizer steps, accumulation and averages: of elements of float32 and of 16 bits,
 * with the CPU's bits.  A task is eight elements, whose words are one Philox
 * block.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_UPDATE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_UPDATE_CUH

#include "lines.cuh"

/* A formula is an object, whose type says it. */
#define CKR_RULE_PARAMETERS \
	const struct ckr_step *s, float *p, [[maybe_unused]] float *m, \
	[[maybe_unused]] float *v, float g
#define CKR_OPTIMIZER(name, states) \
static constexpr struct ckr_rule_##name { \
	enum { STATES = states }; \
	__device__ void operator()(CKR_RULE_PARAMETERS) const; \
} ckr_##name{}; \
__device__ __forceinline__ void \
ckr_rule_##name::operator()(CKR_RULE_PARAMETERS) const
#include "optimizers.h"

/* Rounding, for a device. */
struct ckr_rounding {
	uint32_t stream;
	int is_sharded;
	struct ckr_shard shard;

	ckr_rounding(const struct ckr_update_types &t)
		: stream(t.stream), is_sharded(t.shard != nullptr), shard()
	{
		if (t.shard)
			shard = *t.shard;
	}
};

enum { CKR_UPDATE_PACK = 8 };

CKR_DEVICE int ckr_half_type(ckr_bf16) { return CKR_BF16; }
CKR_DEVICE int ckr_half_type(ckr_f16) { return CKR_F16; }

/* Round elements at .. at + 7 to what T holds; which: 0 the parameter, 1, 2
 * its states, each with words of its own. */
template <typename T> CKR_DEVICE void
ckr_round_pack(float *x, T, const struct ckr_rounding &r, uint32_t which,
               int64_t at, int64_t n, const struct ckr_env *env)
{
	uint32_t cut = ckr_cut_off(ckr_half_type(T()));
	uint32_t stream = r.stream + (which << 28);
	struct ckr_four f;

	if (!r.is_sharded) {
		f = ckr_philox((uint64_t)at / 8, stream, env);
#pragma unroll
		for (int j = 0; j < CKR_UPDATE_PACK; j++)
			x[j] = ckr_round_random(x[j], f.w[j / 2] >> j % 2 * 16,
			                        cut);
		return;
	}
#pragma unroll 1
	for (int j = 0; j < CKR_UPDATE_PACK; j++) {
		int64_t left;
		uint64_t i;
		uint32_t w;

		if (at + j >= n)
			break;
		i = ckr_shard_index(&r.shard, at + j, &left);
		ckr_draw<1>(&w, i / 2, stream, env);
		w >>= i % 2 * 16;
		/* registers are not indexed */
#pragma unroll
		for (int k = 0; k < CKR_UPDATE_PACK; k++)
			x[k] = k == j ? ckr_round_random(x[k], w, cut) : x[k];
	}
}

CKR_DEVICE void
ckr_round_pack(float *, float, const struct ckr_rounding &, uint32_t, int64_t,
               int64_t, const struct ckr_env *)
{
}

/* Elements at .. at + 7 of a copy of the new parameter, rounded to nearest. */
CKR_DEVICE void
ckr_write_copy(const ckr_any &copy, const float *x, int64_t at, int64_t n,
               bool all)
{
	if (copy.type == CKR_BF16)
		ckr_write<CKR_UPDATE_PACK>((ckr_bf16 *)copy.at, x, at, n, all);
	else
		ckr_write<CKR_UPDATE_PACK>((ckr_f16 *)copy.at, x, at, n, all);
}

template <typename R, typename Y, typename G, typename S> CKR_GLOBAL
ckr_update_kernel(R rule, Y *y, S *m1, S *v1, ckr_any copy, const Y *p,
                  const G *g, const S *m, const S *v, const float *norm,
                  struct ckr_rounding round, int64_t n, struct ckr_way way,
                  bool whole, const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };
	const struct ckr_step step = ckr_step_of(norm, &way, env);

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		int64_t at = t * N;
		bool all = whole && at + N <= n;
		float x[N], d[N], a[N], b[N];

		ckr_fetch<N>(x, p, at, n, all);
		ckr_fetch<N>(d, g, at, n, all);
		if (R::STATES > 0)
			ckr_fetch<N>(a, m, at, n, all);
		if (R::STATES > 1)
			ckr_fetch<N>(b, v, at, n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			rule(&step, &x[j], &a[j], &b[j], d[j]);
		if (copy.at)
			ckr_write_copy(copy, x, at, n, all);
		ckr_round_pack(x, Y(), round, 0, at, n, env);
		ckr_write<N>(y, x, at, n, all);
		if (R::STATES > 0) {
			ckr_round_pack(a, S(), round, 1, at, n, env);
			ckr_write<N>(m1, a, at, n, all);
		}
		if (R::STATES > 1) {
			ckr_round_pack(b, S(), round, 2, at, n, env);
			ckr_write<N>(v1, b, at, n, all);
		}
	}
}

/* States are of one type, which one that is absent says as well. */
template <typename R, typename Y, typename G, typename S, typename T> void
ckr_update(R rule, Y *y, S *m1, T *v1, ckr_any copy, const ckr_is<Y> *p,
           const G *g, const ckr_is<S> *m, const ckr_is<T> *v,
           const float *norm, const struct ckr_update_types &types, int64_t n,
           int decay, int coupled, struct ckr_env *env)
{
	const struct ckr_way way = { decay, coupled, env->group };
	bool whole = ckr_on_16(y) && ckr_on_16(p) && ckr_on_16(g)
	             && ckr_on_16(m1) && ckr_on_16(v1) && ckr_on_16(m)
	             && ckr_on_16(v) && ckr_on_16(copy.at);

	CKR_EACH((ckr_update_kernel<R, Y, G, S>),
	         ckr_ceil_div(n, CKR_UPDATE_PACK), env, rule, y, m1, (S *)v1,
	         copy, p, g, m, (const S *)v, norm, ckr_rounding(types), n, way,
	         whole, env->device);
}

/* ---- accumulation ---- */

template <typename Y, typename G> CKR_GLOBAL
ckr_accumulate_kernel(Y *y, const Y *acc, const G *g, int64_t n, bool whole,
                      const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };

	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		int64_t at = t * N;
		bool all = whole && at + N <= n;
		float a[N], d[N];

		ckr_fetch<N>(d, g, at, n, all);
		if (env->micro) {
			ckr_fetch<N>(a, acc, at, n, all);
#pragma unroll
			for (int j = 0; j < N; j++)
				d[j] = a[j] + d[j];
		}
		ckr_write<N>(y, d, at, n, all);
	}
}

template <typename Y, typename G> void
ckr_accumulate(Y *y, const ckr_is<Y> *acc, const G *g,
               struct ckr_update_types, int64_t n, struct ckr_env *env)
{
	CKR_EACH((ckr_accumulate_kernel<Y, G>),
	         ckr_ceil_div(n, CKR_UPDATE_PACK), env, y, acc, g, n,
	         ckr_on_16(y) && ckr_on_16(acc) && ckr_on_16(g), env->device);
}

/* ---- averages ---- */

template <typename P> CKR_GLOBAL
ckr_ema_kernel(float *y, const float *average, const P *p, int64_t n,
               bool whole, const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		int64_t at = t * N;
		bool all = whole && at + N <= n;
		float a[N], x[N];

		ckr_fetch<N>(a, average, at, n, all);
		ckr_fetch<N>(x, p, at, n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			a[j] = ckr_ema_next(a[j], x[j], env->ema_weight);
		ckr_write<N>(y, a, at, n, all);
	}
}

template <typename P> void
ckr_ema(float *y, const float *average, const P *p, struct ckr_update_types,
        int64_t n, struct ckr_env *env)
{
	CKR_EACH((ckr_ema_kernel<P>), ckr_ceil_div(n, CKR_UPDATE_PACK), env, y,
	         average, p, n,
	         ckr_on_16(y) && ckr_on_16(average) && ckr_on_16(p),
	         env->device);
}

#endif
