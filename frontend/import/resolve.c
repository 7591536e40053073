/* Control flow that depends on shapes: an If on a rank, a Loop as long as an
 * axis, a Scan over a value; an Einsum's ellipsis, the length of a DFT.
 *
 * The requested values are often no constants of the file, but follow from
 * the file and the bound extents.  The nodes that compute them are imported and
 * folded separately.  Then the file is made flat again with these values, which
 * may lead to further requests.
 *
 * needs    options->fold, which binds and folds a graph
 * gives    struct flat; nodes whose requests have no answer stay in it
 * cost     a partial import and fold for each level of nesting, and for each
 *          trip of a Loop that its condition ends
 */
#include "frontend/import/build_graph.h"
#include "frontend/import/optable.h"
#include "frontend/params/params.h"

#include <string.h>

enum { MAX_ROUNDS = 1024 };

struct resolver {
	struct onnx_file *file;
	const struct import_options *opt;
	Diag *diag;
	Arena *arena;
	struct flat_known *known;
	int nknown;
	size_t cap;
};

/* Answers are looked up by name, so the name must be unique. */
static bool
named_once(const struct flat *f, const char *name)
{
	int n = 0;

	for (int i = 1; i < f->nval; i++)
		n += strcmp(f->val[i].name, name) == 0;
	return n == 1;
}

static bool
has_answer(const struct resolver *a, const char *name)
{
	for (int i = 0; i < a->nknown; i++)
		if (strcmp(a->known[i].name, name) == 0)
			return true;
	return false;
}

/* ---- one request ---- */

static void
record(struct resolver *a, const struct flat *f, const char *name,
       const Graph *g, const Val *v)
{
	struct flat_known k = { .name = arena_str(a->arena, name),
		                .shape = v->shape };
	const Val *x = v;

	if (has_answer(a, name) || !named_once(f, name))
		return;
	if (v->kind == V_TEMP && v->def && g->node[v->def].op == OP_COPY)
		x = &g->val[g->node[v->def].in[0]];
	k.is_number = val_is_const(x) && shape_nelem(&x->shape) == 1
		&& (x->dt == DT_I64 || x->dt == DT_BOOL);
	if (k.is_number && x->dt == DT_BOOL)
		k.number = *(const char *)x->data != 0;
	else if (k.is_number)
		memcpy(&k.number, x->data, sizeof k.number);
	if (!k.is_number && !shape_known(&k.shape))
		return;
	a->known = arena_grow(a->arena, a->known, (size_t)a->nknown, &a->cap,
	                      (size_t)a->nknown + 1, sizeof *a->known);
	a->known[a->nknown++] = k;
}

/* Import and fold the nodes on which n values of f depend.  Destroys f. */
static void
fold_values(struct resolver *a, struct flat *f, const int *val, int n)
{
	Graph *g;

	for (int i = 0; i < f->noutput; i++)
		f->val[f->output[i]].output = false;
	for (int i = 0; i < n; i++)
		f->val[val[i]].output = true;
	f->output = arena_copy(a->arena, val, (size_t)n * sizeof *val);
	f->noutput = n;
	flat_mark_needed(f);
	for (int i = 1; i < f->nval; i++)
		f->val[i].val = 0;
	g = build_known_graph(f, a->opt, a->arena);
	for (int i = 0; i < n; i++) {
		ValId v = f->val[val[i]].val;

		if (v && g->val[v].kind == V_TEMP) {
			val_rename(g, v, f->val[val[i]].name);
			g->val[v].output = true;
		}
	}
	if (a->opt->fold(a->opt->fold_of, g, f->diag)) {
		FOR_VALS (v, g)
			if (v->output)
				record(a, f, v->name, g, v);
		for (int i = 0; i < n; i++) {   /* inputs, constants */
			const Val *v = &g->val[f->val[val[i]].val];

			if (v->kind != V_TEMP)
				record(a, f, f->val[val[i]].name, g, v);
		}
	}
	graph_free(g);
}

/* ---- the rounds ---- */

/* Answer the requests of f, all at once, or if that fails one by one.  Gives no
 * diagnostics: the user of an unanswered request reports it. */
static void
answer_requests(struct resolver *a, struct flat *f)
{
	Diag *quiet = diag_new("ckc", NULL);
	int before = a->nknown;

	f->diag = quiet;
	if (classify(f, a->opt, false)) {
		fold_values(a, f, f->requested, f->nrequested);
		for (int i = 0; a->nknown == before && f->nrequested > 1
		     && i < f->nrequested; i++)
			fold_values(a, f, &f->requested[i], 1);
	}
	diag_free(quiet);
}

/* The flat model, whose nodes point to rows of the operator table. */
static struct flat *
read_flat(struct onnx_file *file, Diag *diag, Arena *arena,
          const struct flat_known *known, int nknown)
{
	struct flat *f = flat_new(file, diag, arena, known, nknown);

	for (int i = 0; f && i < f->nnode; i++)
		f->node[i].op = onnx_op_find(f->node[i].domain,
		                             f->node[i].type);
	return f;
}

struct flat *
flat_resolve(struct onnx_file *file, const struct import_options *opt,
             Diag *diag, Arena *arena)
{
	struct resolver a = { .file = file, .opt = opt, .diag = diag,
	                      .arena = arena };
	struct flat *f = read_flat(file, diag, arena, NULL, 0);

	for (int round = 0; f && f->nrequested && opt->fold
	     && round < MAX_ROUNDS; round++) {
		int before = a.nknown;

		answer_requests(&a, f);
		f = read_flat(file, diag, arena, a.known, a.nknown);
		if (a.nknown == before)
			break;
	}
	for (int i = 0; f && i < a.nknown; i++)
		if (!named_once(f, a.known[i].name)) {
			diag_error(diag, "the graph depends on the value of "
			           "'%s', but several values have that name",
			           a.known[i].name);
			return NULL;
		}
	return f;
}
