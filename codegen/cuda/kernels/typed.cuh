/* Elements of a type that is known when the model is compiled, in float32;
 * random words one by one.
 */
#ifndef CKR_TYPED_H
#define CKR_TYPED_H

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
