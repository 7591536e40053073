/* Shared by the files that read ONNX; others include onnx.h. */
#ifndef FRONTEND_ONNX_ONNX_FILE_H
#define FRONTEND_ONNX_ONNX_FILE_H

#include "frontend/onnx/onnx.h"

/* ---- onnx_map.c: mappings, which live until onnx_close ---- */

/* Map a regular file that the user named; `what` says in messages which it
 * is.  False after a diagnostic. */
bool onnx_map_path(struct onnx_file *, const char *path, const char *what,
                   struct onnx_map **);
/* Map the file at the location that a tensor's external data gives. */
bool onnx_map_external(struct onnx_file *, const char *location,
                       const char *tensor, struct onnx_map **);
/* External data cannot be had, which the text says: an error, or where shapes
 * will do a warning, once, with what is assumed.  Returns false. */
bool onnx_map_lacks(struct onnx_file *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void onnx_unmap(struct onnx_file *);

/* ---- onnx_tensor.c ---- */

/* Contents of a tensor whose skeleton is of the wire given, which was
 * stripped from the bytes at `file`.  False after a diagnostic. */
bool onnx_tensor_load_from(struct onnx_file *, const struct wire_summary *,
                           const unsigned char *file,
                           const Onnx__TensorProto *, struct onnx_tensor *);

/* ---- onnx.c ---- */

/* A message in the file's arena; NULL after a diagnostic. */
void *onnx_unpack(struct onnx_file *, const ProtobufCMessageDescriptor *,
                  const struct wire_summary *);

#endif
