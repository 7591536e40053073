/* What libckr declares of NVIDIA's libraries beside their own headers: an
 * argument of another size, or another number, does not compile. */
#include <cuda.h>
#include <nccl.h>
#include <stddef.h>

/* One name for the same number. */
#define CU_STREAM_NON_BLOCKING OUR_STREAM_NON_BLOCKING
#include "runtime/device/nccl_api.h"

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is not " #b)

SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_I8, ncclInt8);
SAME(NCCL_U8, ncclUint8);
SAME(NCCL_I32, ncclInt32);
SAME(NCCL_U32, ncclUint32);
SAME(NCCL_I64, ncclInt64);
SAME(NCCL_U64, ncclUint64);
SAME(NCCL_F16, ncclFloat16);
SAME(NCCL_F32, ncclFloat32);
SAME(NCCL_F64, ncclFloat64);
SAME(NCCL_BF16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_OLDEST, NCCL_VERSION(2, 10, 0));
SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));
SAME(CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(sizeof(struct cu_uuid), sizeof(CUuuid));
SAME(sizeof(struct cu_copy), sizeof(CUDA_MEMCPY2D));
#define AT(ours, theirs) \
	SAME(offsetof(struct cu_copy, ours), offsetof(CUDA_MEMCPY2D, theirs))
AT(from_x, srcXInBytes);
AT(from_kind, srcMemoryType);
AT(from, srcDevice);
AT(from_pitch, srcPitch);
AT(to_x, dstXInBytes);
AT(to_kind, dstMemoryType);
AT(to, dstDevice);
AT(to_pitch, dstPitch);
AT(width, WidthInBytes);
AT(rows, Height);

/* As many arguments, each of a kind that converts without a warning to what the
 * other takes. */
#define P(x) ((void *)(x))
void calls(const struct nccl *n, ncclComm_t c, cudaStream_t s, void *p,
           size_t k, ncclUniqueId id);

void
calls(const struct nccl *n, ncclComm_t c, cudaStream_t s, void *p, size_t k,
      ncclUniqueId id)
{
	struct nccl_id mine;

	(void)ncclAllReduce(p, p, k, ncclFloat32, ncclSum, c, s);
	n->all_reduce(p, p, k, 0, 0, P(c), P(s));
	(void)ncclAllGather(p, p, k, ncclUint8, c, s);
	n->all_gather(p, p, k, 0, P(c), P(s));
	(void)ncclReduceScatter(p, p, k, ncclFloat32, ncclSum, c, s);
	n->reduce_scatter(p, p, k, 0, 0, P(c), P(s));
	(void)ncclBroadcast(p, p, k, ncclUint8, 0, c, s);
	n->broadcast(p, p, k, 0, 0, P(c), P(s));
	(void)ncclReduce(p, p, k, ncclFloat32, ncclSum, 0, c, s);
	n->reduce(p, p, k, 0, 0, 0, P(c), P(s));
	(void)ncclSend(p, k, ncclUint8, 0, c, s);
	n->send(p, k, 0, 0, P(c), P(s));
	(void)ncclRecv(p, k, ncclUint8, 0, c, s);
	n->receive(p, k, 0, 0, P(c), P(s));
	__builtin_memcpy(&mine, &id, sizeof(mine));
	(void)ncclCommInitRank(&c, 2, id, 0);
	n->join(P(&c), 2, mine, 0);
}
