/* Options that name initializers: --train, --freeze, --param. */
#include "frontend/params/params.h"
#include "runtime/support/glob.h"

#include <string.h>

const char *
param_option_text(Arena *a, const struct glob_wish *w)
{
	return arena_printf(a, "%s '%s'", w->wanted ? "--train" : "--freeze",
	                    w->glob);
}

/* An option without a match is an error.  An option that later options undo
 * completely may be a mistake: a warning. */
static bool
check_globs(struct flat *f, const struct import_options *o)
{
	bool ok = true;

	for (int i = 0; i < o->nwish; i++) {
		const struct glob_wish *w = &o->wish[i];
		bool hit = false, counts = false;

		for (int k = 1; k < f->nval && !counts; k++) {
			const struct flat_val *v = &f->val[k];

			if (!v->init || !glob_match(w->glob, v->name))
				continue;
			hit = true;
			counts = dtype_info[onnx_dtype(v->init->data_type)].cls
				== 'f' && !v->state_slot
				&& (v->reached || !w->wanted)
				&& glob_last(o->nwish, o->wish, v->name) == w;
		}
		if (!hit)
			ok = diag_error(f->diag, "%s: no initializer has that "
			                "name; `ckc inspect` lists all",
			                param_option_text(f->arena, w));
		else if (!counts)
			diag_warn(f->diag, "%s does nothing: each match has a "
			          "later --train or --freeze, is not a float "
			          "tensor, holds running statistics of a "
			          "BatchNormalization, or gets no gradient "
			          "from the loss",
			          param_option_text(f->arena, w));
	}
	return ok;
}

static bool
check_params(struct flat *f, const struct import_options *o)
{
	bool ok = true;

	for (int i = 0; i < o->param.n; i++) {
		bool hit = false;

		for (int k = 1; k < f->nval && !hit; k++)
			hit = (f->val[k].init || f->val[k].info)
				&& strcmp(o->param.v[i], f->val[k].name) == 0;
		if (!hit)
			ok = diag_error(f->diag, "--param %s: no initializer "
			                "or input has that name; `ckc inspect` "
			                "lists all", o->param.v[i]);
	}
	return ok;
}

bool
check_param_options(struct flat *f, const struct import_options *o)
{
	return check_globs(f, o) && check_params(f, o);
}
