/* Room onnx: ONNX files, from bytes to a flat list of nodes.
 *
 * in      a path
 * out     the model unpacked and made flat (flat.h), contents of tensors, the
 *         template for writing the model back
 * must not know graphs of the IR and passes
 */
#ifndef FRONTEND_ONNX_ONNX_H
#define FRONTEND_ONNX_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "frontend/onnx/model.h"
#include "frontend/onnx/wire.h"
#include "ir/ir.h"
#include "onnx.pb-c.h"

struct onnx_map {
	struct onnx_map *next, *same;   /* of all; of those with a like hash */
	const char *location;           /* as in the model; "": the model */
	const unsigned char *data;
	size_t n;
	bool missing;                   /* the file could not be opened */
	dev_t dev;                      /* dev, ino: identity of the file */
	ino_t ino;
};

struct onnx_file {
	Arena *arena;
	Diag *diag;                     /* diagnostics of the opening call */
	const char *path;
	struct onnx_map *maps, *last_map;       /* the model itself is first */
	struct onnx_map *by_location[512];      /* hash to list */
	int nmap;                       /* external files tried */
	struct wire_summary wire;
	Onnx__ModelProto *model;
	bool shapes_do;                 /* external data may be absent */
	const char *lacks;              /* assumption in place of absent data;
	                                 * NULL: none */
	struct onnx_template *template; /* NULL: cannot be exported */
	const char *why_no_template;
};

/* A decoded tensor.  data is NULL after onnx_tensor_info, and for absent
 * external data with shapes_do. */
struct onnx_tensor {
	const char *name;               /* never NULL */
	DType dt;
	Shape shape;
	int64_t nelem, nbytes;
	const void *data;
	bool external;
};

/* Open and unpack; NULL after a diagnostic. */
struct onnx_file *onnx_open(const char *path, bool shapes_do, Diag *);

/* Type and shape; false after a diagnostic. */
bool onnx_tensor_info(struct onnx_file *, const Onnx__TensorProto *,
                      struct onnx_tensor *);
/* Type, shape and contents, which lie in the file's mapping or arena. */
bool onnx_tensor_load(struct onnx_file *, const Onnx__TensorProto *,
                      struct onnx_tensor *);
/* Bytes and elements of a tensor in memory; 0: unsupported type or shape. */
int64_t onnx_tensor_bytes(const Onnx__TensorProto *, int64_t *nelem);
/* Load a --const file, TensorProto or .npy; contents are copied into the
 * file's arena. */
bool onnx_const_file(struct onnx_file *, const char *path,
                     struct onnx_tensor *);

DType onnx_dtype(int onnx);             /* DT_NONE: not supported */
const char *onnx_dtype_name(int onnx);

#endif
