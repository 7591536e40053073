/* Tensors of ONNX files: element types, shapes, contents.
 *
 * Contents that the file stores in the compiler's format are used in place;
 * others are converted once.
 */
#include "frontend/onnx/onnx_file.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ONNX stores little-endian numbers, and they are used in place"
#endif

/* ---- element types ---- */

static const char *const type_name[] = {
	"undefined", "float", "uint8", "int8", "uint16", "int16", "int32",
	"int64", "string", "bool", "float16", "double", "uint32", "uint64",
	"complex64", "complex128", "bfloat16", "float8e4m3fn",
	"float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",
	"float4e2m1", "float8e8m0", "uint2", "int2"
};

const char *
onnx_dtype_name(int onnx)
{
	if (onnx < 0 || onnx >= (int)(sizeof type_name / sizeof *type_name))
		return "unknown";
	return type_name[onnx];
}

DType
onnx_dtype(int onnx)
{
	for (int dt = DT_NONE + 1; dt < DT_COUNT; dt++)
		if (dtype_info[dt].onnx == onnx && onnx > 0)
			return (DType)dt;
	return DT_NONE;
}

/* ---- shapes ---- */

bool
onnx_tensor_info(struct onnx_file *f, const Onnx__TensorProto *p,
                 struct onnx_tensor *t)
{
	*t = (struct onnx_tensor){ .name = p->name ? p->name : "" };
	t->dt = onnx_dtype(p->data_type);
	if (t->dt == DT_NONE)
		return diag_error(f->diag, "tensor '%s': dtype %s is not "
		                  "supported", t->name,
		                  onnx_dtype_name(p->data_type));
	if (p->n_dims > MAX_RANK)
		return diag_error(f->diag, "tensor '%s': rank %zu is not "
		                  "supported: expected at most %d", t->name,
		                  p->n_dims, MAX_RANK);
	t->shape.rank = (int)p->n_dims;
	t->nelem = 1;
	for (size_t i = 0; i < p->n_dims; i++) {
		if (p->dims[i] < 0)
			return diag_error(f->diag, "tensor '%s': extent %jd is "
			                  "negative", t->name,
			                  (intmax_t)p->dims[i]);
		t->shape.dim[i] = p->dims[i];
		if (!mul_ok(t->nelem, p->dims[i], &t->nelem))
			t->nelem = INT64_MAX;
	}
	/* 2^62 bytes is what shape_nelem and friends can count */
	if (!mul_ok(t->nelem, dtype_info[t->dt].nbytes, &t->nbytes)
	    || t->nbytes > (int64_t)1 << 62)
		return diag_error(f->diag, "tensor '%s': the shape has too "
		                  "many elements", t->name);
	t->external = p->has_data_location && p->data_location
		== ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	return true;
}

int64_t
onnx_tensor_bytes(const Onnx__TensorProto *p, int64_t *nelem)
{
	DType dt = onnx_dtype(p->data_type);
	int64_t n = 1, nbytes;

	for (size_t i = 0; i < p->n_dims; i++)
		if (p->dims[i] < 0 || !mul_ok(n, p->dims[i], &n))
			return 0;
	*nelem = n;
	return mul_ok(n, dtype_info[dt].nbytes, &nbytes) ? nbytes : 0;
}

/* ---- contents ---- */

static bool
parse_decimal(const char *s, uint64_t *x)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9'
		    || __builtin_mul_overflow(v, 10, &v)
		    || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	}
	*x = v;
	return true;
}

static bool
load_external(struct onnx_file *f, const Onnx__TensorProto *p,
              struct onnx_tensor *t)
{
	const char *location = NULL;
	uint64_t offset = 0, length = (uint64_t)t->nbytes;
	struct onnx_map *m;

	for (size_t i = 0; i < p->n_external_data; i++) {
		const char *key = p->external_data[i]->key;
		const char *value = p->external_data[i]->value;
		bool ok = true;

		key = key ? key : "";
		value = value ? value : "";
		if (strcmp(key, "location") == 0)
			location = value;
		else if (strcmp(key, "offset") == 0)
			ok = parse_decimal(value, &offset);
		else if (strcmp(key, "length") == 0)
			ok = parse_decimal(value, &length);
		else if (strcmp(key, "checksum") != 0)
			return diag_error(f->diag, "tensor '%s': external data "
			                  "key '%s' is not supported", t->name,
			                  key);
		if (!ok)
			return diag_error(f->diag, "tensor '%s': external data "
			                  "%s '%s' is not a number of bytes",
			                  t->name, key, value);
	}
	if (!location)
		return diag_error(f->diag, "tensor '%s': external data without "
		                  "a location", t->name);
	if (length == 0)                /* some writers leave it to the shape */
		length = (uint64_t)t->nbytes;
	if (length != (uint64_t)t->nbytes)
		return diag_error(f->diag, "tensor '%s': external data has %ju "
		                  "bytes, but the shape needs %jd", t->name,
		                  (uintmax_t)length, (intmax_t)t->nbytes);
	if (!onnx_map_external(f, location, t->name, &m))
		return f->shapes_do;
	if (offset > m->n || length > m->n - offset)
		return onnx_map_lacks(f, "tensor '%s': external data '%s' ends "
		                      "at byte %zu, but the tensor starts at "
		                      "byte %ju and has %ju bytes; is the file "
		                      "truncated?", t->name, location, m->n,
		                      (uintmax_t)offset, (uintmax_t)length)
			|| f->shapes_do;
	t->data = m->data + offset;
	return true;
}

static bool
wrong_element_count(struct onnx_file *f, const struct onnx_tensor *t,
                    size_t found)
{
	return diag_error(f->diag, "tensor '%s': %zu elements stored, but the "
	                  "shape needs %jd", t->name, found,
	                  (intmax_t)t->nelem);
}

/* Contents that the file stores as the compiler does. */
static bool
use_bytes(struct onnx_file *f, struct onnx_tensor *t, const void *data,
          size_t n)
{
	if (n != (size_t)t->nbytes)
		return diag_error(f->diag, "tensor '%s': %zu bytes stored, but "
		                  "the shape needs %jd", t->name, n,
		                  (intmax_t)t->nbytes);
	t->data = data;
	return true;
}

static bool
out_of_range(struct onnx_file *f, const struct onnx_tensor *t, int64_t i)
{
	return diag_error(f->diag, "tensor '%s': element %jd is out of range "
	                  "for %s", t->name, (intmax_t)i,
	                  dtype_info[t->dt].text);
}

/* Store x as element i; int32_data holds narrow integers by value and 16-bit
 * floats as bit patterns. */
static bool
store_integer(struct onnx_tensor *t, unsigned char *out, int64_t i, uint64_t x)
{
	int size = dtype_info[t->dt].nbytes;
	int64_t v = (int64_t)x;

	if (dtype_info[t->dt].cls == 'b')
		x = x != 0;
	else if (dtype_info[t->dt].cls == 'i' && size < 8) {
		int64_t top = (int64_t)1 << (8 * size - 1);

		if (v < -top || v >= top)
			return false;
	} else if (size < 8) {
		/* a uint32 or a bit pattern may arrive sign-extended */
		if (v < 0)
			x &= 0xffffffff;
		if (x >> (8 * size))
			return false;
	}
	memcpy(out + i * size, &x, (size_t)size);
	return true;
}

static bool
load_varints(struct onnx_file *f, const unsigned char *data, size_t n,
             struct onnx_tensor *t)
{
	unsigned char *out = arena_alloc(f->arena, (size_t)t->nbytes + 1);
	size_t at = 0;

	/* at least one byte per element: the file's length bounds the
	 * memory that a shape can request */
	for (int64_t i = 0; i < t->nelem; i++) {
		uint64_t x;
		int len = wire_varint(data, at, n, &x);

		if (len == 0)
			return wrong_element_count(f, t, (size_t)i);
		at += (size_t)len;
		if (!store_integer(t, out, i, x))
			return out_of_range(f, t, i);
	}
	if (at != n)
		return diag_error(f->diag, "tensor '%s': more elements stored "
		                  "than the %jd of the shape", t->name,
		                  (intmax_t)t->nelem);
	t->data = out;
	return true;
}

/* The field beside raw_data that may hold elements of a type. */
static int
typed_field(DType dt)
{
	switch (dt) {
	case DT_F32:
		return WIRE_FLOATS;
	case DT_F64:
		return WIRE_DOUBLES;
	case DT_I64:
		return WIRE_INT64S;
	case DT_U32:
	case DT_U64:
		return WIRE_UINT64S;
	default:
		return WIRE_INT32S;
	}
}

static bool
load_payload(struct onnx_file *f, const struct wire_payload *p,
             const unsigned char *file, struct onnx_tensor *t)
{
	const unsigned char *data = file + p->at;

	if (p->field != WIRE_RAW && p->field != typed_field(t->dt))
		return diag_error(f->diag, "tensor '%s': %s elements are "
		                  "stored in the field of another type",
		                  t->name, dtype_info[t->dt].text);
	switch (p->field) {
	case WIRE_RAW:
	case WIRE_FLOATS:
	case WIRE_DOUBLES:
		return use_bytes(f, t, data, p->n);
	default:
		if (p->n < (size_t)t->nelem)
			return wrong_element_count(f, t, p->n);
		return load_varints(f, data, p->n, t);
	}
}

/* Contents that were in several pieces, which protobuf-c joined. */
static bool
load_pieces(struct onnx_file *f, const Onnx__TensorProto *p,
            struct onnx_tensor *t)
{
	size_t n = (size_t)t->nelem, found = 0;
	unsigned char *out;

	if (p->has_raw_data)
		return use_bytes(f, t, p->raw_data.data, p->raw_data.len);
	switch (typed_field(t->dt)) {
	case WIRE_FLOATS:
		t->data = p->float_data;
		found = p->n_float_data;
		break;
	case WIRE_DOUBLES:
		t->data = p->double_data;
		found = p->n_double_data;
		break;
	case WIRE_INT64S:
		t->data = p->int64_data;
		found = p->n_int64_data;
		break;
	case WIRE_UINT64S:
		found = p->n_uint64_data;
		break;
	default:
		found = p->n_int32_data;
	}
	if (found != n)
		return wrong_element_count(f, t, found);
	if (t->data || n == 0)
		return true;
	out = arena_alloc(f->arena, (size_t)t->nbytes + 1);
	t->data = out;
	for (size_t i = 0; i < n; i++)
		if (!store_integer(t, out, (int64_t)i, p->n_uint64_data
		                   ? p->uint64_data[i]
		                   : (uint64_t)(int64_t)p->int32_data[i]))
			return out_of_range(f, t, (int64_t)i);
	return true;
}

/* Normalise bool bytes to 0 and 1. */
static void
clean_bools(struct onnx_file *f, struct onnx_tensor *t)
{
	const unsigned char *in = t->data;
	unsigned char *out = NULL;

	for (int64_t i = 0; i < t->nelem; i++) {
		if (in[i] > 1 && !out)
			out = arena_copy(f->arena, in, (size_t)t->nelem);
		if (in[i] > 1)
			out[i] = 1;
	}
	if (out)
		t->data = out;
}

static const struct wire_payload *
find_payload(const struct wire_summary *w, const Onnx__TensorProto *p)
{
	for (unsigned i = 0; i < p->base.n_unknown_fields; i++) {
		const ProtobufCMessageUnknownField *u =
			&p->base.unknown_fields[i];
		uint32_t id = 0;

		if (u->tag != WIRE_TOKEN || u->len != sizeof id)
			continue;
		memcpy(&id, u->data, sizeof id);
		if (id > 0 && id < w->npayload)
			return &w->payload[id];
	}
	return NULL;
}

bool
onnx_tensor_load_from(struct onnx_file *f, const struct wire_summary *w,
                      const unsigned char *file, const Onnx__TensorProto *p,
                      struct onnx_tensor *t)
{
	const struct wire_payload *pay = find_payload(w, p);
	bool ok;

	if (!onnx_tensor_info(f, p, t))
		return false;
	if (p->n_string_data)
		return diag_error(f->diag, "tensor '%s': strings are not "
		                  "supported", t->name);
	if (t->external)
		ok = load_external(f, p, t);
	else if (pay)
		ok = load_payload(f, pay, file, t);
	else
		ok = load_pieces(f, p, t);
	if (ok && t->data && t->dt == DT_BOOL)
		clean_bools(f, t);
	if (ok && !t->data && t->nelem == 0)
		t->data = "";
	return ok;
}

bool
onnx_tensor_load(struct onnx_file *f, const Onnx__TensorProto *p,
                 struct onnx_tensor *t)
{
	return onnx_tensor_load_from(f, &f->wire, f->maps->data, p, t);
}
