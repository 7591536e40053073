/* Shared by the files that read ONNX; others include onnx.h. */
#ifndef FRONTEND_ONNX_ONNX_FILE_H
#define FRONTEND_ONNX_ONNX_FILE_H

#include "frontend/onnx/onnx.h"

/* ---- onnx_map.c: mappings, which live until onnx_close ---- */

/* Map a regular file that the user named; `what` names its role in messages.
 * False after a diagnostic. */
bool onnx_map_path(struct onnx_file *, const char *path, const char *what,
                   struct onnx_map **);
/* Map the file at the location that a tensor's external data gives. */
bool onnx_map_external(struct onnx_file *, const char *location,
                       const char *tensor, struct onnx_map **);
/* Report absent external data: an error, or with shapes_do one warning that
 * states the assumption.  Returns false. */
bool onnx_map_lacks(struct onnx_file *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void onnx_unmap(struct onnx_file *);

/* ---- onnx_tensor.c ---- */

/* Load a tensor of the skeleton that wire_strip made from the bytes at `file`.
 * False after a diagnostic. */
bool onnx_tensor_load_from(struct onnx_file *, const struct wire_summary *,
                           const unsigned char *file,
                           const Onnx__TensorProto *, struct onnx_tensor *);

/* ---- onnx.c ---- */

/* Unpack a message into the file's arena; NULL after a diagnostic. */
void *onnx_unpack(struct onnx_file *, const ProtobufCMessageDescriptor *,
                  const struct wire_summary *);

#endif
