/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
 * easy as 1, 2, 3", SC'11).  The word of an element depends on seed, step,
 * micro-batch, stream and the element's index alone, so that no mask need be
 * stored.
 */
#ifndef CODEGEN_RULES_KERNELS_RANDOM_H
#define CODEGEN_RULES_KERNELS_RANDOM_H

struct ckr_four {
	uint32_t w[4];
};

/* The words of elements 4 block .. 4 block + 3. */
CKR_LANE struct ckr_four
ckr_philox(uint64_t block, uint32_t stream, const struct ckr_env *env)
{
	uint32_t k0 = (uint32_t)env->seed, k1 = (uint32_t)(env->seed >> 32);
	uint32_t c0 = (uint32_t)block, c2 = (uint32_t)env->step, c3 = stream;
	uint32_t c1 = (uint32_t)(block >> 32) ^ env->micro << 16;
	struct ckr_four four;

	for (int r = 0; r < 10; r++) {
		uint64_t p = (uint64_t)c0 * 0xD2511F53u;
		uint64_t q = (uint64_t)c2 * 0xCD9E8D57u;

		c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)q;
		c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	four.w[0] = c0;
	four.w[1] = c1;
	four.w[2] = c2;
	four.w[3] = c3;
	return four;
}

/* Words below this are dropped; nothing is outside training. */
CKR_LANE uint32_t
ckr_drop_below(double ratio, const struct ckr_env *env)
{
	return env->training ? (uint32_t)(ratio * 4294967296.0) : 0;
}

CKR_LANE float
ckr_drop_scale(double ratio, const struct ckr_env *env)
{
	return env->training ? (float)(1.0 / (1.0 - ratio)) : 1.0f;
}

/* The upper `bits` of the word as a number in 0 <= u < 1, which has a
 * significand of that many bits. */
CKR_LANE float
ckr_uniform(uint32_t word, int bits, float low, float high)
{
	float u = (float)(word >> (32 - bits)) * (1.0f / (float)(1u << bits));
	float y = low + u * (high - low);

	return y < high ? y : low;
}

CKR_LANE double
ckr_uniform_d(uint32_t word, double low, double high)
{
	double y = low + (double)word * (1.0 / 4294967296.0) * (high - low);

	return y < high ? y : low;
}

/* The normal deviate below which a share of (word + 1/2) / 2^32 lies: of the
 * form x P(w) that M. Giles, "Approximating the erfinv function" (GPU
 * Computing Gems 2, 2011), gives the inverse of erf, with x = 2 u - 1, w =
 * -log(1 - x^2) and two fits of P, the second in sqrt(w).  error 1.5e-7. */
CKR_LANE float
ckr_normal(uint32_t word)
{
	uint32_t few = word < ~word ? word : ~word;
	float x = ((float)(int32_t)(word ^ 0x80000000u) + 0.5f)
	        * (1.0f / 2147483648.0f);
	float p = ((float)few + 0.5f) * (1.0f / 4294967296.0f);
	float w = -ckr_log(4.0f * p * (1.0f - p)), t = w - 2.5f, near, far;

	near = -1.2359987496e-08f;
	near = __builtin_fmaf(near, t, 3.29311571291e-08f);
	near = __builtin_fmaf(near, t, 6.58215622974e-07f);
	near = __builtin_fmaf(near, t, -4.8979252608e-06f);
	near = __builtin_fmaf(near, t, -7.01413651672e-06f);
	near = __builtin_fmaf(near, t, 0.000308789168061f);
	near = __builtin_fmaf(near, t, -0.00177165380079f);
	near = __builtin_fmaf(near, t, -0.00590772125261f);
	near = __builtin_fmaf(near, t, 0.348802042282f);
	near = __builtin_fmaf(near, t, 2.12331347935f);
	t = __builtin_sqrtf(w > 0.0f ? w : 0.0f) - 3.441824f;
	far = 5.27515381087e-05f;
	far = __builtin_fmaf(far, t, -3.06294651563e-06f);
	far = __builtin_fmaf(far, t, -0.000428913961345f);
	far = __builtin_fmaf(far, t, 0.000896316269033f);
	far = __builtin_fmaf(far, t, -0.00116396667436f);
	far = __builtin_fmaf(far, t, 0.00178332337547f);
	far = __builtin_fmaf(far, t, -0.00332099690768f);
	far = __builtin_fmaf(far, t, 0.0051905480262f);
	far = __builtin_fmaf(far, t, 1.42406511779f);
	far = __builtin_fmaf(far, t, 4.6342254686f);
	return x * (w < 5.0f ? near : far);
}

/* 1 with probability p. */
CKR_LANE int
ckr_bernoulli(uint32_t word, double p)
{
	return (double)word < p * 4294967296.0;
}

#endif
