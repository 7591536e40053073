/* Properties of an ONNX operator; the table is in the importer. */
#ifndef FRONTEND_ONNX_ONNX_OP_H
#define FRONTEND_ONNX_ONNX_OP_H

#include "frontend/onnx/flat.h"

struct importer;

enum { ALL_INPUTS = 0xffffffff, ONNX_ATTRS = 4 };

/* Input `input` holds a weight if its rank is lo..hi. */
struct weight_slot {
	signed char input, lo, hi;      /* lo 0: no slot */
};

/* An attribute whose value, and default, are those of an attribute of the op
 * that `run` makes.  A flag becomes 0 or 1. */
struct onnx_attr {
	const char *name, *ir;
	enum attr_type type;
	bool flag;
};

struct onnx_op {
	const char *name, *domain;      /* domain "": ai.onnx */
	short since;                    /* oldest supported opset */
	short nin_min, nin_max;         /* inputs; -1: no bound */
	bool (*run)(struct importer *); /* NULL: known, but not supported */
	bool (*can)(const struct flat *, const struct flat_node *);
	                                /* form is supported; NULL: all are */
	Op ir;                          /* op for `run` functions of many ops */
	uint32_t stop;                  /* inputs without a gradient */
	uint32_t dead;                  /* outputs without a gradient */
	uint32_t norm;                  /* norm or bias vectors, which
	                                 * exporters merge if equal */
	uint32_t numbers;               /* inputs that must not be bool */
	uint32_t floats;                /* inputs that must be floats */
	struct weight_slot slot[4];
	struct onnx_attr attr[ONNX_ATTRS];      /* that imp_attrs() reads */
	const char *hint;               /* reason or remedy if unsupported */
};

#endif
