/* Tensor cores: products of 16 x 16 and 16 x 8 elements of 16 bits, summed in
 * float32; matrices of 8 x 8 from shared memory; copies that do not wait.
 *
 * Lane l of a warp has of the sum rows l / 4 and l / 4 + 8, columns l % 4 * 2
 * and the next; of the factors pairs along k likewise.
 */
#ifndef CODEGEN_CUDA_KERNELS_MMA_CUH
#define CODEGEN_CUDA_KERNELS_MMA_CUH

#ifdef __CUDA_EMULATED__

CKR_DEVICE void
ckr_mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, ckr_bf16)
{
	emu::mma(c, a, b0, b1,
	         [](uint16_t h) { return ckr_from_bf16(h); });
}

CKR_DEVICE void
ckr_mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, ckr_f16)
{
	emu::mma(c, a, b0, b1,
	         [](uint16_t h) { return ckr_from_f16(h); });
}

CKR_DEVICE void
ckr_matrices(uint32_t *r, const void *row, bool trans)
{
	emu::matrices(r, row, trans);
}

CKR_DEVICE void
ckr_copy16(void *to, const void *from, bool exists)
{
	emu::copy16(to, from, exists);
}

CKR_DEVICE void
ckr_copies_end()
{
	emu::copies_end();
}

template <int N> CKR_DEVICE void
ckr_copies_wait()
{
	emu::copies_wait(N);
}

#else

#define CKR_MMA(T, TYPE) \
CKR_DEVICE void \
ckr_mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, T) \
{ \
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE \
	             ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
	             "{%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), \
	             "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), \
	             "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \
}

CKR_MMA(ckr_bf16, "bf16")
CKR_MMA(ckr_f16, "f16")

/* Four matrices, whose rows lanes 0-7, 8-15, ... point to. */
CKR_DEVICE void
ckr_matrices(uint32_t *r, const void *row, bool trans)
{
	uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

	if (trans)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
		             "{%0, %1, %2, %3}, [%4];" : "=r"(r[0]),
		             "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at)
		             : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
		             "{%0, %1, %2, %3}, [%4];" : "=r"(r[0]),
		             "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at)
		             : "memory");
}

/* 16 bytes to shared memory, zeros if they do not exist. */
CKR_DEVICE void
ckr_copy16(void *to, const void *from, bool exists)
{
	uint32_t at = (uint32_t)__cvta_generic_to_shared(to);

	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
	             :: "r"(at), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/* End a group of asynchronous copies. */
CKR_DEVICE void
ckr_copies_end()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* For all groups but the last N; others' copies: behind a barrier. */
template <int N> CKR_DEVICE void
ckr_copies_wait()
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

#endif

#endif
