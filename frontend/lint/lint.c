/* Warnings about silent losses of exporters, each with its remedy.
 *
 * Equal layers have equal findings, so findings of one kind become one warning
 * with their number and the name of the first.
 *
 * needs   verdicts of classify.c
 * cost    linear in the nodes for each suspect constant; unnamed parameters
 *         of equal shape are compared by contents
 */
#include "frontend/lint/lint_context.h"
#include "frontend/params/params.h"
#include "frontend/params/signature.h"

#include <inttypes.h>
#include <string.h>

/* ---- names and ties ---- */

static void
find_ties(struct lint_context *s)
{
	struct flat *f = s->f;
	struct lint_group g = { 0 };
	int all = 0;

	for (int i = 0; i < f->ntie; i++) {
		const char *name = f->val[f->tie[i].val].name;

		all += f->tie[i].n;
		group_add(s, &g, name, arena_printf(s->arena, "'%s' replaces "
			"%d", name, f->tie[i].n));
	}
	add_warning(s, &g,
	    "{subject} {replaces|replace} %d parameters that the exporter "
	    "merged because their values were equal; %s; export in training "
	    "mode (TorchScript) or with optimize=False (dynamo)", all,
	    s->opt->untie ? "ckc trains them separately (with --untie=off: as "
	                    "one)" : "--untie=off trains them as one");
}

/* The parameter whose transpose is v; NULL: none. */
static const struct flat_val *
find_transpose(struct flat *f, const struct flat_val *v)
{
	FOR_FLAT_VALS (w, f)
		if (w != v && w->init && w->nuse
		    && w->verdict == VERDICT_PARAM && !lost_its_name(w)
		    && is_transpose_of(f, v, w))
			return w;
	return NULL;
}

/* Whether another parameter is equal and folded from the same source: a weight
 * shared by several calls of a module, transposed for each of them. */
static bool
is_copied(struct flat *f, const char *const *source, int v)
{
	for (int k = 1; k < v; k++)
		if (source[k] && strcmp(source[k], source[v]) == 0
		    && same_contents(f, &f->val[k], &f->val[v]))
			return true;
	return false;
}

static const char *
and_more(struct lint_context *s, const struct lint_group *g)
{
	return g->n <= 1 ? "" : arena_printf(s->arena, ", and %d more like it",
	                                     g->n - 1);
}

static void
find_renamed(struct lint_context *s)
{
	struct lint_group renamed = { 0 }, split = { 0 }, apart = { 0 };
	const char *twin = NULL, *of = NULL;
	bool noted;
	const char **source = arena_array(s->arena, (size_t)s->f->nval,
	                                  sizeof *source);

	for (int i = 1; i < s->f->nval; i++) {
		const struct flat_val *v = &s->f->val[i], *w;

		if (!lost_its_name(v))
			continue;
		group_add_name(s, &renamed, v->name);
		w = find_transpose(s->f, v);
		source[i] = w ? NULL : signature_source(s->f, v, &noted);
		if (source[i] && (is_trained(s->f, source[i])
		    || is_copied(s->f, source, i))) {
			of = of ? of : source[i];
			group_add(s, &apart, v->name,
			          arena_printf(s->arena, "'%s' from '%s'",
			                       v->name, source[i]));
		}
		if (!w)
			continue;
		twin = twin ? twin : w->name;
		group_add(s, &split, v->name,
		          arena_printf(s->arena, "'%s': transpose of '%s'",
		                       v->name,
		                       w->name));
	}
	add_warning(s, &split,
	    "{first} is the transpose of '%s'%s: the exporter split a tied "
	    "weight in two, which are trained separately; export with "
	    "optimize=False (dynamo) or do_constant_folding=False "
	    "(TorchScript)", twin, and_more(s, &split));
	add_warning(s, &apart,
	    "{first} was computed from '%s' by the exporter, and the file "
	    "holds another copy%s: the copies are trained separately; export "
	    "with optimize=False", of, and_more(s, &apart));
	/* other exporters never write names of modules */
	if (is_pytorch(s->f))
		add_warning(s, &renamed,
		    "{n} {parameter lost its name|parameters lost their names} "
		    "(the first is {first}): checkpoints will use the names "
		    "that the exporter generated, and what forward computes of "
		    "a parameter, such as w * 0.5, is trained as one tensor; "
		    "export with optimize=False (dynamo) or training=TRAINING, "
		    "do_constant_folding=False (TorchScript)");
}

/* An embedding with several readers is tied on purpose, or read twice.  If tied
 * it stands for as many names, all of them weights of modules. */
static int
tied_names(const struct flat *f)
{
	int n = 0;

	FOR_FLAT_NODES (node, f) {
		const struct flat_val *v = &f->val[node_input(node, 0)];

		if (strcmp(node->type, "Gather") == 0 && v->init
		    && v->verdict == VERDICT_PARAM && v->nuse > 1)
			n += v->nuse - 1;
	}
	return n < f->nlostweight ? n : f->nlostweight;
}

/* Whether the exporter may have optimized the file, which turns all constants
 * into initializers. */
static bool
is_optimized(const struct flat *f)
{
	FOR_FLAT_NODES (n, f)
		if (strcmp(n->type, "Constant") == 0)
			return false;
	return true;
}

/* Parameters that the exporter's signature lists and the file lacks. */
static void
find_lost(struct lint_context *s)
{
	struct flat *f = s->f;
	int lost = f->nlost - tied_names(f);
	const char *names = "", *norms = "", *why;

	if (lost <= 0)
		return;
	for (int i = 0; i < FLAT_LOST && f->lost[i]; i++)
		names = arena_printf(s->arena, "%s%s'%s'", names,
		                     i ? ", " : "", f->lost[i]);
	if (f->nlostnorm)
		norms = arena_printf(s->arena, ", including those of %d "
		                     "BatchNorm%s folded into the preceding "
		                     "weights", f->nlostnorm,
		                     f->nlostnorm == 1 ? "" : "s");
	if (lost_projection(f))
		why = "ONNX's LSTM has no projection (proj_size), and the "
			"exporter drops its weight; write the cell as a loop "
			"over time";
	else if (!norms[0] && !is_optimized(f))
		why = lost == 1 ? "the loss does not use it, or another module "
			"shares it under its own name"
			: "the loss does not use them, or other modules share "
			"them under their own names";
	else
		why = lost == 1 ? "the exporter folded, merged or cut it, or "
			"the loss does not use it; export with optimize=False"
			: "the exporter folded, merged or cut them, or the "
			"loss does not use them; export with optimize=False";
	add_warning(s, &(struct lint_group){ .n = lost },
	    "{n} {parameter|parameters} of the module {is|are} not in the file "
	    "under {its name|their names} (missing: %s%s)%s: %s", names,
	    f->nlost > FLAT_LOST ? ", ..." : "", norms, why);
}

/* ---- modes ---- */

/* Whether a Dropout is off although its ratio is not 0. */
static bool
is_inactive_dropout(struct lint_context *s, const struct flat_node *n)
{
	int ratio = node_input(n, 1), mode = node_input(n, 2);
	Val v;

	if (s->opt->no_dropout || !is_op_type(n, "Dropout")
	    || (flat_load(s->f, flat_tensor(s->f, ratio), &v) == 1
	        && val_float(&v, 0) == 0))
		return false;
	return n->opset < 12 || !mode
		|| (flat_load(s->f, flat_tensor(s->f, mode), &v) == 1
		    && !*(const char *)v.data);
}

/* ckc.torch.export takes the form from the module. */
static bool
is_frozen_batchnorm(struct lint_context *s, const struct flat_node *n)
{
	return is_needed_batchnorm(n) && !batchnorm_trains(n)
		&& !s->f->signature->noted
		&& batchnorm_asked(s->f, s->opt, n) == BATCHNORM_GRAPH;
}

/* Python that exports BatchNorm in training form; README.md has the same. */
static const char *const batchnorm_recipe[] = {
	"import torch",
	"from onnxscript import opset18 as op",
	"",
	"def batch_norm(x, weight, bias, mean, var, training=True, "
	"momentum=0.1, eps=1e-5):",
	"    if weight is None:      # affine=False",
	"        weight = op.Expand(op.Constant(value_float=1.0), "
	"op.Shape(mean))",
	"        bias = op.Sub(weight, weight)",
	"    y, m, v = op.BatchNormalization(x, weight, bias, mean, var, "
	"epsilon=eps,",
	"                                    momentum=1 - momentum, "
	"training_mode=1)",
	"    return y, m, v, m, v",
	"",
	"table = {torch.ops.aten._native_batch_norm_legit_functional.default: "
	"batch_norm}",
	"torch.onnx.export(model.train(), args, 'model.onnx', dynamo=True, "
	"optimize=False,",
	"                  custom_translation_table=table)",
};

static void
find_modes(struct lint_context *s)
{
	struct lint_group off = group_nodes(s, is_inactive_dropout);
	struct lint_group bn = group_nodes(s, is_frozen_batchnorm);

	add_warning(s, &off,
	    "{n} Dropout {node is|nodes are} inactive (training_mode is "
	    "missing or false; the first is {first}): the model trains without "
	    "dropout; scaled_dot_product_attention exports it this way, eager "
	    "attention with training=TRAINING keeps it");
	if (!bn.n)
		return;
	add_warning(s, &bn,
	    "{n} BatchNormalization {node is|nodes are} in inference form (the "
	    "first is {first}): running statistics are used and never updated; "
	    "--batchnorm batch trains as train() does, --batchnorm running "
	    "silences this warning; or export with training=TRAINING "
	    "(TorchScript) or a custom translation (dynamo; ckc inspect prints "
	    "it)");
	s->found.at[s->found.n - 1].detail = batchnorm_recipe;
	s->found.at[s->found.n - 1].ndetail =
		sizeof batchnorm_recipe / sizeof *batchnorm_recipe;
}

static bool
is_float_value(const struct flat *f, int v)
{
	const Onnx__TypeProto *t = declared_type(f, v);

	return t && t->tensor_type
		&& dtype_info[onnx_dtype(t->tensor_type->elem_type)].cls
		   == 'f';
}

/* PyTorch code for the loss of n with label smoothing s: z scores, y labels or
 * probabilities, w weights of classes. */
static const char *
smoothed_loss(struct lint_context *s, const struct flat_node *n)
{
	const Onnx__AttributeProto *r = attr_find(n, "reduction");
	const Onnx__AttributeProto *i = attr_find(n, "ignore_index");
	bool soft = n->nin > 1 && is_float_value(s->f, n->in[1]);
	bool weights = n->nin > 2 && n->in[2];
	bool mean = !r || (r->s.len == 4 && !memcmp(r->s.data, "mean", 4));
	const char *w = weights ? ", w" : "", *how = mean ? ""
		: arena_printf(s->arena, ", reduction='%.*s'", (int)r->s.len,
		               (const char *)r->s.data);
	const char *all, *sum = "", *end = "";

	if (soft)
		return arena_printf(s->arena, "cross_entropy(z, (1 - s) * y + "
		                    "s / y.size(1)%s%s)", w, how);
	all = weights ? "p.movedim(1, -1) @ w / w.numel()" : "p.mean(1)";
	if (mean || (r->s.len == 3 && !memcmp(r->s.data, "sum", 3)))
		sum = ".sum()";
	if (mean)
		end = weights ? " / (w[y.clamp(min=0)] * m).sum()"
			: " / m.sum()";
	return arena_printf(s->arena, "p = log_softmax(z, 1); m = (y != "
	                    "%" PRId64 ").float(); (1 - s) * nll_loss(p, y%s"
	                    "%s%s) - s * (%s * m)%s%s", i ? i->i : -100, w,
	                    i && i->i != -100 ? arena_printf(s->arena,
	                    ", ignore_index=%" PRId64, i->i) : "", how, all,
	                    sum, end);
}

static bool
lacks_smoothing(struct lint_context *s, const struct flat_node *n)
{
	(void)s;
	return lost_smoothing(n) > 0;
}

static bool
lacks_padding(struct lint_context *s, const struct flat_node *n)
{
	return lost_padding(n) >= 0
		&& s->f->val[node_input(n, 0)].verdict == VERDICT_PARAM;
}

static bool
lacks_frequency(struct lint_context *s, const struct flat_node *n)
{
	return lost_frequency(n)
		&& s->f->val[node_input(n, 0)].verdict == VERDICT_PARAM;
}

static void
find_smoothing(struct lint_context *s)
{
	struct lint_group g = group_nodes(s, lacks_smoothing);

	if (g.n)
		add_warning(s, &g,
		    "{subject}: the exporter dropped label_smoothing=%g; write "
		    "it out: %s", lost_smoothing(g.node),
		    smoothed_loss(s, g.node));
}

static void
find_embeddings(struct lint_context *s)
{
	struct lint_group row = group_nodes(s, lacks_padding);
	struct lint_group scale = group_nodes(s, lacks_frequency);
	int64_t at = row.n ? lost_padding(row.node) : 0;

	add_warning(s, &row,
	    "{subject}: the exporter dropped padding_idx=%" PRId64 ": that row "
	    "is trained like the others; to keep it at zero, write x = "
	    "emb(ids) * (ids != %" PRId64 ").unsqueeze(-1)", at, at);
	add_warning(s, &scale,
	    "{subject}: the exporter dropped scale_grad_by_freq: gradients of "
	    "rows are not divided by the number of uses in the batch");
}

/* detach() has no effect on values that depend on no parameter. */
static void
find_detached(struct lint_context *s)
{
	struct flat *f = s->f;
	bool *trained = arena_array(s->arena, (size_t)f->nval,
	                            sizeof *trained);
	struct lint_group g = { 0 };

	FOR_FLAT_VALS (v, f)
		trained[v - f->val] = v->verdict == VERDICT_PARAM;
	FOR_FLAT_NODES (n, f) {
		bool any = false;

		for (int k = 0; k < n->nin; k++)
			any |= trained[n->in[k]];
		for (int k = 0; k < n->nout; k++)
			trained[n->out[k]] = any && n->out[k];
		if (any && n->needed && lost_detach(n))
			group_add_name(s, &g, n->name);
	}
	add_warning(s, &g,
	    "{subject}: detach() was lost in the export: gradients flow where "
	    "PyTorch stops them; make the detached value an input, or --freeze "
	    "all parameters that it depends on");
}

static void
find_ignored(struct lint_context *s)
{
	if (s->f->file->wire.training_info)
		add_warning(s, NULL,
		    "training_info in the file is ignored: ckc computes its "
		    "own gradients");
	if (s->f->file->wire.nunknown)
		add_warning(s, NULL,
		    "%zu fields that ONNX 1.23 does not define are ignored",
		    s->f->file->wire.nunknown);
}

struct lint_report
lint_run(struct flat *f, const struct import_options *opt, Arena *arena)
{
	struct lint_context s = { .f = f, .opt = opt, .arena = arena };

	find_smoothing(&s);
	find_ignored(&s);
	if (opt->all_outputs)
		return s.found;         /* nothing is trained */
	find_ties(&s);
	find_renamed(&s);
	lint_merged(&s);
	find_lost(&s);
	lint_trained(&s);
	find_modes(&s);
	lint_state(&s);
	find_embeddings(&s);
	find_detached(&s);
	lint_scatters(&s);
	lint_masks(&s);
	lint_teacher(&s);
	return s.found;
}
