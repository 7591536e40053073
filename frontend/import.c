/* Import: from an ONNX file to a graph.
 *
 * The file is made flat (flat.c, resolve.c), its initializers get verdicts
 * (classify.c), and what is left becomes a graph (import_graph.c).
 *
 * needs   a readable file
 * gives   a graph in dynamic form, and the template for writing it back
 * refuses what optable.c does not know: all of it at once, grouped
 */
#include "frontend/import_graph.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/optable.h"

/* ---- operators that are missing ---- */

/* Outputs beside the one that is trained on are dropped if they need what
 * ckc does not have: metrics, decoded ids. */
static void
drop_outputs(struct flat *f, const struct import_options *opt)
{
	bool *bad = arena_array(f->arena, (size_t)f->nval + 1, sizeof *bad);
	int *target, n, kept = 0;

	flat_targets(f, opt, &target, &n);
	if (n != 1 || f->noutput == 1)
		return;
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *node = &f->node[i];
		bool lost = node->needed && !onnx_op_can(f, node);

		for (int k = 0; k < node->nin; k++)
			lost |= bad[node->in[k]];
		for (int k = 0; lost && k < node->nout; k++)
			bad[node->out[k]] = node->out[k] != 0;
	}
	if (bad[target[0]])
		return;                 /* refused as a whole */
	for (int i = 0; i < f->noutput; i++) {
		struct flat_val *y = &f->val[f->output[i]];

		if (!bad[f->output[i]]) {
			f->output[kept++] = f->output[i];
			continue;
		}
		y->output = false;
		diag_warn(f->diag, "output '%s' is left out: it needs "
		          "operators that are not supported", y->name);
	}
	f->noutput = kept;
	flat_mark_needed(f);
}

/* All operators that stop the import, grouped. */
static bool
check_support(const struct flat *f)
{
	bool *said = arena_array(f->arena, (size_t)f->nnode + 1, sizeof *said);
	bool ok = true;

	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		char first[160];
		int count = 0, len = 0;

		if (!n->needed || said[i] || onnx_op_can(f, n))
			continue;
		for (int k = i; k < f->nnode; k++) {
			const struct flat_node *o = &f->node[k];

			if (!o->needed || strcmp(o->type, n->type) != 0
			    || strcmp(o->domain, n->domain) != 0
			    || onnx_op_can(f, o))
				continue;
			said[k] = true;
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
warn_ties(const struct flat *f, bool untie)
{
	for (int i = 0; i < f->ntie; i++)
		diag_warn(f->diag,
		          "'%s' stands for %d norms or biases that the "
		          "exporter merged because they were equal; %s",
		          f->val[f->tie[i].val].name, f->tie[i].n,
		          untie ? "each is trained on its own (--untie=off: "
		                  "together)"
		                : "they are trained together as --untie=off "
		                  "says");
}

static void
warn_idle(const struct flat *f)
{
	int n = 0, first = 0;

	for (int i = f->nval; --i > 0;)
		if (f->val[i].idle) {
			first = i;
			n++;
		}
	if (n)
		diag_warn(f->diag, "%d parameter%s of the source get%s no "
		          "gradient from the loss and stay%s as %s (the first "
		          "is '%s'); --freeze says that this is meant", n,
		          n > 1 ? "s" : "", n > 1 ? "" : "s",
		          n > 1 ? "" : "s", n > 1 ? "they are" : "it is",
		          f->val[first].name);
}

/* PyTorch's dynamo exporter makes a SoftmaxCrossEntropyLoss of a
 * cross_entropy with smoothed labels, too, although that does not smooth, and
 * writes the call into the node's metadata:
 *   aten.cross_entropy_loss.default](args = (%z, %y, None, 1, -100, 0.1), */
double
import_lost_smoothing(const struct flat_node *n)
{
	const char *s = NULL, *end, *named;

	for (size_t i = 0; i < n->p->n_metadata_props && !s; i++)
		if (n->p->metadata_props[i]->value)
			s = strstr(n->p->metadata_props[i]->value, WIRE_NOTE);
	if (!s || strcmp(n->type, "SoftmaxCrossEntropyLoss") != 0)
		return 0;
	named = strstr(s, "label_smoothing: ");
	if (named)
		return strtod(strchr(named, ' '), NULL);
	s += strlen(WIRE_NOTE);
	end = s + strcspn(s, ")");
	for (int comma = 0; comma < 5; comma++) {
		s = memchr(s, ',', (size_t)(end - s));
		if (!s++)
			return 0;
	}
	return strtod(s, NULL);
}

static void
warn_smoothing(const struct flat *f)
{
	for (int i = 0; i < f->nnode; i++) {
		double lost = import_lost_smoothing(&f->node[i]);

		if (f->node[i].needed && lost > 0)
			diag_warn(f->diag, "node '%s': " LOST_SMOOTHING,
			          f->node[i].name, lost);
	}
}

/* ---- all of it ---- */

static const char *
stem(Arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	if (n > 5 && strcmp(name + n - 5, ".onnx") == 0)
		n -= 5;
	return arena_printf(a, "%.*s", (int)n, name);
}

struct flat *
import_flat(const char *path, const struct import_options *opt, Diag *diag,
            Arena *arena, struct onnx_file **file)
{
	struct flat *f;

	diag_file(diag, path);
	*file = onnx_open(path, opt->no_weights, diag);
	f = *file ? flat_resolve(*file, opt, diag, arena) : NULL;
	if (!f || !classify(f, opt))
		return NULL;
	drop_outputs(f, opt);
	return f;
}

Graph *
onnx_import(const char *path, const struct import_options *opt, Diag *diag,
            struct onnx_file **keep)
{
	Arena *arena = arena_new();
	int before = diag_errors(diag);
	struct flat *f = import_flat(path, opt, diag, arena, keep);
	Graph *g = NULL;

	if (f && check_support(f)) {
		warn_ties(f, opt->untie);
		warn_smoothing(f);
		if (!opt->all_outputs)
			warn_idle(f);
		g = import_graph(f, opt, arena, stem(arena, path));
	}
	if (g && !opt->no_weights)
		template_build(*keep, f);
	else if (g)
		(*keep)->why_no_template = "weights were not read";
	arena_free(arena);
	if (g && diag_errors(diag) == before)
		return g;
	graph_free(g);
	onnx_close(*keep);
	*keep = NULL;
	return NULL;
}
