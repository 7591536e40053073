/* Write MODEL.safetensors: parameters and buffers, without copying them. */
#include "codegen/codegen.h"
#include "codegen/tables.h"
#include "ir/base/outfile.h"
#include "ir/placement.h"
#include "runtime/support/st_head.h"
#include "runtime/support/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 8 };

/* How the header of our files begins, after its length. */
#define MARK "{\"__metadata__\":{\"ckc\":\"" CKC_VERSION "\"}"

enum { MARK_SHARED = sizeof "{\"__metadata__\":{\"ckc\":" - 1 };

static bool
is_saved_weight(const Val *v)
{
	return v->kind == V_PARAM || v->kind == V_BUFFER;
}

/* Files hold whole values. */
static Val
unsharded_val(const Val *v)
{
	Val w = *v;

	w.shape = val_whole(v);
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

/* The entries of the header. */
static void
put_weight_entries(FILE *f, const Graph *g)
{
	int64_t at = 0, end;

	fputs(MARK, f);
	FOR_VALS (v, g) {
		Val w = unsharded_val(v);

		if (!is_saved_weight(v))
			continue;
		end = at + val_data_bytes(&w);
		st_head_tensor(f, v->name, dtype_info[v->dt].st,
		               w.shape.rank, w.shape.dim, (uint64_t)at,
		               (uint64_t)end);
		at = end;
	}
}

/* The header, padded so that the data begin aligned; the caller frees *text,
 * also after a diagnostic. */
static bool
make_weights_header(const Graph *g, char **text, size_t *n, Diag *d)
{
	FILE *f = st_head_open(text, n);

	if (!f) {
		*text = NULL;
		return diag_error(d, "cannot build the header of the weights "
		                  "file: %s",
		                  strerror(errno));
	}
	put_weight_entries(f, g);
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
codegen_weights(const Graph *g, const char *path, Diag *d)
{
	char *head = NULL;
	size_t n;
	struct outfile o;
	bool ok = weights_check(g, d) && make_weights_header(g, &head, &n, d)
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

bool
codegen_may_replace(const char *path)
{
	char head[8 + MARK_SHARED];
	FILE *f = fopen(path, "rb");
	bool ours;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR
			|| errno == ENAMETOOLONG; /* writing reports it */
	ours = fread(head, 1, sizeof head, f) == sizeof head
		&& memcmp(head + 8, MARK, MARK_SHARED) == 0;
	fclose(f);
	return ours;
}
