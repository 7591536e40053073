/* The first look at an ONNX file: its protobuf wire format, before any
 * unpacking.
 *
 * protobuf-c copies every byte of weights, recurses as deep as the file says
 * and cuts names at NUL.  So the file is first rewritten into a skeleton:
 * the same message without tensor contents and without what ckc does not
 * read.  Every TensorProto of the skeleton whose contents were taken out
 * carries a field that ONNX does not have, WIRE_TOKEN: a fixed32 that indexes
 * wire.payload.  Fields unknown to ONNX never reach the skeleton, so a file
 * cannot forge one.
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
	WIRE_DEPTH = 100,               /* messages in messages */
	WIRE_MESSAGES = 2 << 20,        /* in one file */
	WIRE_NAME = 64 << 10,           /* bytes of one name */
};

/* Field numbers of TensorProto that hold contents. */
enum {
	WIRE_FLOATS = 4, WIRE_INT32S = 5, WIRE_INT64S = 7, WIRE_RAW = 9,
	WIRE_DOUBLES = 10, WIRE_UINT64S = 11
};

enum wire_root { WIRE_MODEL, WIRE_TENSOR };

/* Calls that ONNX cannot say in full, and those of parameters, by the names
 * that they had in the source.  PyTorch's dynamo exporter notes at each node
 * the call that it stands for; of these, wire_strip() keeps the note. */
#define WIRE_CROSS_ENTROPY "aten.cross_entropy_loss.default](args = ("
#define WIRE_EMBEDDING "aten.embedding.default](args = ("
#define WIRE_SCATTER_REDUCE "aten.scatter_reduce.two](args = ("
#define WIRE_SCATTER "aten.scatter."
#define WIRE_INDEX_PUT "aten.index_put.default](args = ("
#define WIRE_DETACH "aten.detach.default](args = ("
#define WIRE_PARAMETER "%p_"
/* What its optimizer notes at a value that it computed of constants. */
#define WIRE_FOLDED "pkg.onnxscript.optimizer.folded_from"

/* Contents of one tensor, in place. */
struct wire_payload {
	int field;
	size_t at, n;
};

struct wire_summary {
	const unsigned char *skeleton;  /* in the arena */
	size_t n;
	struct wire_payload *payload;   /* [0] is unused */
	size_t npayload;
	size_t nunknown;                /* fields left out that ONNX 1.23 does
	                                 * not know */
	bool training_info;
};

/* Check data and build the skeleton; false after a diagnostic with the
 * position of the fault. */
bool wire_strip(Arena *, Diag *, enum wire_root, const unsigned char *data,
                size_t n, struct wire_summary *);

/* One field of a message.  at: of its tag; body: of its payload; end: of the
 * next field.  type: wire type; value: of varints. */
struct wire_field {
	uint32_t number;
	int type;
	size_t at, body, end;
	uint64_t value;
};
/* Read the field at `at` of data[..end); NULL if all is well, else what is
 * wrong. */
const char *wire_next(const unsigned char *data, size_t at, size_t end,
                      struct wire_field *);
/* Read a varint; 0 if it does not end before `end`, else its bytes. */
int wire_varint(const unsigned char *data, size_t at, size_t end,
                uint64_t *value);

#endif
