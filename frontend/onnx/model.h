/* ONNX files, which are not trusted: from bytes to a checked model with its
 * tensors mapped. */
#ifndef FRONTEND_ONNX_MODEL_H
#define FRONTEND_ONNX_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"

struct onnx_file;

void onnx_close(struct onnx_file *);    /* NULL is allowed */
/* Whether path is the model or one of its external files. */
bool onnx_reads(const struct onnx_file *, const char *path);

/* The model's bytes without trained values:
 * file = bytes[0..at0) value0 bytes[at0..at1) value1 ... */
struct onnx_hole {
	uint64_t at;
	ValId val;
	DType dt;                       /* type in the file; the graph's type
	                                 * may differ */
};

struct onnx_template {
	const unsigned char *bytes;
	size_t n;
	int nhole;
	struct onnx_hole *hole;
	bool trains;                    /* it has Dropout or BatchNormalization
	                                 * in training form */
};

/* NULL if the model cannot be written back; *why: the reason. */
const struct onnx_template *onnx_get_template(const struct onnx_file *,
                                              const char **why);

#endif
