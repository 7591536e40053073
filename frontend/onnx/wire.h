/* The first look at an ONNX file: its protobuf wire format, before any
 * unpacking.
 *
 * protobuf-c copies every byte of weights, recurses as deep as the file says
 * and cuts names at NUL.  So the file is first rewritten into a skeleton:
 * the same message without tensor contents and fields that ckc does not read.
 * A TensorProto of the skeleton whose contents were removed carries a field
 * that ONNX does not have, WIRE_TOKEN: a fixed32 index into wire.payload.
 * Fields unknown to ONNX never reach the skeleton, so a file cannot forge a
 * token.
 */
#ifndef FRONTEND_ONNX_WIRE_H
#define FRONTEND_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"

enum {
	WIRE_TOKEN = 50000,             /* field number */
	WIRE_DEPTH = 100,               /* nesting of messages */
	WIRE_MESSAGES = 2 << 20,        /* messages of one file */
	WIRE_NAME = 64 << 10,           /* bytes of one name */
};

/* Field numbers of TensorProto that hold contents. */
enum {
	WIRE_FLOATS = 4, WIRE_INT32S = 5, WIRE_INT64S = 7, WIRE_RAW = 9,
	WIRE_DOUBLES = 10, WIRE_UINT64S = 11
};

enum wire_root { WIRE_MODEL, WIRE_TENSOR };

/* PyTorch's dynamo exporter notes at each node the call that it stands for.
 * wire_strip() keeps the notes of these calls, which ONNX cannot express in
 * full, and of calls that read parameters. */
#define WIRE_CROSS_ENTROPY "aten.cross_entropy_loss.default](args = ("
#define WIRE_EMBEDDING "aten.embedding.default](args = ("
#define WIRE_SCATTER_REDUCE "aten.scatter_reduce.two](args = ("
#define WIRE_SCATTER "aten.scatter."
#define WIRE_INDEX_PUT "aten.index_put.default](args = ("
#define WIRE_DETACH "aten.detach.default](args = ("
#define WIRE_PARAMETER "%p_"
/* Key of the optimizer's note at a value that it folded from constants. */
#define WIRE_FOLDED "pkg.onnxscript.optimizer.folded_from"

/* Position of one tensor's contents in the file. */
struct wire_payload {
	int field;
	size_t at, n;
};

struct wire_summary {
	const unsigned char *skeleton;  /* in the arena */
	size_t n;
	struct wire_payload *payload;   /* [0] is unused */
	size_t npayload;
	size_t nunknown;                /* dropped fields that ONNX 1.23 does
	                                 * not define */
	bool training_info;
};

/* Check data and build the skeleton.  False after a diagnostic, which gives
 * the position of the fault. */
bool wire_strip(Arena *, Diag *, enum wire_root, const unsigned char *data,
                size_t n, struct wire_summary *);

/* One field of a message.  at, body, end: offsets of the tag, the payload and
 * the next field.  type: wire type; value: a varint's value. */
struct wire_field {
	uint32_t number;
	int type;
	size_t at, body, end;
	uint64_t value;
};
/* Read the field at `at` of data[..end).  Returns NULL, or a text that
 * describes the fault. */
const char *wire_next(const unsigned char *data, size_t at, size_t end,
                      struct wire_field *);
/* Read a varint.  Returns its length in bytes; 0: no end before `end`. */
int wire_varint(const unsigned char *data, size_t at, size_t end,
                uint64_t *value);
/* Write one; returns its length. */
int wire_put_varint(unsigned char out[10], uint64_t);

#endif
