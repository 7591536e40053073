/* Import: from an ONNX file to a graph.
 *
 * The file becomes a flat list (flat.c, resolve.c), its initializers get
 * verdicts (classify.c), and needed nodes become a graph (build_graph.c).
 *
 * needs   a readable file
 * gives   a graph in dynamic form, and the template for writing it back
 * refuses operators that operators.h lacks, all in one message
 */
#include "frontend/lint/lint.h"
#include "frontend/import/load_flat.h"
#include "frontend/import/build_graph.h"

#include <string.h>

#include "frontend/import/optable.h"
#include "runtime/support/path.h"

/* ---- operators that are missing ---- */

/* All operators that stop the import, grouped. */
static bool
check_support(const struct flat *f)
{
	bool *reported = arena_array(f->arena, (size_t)f->nnode + 1,
	                             sizeof *reported);
	bool ok = true;

	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		char first[160];
		int count = 0, len = 0;

		if (!n->needed || reported[i] || onnx_op_can(f, n))
			continue;
		for (int k = i; k < f->nnode; k++) {
			const struct flat_node *o = &f->node[k];

			if (!o->needed || strcmp(o->type, n->type) != 0
			    || strcmp(o->domain, n->domain) != 0
			    || onnx_op_can(f, o))
				continue;
			reported[k] = true;
			if (count++ < 3 && len < (int)sizeof first)
				len += snprintf(first + len,
				                sizeof first - (size_t)len,
				                "%s'%.40s'",
				                count > 1 ? ", " : "", o->name);
		}
		ok = diag_error(f->diag,
		                "op %s%s%s is not supported: %d node%s, "
		                "%s%s%s%s",
		                n->domain, *n->domain ? "." : "", n->type,
		                count, count > 1 ? "s" : "", first,
		                count > 3 ? ", ..." : "",
		                n->op && n->op->hint ? "; " : "",
		                n->op && n->op->hint ? n->op->hint : "");
	}
	return ok;
}

/* ---- warnings ---- */

static void
warn_lint(struct flat *f, const struct import_options *opt)
{
	struct lint_report d = lint_run(f, opt, f->arena);

	for (int i = 0; i < d.n; i++)
		diag_warn(f->diag, "%s", d.at[i].text);
}

/* ---- all of it ---- */

static const char *
file_stem(Arena *a, const char *path)
{
	const char *name = path_base(path);
	size_t n = strlen(name);

	if (n > 5 && strcmp(name + n - 5, ".onnx") == 0)
		n -= 5;
	return arena_printf(a, "%.*s", (int)n, name);
}

Graph *
onnx_import(const char *path, const struct import_options *opt, Diag *diag,
            struct onnx_file **keep)
{
	Arena *arena = arena_new();
	int before = diag_errors(diag);
	struct flat *f = load_flat(path, opt, diag, arena, keep);
	Graph *g = NULL;

	if (f && check_support(f))
		g = build_graph(f, opt, arena, file_stem(arena, path));
	if (g && !opt->quiet)
		warn_lint(f, opt);
	if (g && !opt->shapes_do) {
		template_build(*keep, f);
		if ((*keep)->template)
			(*keep)->template->trains = has_training_form(f);
	} else if (g) {
		(*keep)->why_no_template = "weights may be missing";
	}
	arena_free(arena);
	if (g && diag_errors(diag) == before)
		return g;
	graph_free(g);
	onnx_close(*keep);
	*keep = NULL;
	return NULL;
}
