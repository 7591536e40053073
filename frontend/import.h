/* What the driver sees of the importer. */
#ifndef FRONTEND_IMPORT_H
#define FRONTEND_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "frontend/import_options.h"

struct onnx_file;

/* The file as a graph in dynamic form, or NULL after diagnostics.  Contents
 * of its values lie in *keep, which lives until onnx_close. */
Graph *onnx_import(const char *path, const struct import_options *, Diag *,
                   struct onnx_file **keep);
void onnx_close(struct onnx_file *);    /* NULL is allowed */
/* Whether path leads to the model or to one of its external files. */
bool onnx_reads(const struct onnx_file *, const char *path);

/* The report of `ckc inspect`. */
bool onnx_inspect(const char *path, const struct import_options *, FILE *out,
                  Diag *);

/* The model's own bytes with trained values left out:
 * file = bytes[0..at0) value0 bytes[at0..at1) value1 ... */
struct onnx_hole {
	uint64_t at;
	ValId val;
};

struct onnx_template {
	const unsigned char *bytes;
	size_t n;
	int nhole;
	struct onnx_hole *hole;
};

/* NULL if the model cannot be written back; *why says so. */
const struct onnx_template *onnx_get_template(const struct onnx_file *,
                                              const char **why);

#endif
