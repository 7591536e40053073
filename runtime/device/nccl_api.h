/* Declarations of NCCL, which is loaded when GPUs of several processes train
 * one model: a build needs no header of it.  Numbers are those of its binary
 * interface, of 2.10 and later. */
#ifndef RUNTIME_DEVICE_NCCL_API_H
#define RUNTIME_DEVICE_NCCL_API_H

#include <stddef.h>

#include "runtime/device/cuda_api.h"

typedef int nccl_result;                /* 0: done */
typedef struct nccl_comm *nccl_comm;

struct nccl_id {
	char bytes[128];
};

enum {
	NCCL_IN_PROGRESS = 7,
	NCCL_I8 = 0, NCCL_U8 = 1, NCCL_I32 = 2, NCCL_U32 = 3, NCCL_I64 = 4,
	NCCL_U64 = 5, NCCL_F16 = 6, NCCL_F32 = 7, NCCL_F64 = 8, NCCL_BF16 = 9,
	NCCL_SUM = 0, NCCL_MAX = 2,
	NCCL_OLDEST = 21000,            /* 2.10.0: sums of bf16 */
};

/* X(member, symbol, arguments) */
#define NCCL_CALLS(X) \
	X(version, ncclGetVersion, (int *)) \
	X(new_id, ncclGetUniqueId, (struct nccl_id *)) \
	X(join, ncclCommInitRank, \
	  (nccl_comm *, int n, struct nccl_id, int rank)) \
	X(destroy, ncclCommDestroy, (nccl_comm)) \
	X(abort, ncclCommAbort, (nccl_comm)) \
	X(async_error, ncclCommGetAsyncError, (nccl_comm, nccl_result *)) \
	X(all_reduce, ncclAllReduce, \
	  (const void *, void *, size_t n, int type, int op, nccl_comm, \
	   cu_stream)) \
	X(all_gather, ncclAllGather, \
	  (const void *, void *, size_t n, int type, nccl_comm, cu_stream)) \
	X(reduce_scatter, ncclReduceScatter, \
	  (const void *, void *, size_t n, int type, int op, nccl_comm, \
	   cu_stream)) \
	X(broadcast, ncclBroadcast, \
	  (const void *, void *, size_t n, int type, int root, nccl_comm, \
	   cu_stream)) \
	X(reduce, ncclReduce, \
	  (const void *, void *, size_t n, int type, int op, int root, \
	   nccl_comm, cu_stream)) \
	X(send, ncclSend, \
	  (const void *, size_t n, int type, int to, nccl_comm, cu_stream)) \
	X(receive, ncclRecv, \
	  (void *, size_t n, int type, int from, nccl_comm, cu_stream)) \
	X(group_start, ncclGroupStart, (void)) \
	X(group_end, ncclGroupEnd, (void))

struct nccl {
#define X(member, symbol, args) nccl_result (*member) args;
	NCCL_CALLS(X)
#undef X
	const char *(*error_text)(nccl_result);
};

#endif
