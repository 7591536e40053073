/* See wire.h.
 *
 * A recursive walk over length-delimited fields, driven by a table of the
 * messages that ckc reads.  Lengths of rewritten messages are stored as
 * varints of five bytes, so that they can be filled in afterwards.
 */
#include "frontend/onnx/wire.h"
#include "runtime/support/utf8.h"

#include <string.h>

enum field_kind {
	DROP,                           /* known, but not read by ckc */
	VARINT, FIXED32,                /* one number */
	VARINTS, FIXED32S,              /* repeated: packed or not */
	NAME,                           /* text of at most WIRE_NAME bytes */
	TEXT, BYTES,
	DATA,                           /* contents of a tensor */
	ONCE,                           /* message that may occur only once */
	MESSAGE,
	NOTE,                           /* message kept if is_note() says so */
};

enum message_type {
	M_MODEL, M_GRAPH, M_NODE, M_ATTRIBUTE, M_TENSOR, M_SPARSE, M_INFO,
	M_NOTED, M_TYPE, M_TENSOR_TYPE, M_SHAPE, M_DIM, M_ELEM, M_MAP, M_OPAQUE,
	M_ENTRY, M_OPSET, M_FUNCTION, M_COUNT
};

struct field_rule {
	unsigned char field, kind, message;
};

static const char *const message_name[M_COUNT] = {
	"ModelProto", "GraphProto", "NodeProto", "AttributeProto",
	"TensorProto", "SparseTensorProto", "ValueInfoProto",
	"ValueInfoProto", "TypeProto", "TypeProto.Tensor",
	"TensorShapeProto", "Dimension", "TypeProto.Sequence",
	"TypeProto.Map", "TypeProto.Opaque",
	"StringStringEntryProto", "OperatorSetIdProto", "FunctionProto"
};

/* Dropped: documentation, value infos of inner values (often stale; shapes are
 * inferred anew), and annotations of nodes and values other than notes. */
static const struct field_rule rules[M_COUNT][26] = {
	[M_MODEL] = {
		{ 1, VARINT, 0 }, { 2, NAME, 0 }, { 3, NAME, 0 },
		{ 4, NAME, 0 }, { 5, VARINT, 0 }, { 6, DROP, 0 },
		{ 7, ONCE, M_GRAPH },
		{ 8, MESSAGE, M_OPSET }, { 14, MESSAGE, M_ENTRY },
		{ 20, DROP, 0 }, { 25, MESSAGE, M_FUNCTION }, { 26, DROP, 0 },
	},
	[M_GRAPH] = {
		{ 1, MESSAGE, M_NODE }, { 2, NAME, 0 },
		{ 5, MESSAGE, M_TENSOR }, { 10, DROP, 0 },
		{ 11, MESSAGE, M_INFO }, { 12, MESSAGE, M_INFO },
		{ 13, NOTE, M_NOTED }, { 14, DROP, 0 },
		{ 15, MESSAGE, M_SPARSE },
		{ 16, MESSAGE, M_ENTRY },
	},
	[M_NODE] = {
		{ 1, NAME, 0 }, { 2, NAME, 0 }, { 3, NAME, 0 }, { 4, NAME, 0 },
		{ 5, MESSAGE, M_ATTRIBUTE }, { 6, DROP, 0 }, { 7, NAME, 0 },
		{ 8, NAME, 0 }, { 9, NOTE, M_ENTRY }, { 10, DROP, 0 },
	},
	[M_ATTRIBUTE] = {
		{ 1, NAME, 0 }, { 2, FIXED32, 0 }, { 3, VARINT, 0 },
		{ 4, BYTES, 0 }, { 5, ONCE, M_TENSOR }, { 6, ONCE, M_GRAPH },
		{ 7, FIXED32S, 0 }, { 8, VARINTS, 0 }, { 9, BYTES, 0 },
		{ 10, MESSAGE, M_TENSOR }, { 11, MESSAGE, M_GRAPH },
		{ 13, DROP, 0 }, { 14, ONCE, M_TYPE }, { 15, MESSAGE, M_TYPE },
		{ 20, VARINT, 0 }, { 21, NAME, 0 }, { 22, ONCE, M_SPARSE },
		{ 23, MESSAGE, M_SPARSE },
	},
	[M_TENSOR] = {
		{ 1, VARINTS, 0 }, { 2, VARINT, 0 }, { 3, DROP, 0 },
		{ WIRE_FLOATS, DATA, 0 }, { WIRE_INT32S, DATA, 0 },
		{ 6, BYTES, 0 }, { WIRE_INT64S, DATA, 0 }, { 8, NAME, 0 },
		{ WIRE_RAW, DATA, 0 }, { WIRE_DOUBLES, DATA, 0 },
		{ WIRE_UINT64S, DATA, 0 }, { 12, DROP, 0 },
		{ 13, MESSAGE, M_ENTRY }, { 14, VARINT, 0 }, { 16, DROP, 0 },
	},
	[M_SPARSE] = {
		{ 1, ONCE, M_TENSOR }, { 2, ONCE, M_TENSOR }, { 3, VARINTS, 0 },
	},
	[M_INFO] = {
		{ 1, NAME, 0 }, { 2, ONCE, M_TYPE }, { 3, DROP, 0 },
		{ 4, DROP, 0 },
	},
	[M_NOTED] = {
		{ 1, NAME, 0 }, { 2, DROP, 0 }, { 3, DROP, 0 },
		{ 4, NOTE, M_ENTRY },
	},
	[M_TYPE] = {
		{ 1, ONCE, M_TENSOR_TYPE }, { 4, ONCE, M_ELEM },
		{ 5, ONCE, M_MAP }, { 6, DROP, 0 }, { 7, ONCE, M_OPAQUE },
		{ 8, ONCE, M_TENSOR_TYPE }, { 9, ONCE, M_ELEM },
	},
	[M_TENSOR_TYPE] = { { 1, VARINT, 0 }, { 2, ONCE, M_SHAPE } },
	[M_SHAPE] = { { 1, MESSAGE, M_DIM } },
	[M_DIM] = { { 1, VARINT, 0 }, { 2, NAME, 0 }, { 3, DROP, 0 } },
	[M_ELEM] = { { 1, ONCE, M_TYPE } },
	[M_MAP] = { { 1, VARINT, 0 }, { 2, ONCE, M_TYPE } },
	[M_OPAQUE] = { { 1, NAME, 0 }, { 2, NAME, 0 } },
	[M_ENTRY] = { { 1, NAME, 0 }, { 2, TEXT, 0 } },
	[M_OPSET] = { { 1, NAME, 0 }, { 2, VARINT, 0 } },
	[M_FUNCTION] = {
		{ 1, NAME, 0 }, { 4, NAME, 0 }, { 5, NAME, 0 }, { 6, NAME, 0 },
		{ 7, MESSAGE, M_NODE }, { 8, DROP, 0 }, { 9, MESSAGE, M_OPSET },
		{ 10, NAME, 0 }, { 11, MESSAGE, M_ATTRIBUTE }, { 12, DROP, 0 },
		{ 13, NAME, 0 }, { 14, DROP, 0 },
	},
};

struct walker {
	Arena *arena;
	Diag *diag;
	const unsigned char *data;
	unsigned char *out;
	size_t n, cap, payload_cap;
	size_t nmessage;
	struct wire_summary *wire;
};

int
wire_varint(const unsigned char *data, size_t at, size_t end,
            uint64_t *value)
{
	uint64_t v = 0;

	for (int i = 0; i < 10 && at + (size_t)i < end; i++) {
		v |= (uint64_t)(data[at + i] & 0x7f) << (7 * i);
		if (!(data[at + i] & 0x80)) {
			*value = v;
			return i + 1;
		}
	}
	return 0;
}

int
wire_put_varint(unsigned char out[10], uint64_t x)
{
	int n = 0;

	for (; x >= 0x80; x >>= 7)
		out[n++] = (unsigned char)(x | 0x80);
	out[n++] = (unsigned char)x;
	return n;
}

const char *
wire_next(const unsigned char *data, size_t at, size_t end,
          struct wire_field *f)
{
	uint64_t tag, len = 0;
	int n = wire_varint(data, at, end, &tag);

	if (n == 0 || n > 5 || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return "a field number is invalid";
	f->number = (uint32_t)(tag >> 3);
	f->type = (int)(tag & 7);
	f->at = at;
	f->body = at + (size_t)n;
	f->value = 0;
	switch (f->type) {
	case 0:
		n = wire_varint(data, f->body, end, &f->value);
		if (n == 0)
			return "a varint does not end";
		f->end = f->body + (size_t)n;
		return NULL;
	case 1:
		len = 8;
		break;
	case 2:
		n = wire_varint(data, f->body, end, &len);
		if (n == 0)
			return "a length is invalid";
		f->body += (size_t)n;
		break;
	case 5:
		len = 4;
		break;
	default:
		return "a field has an invalid wire type";
	}
	if (len > end - f->body)
		return "a field exceeds the message";
	f->end = f->body + (size_t)len;
	return NULL;
}

static bool
wire_fail(struct walker *w, size_t at, enum message_type m, const char *what)
{
	return diag_error(w->diag, "corrupt or truncated ONNX file: %s, in a "
	                  "%s at byte %zu", what, message_name[m], at);
}

static void
append_bytes(struct walker *w, const void *bytes, size_t n)
{
	w->out = arena_grow(w->arena, w->out, w->n, &w->cap, w->n + n + 1, 1);
	memcpy(w->out + w->n, bytes, n);
	w->n += n;
}

/* Tag and five bytes that patch_length fills. */
static size_t
open_message(struct walker *w, uint32_t number)
{
	unsigned char b[10 + 5];
	int n = wire_put_varint(b, number << 3 | 2);

	memset(b + n, 0, 5);
	append_bytes(w, b, (size_t)n + 5);
	return w->n;
}

static void
patch_length(struct walker *w, size_t start)
{
	size_t len = w->n - start;
	unsigned char *p = w->out + start - 5;

	for (int i = 0; i < 4; i++, len >>= 7)
		p[i] = (unsigned char)((len & 0x7f) | 0x80);
	p[4] = (unsigned char)(len & 0x7f);
}

static void
append_token(struct walker *w, const struct wire_field *f)
{
	struct wire_summary *wire = w->wire;
	uint32_t id = (uint32_t)wire->npayload;
	unsigned char b[10 + 4];
	int n = wire_put_varint(b, WIRE_TOKEN << 3 | 5);

	wire->payload = arena_grow(w->arena, wire->payload, wire->npayload,
	                           &w->payload_cap, wire->npayload + 1,
	                           sizeof *wire->payload);
	wire->payload[wire->npayload++] = (struct wire_payload){
		(int)f->number, f->body, f->end - f->body
	};
	for (int i = 0; i < 4; i++, id >>= 8)
		b[n++] = (unsigned char)id;
	append_bytes(w, b, (size_t)n);
}

static const struct field_rule *
find_rule(enum message_type m, uint32_t number)
{
	for (int i = 0; i < 26 && rules[m][i].field; i++)
		if (rules[m][i].field == number)
			return &rules[m][i];
	return NULL;
}

/* Whether the wire type fits the field. */
static bool
type_fits(const struct field_rule *r, int type)
{
	switch ((enum field_kind)r->kind) {
	case DROP:
		return true;
	case VARINT:
		return type == 0;
	case FIXED32:
		return type == 5;
	case VARINTS:
		return type == 0 || type == 2;
	case FIXED32S:
		return type == 5 || type == 2;
	case DATA:
		if (r->field == WIRE_RAW)
			return type == 2;
		if (r->field == WIRE_FLOATS)
			return type == 2 || type == 5;
		if (r->field == WIRE_DOUBLES)
			return type == 2 || type == 1;
		return type == 2 || type == 0;
	default:
		return type == 2;
	}
}

/* Remove contents that are in one piece.  Other forms are legal but rare;
 * protobuf-c reads those. */
static bool
single_payload(struct walker *w, size_t at, size_t end)
{
	struct wire_field f;
	int pieces = 0, packed = 0;

	for (; at < end; at = f.end) {
		const struct field_rule *r;

		if (wire_next(w->data, at, end, &f))
			return false;           /* reported by the walk */
		r = find_rule(M_TENSOR, f.number);
		if (r && r->kind == DATA) {
			pieces++;
			packed += f.type == 2;
		}
	}
	return pieces == 1 && packed == 1;
}

static bool
check_text(struct walker *w, enum message_type m, const struct field_rule *r,
           const struct wire_field *f)
{
	size_t n = f->end - f->body;

	if (memchr(w->data + f->body, 0, n))
		return wire_fail(w, f->at, m, "a name contains a NUL byte");
	if (!utf8_is((const char *)w->data + f->body, n))
		return wire_fail(w, f->at, m, "a name is not UTF-8");
	if (r->kind == NAME && n > WIRE_NAME)
		return wire_fail(w, f->at, m, "a name is longer than 64 KiB");
	return true;
}

static bool
is_note(const unsigned char *text, size_t n)
{
	static const char *const note[] = {
		WIRE_CROSS_ENTROPY, WIRE_EMBEDDING, WIRE_DETACH,
		WIRE_SCATTER_REDUCE, WIRE_SCATTER, WIRE_INDEX_PUT,
		WIRE_PARAMETER, WIRE_FOLDED
	};

	for (size_t i = 0; i < sizeof note / sizeof *note; i++)
		if (memmem(text, n, note[i], strlen(note[i])))
			return true;
	return false;
}

static bool
walk_message(struct walker *w, enum message_type m, size_t at, size_t end,
             int depth)
{
	struct wire_field f;
	const char *fault;
	bool strip = m == M_TENSOR && single_payload(w, at, end);
	uint32_t seen = 0;

	if (depth > WIRE_DEPTH)
		return wire_fail(w, at, m,
		                 "messages are nested deeper than 100");
	if (++w->nmessage > WIRE_MESSAGES)
		return wire_fail(w, at, m, "more than 2 million messages");
	for (; at < end; at = f.end) {
		const struct field_rule *r;

		fault = wire_next(w->data, at, end, &f);
		if (fault)
			return wire_fail(w, at, m, fault);
		r = find_rule(m, f.number);
		if (!r) {
			w->wire->nunknown++;
			continue;
		}
		if (m == M_MODEL && f.number == 20)
			w->wire->training_info = true;
		if (r->kind == DROP || (r->kind == NOTE
		    && !is_note(w->data + f.body, f.end - f.body)))
			continue;
		if (!type_fits(r, f.type))
			return wire_fail(w, at, m,
			                 "a field has the wrong type");
		if (r->kind == ONCE && seen & 1u << f.number)
			return wire_fail(w, at, m,
			                 "a field that may occur once "
			                 "occurs twice");
		if (f.number < 32)
			seen |= 1u << f.number;
		if ((r->kind == NAME || r->kind == TEXT)
		    && !check_text(w, m, r, &f))
			return false;
		if (r->kind == DATA && strip) {
			append_token(w, &f);
		} else if (r->kind == MESSAGE || r->kind == ONCE
		           || r->kind == NOTE) {
			size_t start = open_message(w, f.number);

			if (!walk_message(w, (enum message_type)r->message,
			                  f.body, f.end, depth + 1))
				return false;
			patch_length(w, start);
		} else {
			append_bytes(w, w->data + f.at, f.end - f.at);
		}
	}
	return true;
}

bool
wire_strip(Arena *arena, Diag *diag, enum wire_root root,
           const unsigned char *data, size_t n, struct wire_summary *wire)
{
	struct walker w = { .arena = arena, .diag = diag, .data = data,
	                    .wire = wire };

	memset(wire, 0, sizeof *wire);
	wire->payload = arena_grow(arena, NULL, 0, &w.payload_cap, 64,
	                           sizeof *wire->payload);
	wire->npayload = 1;
	if (!walk_message(&w, root == WIRE_MODEL ? M_MODEL : M_TENSOR, 0, n, 0))
		return false;
	/* lengths were written in five bytes of seven bits, and protobuf-c
	 * counts in int */
	if (w.n > INT32_MAX)
		return diag_error(diag, "more than 2 GiB without weights");
	append_bytes(&w, "", 0);
	wire->skeleton = w.out;
	wire->n = w.n;
	return true;
}
