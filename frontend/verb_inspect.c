/* ckc inspect: what the importer finds, and what only the passes can tell:
 * the bytes of a step, and extents that the exporter baked in.
 */
#include <stdlib.h>
#include <string.h>

#include "frontend/outputs.h"
#include "frontend/verbs.h"
#include "ir/outfile.h"
#include "passes/passes.h"

struct probe {
	const struct cli *c;
	struct import_options import;   /* shapes will do */
	Arena *arena;
	FILE *said;                     /* of quiet */
	char *text;
	size_t n;
	Diag *quiet;
	bool imported;                  /* the last time */
};

/* All passes named, on a fresh import; what they say goes to p->said.  Inputs'
 * symbolic extents get `every`, those called `but` one more; 0: none do.  The
 * bytes of a step if they are known, else 0; -1: it failed. */
static int64_t
try_passes(struct probe *p, const char *passes, int64_t every, const char *but)
{
	struct dump_request none = { 0 };
	struct onnx_file *file = NULL;
	Pass pass = { .diag = p->quiet, .opt = &p->c->opt, .keep = p->arena,
	              .baseline_peak = -1, .minimum_peak = -1 };
	Graph *g = onnx_import(p->c->model, &p->import, p->quiet, &file);
	int64_t bytes = -1;

	p->imported = g != NULL;
	if (g && every)
		FOR_VALS (v, g)
			for (int i = 0; v->kind == V_INPUT
			     && i < v->shape.rank; i++)
				if (v->shape.dim[i] < 0 && v->dim_name[i])
					v->shape.dim[i] = every
						+ (but && !strcmp(but,
						   v->dim_name[i]));
	if (g && pass_run(&pass, g, passes, NULL, &none))
		bytes = pass.plan ? pass.plan->sum.peak : 0;
	graph_free(pass.reference);
	arena_free(pass.retired);
	graph_free(g);
	onnx_close(file);
	return bytes;
}

static bool
fits(struct probe *p, int64_t every, const char *but)
{
	return try_passes(p, "bind,fold", every, but) >= 0;
}

/* Names of the symbolic extents, each once; false if some have no name. */
static bool
list_dims(struct probe *p, const char ***list, int *n)
{
	struct onnx_file *file = NULL;
	Graph *g = onnx_import(p->c->model, &p->import, p->quiet, &file);
	size_t cap = 0;
	bool named = g != NULL;

	for (ValId id = 1; g && id < g->nval; id++) {
		const Val *v = &g->val[id];

		named &= v->kind != V_INPUT || v->shape.rank >= 0;
		for (int i = 0; v->kind == V_INPUT && i < v->shape.rank; i++) {
			const char *name = v->dim_name[i];
			int k = 0;

			if (v->shape.dim[i] >= 0)
				continue;
			named &= name != NULL;
			while (name && k < *n && strcmp((*list)[k], name) != 0)
				k++;
			if (!name || k < *n)
				continue;
			*list = arena_grow(p->arena, *list, (size_t)*n, &cap,
			                   (size_t)*n + 1, sizeof **list);
			(*list)[(*n)++] = arena_str(p->arena, name);
		}
	}
	graph_free(g);
	onnx_close(file);
	return named;
}

/* A symbolic extent that only one number fits: the exporter took it from its
 * example.  Numbers are tried; where none fits, nothing can be said. */
static const char *
find_baked(struct probe *p)
{
	static const int64_t some[] = { 1, 2, 4, 6, 7, 8, 12, 16, 32, 64 };
	const char **dim = NULL, *names = "";
	int64_t base = 0;
	int ndim = 0, fixed = 0;

	if (p->c->opt.ndim || p->c->opt.nshape || !list_dims(p, &dim, &ndim)
	    || ndim == 0 || (fits(p, 3, NULL) && fits(p, 5, NULL)))
		return NULL;
	for (size_t i = 0; i < sizeof some / sizeof *some && !base; i++)
		if (fits(p, some[i], NULL))
			base = some[i];
	for (int i = 0; base && i < ndim; i++)
		if (!fits(p, base, dim[i]))
			names = arena_printf(p->arena, "%s%s'%s'", names,
			                     fixed++ ? ", " : "", dim[i]);
	if (!fixed)
		return NULL;
	return arena_printf(p->arena, "%s symbolic in the inputs, but the "
		"graph fits %jd and not %jd: the exporter baked in the "
		"example's extent; export with dynamic_shapes (dynamo) or "
		"dynamic_axes (TorchScript) and take extents from x.shape, not "
		"from Python's numbers; or bind it so",
		arena_printf(p->arena, fixed > 1 ? "%s are" : "%s is", names),
		(intmax_t)base, (intmax_t)base + 1);
}

bool
verb_inspect(const struct cli *c, const struct import_options *import,
             Arena *arena, Diag *diag)
{
	struct probe p = { .c = c, .import = *import, .arena = arena };
	struct import_options o = *import;
	struct outfile json;
	const char *baked;
	bool ok;

	diag_file(diag, c->model);
	if (!outputs_check_report(c->json, c->model, arena, diag))
		return false;
	p.import.shapes_do = o.shapes_do = true;
	p.said = open_memstream(&p.text, &p.n);
	if (!p.said)
		return diag_error(diag, "out of memory");
	p.quiet = diag_new("ckc", p.said);
	p.import.quiet = true;
	o.step_bytes = try_passes(&p, NULL, 0, NULL);
	if (o.step_bytes < 0)
		o.step_bytes = 0;
	baked = p.imported ? find_baked(&p) : NULL;
	o.note = &baked;
	o.nnote = baked != NULL;
	diag_free(p.quiet);
	fclose(p.said);
	free(p.text);

	o.json = c->json != NULL;
	if (!c->json)
		return onnx_inspect(c->model, &o, stdout, diag);
	if (!outfile_open(&json, c->json, arena, diag))
		return false;
	ok = onnx_inspect(c->model, &o, json.f, diag);
	return outfile_close(&json, ok) && ok;
}
