/* Room onnx: ONNX files, from bytes to a flat list of nodes.
 *
 * in      a path
 * out     the model unpacked and made flat (flat.h), contents of tensors, the
 *         template for writing the model back
 * unaware of graphs of the IR and of passes
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
	struct onnx_map *next;
	const char *location;           /* as the file says; "": the model */
	const unsigned char *data;
	size_t n;
	bool missing;                   /* could not be opened */
	dev_t dev;                      /* which file it is */
	ino_t ino;
};

struct onnx_file {
	Arena *arena;
	Diag *diag;                     /* of the opening call */
	const char *path;
	struct onnx_map *maps;          /* [0] is the model itself */
	int nmap;                       /* external ones looked for */
	struct wire_summary wire;
	Onnx__ModelProto *model;
	bool shapes_do;                 /* external data may be absent */
	const char *lacks;              /* what is assumed where it is; NULL:
	                                 * nothing */
	struct onnx_template *template; /* NULL: cannot be exported */
	const char *why_no_template;
};

/* What is known of a tensor; data is NULL if it was not asked for, or lies in
 * an external file that is not there where shapes will do. */
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
/* Contents too.  They lie in the file's mapping or arena. */
bool onnx_tensor_load(struct onnx_file *, const Onnx__TensorProto *,
                      struct onnx_tensor *);
/* Bytes of a tensor in memory, and its elements; 0: they cannot be counted. */
int64_t onnx_tensor_bytes(const Onnx__TensorProto *, int64_t *nelem);
/* A TensorProto or a .npy file given as --const; contents are copied into the
 * arena of the file. */
bool onnx_const_file(struct onnx_file *, const char *path,
                     struct onnx_tensor *);

DType onnx_dtype(int onnx);             /* DT_NONE: not supported */
const char *onnx_dtype_name(int onnx);

#endif
