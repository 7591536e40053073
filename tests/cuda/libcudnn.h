/* What the halves of the emulated cuDNN share: graphs and plans (libcudnn.c),
 * and what they compute (libcudnn_sums.c). */
#ifndef TESTS_CUDA_LIBCUDNN_H
#define TESTS_CUDA_LIBCUDNN_H

#include "runtime/device/cudnn_api.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 5 };

enum engine { NO_ORDER, NARROWS, GREEDY, COPIES, PLAIN, ENGINES };

struct tensor {
	int type;
	int64_t rank, dim[RANK], stride[RANK], id, align;
};

struct windows {
	int sums, mode;
	int64_t dims, begin[3], end[3], stride[3], dilation[3];
};

struct job {
	int kind;
	float alpha, beta;
	struct tensor x, w, y;
	struct windows c;
};

struct call {
	struct job job;
	enum engine engine;
	void *x, *w, *y, *work;
	int64_t bytes;
};

/* Of a struct call. */
void fake_convolve(void *);

#endif
