/* Versions of the file format, and of the operator sets that a list of nodes
 * uses.
 *
 * Newer versions may change the meaning of operators, so they are rejected;
 * versions of unused domains are ignored.
 */
#include "frontend/onnx/flat_read.h"

enum { NEWEST_IR = 14 };

bool
ir_check(struct flat *f)
{
	const Onnx__ModelProto *m = f->file->model;

	if (m->has_ir_version && m->ir_version < 1)
		return diag_error(f->diag, "IR version: expected 1 or later, "
		                  "found %jd", (intmax_t)m->ir_version);
	if (m->ir_version > NEWEST_IR)
		return diag_error(f->diag, "IR version %jd is not supported: "
		                  "expected at most %d; export with an older "
		                  "version of the onnx package",
		                  (intmax_t)m->ir_version, NEWEST_IR);
	return true;
}

static bool
names(const Onnx__OperatorSetIdProto *o, const char *domain)
{
	const char *d = flat_text(o->domain);

	return strcmp(d, domain) == 0
		|| (flat_is_onnx(d) && flat_is_onnx(domain));
}

bool
opset_check(struct flat *f, const struct context *c)
{
	const char *of = c->call ? arena_printf(
		f->arena, "function '%s': ",
		flat_text(c->call->function->name)) : "";
	int64_t first = 0;

	for (size_t i = 0; i < c->nopset; i++) {
		int64_t v = c->opset[i]->version;

		if (!names(c->opset[i], ""))
			continue;
		if (v < 1)
			return diag_error(f->diag, "%sopset: expected 1 or "
			                  "later, found %jd", of, (intmax_t)v);
		if (v > NEWEST_OPSET)
			return diag_error(
				f->diag,
				"%sopset %jd is not supported: expected at "
				"most %d; export with opset_version=%d, or "
				"convert with onnx.version_converter",
				of, (intmax_t)v, NEWEST_OPSET, NEWEST_OPSET);
		if (first && v != first)
			return diag_error(f->diag, "%sopset_import has "
			                  "versions %jd and %jd of the default "
			                  "domain; keep the version of the "
			                  "nodes", of, (intmax_t)first,
			                  (intmax_t)v);
		first = v;
	}
	return true;
}

int
opset_of(const struct context *c, const char *domain)
{
	for (size_t i = 0; i < c->nopset; i++)
		if (names(c->opset[i], domain))
			return c->opset[i]->version < 0 ? 0
				: c->opset[i]->version > 9999 ? 9999
				: (int)c->opset[i]->version;
	return 0;
}
