/* See onnx.h.  Nothing here depends on operators. */
#include "frontend/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ONNX stores little-endian numbers, and they are used in place"
#endif

/* External files: each is a mapping, and they are looked up one by one. */
enum { MAPS_MAX = 1 << 14 };

/* What protobuf-c may allocate for one skeleton. */
static const size_t unpack_limit = (size_t)1 << 30;

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
		if (dtype_info[dt].onnx == onnx)
			return (DType)dt;
	return DT_NONE;
}

/* ---- mappings ---- */

static bool
map_fd(struct onnx_file *f, int fd, const char *what, const char *location,
       struct onnx_map **out)
{
	struct onnx_map *m, **tail = &f->maps;
	struct stat st;
	void *p = NULL;

	if (fstat(fd, &st) < 0)
		return diag_error(f->diag, "%s: %s", what, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return diag_error(f->diag, "%s: not a regular file", what);
	if (*location && *location != '/' && st.st_nlink > 1)
		return diag_error(
			f->diag,
			"%s: the file has %ju hard links; external data is "
			"read only from a file of its own; copy it",
			what, (uintmax_t)st.st_nlink);
	if (st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
		         0);
		if (p == MAP_FAILED)
			return diag_error(f->diag, "%s: %s", what,
			                  strerror(errno));
	}
	m = arena_alloc(f->arena, sizeof *m);
	m->location = arena_str(f->arena, location);
	m->data = p;
	m->n = (size_t)st.st_size;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	while (*tail)
		tail = &(*tail)->next;
	*tail = m;
	*out = m;
	return true;
}

/* Open one component after the other so that no symbolic link, in whatever
 * place of the path, leads out of the model's folder. */
static int
open_beneath(struct onnx_file *f, const char *location)
{
	const char *slash = strrchr(f->path, '/');
	const char *dir =
		!slash ? "."
		: slash == f->path
			? "/"
			: arena_printf(f->arena, "%.*s", (int)(slash - f->path),
	                               f->path);
	char *rest = arena_str(f->arena, location), *name;
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	while (at >= 0 && (name = strsep(&rest, "/"))) {
		int flags = rest ? O_DIRECTORY : O_NONBLOCK;

		if (!*name)
			continue;
		fd = openat(at, name,
		            O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
		close(at);
		at = fd;
		if (!rest)
			return fd;
	}
	return at;
}

/* Why a location is not accepted, or NULL. */
static const char *
bad_location(const char *s)
{
	if (!*s)
		return "is empty";
	if (*s == '/')
		return "is an absolute path";
	if (strchr(s, '\\'))
		return "contains a backslash";
	if (s[strlen(s) - 1] == '/')
		return "is not a file";
	while (*s) {
		size_t n = strcspn(s, "/");

		if (n == 2 && s[0] == '.' && s[1] == '.')
			return "contains '..'";
		s += n + (s[n] == '/');
	}
	return NULL;
}

static bool
is_there(struct onnx_file *f, const char *location)
{
	int fd = open_beneath(f, location);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool
external_map(struct onnx_file *f, const char *location, const char *tensor,
             struct onnx_map **out)
{
	const char *why = bad_location(location);
	struct onnx_map *m;
	int fd;
	bool ok;

	if (why)
		return diag_error(f->diag,
		                  "tensor '%s': external data location '%s' %s",
		                  tensor, location, why);
	for (m = f->maps->next; m; m = m->next)
		if (strcmp(m->location, location) == 0) {
			*out = m;
			return !m->missing;     /* said once */
		}
	if (++f->nmap > MAPS_MAX)
		return diag_error(f->diag, "tensor '%s': external data in more "
		                  "than %d files", tensor, MAPS_MAX);
	fd = open_beneath(f, location);
	if (fd < 0) {
		int e = errno;
		const char *slash = strrchr(f->path, '/');
		int n = slash ? (int)(slash - f->path) : 1;

		for (m = f->maps; m->next; m = m->next)
			;
		m->next = arena_alloc(f->arena, sizeof *m);
		m->next->location = location;
		m->next->missing = true;
		return diag_error(
			f->diag,
			"tensor '%s': external data file '%s' cannot be "
			"opened: %s; put it beside the model, in '%.*s', or "
			"plan from shapes with --plan-only",
			tensor, location,
			e == ELOOP ? "symbolic links are not followed"
				   : strerror(e),
			n, slash ? f->path : ".");
	}
	ok = map_fd(f, fd, arena_printf(f->arena, "tensor '%s': external data "
	                                "'%s'", tensor, location), location,
	            out);
	close(fd);
	return ok;
}

/* ---- contents of tensors ---- */

static bool
parse_size(const char *s, uint64_t *x)
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
			ok = parse_size(value, &offset);
		else if (strcmp(key, "length") == 0)
			ok = parse_size(value, &length);
		else if (strcmp(key, "checksum") != 0)
			return diag_error(f->diag,
			                  "tensor '%s': external data key '%s' "
			                  "is not supported",
			                  t->name, key);
		if (!ok)
			return diag_error(f->diag,
			                  "tensor '%s': external data %s '%s' "
			                  "is not a number of bytes",
			                  t->name, key, value);
	}
	if (!location)
		return diag_error(f->diag,
		                  "tensor '%s': external data without a "
		                  "location",
		                  t->name);
	if (length != (uint64_t)t->nbytes)
		return diag_error(f->diag, "tensor '%s': external data has %ju "
		                  "bytes, its shape needs %jd", t->name,
		                  (uintmax_t)length, (intmax_t)t->nbytes);
	if (f->no_weights)
		return true;
	if (!external_map(f, location, t->name, &m))
		return false;
	if (offset > m->n || length > m->n - offset)
		return diag_error(f->diag,
		                  "tensor '%s': external data '%s' ends at "
		                  "byte %zu, the tensor lies at %ju and has "
		                  "%ju bytes; is the file whole?",
		                  t->name, location, m->n, (uintmax_t)offset,
		                  (uintmax_t)length);
	t->data = m->data + offset;
	return true;
}

static bool
wrong_count(struct onnx_file *f, const struct onnx_tensor *t, size_t found)
{
	return diag_error(f->diag,
	                  "tensor '%s': %zu elements stored, its shape needs "
	                  "%jd",
	                  t->name, found, (intmax_t)t->nelem);
}

/* Store x as element i; int32_data holds narrow integers by value and 16-bit
 * floats as bit patterns. */
static bool
store_int(struct onnx_tensor *t, unsigned char *out, int64_t i, uint64_t x)
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

	/* at least one byte per element: the shape cannot ask for much more
	 * memory than the file is long */
	for (int64_t i = 0; i < t->nelem; i++) {
		uint64_t x;
		int len = wire_varint(data, at, n, &x);

		if (len == 0)
			return wrong_count(f, t, (size_t)i);
		at += (size_t)len;
		if (!store_int(t, out, i, x))
			return diag_error(f->diag,
			                  "tensor '%s': element %jd is out of "
			                  "range for %s",
			                  t->name, (intmax_t)i,
			                  dtype_info[t->dt].text);
	}
	if (at != n)
		return diag_error(f->diag, "tensor '%s': more elements stored "
		                  "than its shape %jd needs", t->name,
		                  (intmax_t)t->nelem);
	t->data = out;
	return true;
}

/* The field in which a type may be stored other than raw_data. */
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
		return diag_error(f->diag,
		                  "tensor '%s': %s elements are stored in the "
		                  "field of another type",
		                  t->name, dtype_info[t->dt].text);
	switch (p->field) {
	case WIRE_RAW:
	case WIRE_FLOATS:
	case WIRE_DOUBLES:
		if (p->n != (size_t)t->nbytes)
			return diag_error(f->diag,
			                  "tensor '%s': %zu bytes stored, its "
			                  "shape needs %jd",
			                  t->name, p->n, (intmax_t)t->nbytes);
		t->data = data;
		return true;
	default:
		if (p->n < (size_t)t->nelem)
			return wrong_count(f, t, p->n);
		return load_varints(f, data, p->n, t);
	}
}

/* Contents in several pieces, which protobuf-c has put together. */
static bool
load_pieces(struct onnx_file *f, const Onnx__TensorProto *p,
            struct onnx_tensor *t)
{
	size_t n = (size_t)t->nelem, found = 0;
	unsigned char *out;

	if (p->has_raw_data) {
		if (p->raw_data.len != (size_t)t->nbytes)
			return diag_error(f->diag,
			                  "tensor '%s': %zu bytes stored, its "
			                  "shape needs %jd",
			                  t->name, p->raw_data.len,
			                  (intmax_t)t->nbytes);
		t->data = p->raw_data.data;
		return true;
	}
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
		return wrong_count(f, t, found);
	if (t->data || n == 0)
		return true;
	out = arena_alloc(f->arena, (size_t)t->nbytes + 1);
	t->data = out;
	for (size_t i = 0; i < n; i++)
		if (!store_int(t, out, (int64_t)i, p->n_uint64_data
		               ? p->uint64_data[i]
		               : (uint64_t)(int64_t)p->int32_data[i]))
			return diag_error(f->diag,
			                  "tensor '%s': element %zu is out of "
			                  "range for %s",
			                  t->name, i, dtype_info[t->dt].text);
	return true;
}

/* True bytes are 1 from here on. */
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
find_payload(const struct wire *w, const Onnx__TensorProto *p)
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
onnx_tensor_info(struct onnx_file *f, const Onnx__TensorProto *p,
                 struct onnx_tensor *t)
{
	*t = (struct onnx_tensor){ .name = p->name ? p->name : "" };
	t->dt = onnx_dtype(p->data_type);
	if (t->dt == DT_NONE)
		return diag_error(f->diag,
		                  "tensor '%s': element type %s is not "
		                  "supported",
		                  t->name, onnx_dtype_name(p->data_type));
	if (p->n_dims > MAX_RANK)
		return diag_error(f->diag,
		                  "tensor '%s': rank %zu is not supported, %d "
		                  "is the most",
		                  t->name, p->n_dims, MAX_RANK);
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
		return diag_error(f->diag,
		                  "tensor '%s': its shape has too many "
		                  "elements",
		                  t->name);
	t->external = p->has_data_location && p->data_location
		== ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	return true;
}

static bool
load_from(struct onnx_file *f, const struct wire *w,
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
	return load_from(f, &f->wire, f->maps->data, p, t);
}

bool
onnx_tensor_load_const(struct onnx_file *f, const Onnx__TensorProto *p,
                       struct onnx_tensor *t)
{
	enum { SMALL = 64 << 10 };
	const char *location = NULL;
	bool ok;

	if (!onnx_tensor_load(f, p, t))
		return false;
	if (t->data || !t->external || t->nbytes > SMALL)
		return true;
	for (size_t i = 0; i < p->n_external_data; i++)
		if (p->external_data[i]->key && p->external_data[i]->value
		    && strcmp(p->external_data[i]->key, "location") == 0)
			location = p->external_data[i]->value;
	if (!location || bad_location(location) || !is_there(f, location))
		return true;
	f->no_weights = false;
	ok = onnx_tensor_load(f, p, t);
	f->no_weights = true;
	return ok;
}

/* ---- unpacking ---- */

struct capped {
	Arena *arena;
	size_t left;
};

static void *
capped_alloc(void *data, size_t n)
{
	struct capped *c = data;

	if (n > c->left)
		return NULL;
	c->left -= n;
	return arena_alloc(c->arena, n ? n : 1);
}

static void
capped_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

static void *
unpack(struct onnx_file *f, const ProtobufCMessageDescriptor *type,
       const struct wire *w)
{
	struct capped cap = { f->arena, unpack_limit };
	ProtobufCAllocator a = { capped_alloc, capped_free, &cap };
	void *m = protobuf_c_message_unpack(type, &a, w->n, w->skeleton);

	if (!m)
		diag_error(f->diag, cap.left < ((size_t)1 << 20)
		           ? "too large: more than 1 GiB without weights"
		           : "not a valid ONNX file");
	return m;
}

struct onnx_file *
onnx_open(const char *path, bool no_weights, Diag *diag)
{
	Arena *arena = arena_new(), *scratch = arena_new();
	struct onnx_file *f = arena_alloc(arena, sizeof *f);
	struct onnx_map *m;
	int fd;
	bool ok = false;

	f->arena = arena;
	f->diag = diag;
	f->path = arena_str(arena, path);
	f->no_weights = no_weights;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		diag_error(diag, "cannot be opened: %s", strerror(errno));
	} else {
		ok = map_fd(f, fd, "the model", "", &m);
		close(fd);
	}
	if (ok && m->n == 0)
		ok = diag_error(diag, "the file is empty");
	ok = ok && wire_strip(scratch, diag, WIRE_MODEL, m->data, m->n,
	                      &f->wire);
	if (ok) {
		f->wire.payload = arena_copy(arena, f->wire.payload,
		                             f->wire.npayload
		                             * sizeof *f->wire.payload);
		f->model = unpack(f, &onnx__model_proto__descriptor, &f->wire);
		f->wire.skeleton = NULL;
		ok = f->model != NULL;
	}
	if (ok && !f->model->graph)
		ok = diag_error(diag, "not an ONNX model: there is no graph in "
		                "it");
	arena_free(scratch);
	if (ok)
		return f;
	onnx_close(f);
	return NULL;
}

bool
onnx_reads(const struct onnx_file *f, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	for (const struct onnx_map *m = f->maps; m; m = m->next)
		if (m->dev == st.st_dev && m->ino == st.st_ino)
			return true;
	return false;
}

void
onnx_close(struct onnx_file *f)
{
	if (!f)
		return;
	for (struct onnx_map *m = f->maps; m; m = m->next)
		if (m->data)
			munmap((void *)(uintptr_t)m->data, m->n);
	arena_free(f->arena);
}

/* ---- --const files ---- */

/* The header of an .npy file is a Python dictionary; NULL if key is not in
 * it, else the text after the colon. */
static const char *
npy_key(const char *header, const char *key)
{
	const char *s = strstr(header, key);

	if (!s || !(s = strchr(s, ':')))
		return NULL;
	return s + 1 + strspn(s + 1, " ");
}

static bool
load_npy(struct onnx_file *f, const unsigned char *p, size_t n,
         struct onnx_tensor *t)
{
	static const struct { const char *text; DType dt; } types[] = {
		{ "'<f4'", DT_F32 }, { "'<f8'", DT_F64 }, { "'<f2'", DT_F16 },
		{ "'<i8'", DT_I64 }, { "'<i4'", DT_I32 }, { "'<i2'", DT_I16 },
		{ "'|i1'", DT_I8 }, { "'<u8'", DT_U64 }, { "'<u4'", DT_U32 },
		{ "'<u2'", DT_U16 }, { "'|u1'", DT_U8 }, { "'|b1'", DT_BOOL },
	};
	size_t head, start = n >= 12 && p[6] >= 2 ? 12 : 10;
	const char *text, *s;

	if (n < 12)
		return diag_error(f->diag, "not a whole .npy file");
	head = p[6] >= 2 ? (size_t)p[8] | (size_t)p[9] << 8
		| (size_t)p[10] << 16 | (size_t)p[11] << 24
		: (size_t)p[8] | (size_t)p[9] << 8;
	if (head > n - start || head > 65536)
		return diag_error(f->diag, "not a whole .npy file");
	text = arena_printf(f->arena, "%.*s", (int)head,
	                    (const char *)p + start);
	s = npy_key(text, "'descr'");
	for (size_t i = 0; s && i < sizeof types / sizeof *types; i++)
		if (strncmp(s, types[i].text, 5) == 0)
			t->dt = types[i].dt;
	if (t->dt == DT_NONE)
		return diag_error(f->diag, ".npy file has an element type that "
		                  "is not supported");
	s = npy_key(text, "'fortran_order'");
	if (!s || strncmp(s, "False", 5) != 0)
		return diag_error(f->diag, ".npy file is in Fortran order");
	s = npy_key(text, "'shape'");
	if (!s || *s++ != '(')
		return diag_error(f->diag, ".npy file without a shape");
	t->nelem = 1;
	while (*s >= '0' && *s <= '9') {
		int64_t d = 0;

		for (; *s >= '0' && *s <= '9'; s++)
			if (!mul_ok(d, 10, &d) || !add_ok(d, *s - '0', &d))
				return diag_error(f->diag, "extent too large");
		if (t->shape.rank == MAX_RANK
		    || !mul_ok(t->nelem, d, &t->nelem))
			return diag_error(f->diag, "shape too large");
		t->shape.dim[t->shape.rank++] = d;
		s += strspn(s, ", ");
	}
	if (!mul_ok(t->nelem, dtype_info[t->dt].nbytes, &t->nbytes)
	    || (uint64_t)t->nbytes != n - start - head)
		return diag_error(f->diag, ".npy file has %zu bytes of data, "
		                  "its shape needs %jd", n - start - head,
		                  (intmax_t)t->nbytes);
	t->data = p + start + head;
	return true;
}

static bool
load_const(struct onnx_file *f, const unsigned char *p, size_t n,
           struct onnx_tensor *t)
{
	struct wire w;
	Onnx__TensorProto *proto;

	if (n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0)
		return load_npy(f, p, n, t);
	if (!wire_strip(f->arena, f->diag, WIRE_TENSOR, p, n, &w))
		return false;
	proto = unpack(f, &onnx__tensor_proto__descriptor, &w);
	if (!proto || !load_from(f, &w, p, proto, t))
		return false;
	if (t->external)
		return diag_error(f->diag, "external data is not read from a "
		                  "--const file");
	return true;
}

bool
onnx_const_file(struct onnx_file *f, const char *path, struct onnx_tensor *t)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct onnx_map *m = NULL;
	bool ok = false;

	*t = (struct onnx_tensor){ .name = path };
	diag_file(f->diag, path);
	if (fd < 0) {
		diag_error(f->diag, "cannot be opened: %s", strerror(errno));
	} else {
		/* a location that no external data can have, and not "" */
		ok = map_fd(f, fd, "the file", "/", &m);
		close(fd);
	}
	ok = ok && load_const(f, m->data, m->n, t);
	diag_file(f->diag, f->path);
	return ok;
}
