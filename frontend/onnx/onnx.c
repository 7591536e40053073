/* Open ONNX files and unpack all but the contents of tensors. */
#include "frontend/onnx/onnx_file.h"

#include <string.h>

#include "runtime/support/st_head.h"

/* Bytes that protobuf-c may allocate for one skeleton. */
static const size_t unpack_limit = (size_t)1 << 30;

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

void *
onnx_unpack(struct onnx_file *f, const ProtobufCMessageDescriptor *type,
            const struct wire_summary *w)
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

/* First bytes of other file formats, with which no ONNX file begins. */
static const struct {
	const char *what, *bytes;
	size_t n;
} others[] = {
	{ "a PyTorch file, or another zip archive", "PK\3\4", 4 },
	{ "a pickle file, as torch.save writes", "\x80\2", 2 },
	{ "an HDF5 file, as Keras writes", "\x89HDF", 4 },
	{ "a GGUF file: weights without a graph", "GGUF", 4 },
	{ "a library or a program", "\x7f" "ELF", 4 },
};

/* Name of another file format; NULL: the file may be ONNX. */
static const char *
other_kind(const struct onnx_map *m)
{
	if (m->n >= ST_HEAD_BEGINS && st_head_begins(m->data))
		return "a safetensors file: weights without a graph";
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (m->n >= others[i].n
		    && !memcmp(m->data, others[i].bytes, others[i].n))
			return others[i].what;
	return NULL;
}

static bool
check_kind(struct onnx_file *f, const struct onnx_map *m)
{
	const char *what = other_kind(m);

	return !what || diag_error(f->diag, "not an ONNX file but %s; export "
	                           "the module: torch.onnx.export(module, "
	                           "inputs, \"model.onnx\")", what);
}

struct onnx_file *
onnx_open(const char *path, bool shapes_do, Diag *diag)
{
	Arena *arena = arena_new(), *scratch = arena_new();
	struct onnx_file *f = arena_alloc(arena, sizeof *f);
	struct onnx_map *m;
	bool ok;

	f->arena = arena;
	f->diag = diag;
	f->path = arena_str(arena, path);
	f->shapes_do = shapes_do;
	ok = onnx_map_path(f, path, "the model", &m);
	if (ok && m->n == 0)
		ok = diag_error(diag, "the file is empty");
	ok = ok && check_kind(f, m)
		&& wire_strip(scratch, diag, WIRE_MODEL, m->data, m->n,
		              &f->wire);
	if (ok) {
		f->wire.payload = arena_copy(arena, f->wire.payload,
		                             f->wire.npayload
		                             * sizeof *f->wire.payload);
		f->model = onnx_unpack(f, &onnx__model_proto__descriptor,
		                       &f->wire);
		f->wire.skeleton = NULL;
		ok = f->model != NULL;
	}
	if (ok && !f->model->graph)
		ok = diag_error(diag, "not an ONNX model: the file has no "
		                "graph");
	arena_free(scratch);
	if (ok)
		return f;
	onnx_close(f);
	return NULL;
}

void
onnx_close(struct onnx_file *f)
{
	if (!f)
		return;
	onnx_unmap(f);
	arena_free(f->arena);
}
