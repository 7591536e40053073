#include "frontend/driver/load.h"

#include "ir/base/input_file.h"
#include "ir/text/text.h"
#include "runtime/support/glob.h"

/* Text IR is small; anything larger is a mistake. */
enum { TEXT_MAX = 256 << 20 };

/* Fold a part of the model, for the importer. */
static bool
fold_part(void *of, Graph *g, Diag *quiet)
{
	const struct model_load *l = of;
	const struct dump_request none = { 0 };
	Pass p = { .diag = quiet, .opt = &l->cli->opt,
	           .target = l->cli->machine->target, .keep = l->arena,
	           .watch = l->watch };

	return pass_run(&p, g, "bind,fold", NULL, &none);
}

struct import_options
load_options(struct model_load *l)
{
	const struct cli *c = l->cli;

	return (struct import_options){
		.nwish = c->opt.nwish, .wish = c->opt.wish,
		.param = c->opt.param,
		.nconst = c->nconst, .constant = c->constant,
		.untie = c->opt.untie,
		.nbatchnorm = c->nbatchnorm, .batchnorm = c->batchnorm,
		.no_dropout = !c->opt.dropout,
		.quiet = c->opt.quiet,
		.shapes_do = c->plan_only, .loss = c->opt.loss,
		.all_outputs = c->opt.forward_only,
		.fold = fold_part, .fold_of = l,
	};
}

Graph *
load_model(struct model_load *l, struct onnx_file **file)
{
	const char *model = l->cli->model;
	struct import_options o = load_options(l);
	char *text;
	size_t n;

	if (!glob_match("*.ck", model))
		return onnx_import(model, &o, l->diag, file);
	text = input_file_read(model, TEXT_MAX, &n, l->arena, l->diag);
	return text ? text_parse(model, text, n, l->diag) : NULL;
}
