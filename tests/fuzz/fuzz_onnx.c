/* ONNX files: inspection, import, and all passes up to the plan. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan.h"

#include <string.h>

#include "frontend/import/import.h"
#include "frontend/inspect/inspect.h"

enum { INSPECT, INSPECT_JSON, TRAIN, RECOMPUTE, FORWARD, CE, VARIANTS };

const unsigned fuzz_variants = VARIANTS;
const bool fuzz_protobuf = true;

/* What is planned within seconds under sanitizers.  No budgets: the search for
 * what to recompute depends on costs, not on what a file says. */
enum { NODES = 3000 };

/* Unknown extents get small numbers, the same name the same one. */
static void
bind_inputs(Graph *g)
{
	FOR_VALS (v, g) {
		if (v->kind != V_INPUT)
			continue;
		if (v->shape.rank < 0)
			v->shape = (Shape){ 2, { 2, 3 } };
		for (int i = 0; i < v->shape.rank; i++)
			if (v->shape.dim[i] < 0)
				v->shape.dim[i] = v->dim_name[i]
					? 2 + (int64_t)strlen(v->dim_name[i])
					% 3 : 2;
	}
}

static bool
compile(const char *path, unsigned variant, Diag *diag)
{
	struct import_options o = { .untie = true, .shapes_do = true };
	struct onnx_file *file = NULL;
	bool ok;
	Graph *g;

	o.all_outputs = variant == FORWARD;
	o.loss = variant == CE ? "ce" : NULL;
	g = onnx_import(path, &o, diag, &file);
	ok = g != NULL;
	if (ok)
		bind_inputs(g);
	if (ok && g->nnode < NODES) {
		struct options opt = plan_options();

		opt.forward_only = variant == FORWARD;
		opt.loss = o.loss;
		if (variant == RECOMPUTE) {
			opt.remat = REMAT_FULL;
			opt.update_in_backward = TRI_ON;
		}
		ok = plan_all(g, &opt, NULL, diag);
	}
	graph_free(g);
	onnx_close(file);
	return ok;
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	const char *path = fuzz_file(data, n);
	struct import_options o = { .shapes_do = true, .untie = true };
	Diag *diag = diag_new("ckc", fuzz_messages());
	bool ok;

	o.json = variant == INSPECT_JSON;
	ok = variant <= INSPECT_JSON
		? onnx_inspect(path, &o, fuzz_null(), diag)
		: compile(path, variant, diag);
	fuzz_judge(ok, diag_errors(diag));
	diag_free(diag);
}
