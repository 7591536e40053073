/* Declarations of NVIDIA's driver and cuBLASLt, which are loaded when a model
 * for a GPU is opened: a build needs no header of theirs, and one libckr serves
 * machines with and without a GPU.  Numbers are those of their binary
 * interfaces. */
#ifndef RUNTIME_DEVICE_CUDA_API_H
#define RUNTIME_DEVICE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/* ---- libcuda.so.1, the driver ---- */

typedef int cu_result;                  /* 0: done */
typedef int cu_device;
typedef struct cu_context *cu_context;
typedef struct cu_stream *cu_stream;
typedef struct cu_graph *cu_graph;      /* captured */
typedef struct cu_ready *cu_ready;      /* ready to be launched */
typedef struct cu_event *cu_event;
typedef unsigned long long cu_address;

enum {
	CU_OUT_OF_MEMORY = 2,
	CU_NO_DEVICE = 100,
	CU_NOT_READY = 600,
	CU_STREAM_NON_BLOCKING = 1,
	CU_EVENT_NO_TIMING = 2,
	CU_MEMORY_DEVICE = 2,
	CU_CAPTURE_THIS_THREAD = 1,
	CU_COMPUTE_MAJOR = 75,
	CU_COMPUTE_MINOR = 76,
};

/* Rows of bytes, so far apart; of memory that is no array. */
struct cu_copy {
	size_t from_x, from_y;
	int from_kind;
	const void *from_host;
	cu_address from;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	int to_kind;
	void *to_host;
	cu_address to;
	void *to_array;
	size_t to_pitch;
	size_t width, rows;
};

struct cu_uuid {
	unsigned char bytes[16];
};

/* X(member, symbol, arguments) */
#define CU_CALLS(X) \
	X(init, cuInit, (unsigned flags)) \
	X(device_count, cuDeviceGetCount, (int *n)) \
	X(device_get, cuDeviceGet, (cu_device *, int index)) \
	X(device_name, cuDeviceGetName, (char *, int n, cu_device)) \
	X(device_attribute, cuDeviceGetAttribute, \
	  (int *value, int attribute, cu_device)) \
	X(device_uuid, cuDeviceGetUuid_v2, (struct cu_uuid *, cu_device)) \
	X(retain, cuDevicePrimaryCtxRetain, (cu_context *, cu_device)) \
	X(release, cuDevicePrimaryCtxRelease_v2, (cu_device)) \
	X(set_current, cuCtxSetCurrent, (cu_context)) \
	X(error_text, cuGetErrorString, (cu_result, const char **)) \
	X(memory_info, cuMemGetInfo_v2, (size_t *free, size_t *all)) \
	X(alloc, cuMemAlloc_v2, (cu_address *, size_t)) \
	X(free, cuMemFree_v2, (cu_address)) \
	X(alloc_host, cuMemAllocHost_v2, (void **, size_t)) \
	X(free_host, cuMemFreeHost, (void *)) \
	X(put, cuMemcpyHtoDAsync_v2, \
	  (cu_address, const void *, size_t, cu_stream)) \
	X(get, cuMemcpyDtoHAsync_v2, \
	  (void *, cu_address, size_t, cu_stream)) \
	X(copy, cuMemcpyDtoDAsync_v2, \
	  (cu_address, cu_address, size_t, cu_stream)) \
	X(copy_rows, cuMemcpy2DAsync_v2, (const struct cu_copy *, cu_stream)) \
	X(fill, cuMemsetD8Async, \
	  (cu_address, unsigned char, size_t, cu_stream)) \
	X(stream_new, cuStreamCreate, (cu_stream *, unsigned flags)) \
	X(stream_sync, cuStreamSynchronize, (cu_stream)) \
	X(stream_query, cuStreamQuery, (cu_stream)) \
	X(stream_wait, cuStreamWaitEvent, (cu_stream, cu_event, unsigned)) \
	X(stream_free, cuStreamDestroy_v2, (cu_stream)) \
	X(event_new, cuEventCreate, (cu_event *, unsigned flags)) \
	X(event_record, cuEventRecord, (cu_event, cu_stream)) \
	X(event_query, cuEventQuery, (cu_event)) \
	X(event_sync, cuEventSynchronize, (cu_event)) \
	X(event_free, cuEventDestroy_v2, (cu_event)) \
	X(capture, cuStreamBeginCapture_v2, (cu_stream, int mode)) \
	X(captured, cuStreamEndCapture, (cu_stream, cu_graph *)) \
	X(instantiate, cuGraphInstantiateWithFlags, \
	  (cu_ready *, cu_graph, unsigned long long flags)) \
	X(graph_free, cuGraphDestroy, (cu_graph)) \
	X(launch, cuGraphLaunch, (cu_ready, cu_stream)) \
	X(ready_free, cuGraphExecDestroy, (cu_ready))

struct cu {
#define X(member, symbol, args) cu_result (*member) args;
	CU_CALLS(X)
#undef X
};

/* ---- libcublasLt.so: products ---- */

typedef int lt_status;                  /* 0: done */
typedef struct lt_handle *lt_handle;
typedef struct lt_layout *lt_layout;
typedef struct lt_operation *lt_operation;
typedef struct lt_preference *lt_preference;

struct lt_algorithm {
	uint64_t data[8];
};

struct lt_choice {
	struct lt_algorithm algorithm;
	size_t workspace;
	lt_status state;
	float waves;
	int reserved[4];
};

enum {
	LT_F32 = 0, LT_F16 = 2, LT_BF16 = 14,           /* cudaDataType */
	LT_COMPUTE_F32 = 68, LT_COMPUTE_TF32 = 77,
	LT_OP_TRANSA = 3, LT_OP_TRANSB = 4, LT_OP_EPILOGUE = 7,
	LT_OP_BIAS = 8, LT_OP_BIAS_TYPE = 26,
	LT_OP_AUX = 11, LT_OP_AUX_LD = 12,
	LT_EPILOGUE_NONE = 1, LT_EPILOGUE_BIAS = 4,
	LT_EPILOGUE_DGELU = 192, LT_EPILOGUE_DGELU_BGRAD = 208,
	LT_EPILOGUE_BGRADA = 256, LT_EPILOGUE_BGRADB = 512,
	LT_LAYOUT_BATCH = 5, LT_LAYOUT_STRIDE = 6,
	LT_PREFER_WORKSPACE = 1, LT_PREFER_REDUCTIONS = 3,
	LT_PREFER_ALIGN_A = 5,                          /* B, C, D follow */
	LT_REDUCE_IN_F32 = 2,
};

#define LT_CALLS(X) \
	X(create, cublasLtCreate, (lt_handle *)) \
	X(destroy, cublasLtDestroy, (lt_handle)) \
	X(layout_new, cublasLtMatrixLayoutCreate, \
	  (lt_layout *, int type, uint64_t rows, uint64_t cols, int64_t ld)) \
	X(layout_free, cublasLtMatrixLayoutDestroy, (lt_layout)) \
	X(layout_set, cublasLtMatrixLayoutSetAttribute, \
	  (lt_layout, int what, const void *, size_t)) \
	X(operation_new, cublasLtMatmulDescCreate, \
	  (lt_operation *, int compute, int scale)) \
	X(operation_free, cublasLtMatmulDescDestroy, (lt_operation)) \
	X(operation_set, cublasLtMatmulDescSetAttribute, \
	  (lt_operation, int what, const void *, size_t)) \
	X(preference_new, cublasLtMatmulPreferenceCreate, (lt_preference *)) \
	X(preference_free, cublasLtMatmulPreferenceDestroy, (lt_preference)) \
	X(preference_set, cublasLtMatmulPreferenceSetAttribute, \
	  (lt_preference, int what, const void *, size_t)) \
	X(choose, cublasLtMatmulAlgoGetHeuristic, \
	  (lt_handle, lt_operation, lt_layout, lt_layout, lt_layout, \
	   lt_layout, lt_preference, int most, struct lt_choice *, \
	   int *found)) \
	X(matmul, cublasLtMatmul, \
	  (lt_handle, lt_operation, const void *alpha, const void *a, \
	   lt_layout, const void *b, lt_layout, const void *beta, \
	   const void *c, lt_layout, void *d, lt_layout, \
	   const struct lt_algorithm *, void *work, size_t, cu_stream))

struct lt {
#define X(member, symbol, args) lt_status (*member) args;
	LT_CALLS(X)
#undef X
};

#endif
