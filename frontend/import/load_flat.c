/* The first stage of import and inspection: the flat model, the verdicts on
 * its initializers, and notes on options. */
#include "frontend/import/load_flat.h"

#include <math.h>
#include <string.h>

#include "frontend/import/optable.h"

/* Drop outputs other than the training target that need missing operators, such
 * as metrics and decoded ids. */
static void
drop_outputs(struct flat *f, const struct import_options *opt)
{
	bool *bad = arena_array(f->arena, (size_t)f->nval + 1, sizeof *bad);
	int *target, n, kept = 0;

	flat_targets(f, opt, &target, &n);
	if (n != 1 || f->noutput == 1)
		return;
	FOR_FLAT_NODES (node, f) {
		bool lost = node->needed && !onnx_op_can(f, node);

		for (int k = 0; k < node->nin; k++)
			lost |= bad[node->in[k]];
		for (int k = 0; lost && k < node->nout; k++)
			bad[node->out[k]] = node->out[k] != 0;
	}
	if (bad[target[0]])
		return;                 /* the import fails */
	for (int i = 0; i < f->noutput; i++) {
		struct flat_val *y = &f->val[f->output[i]];

		if (!bad[f->output[i]]) {
			f->output[kept++] = f->output[i];
			continue;
		}
		y->output = false;
		diag_warn(f->diag, "output '%s' is left out: it needs "
		          "unsupported operators", y->name);
	}
	f->noutput = kept;
	flat_mark_needed(f);
}

/* ONNX's momentum is the weight of the old statistic, PyTorch's that of the new
 * one. */
static const char *
momentum_text(Arena *a, double least, double most)
{
	return least == most ? arena_printf(a, "momentum %g (%g in PyTorch's "
	                                    "terms)", least, 1 - least)
	       : arena_printf(a, "momentum %g to %g (%g to %g in PyTorch's "
	                      "terms)", least, most, 1 - least, 1 - most);
}

/* Whether the graph computes a BatchNormalization's running statistics, as for
 * an InstanceNorm, instead of storing them. */
static bool
has_computed_statistics(const struct flat *f, const struct flat_node *node)
{
	for (int k = 3; k < 5 && k < node->nin; k++)
		if (!f->val[node->in[k]].init && !flat_tensor(f, node->in[k]))
			return true;
	return false;
}

/* What becomes of the nodes for which --batchnorm asks one form. */
static void
note_batchnorm(const struct flat *f, const struct import_options *opt,
               enum batchnorm form)
{
	bool batch = form == BATCHNORM_BATCH;
	const struct flat_node *computed = NULL;
	double least = INFINITY, most = -INFINITY;
	int n = 0, unsaid = 0, ncomputed = 0;

	FOR_FLAT_NODES (node, f) {
		const Onnx__AttributeProto *a = attr_find(node, "momentum");

		if (!is_needed_batchnorm(node)
		    || batchnorm_asked(f, opt, node) != form
		    || batchnorm_trains(node) == batch)
			continue;
		if (batch && has_computed_statistics(f, node)) {
			computed = computed ? computed : node;
			ncomputed++;
			continue;
		}
		n++;
		unsaid += !a;
		least = fmin(least, (double)(a ? a->f : 0.9f));
		most = fmax(most, (double)(a ? a->f : 0.9f));
	}
	if (n && !batch)
		diag_note(f->diag, "--batchnorm running: %d node%s the running "
		          "statistics and do%s not update them", n,
		          n > 1 ? "s use" : " uses", n > 1 ? "" : "es");
	else if (n)
		diag_note(f->diag, "--batchnorm batch: %d node%s batch "
		          "statistics and update%s the running statistics with "
		          "%s, %s", n,
		          n > 1 ? "s use" : " uses", n > 1 ? "" : "s",
		          momentum_text(f->arena, least, most),
		          unsaid ? "the ONNX default where the file has none"
		                 : "from the file");
	if (computed)
		diag_warn(f->diag, "--batchnorm batch: %d node%s batch "
		          "statistics (the first is '%s'), but the graph "
		          "computes the running statistics, as those of "
		          "InstanceNorm with track_running_stats=True: they "
		          "are not updated, and evaluation uses the file's",
		          ncomputed,
		          ncomputed > 1 ? "s use" : " uses", computed->name);
}

/* Nodes that one --batchnorm matches, those for which it counts, and those of
 * which it changes the form. */
struct batchnorm_count {
	int match, count, change;
};

static struct batchnorm_count
count_batchnorms(const struct flat *f, const struct import_options *opt, int i)
{
	const struct glob_wish *w = &opt->batchnorm[i];
	struct batchnorm_count n = { 0, 0, 0 };

	FOR_FLAT_NODES (node, f) {
		bool counts;

		if (!is_needed_batchnorm(node)
		    || !batchnorm_matches(f, node, w->glob))
			continue;
		counts = batchnorm_option(f, opt, node) == i;
		n.match++;
		n.count += counts;
		n.change += counts && batchnorm_trains(node) != w->wanted;
	}
	return n;
}

/* Warn of one --batchnorm without an effect.  Where there is another one, that
 * a node keeps its form is an effect. */
static void
warn_idle_batchnorm(const struct flat *f, const struct import_options *opt,
                    int i)
{
	const struct glob_wish *w = &opt->batchnorm[i];
	struct batchnorm_count n = count_batchnorms(f, opt, i);
	bool all = strcmp(w->glob, "*") == 0;
	const char *why = NULL;

	if (!n.match && all)
		why = "the file has no BatchNormalization node; an exporter "
			"may have folded them into weights: export with "
			"training=TRAINING (TorchScript) or optimize=False "
			"(dynamo)";
	else if (!n.match)
		why = "no BatchNormalization node or its scale has such a name";
	else if (!n.count)
		why = "a later --batchnorm counts for all its nodes";
	else if (!n.change && all && opt->nbatchnorm == 1)
		why = "all BatchNormalization nodes are in this form already";
	if (why)
		diag_warn(f->diag, "--batchnorm %s%s%s does nothing: %s",
		          all ? "" : w->glob, all ? "" : "=",
		          w->wanted ? "batch" : "running", why);
}

static void
note_batchnorms(const struct flat *f, const struct import_options *opt)
{
	for (int i = 0; i < opt->nbatchnorm; i++)
		warn_idle_batchnorm(f, opt, i);
	note_batchnorm(f, opt, BATCHNORM_BATCH);
	note_batchnorm(f, opt, BATCHNORM_RUNNING);
}

/* Warn of batch statistics in a library that only runs forward. */
static void
warn_batch_statistics(const struct flat *f, const struct import_options *opt)
{
	const struct flat_node *first = NULL;
	int n = 0;

	FOR_FLAT_NODES (node, f)
		if (is_needed_batchnorm(node) && batchnorm_trains(node)
		    && batchnorm_asked(f, opt, node) == BATCHNORM_GRAPH) {
			first = first ? first : node;
			n++;
		}
	if (n)
		diag_warn(f->diag, "--forward-only: %d BatchNormalization "
		          "node%s batch statistics (the first is '%s'); for "
		          "inference, try: --batchnorm running", n,
		          n > 1 ? "s use" : " uses", first->name);
}

/* Warn if --dropout off finds no Dropout of any domain or mode. */
static void
note_dropout(const struct flat *f)
{
	FOR_FLAT_NODES (node, f)
		if (node->needed && strstr(node->type, "Dropout"))
			return;
	diag_warn(f->diag, "--dropout off does nothing: there is no Dropout "
	          "node");
}

struct flat *
load_flat(const char *path, const struct import_options *opt, Diag *diag,
          Arena *arena, struct onnx_file **file)
{
	struct flat *f;

	diag_file(diag, path);
	*file = onnx_open(path, opt->shapes_do, diag);
	f = *file ? flat_resolve(*file, opt, diag, arena) : NULL;
	if (!f || !classify(f, opt, true))
		return NULL;
	drop_outputs(f, opt);
	if (opt->all_outputs && !opt->quiet)
		warn_batch_statistics(f, opt);
	if (!opt->quiet)
		note_batchnorms(f, opt);
	if (opt->no_dropout && !opt->quiet)
		note_dropout(f);
	return f;
}
