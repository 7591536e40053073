/* --lr-scale and --decay: settings of the parameters that match globs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/err.h"
#include "runtime/ckrun/start.h"
#include "runtime/support/glob.h"
#include "runtime/support/number.h"

/* A glob and its number, out of "GLOB=F". */
struct group_rule {
	char *glob;
	double x;
	size_t matched;                 /* parameters */
};

struct group_rules {
	const char *option;
	struct group_rule v[MAX_FEED];
	size_t n;
};

bool
groups_split(const char *text, size_t *glob, double *x)
{
	const char *eq = strrchr(text, '=');

	*glob = eq ? (size_t)(eq - text) : 0;
	return eq && eq != text && number_real(eq + 1, x) && *x >= 0;
}

static ckr_status
read_rules(ckr_ctx *m, struct group_rules *r, const struct option_words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct group_rule *one = &r->v[r->n];
		size_t n;

		groups_split(w->v[i], &n, &one->x);
		one->glob = strndup(w->v[i], n);
		if (!one->glob)
			return ckr_fail(m, CKR_ENOMEM, "out of memory");
		r->n++;
	}
	return CKR_OK;
}

static void
free_rules(struct group_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].glob);
}

/* The number of the last rule that matches, counted at all that do. */
static bool
match_rules(struct group_rules *r, const char *name, double *x)
{
	bool any = false;

	for (size_t i = 0; i < r->n; i++) {
		if (!glob_match(r->v[i].glob, name))
			continue;
		r->v[i].matched++;
		*x = r->v[i].x;
		any = true;
	}
	return any;
}

static ckr_status
check_matches(ckr_ctx *m, const struct group_rules *r, bool quiet)
{
	char text[NAME_TEXT];

	for (size_t i = 0; i < r->n; i++) {
		const struct group_rule *one = &r->v[i];

		err_name(text, sizeof(text), one->glob);
		if (!one->matched)
			return ckr_fail(m, CKR_EARG, "--%s: '%s' matches no "
			                "trainable parameter", r->option,
			                text);
		if (!quiet)
			printf("--%s '%s=%g': %zu parameter%s\n", r->option,
			       text, one->x, one->matched,
			       one->matched == 1 ? "" : "s");
	}
	return CKR_OK;
}

static ckr_status
set_all(ckr_ctx *m, struct group_rules *scale, struct group_rules *decay)
{
	struct ckr_info info;

	for (size_t i = 0; ckr_tensor(m, i, &info) == CKR_OK; i++) {
		double lr = 1, own = -1;
		bool any;

		if (strcmp(info.kind, "param") || info.frozen)
			continue;
		any = match_rules(scale, info.name, &lr);
		any |= match_rules(decay, info.name, &own);
		if (any)
			CKR_TRY(ckr_set_group(m, info.name, lr, own));
	}
	return CKR_OK;
}

ckr_status
groups_set(ckr_ctx *m, const struct ckrun_options *o)
{
	struct group_rules scale = { .option = "lr-scale" };
	struct group_rules decay = { .option = "decay" };
	ckr_status s = read_rules(m, &scale, &o->lr_scale);

	if (s == CKR_OK)
		s = read_rules(m, &decay, &o->decay);
	if (s == CKR_OK && scale.n + decay.n)
		s = set_all(m, &scale, &decay);
	if (s == CKR_OK)
		s = check_matches(m, &scale, o->quiet);
	if (s == CKR_OK)
		s = check_matches(m, &decay, o->quiet);
	free_rules(&scale);
	free_rules(&decay);
	return s;
}
