/* Optimizer steps and accumulation: of elements of float32 and of 16 bits,
 * with the CPU's bits.
 *
 * 16-bit parameters and states are rounded at random, with the same halves of
 * words as there.  A task is eight elements, whose words are one Philox block.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_UPDATE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_UPDATE_CUH

/* How a rank's shard of a parameter lies in the whole: shard number `shard`
 * with `size` of each segment of the sharded dim, `local` in all.  The update
 * begins with the shard's element `first`. */
struct ckr_shard {
	int64_t first, shard, inner, local;
	int nsegment;
	int64_t segment[CKR_MAX_DIMS], size[CKR_MAX_DIMS];
};

/* Index in the whole of element i of the update. */
CKR_DEVICE uint64_t
ckr_shard_index(const struct ckr_shard &c, int64_t i)
{
	int64_t row, at, whole = 0, n = 0;
	int k = 0;

	i += c.first;
	row = i / c.inner;
	at = row % c.local;

	for (; at >= c.size[k]; k++) {
		at -= c.size[k];
		n += c.segment[k];
	}
	for (int j = 0; j < c.nsegment; j++)
		whole += c.segment[j];
	n += c.shard * c.size[k] + at;
	return (uint64_t)((row / c.local * whole + n) * c.inner + i % c.inner);
}

/* Types are those of the operands, which say them too; stream of the rounding,
 * whose words are those of elements of the whole.  shard NULL: y is not
 * sharded. */
struct ckr_half_types {
	int y, g, state;
	uint32_t stream;
	const struct ckr_shard *shard;
	int copy;
};

/* The same for a device. */
struct ckr_rounding {
	uint32_t stream;
	int is_sharded;
	struct ckr_shard shard;

	ckr_rounding(const struct ckr_half_types &t)
		: stream(t.stream), is_sharded(t.shard != nullptr), shard()
	{
		if (t.shard)
			shard = *t.shard;
	}
};

enum { CKR_UPDATE_PACK = 8 };

/* Up or down, with a probability that is the part cut off; a float32 stays
 * what it is. */
CKR_DEVICE float
ckr_round_random(float x, uint32_t half, uint32_t cut)
{
	uint32_t u = ckr_float_bits(x), r = (u + (half & cut)) & ~cut;

	return ckr_bits_float((u & 0x7f800000) == 0x7f800000 ? u : r);
}

CKR_DEVICE uint32_t ckr_cut_off(ckr_bf16) { return 0xffff; }
CKR_DEVICE uint32_t ckr_cut_off(ckr_f16) { return 0x1fff; }

/* Round elements at .. at + 7 to what T holds; which: 0 the parameter, 1, 2
 * its states, each with words of its own. */
template <typename T> CKR_DEVICE void
ckr_round_pack(float *x, T, const struct ckr_rounding &r, uint32_t which,
               int64_t at, int64_t n, const struct ckr_env *env)
{
	uint32_t cut = ckr_cut_off(T()), stream = r.stream + (which << 28);
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
		uint64_t i;
		uint32_t w;

		if (at + j >= n)
			break;
		i = ckr_shard_index(r.shard, at + j);
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

/* The factor of gradients: clipping, and the inverse of the loss scale, which
 * the norm does not contain. */
CKR_DEVICE float
ckr_clip_scale(const float *norm, const struct ckr_env *env)
{
	float clip = norm && env->clip > 0 && *norm > env->clip
	             ? env->clip / *norm : 1.0f;

	return clip * env->unscale;
}

/* How a parameter is updated.  decay: one without a decay of its own has the
 * step's; coupled: Adam, with the decay in the gradient. */
struct ckr_way {
	int decay, coupled;
	struct ckr_param_group own;
};

CKR_DEVICE float
ckr_own_lr(const struct ckr_way &way, const struct ckr_env *env)
{
	return env->lr * way.own.lr;
}

CKR_DEVICE float
ckr_own_decay(const struct ckr_way &way, const struct ckr_env *env)
{
	return way.own.decay >= 0 ? way.own.decay
	       : way.decay ? env->weight_decay : 0.0f;
}

/* ---- rules: numbers of the step, and the update of one element ---- */

struct ckr_rule_sgd {
	enum { STATES = 0 };
	float scale, lr, keep;

	__device__ __forceinline__
	ckr_rule_sgd(const float *norm, const struct ckr_way &way,
	             const struct ckr_env *e)
	{
		scale = ckr_clip_scale(norm, e), lr = ckr_own_lr(way, e);
		keep = 1.0f - lr * ckr_own_decay(way, e);
	}

	__device__ __forceinline__ void
	operator()(float *p, float *, float *, float g) const
	{
		*p = *p * keep - lr * (g * scale);
	}
};

/* SGD as PyTorch has it: decay is part of the gradient, and the first average
 * is the gradient itself, which starting from 0 makes it. */
struct ckr_rule_sgdm {
	enum { STATES = 1 };
	float scale, lr, pull, keep;
	int ahead;

	__device__ __forceinline__
	ckr_rule_sgdm(const float *norm, const struct ckr_way &way,
	              const struct ckr_env *e)
	{
		scale = ckr_clip_scale(norm, e), lr = ckr_own_lr(way, e);
		pull = ckr_own_decay(way, e), keep = e->momentum;
		ahead = e->nesterov;
	}

	__device__ __forceinline__ void
	operator()(float *p, float *m, float *, float g) const
	{
		float d = g * scale + pull * *p;
		float a = keep * *m + d;

		*m = a;
		*p = *p - lr * (ahead ? d + keep * a : a);
	}
};

/* A NaN stays one. */
struct ckr_rule_lion {
	enum { STATES = 1 };
	float scale, lr, keep, b1, b2;

	__device__ __forceinline__
	ckr_rule_lion(const float *norm, const struct ckr_way &way,
	              const struct ckr_env *e)
	{
		scale = ckr_clip_scale(norm, e), lr = ckr_own_lr(way, e);
		keep = 1.0f - lr * ckr_own_decay(way, e);
		b1 = e->beta1, b2 = e->beta2;
	}

	__device__ __forceinline__ void
	operator()(float *p, float *m, float *, float g) const
	{
		float d = g * scale;
		float c = b1 * *m + (1.0f - b1) * d;
		float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c;

		*m = b2 * *m + (1.0f - b2) * d;
		*p = *p * keep - lr * sign;
	}
};

struct ckr_rule_adamw {
	enum { STATES = 2 };
	float scale, pull, keep, b1, b2, eps, step, root;
	int coupled;

	__device__ __forceinline__
	ckr_rule_adamw(const float *norm, const struct ckr_way &way,
	               const struct ckr_env *e)
	{
		float lr = ckr_own_lr(way, e);

		scale = ckr_clip_scale(norm, e), coupled = way.coupled;
		pull = ckr_own_decay(way, e);
		keep = coupled ? 1.0f : 1.0f - lr * pull;
		b1 = e->beta1, b2 = e->beta2, eps = e->eps;
		step = lr / e->c1, root = 1.0f / __builtin_sqrtf(e->c2);
	}

	__device__ __forceinline__ void
	operator()(float *p, float *m, float *v, float g) const
	{
		float d = coupled ? g * scale + pull * *p : g * scale;
		float a = b1 * *m + (1.0f - b1) * d;
		float b = b2 * *v + (1.0f - b2) * (d * d);

		*m = a;
		*v = b;
		*p = *p * keep -
		     step * a / (__builtin_sqrtf(b) * root + eps);
	}
};

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
ckr_update_kernel(Y *y, S *m1, S *v1, ckr_any copy, const Y *p, const G *g, const S *m,
                  const S *v, const float *norm, struct ckr_rounding round,
                  int64_t n, struct ckr_way way, bool whole,
                  const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };
	const R rule(norm, way, env);

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
			rule(&x[j], &a[j], &b[j], d[j]);
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

template <typename R, typename Y, typename G, typename S> void
ckr_update(Y *y, S *m1, S *v1, ckr_any copy, const Y *p, const G *g,
           const S *m, const S *v, const float *norm, const struct ckr_half_types &types, int64_t n,
           int decay, int coupled, struct ckr_env *env)
{
	const struct ckr_way way = { decay, coupled, env->group };
	bool whole = ckr_on_16(y) && ckr_on_16(p) && ckr_on_16(g)
	             && ckr_on_16(m1) && ckr_on_16(v1) && ckr_on_16(m)
	             && ckr_on_16(v) && ckr_on_16(copy.at);

	if (n > 0)
		CKR_LAUNCH((ckr_update_kernel<R, Y, G, S>),
		           ckr_blocks((n + CKR_UPDATE_PACK - 1)
		                      / CKR_UPDATE_PACK), CKR_THREADS, 0, env,
		           y, m1, v1, copy, p, g, m, v, norm,
		           ckr_rounding(types),
		           n, way, whole, env->device);
}

template <typename Y, typename G> void
ckr_half_sgd(Y *y, ckr_any copy, const ckr_is<Y> *p, const G *g,
             const float *norm, struct ckr_half_types types, int64_t n,
             int decay, struct ckr_env *env)
{
	ckr_update<ckr_rule_sgd, Y, G, float>(y, NULL, NULL, copy, p, g, NULL,
		NULL, norm, types, n, decay, 0, env);
}

template <typename Y, typename G, typename S> void
ckr_half_sgdm(Y *y, ckr_is<S> *m1, ckr_any copy, const ckr_is<Y> *p,
              const G *g, const S *m, const float *norm,
              struct ckr_half_types types, int64_t n, int decay,
              struct ckr_env *env)
{
	ckr_update<ckr_rule_sgdm, Y, G, S>(y, m1, NULL, copy, p, g, m, NULL,
		norm, types, n, decay, 0, env);
}

template <typename Y, typename G, typename S> void
ckr_half_lion(Y *y, ckr_is<S> *m1, ckr_any copy, const ckr_is<Y> *p,
              const G *g, const S *m, const float *norm,
              struct ckr_half_types types, int64_t n, int decay,
              struct ckr_env *env)
{
	ckr_update<ckr_rule_lion, Y, G, S>(y, m1, NULL, copy, p, g, m, NULL,
		norm, types, n, decay, 0, env);
}

template <typename Y, typename G, typename S> void
ckr_half_adamw(Y *y, ckr_is<S> *m1, ckr_is<S> *v1, ckr_any copy,
               const ckr_is<Y> *p, const G *g, const S *m, const ckr_is<S> *v,
               const float *norm, struct ckr_half_types types, int64_t n,
               int decay, int coupled, struct ckr_env *env)
{
	ckr_update<ckr_rule_adamw, Y, G, S>(y, m1, v1, copy, p, g, m, v, norm,
		types, n, decay, coupled, env);
}

/* ---- of float32 alone ---- */

static const struct ckr_half_types ckr_all_floats = { CKR_F32, CKR_F32,
	CKR_F32, 0, NULL, CKR_NONE };

static inline void
ckr_sgd(float *y, const float *p, const float *g, const float *norm,
        int64_t n, int decay, struct ckr_env *env)
{
	ckr_half_sgd(y, nullptr, p, g, norm, ckr_all_floats, n, decay, env);
}

static inline void
ckr_sgdm(float *y, float *m1, const float *p, const float *g, const float *m,
         const float *norm, int64_t n, int decay, struct ckr_env *env)
{
	ckr_half_sgdm(y, m1, nullptr, p, g, m, norm, ckr_all_floats, n, decay,
	              env);
}

static inline void
ckr_lion(float *y, float *m1, const float *p, const float *g, const float *m,
         const float *norm, int64_t n, int decay, struct ckr_env *env)
{
	ckr_half_lion(y, m1, nullptr, p, g, m, norm, ckr_all_floats, n, decay,
	              env);
}

static inline void
ckr_adamw(float *y, float *m1, float *v1, const float *p, const float *g,
          const float *m, const float *v, const float *norm, int64_t n,
          int decay, int coupled, struct ckr_env *env)
{
	ckr_half_adamw(y, m1, v1, nullptr, p, g, m, v, norm, ckr_all_floats, n,
	               decay, coupled, env);
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
ckr_half_accumulate(Y *y, const ckr_is<Y> *acc, const G *g,
                    struct ckr_half_types, int64_t n, struct ckr_env *env)
{
	if (n > 0)
		CKR_LAUNCH((ckr_accumulate_kernel<Y, G>),
		           ckr_blocks((n + CKR_UPDATE_PACK - 1)
		                      / CKR_UPDATE_PACK), CKR_THREADS, 0, env,
		           y, acc, g, n, ckr_on_16(y) && ckr_on_16(acc)
		           && ckr_on_16(g), env->device);
}

static inline void
ckr_accumulate(float *y, const float *acc, const float *g, int64_t n,
               struct ckr_env *env)
{
	ckr_half_accumulate(y, acc, g, ckr_all_floats, n, env);
}

#endif
