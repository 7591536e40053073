/* MODEL.safetensors: parameters and buffers, straight from where they lie. */
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "ir/outfile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 8 };

/* How the header of our files begins, after its length. */
#define MARK "{\"__metadata__\":{\"ckc\":\"" CKC_VERSION "\"}"

enum { MARK_SHARED = sizeof "{\"__metadata__\":{\"ckc\":" - 1 };

static bool
is_weight(const Val *v)
{
	return v->kind == V_PARAM || v->kind == V_BUFFER;
}

static void
json_string(struct out *o, const char *s)
{
	out_put(o, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			out_put(o, "\\%c", c);
		else if (c < ' ')
			out_put(o, "\\u%04x", c);
		else
			out_bytes(o, s, 1);
	}
	out_put(o, "\"");
}

/* The header, padded so that the data begin aligned. */
static bool
header(struct out *o, const Graph *g, Diag *d)
{
	int64_t at = 0, end;
	const char *separator = "";

	out_put(o, MARK);
	separator = ",";
	FOR_VALS (v, g) {
		if (!is_weight(v))
			continue;
		if (!v->data)
			return diag_error(d, "parameter '%s' has no contents",
			                  v->name);
		if (!diag_is_utf8(v->name, strlen(v->name)))
			return diag_error(d, "the name of parameter '%s' is "
			                  "not UTF-8, which a safetensors file "
			                  "demands", v->name);
		if (!add_ok(at, val_data_bytes(v), &end))
			return diag_error(d, "the weights are too large");
		out_put(o, "%s", separator);
		json_string(o, v->name);
		out_put(o, ":{\"dtype\":\"%s\",\"shape\":[",
		        dtype_info[v->dt].st);
		for (int i = 0; i < v->shape.rank; i++)
			out_put(o, "%s%" PRId64, i ? "," : "",
			        v->shape.dim[i]);
		out_put(o, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at,
		        end);
		at = end;
	}
	out_put(o, "}");
	while (o->n % ALIGN)
		out_put(o, " ");
	return true;
}

static bool
write_file(FILE *f, const struct out *head, const Graph *g)
{
	unsigned char size[8];

	for (int i = 0; i < 8; i++)
		size[i] = (unsigned char)((uint64_t)head->n >> 8 * i);
	if (fwrite(size, 1, 8, f) != 8 ||
	    fwrite(head->s, 1, head->n, f) != head->n)
		return false;
	FOR_VALS (v, g) {
		size_t n = is_weight(v) ? (size_t)val_data_bytes(v) : 0;

		if (n && fwrite(v->data, 1, n, f) != n)
			return false;
	}
	return fflush(f) == 0 && fsync(fileno(f)) == 0;
}

bool
codegen_weights(const Graph *g, const char *path, Diag *d)
{
	Arena *a = arena_new();
	struct out head = { .arena = a };
	struct outfile o;
	bool ok = header(&head, g, d) && outfile_open(&o, path, a, d);

	if (ok) {
		ok = write_file(o.f, &head, g);
		if (!ok)
			diag_error(d, "cannot write '%s': %s", path,
			           strerror(errno));
		ok = outfile_close(&o, ok);
	}
	arena_free(a);
	return ok;
}

bool
codegen_may_replace(const char *path)
{
	char head[8 + MARK_SHARED];
	FILE *f = fopen(path, "rb");
	bool ours;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR;
	ours = fread(head, 1, sizeof head, f) == sizeof head
		&& memcmp(head + 8, MARK, MARK_SHARED) == 0;
	fclose(f);
	return ours;
}
