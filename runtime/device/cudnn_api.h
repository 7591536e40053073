/* Declarations of cuDNN, which is loaded when a model with convolutions is
 * opened on a GPU: a build needs no header of it.
 *
 * These are the calls of its graphs, the same in 8.9 and 9: 9 has the other
 * ones for convolutions (cudnnConvolutionForward ...) for old programs alone.
 * Graphs also have paddings of their own before and behind, and tell of each
 * engine whether it gives the same bits in every run.  Numbers are its binary
 * interface's.
 */
#ifndef RUNTIME_DEVICE_CUDNN_API_H
#define RUNTIME_DEVICE_CUDNN_API_H

#include "runtime/device/cuda_api.h"

typedef int dnn_status;                 /* 0: done */
typedef struct dnn_context *dnn_handle;
typedef void *dnn_descriptor;

enum {
	DNN_OLDEST = 8900,              /* 8.9.0 */
	DNN_NINE = 90000,               /* from here 9.1.2 is 90102 */
	DNN_F32 = 0, DNN_F16 = 2, DNN_BF16 = 9,
	/* descriptors */
	DNN_CONVOLUTION = 1, DNN_ENGINE = 2, DNN_CONFIG = 3, DNN_CHOICES = 4,
	DNN_PLAN = 5, DNN_FORWARD = 10, DNN_BACK_FILTER = 11,
	DNN_BACK_DATA = 12, DNN_GRAPH = 15, DNN_PACK = 16, DNN_TENSOR = 17,
	DNN_DEVICE = 38,
	/* types of attributes */
	DNN_IS_HANDLE = 0, DNN_IS_DATA_TYPE = 1, DNN_IS_INT64 = 3,
	DNN_IS_FLOAT = 4, DNN_IS_POINTER = 6, DNN_IS_MODE = 7,
	DNN_IS_CHOICE_MODE = 8, DNN_IS_NOTE = 11, DNN_IS_DESCRIPTOR = 15,
	DNN_IS_CHAR = 24,
	/* attributes */
	DNN_CONV_SUMS = 100, DNN_CONV_MODE = 101, DNN_CONV_DILATION = 102,
	DNN_CONV_STRIDE = 103, DNN_CONV_END = 104, DNN_CONV_BEGIN = 105,
	DNN_CONV_DIMS = 106,
	DNN_CHOICES_MODE = 200, DNN_CHOICES_GRAPH = 201,
	DNN_CHOICES_FOUND = 202, DNN_CHOICES_DEVICE = 204,
	DNN_CONFIG_ENGINE = 300,
	DNN_PLAN_HANDLE = 400, DNN_PLAN_CONFIG = 401, DNN_PLAN_WORK = 402,
	DNN_PLAN_DEVICE = 407,
	/* in this order: alpha, beta, the convolution, w, x, y; gradients of
	 * x: w, dx, dy; of w: dw, x, dy */
	DNN_FORWARD_ALPHA = 700, DNN_BACK_DATA_ALPHA = 706,
	DNN_BACK_FILTER_ALPHA = 712,
	DNN_GRAPH_HANDLE = 800, DNN_GRAPH_OPS = 801,
	DNN_TENSOR_ALIGN = 900, DNN_TENSOR_TYPE = 901, DNN_TENSOR_DIMS = 902,
	DNN_TENSOR_STRIDES = 903, DNN_TENSOR_ID = 906,
	DNN_PACK_IDS = 1000, DNN_PACK_POINTERS = 1001, DNN_PACK_WORK = 1003,
	DNN_ENGINE_NOTES = 1303,
	DNN_DEVICE_JSON = 2702,
	/* values of theirs */
	DNN_CROSS_CORRELATION = 1,
	DNN_MODE_FALLBACK = 2, DNN_MODE_A = 3,
	DNN_NOTE_TENSOR_CORE = 0, DNN_NOTE_NARROWS = 1,
	DNN_NOTE_NARROW_SUMS = 2, DNN_NOTE_FFT = 3, DNN_NOTE_NO_ORDER = 4,
	DNN_NOTE_WINOGRAD = 5,
};

/* X(result, member, symbol, arguments) */
#define DNN_CALLS(X) \
	X(size_t, version, cudnnGetVersion, (void)) \
	X(const char *, error_text, cudnnGetErrorString, (dnn_status)) \
	X(dnn_status, create, cudnnCreate, (dnn_handle *)) \
	X(dnn_status, destroy, cudnnDestroy, (dnn_handle)) \
	X(dnn_status, set_stream, cudnnSetStream, (dnn_handle, cu_stream)) \
	X(dnn_status, make, cudnnBackendCreateDescriptor, \
	  (int kind, dnn_descriptor *)) \
	X(dnn_status, drop, cudnnBackendDestroyDescriptor, (dnn_descriptor)) \
	X(dnn_status, set, cudnnBackendSetAttribute, \
	  (dnn_descriptor, int name, int type, int64_t n, const void *)) \
	X(dnn_status, get, cudnnBackendGetAttribute, \
	  (dnn_descriptor, int name, int type, int64_t n, int64_t *found, \
	   void *)) \
	X(dnn_status, finish, cudnnBackendFinalize, (dnn_descriptor)) \
	X(dnn_status, execute, cudnnBackendExecute, \
	  (dnn_handle, dnn_descriptor plan, dnn_descriptor pack))

struct dnn {
#define X(result, member, symbol, args) result (*member) args;
	DNN_CALLS(X)
#undef X
};

#endif
