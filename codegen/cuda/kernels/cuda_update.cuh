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

	/* of a whole tensor */
	__device__ __forceinline__ explicit
	ckr_rounding(uint32_t number)
		: stream(number), is_sharded(0), shard()
	{
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

/* What an update reads and writes.  m, v: as far as there are states. */
template <typename Y, typename G, typename S> struct ckr_updated {
	Y *y;
	S *m1, *v1;
	ckr_any copy;
	const Y *p;
	const G *g;
	const S *m, *v;
	int64_t n;
	bool whole;                     /* all of them are vectors */
};

/* Tasks of a block's threads, `first` and every `step`-th after it. */
template <typename R, typename Y, typename G, typename S> CKR_DEVICE void
ckr_update_tasks(R rule, const ckr_updated<Y, G, S> &u,
                 const struct ckr_rounding &round,
                 const struct ckr_step &step, int64_t first, int64_t stride,
                 const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };

	for (int64_t at = first * N; at < u.n; at += stride * N) {
		bool all = u.whole && at + N <= u.n;
		float x[N], d[N], a[N], b[N];

		ckr_fetch<N>(x, u.p, at, u.n, all);
		ckr_fetch<N>(d, u.g, at, u.n, all);
		if (R::STATES > 0)
			ckr_fetch<N>(a, u.m, at, u.n, all);
		if (R::STATES > 1)
			ckr_fetch<N>(b, u.v, at, u.n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			rule(&step, &x[j], &a[j], &b[j], d[j]);
		if (u.copy.at)
			ckr_write_copy(u.copy, x, at, u.n, all);
		ckr_round_pack(x, Y(), round, 0, at, u.n, env);
		ckr_write<N>(u.y, x, at, u.n, all);
		if (R::STATES > 0) {
			ckr_round_pack(a, S(), round, 1, at, u.n, env);
			ckr_write<N>(u.m1, a, at, u.n, all);
		}
		if (R::STATES > 1) {
			ckr_round_pack(b, S(), round, 2, at, u.n, env);
			ckr_write<N>(u.v1, b, at, u.n, all);
		}
	}
}

template <typename R, typename Y, typename G, typename S> CKR_GLOBAL
ckr_update_kernel(R rule, ckr_updated<Y, G, S> u, const float *norm,
                  struct ckr_rounding round, struct ckr_way way,
                  const struct ckr_env *env)
{
	const struct ckr_step step = ckr_step_of(norm, &way, env);

	if (ckr_is_void(env))
		return;
	ckr_update_tasks(rule, u, round, step,
	                 (int64_t)blockIdx.x * blockDim.x + threadIdx.x,
	                 (int64_t)gridDim.x * blockDim.x, env);
}

/* ---- updates of many tensors in a launch ---- */

/* A tensor that is updated in place.  Its blocks begin at number `first`. */
struct ckr_joined {
	void *y, *m, *v;
	ckr_any copy;
	const void *g;
	int64_t n;
	struct ckr_way way;
	uint32_t stream, first;
	uint8_t g_type, whole;
};

enum {
	/* Arguments of a launch are 32764 bytes from drivers on that CUDA 13
	 * needs, and 4096 before. */
#if defined __CUDACC_VER_MAJOR__ && __CUDACC_VER_MAJOR__ >= 13
	CKR_JOINED = 360,
#else
	CKR_JOINED = 44,
#endif
};

struct ckr_update_table {
	const float *norm;
	uint32_t n, blocks;
	struct ckr_joined item[CKR_JOINED];
};

static_assert(sizeof(struct ckr_update_table) <= CKR_JOINED_BYTES,
	"the run time has that much room");

template <typename Y, typename G, typename S> CKR_DEVICE ckr_updated<Y, G, S>
ckr_operands_of(const struct ckr_joined &u)
{
	return { (Y *)u.y, (S *)u.m, (S *)u.v, u.copy, (Y *)u.y,
		 (const G *)u.g, (S *)u.m, (S *)u.v, u.n, u.whole != 0 };
}

template <typename R, typename Y, typename S> CKR_GLOBAL
ckr_update_joined_kernel(CKR_ARGUMENT ckr_update_table t,
                         const struct ckr_env *env)
{
	uint32_t i = ckr_tensor_of(t, blockIdx.x);
	const struct ckr_joined &u = t.item[i];
	const struct ckr_step step = ckr_step_of(t.norm, &u.way, env);
	const struct ckr_rounding round(u.stream);
	int64_t first = (int64_t)(blockIdx.x - u.first) * blockDim.x
		+ threadIdx.x;
	int64_t stride = (int64_t)ckr_blocks_of(t, i) * blockDim.x;

	if (ckr_is_void(env))
		return;
	CKR_FLOATS(u.g_type, G,
	           (ckr_update_tasks(R(), ckr_operands_of<Y, G, S>(u), round,
	                             step, first, stride, env)));
}

template <typename R, typename Y, typename S> static void
ckr_launch_joined(struct ckr_joined_launch *updates, struct ckr_env *env)
{
	const auto *t = (const struct ckr_update_table *)updates->table;

	CKR_LAUNCH((ckr_update_joined_kernel<R, Y, S>), t->blocks, CKR_THREADS,
	           0, env, *t, env->device);
	updates->n = 0;
}

/* Whether the update is now one of env.joined, which it is if it is in place
 * and of a whole tensor. */
template <typename R, typename Y, typename G, typename S> bool
ckr_update_join(const ckr_updated<Y, G, S> &u, const float *norm,
                const struct ckr_update_types &types,
                const struct ckr_way &way, struct ckr_env *env)
{
	struct ckr_joined_launch *all = env->joined;
	auto *t = all ? (struct ckr_update_table *)all->table : NULL;

	if (!t || types.shard || u.p != u.y || u.m != u.m1 || u.v != u.v1)
		return false;
	if (all->n && (all->launch != ckr_launch_joined<R, Y, S>
	               || t->norm != norm || all->n == CKR_JOINED))
		all->launch(all, env);
	if (!all->n) {
		all->launch = ckr_launch_joined<R, Y, S>;
		t->norm = norm;
		t->blocks = 0;
	}
	t->item[all->n++] = { u.y, u.m1, u.v1, u.copy, u.g, u.n, way,
	                      types.stream, t->blocks, ckr_type_of(u.g),
	                      u.whole };
	t->n = all->n;
	t->blocks += (uint32_t)ckr_blocks(ckr_ceil_div(u.n, CKR_UPDATE_PACK));
	return true;
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
	const ckr_updated<Y, G, S> u = { y, m1, (S *)v1, copy, p, g, m,
	                                 (const S *)v, n, whole };

	if (!ckr_update_join<R>(u, norm, types, way, env))
		CKR_EACH((ckr_update_kernel<R, Y, G, S>),
		         ckr_ceil_div(n, CKR_UPDATE_PACK), env, rule, u, norm,
		         ckr_rounding(types), way, env->device);
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
