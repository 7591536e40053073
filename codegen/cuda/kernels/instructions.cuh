/* Instructions of GPUs that C has no operator for.  Older GPUs and tests take
 * the software of arith.h where the results are the same bits.
 */
#ifndef CODEGEN_CUDA_KERNELS_INSTRUCTIONS_CUH
#define CODEGEN_CUDA_KERNELS_INSTRUCTIONS_CUH

#define CKR_LOG2E 1.44269504f

/* 2^x: relative error at most 2^-22, 0 below 2^-126. */
CKR_DEVICE float
ckr_exp2(float x)
{
#ifdef __CUDA_EMULATED__
	return emu::exp2(x);
#else
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#endif
}

/* ptxas converts neighbours by one instruction, but not for GPUs from sm_100 on.
 * There two instructions for one element each take the unit of exponentials. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
#define CKR_PAIRS

CKR_DEVICE uint32_t
ckr_bf16_pair(float a, float b)
{
	uint32_t pair;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
	return pair;
}

CKR_DEVICE uint32_t
ckr_f16_pair(float a, float b)
{
	uint32_t pair;

	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
	return pair;
}
#endif

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
#define CKR_CONVERSIONS

CKR_LANE uint16_t
ckr_to_bf16(float f)
{
	uint16_t h;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}

CKR_LANE uint16_t
ckr_to_f16(float f)
{
	uint16_t h;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}

CKR_LANE float
ckr_from_f16(uint16_t h)
{
	float f;

	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
	return f;
}
#endif

#endif
