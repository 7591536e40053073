/* Write MODEL.safetensors: parameters and buffers, without copying them. */
#include "codegen/codegen.h"
#include "codegen/tables.h"
#include "ir/base/outfile.h"
#include "ir/placement.h"
#include "runtime/support/json.h"
#include "runtime/support/st_head.h"
#include "runtime/support/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 8 };

/* How the header of our files begins, after its length. */
#define METADATA "{\"__metadata__\":"
#define MARK METADATA "{\"ckc\":"

enum { ORIGIN_MAX = 1 << 16 };          /* bytes of metadata that are read */

static bool
is_saved_weight(const Val *v)
{
	return v->kind == V_PARAM || v->kind == V_BUFFER;
}

/* Files hold whole values, and blocks of quantised weights byte by byte. */
static Val
unsharded_val(const Val *v)
{
	Val w = *v;

	w.shape = val_whole(v);
	if (val_is_blocks(v)) {
		w.dt = DT_U8;
		w.shape.dim[w.shape.rank - 1] *= dtype_info[v->dt].nbytes;
	}
	return w;
}

bool
weights_check(const Graph *g, Diag *d)
{
	int64_t sum = 0;

	FOR_VALS (v, g) {
		Val w = unsharded_val(v);

		if (!is_saved_weight(v))
			continue;
		if (!v->data)
			return diag_error(d, "parameter '%s' has no contents",
			                  v->name);
		if (!utf8_is(v->name, strlen(v->name)))
			return diag_error(d, "the name of parameter '%s' is "
			                  "not UTF-8, which safetensors "
			                  "requires", v->name);
		if (!add_ok(sum, val_data_bytes(&w), &sum))
			return diag_error(d, "the weights are too large");
	}
	return true;
}

static void
put_origin(FILE *f, const struct codegen_origin *from)
{
	fputs(MARK "\"" CKC_VERSION "\"", f);
	if (from->model)
		fputs(",\"model\":", f), utf8_json(f, from->model);
	if (from->options)
		fputs(",\"options\":", f), utf8_json(f, from->options);
	putc('}', f);
}

/* The entries of the header. */
static void
put_weight_entries(FILE *f, const Graph *g, const struct codegen_origin *from)
{
	int64_t at = 0, end;

	put_origin(f, from);
	FOR_VALS (v, g) {
		Val w = unsharded_val(v);

		if (!is_saved_weight(v))
			continue;
		end = at + val_data_bytes(&w);
		st_head_tensor(f, v->name, dtype_info[w.dt].st,
		               w.shape.rank, w.shape.dim, (uint64_t)at,
		               (uint64_t)end);
		at = end;
	}
}

/* The header, padded so that the data begin aligned; the caller frees *text,
 * also after a diagnostic. */
static bool
make_weights_header(const Graph *g, const struct codegen_origin *from,
                    char **text, size_t *n, Diag *d)
{
	FILE *f = st_head_open(text, n);

	if (!f) {
		*text = NULL;
		return diag_error(d, "cannot build the header of the weights "
		                  "file: %s",
		                  strerror(errno));
	}
	put_weight_entries(f, g, from);
	return st_head_close(f, n, ALIGN)
		|| diag_error(d, "cannot build the header of the weights file: "
		              "%s", strerror(errno));
}

static bool
write_weights(FILE *f, const char *head, size_t nhead, const Graph *g)
{
	unsigned char size[8];

	st_head_length(size, nhead);
	if (fwrite(size, 1, 8, f) != 8 || fwrite(head, 1, nhead, f) != nhead)
		return false;
	FOR_VALS (v, g) {
		Val w = unsharded_val(v);
		size_t n = is_saved_weight(v) ? (size_t)val_data_bytes(&w) : 0;

		if (n && fwrite(v->data, 1, n, f) != n)
			return false;
	}
	return fflush(f) == 0 && fsync(fileno(f)) == 0;
}

bool
codegen_weights(const Graph *g, const struct codegen_origin *from,
                const char *path, Diag *d)
{
	char *head = NULL;
	size_t n;
	struct outfile o;
	bool ok = weights_check(g, d)
		&& make_weights_header(g, from, &head, &n, d)
		&& outfile_open(&o, path, d);

	if (ok) {
		ok = write_weights(o.f, head, n, g);
		if (!ok)
			diag_error(d, "cannot write '%s': %s", path,
			           strerror(errno));
		ok = outfile_close(&o, ok);
	}
	free(head);
	return ok;
}

static bool
read_origin_member(struct json *j, const char *key, void *to)
{
	struct codegen_origin *from = to;
	char *text;

	if (!json_string(j, &text))
		return false;
	if (!strcmp(key, "model"))
		from->model = text;
	else if (!strcmp(key, "options"))
		from->options = text;
	return true;
}

bool
codegen_weights_origin(const char *path, struct codegen_origin *from, Arena *a)
{
	const size_t begin = strlen(MARK), object = strlen(METADATA);
	char *head = arena_alloc(a, 8 + ORIGIN_MAX + 1);
	FILE *f = fopen(path, "rb");
	struct json j = { .text = head + 8 + object };
	size_t n;

	*from = (struct codegen_origin){ NULL, NULL };
	if (!f)
		return errno == ENOENT || errno == ENOTDIR
			|| errno == ENAMETOOLONG; /* writing reports it */
	n = fread(head, 1, 8 + ORIGIN_MAX, f);
	fclose(f);
	if (n < 8 + begin || memcmp(head + 8, MARK, begin) != 0)
		return false;
	j.size = n - 8 - object;
	if (!json_object(&j, read_origin_member, from))
		*from = (struct codegen_origin){ NULL, NULL };
	return true;
}
