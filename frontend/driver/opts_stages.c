/* Options of a pipeline that is planned: --pp without --dump=memory. */
#include "frontend/driver/opts_check.h"

#include "frontend/driver/opts_set.h"

/* Whether the stages are planned; else they are an account of memory. */
static bool
are_planned(const struct cli *c)
{
	return c->verb == VERB_COMPILE && c->opt.pp > 1
		&& !c->opt.interleave && !cli_dumps(c, "memory");
}

const char *
stages_conflict(const struct cli *c, const char **remedy)
{
	const struct options *o = &c->opt;
	/* --auto replaces these */
	bool zero_auto = o->zero == ZERO_AUTO && !c->automatic;
	const struct { bool given; const char *option, *remedy; } row[] = {
		{ o->curve, "--curve and --report", "--dump=plan" },
		{ o->explain, "--explain", "leave out --explain" },
		{ o->forward_only, "--forward-only", "leave out --pp" },
		{ o->update_in_backward == TRI_ON, "--update-in-backward on",
		  "--update-in-backward off" },
		{ o->offload != OFFLOAD_OFF, "--offload", "--offload off" },
		{ o->zero >= 2 || zero_auto, "--zero 2, 3 and auto",
		  "--zero 1" },
		{ o->ep > 1, "--ep", "leave out --ep" },
		{ o->cp > 1, "--cp", "leave out --cp" },
		{ o->halves == SPLIT_ON, "--halves on", "--halves off" },
		{ o->dtype == DT_F16, "--dtype f16, whose losses are scaled,",
		  "--dtype bf16" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (row[i].given) {
			*remedy = row[i].remedy;
			return row[i].option;
		}
	return NULL;
}

/* What the numbers of stages and micro-batches have to be. */
static int
check_numbers(const struct options *o, FILE *err)
{
	int64_t v = o->chunks ? o->chunks : 1, n = o->grad_accum;

	if (o->pp > GROUP_MAX / v && o->chunks && 2 * o->pp <= GROUP_MAX) {
		fprintf(err, "ckc: --pp %lld --schedule interleaved=%lld: "
		        "expected at most %d stages; try: --schedule "
		        "interleaved=%lld\n", (long long)o->pp, (long long)v,
		        GROUP_MAX, (long long)(GROUP_MAX / o->pp));
		return 2;
	}
	if (o->pp > GROUP_MAX / v) {
		fprintf(err, "ckc: --pp %lld: expected at most %lld stages; "
		        "try: --pp %lld\n", (long long)o->pp,
		        (long long)(GROUP_MAX / v), (long long)(GROUP_MAX / v));
		return 2;
	}
	if (o->chunks && n % o->pp) {
		int64_t below = n / o->pp * o->pp;

		fprintf(err, "ckc: --pp %lld --schedule interleaved=%lld "
		        "--microbatches %lld: expected a multiple of %lld "
		        "micro-batches; try: --microbatches %lld",
		        (long long)o->pp, (long long)v, (long long)n,
		        (long long)o->pp, (long long)(below + o->pp));
		if (below)
			fprintf(err, " or --microbatches %lld",
			        (long long)below);
		fputc('\n', err);
		return 2;
	}
	return CLI_GO;
}

int
check_stages(struct cli *c, FILE *err)
{
	struct options *o = &c->opt;
	int64_t stages = o->pp * (o->chunks ? o->chunks : 1);
	const char *remedy, *option;

	if (!are_planned(c) && o->pp && o->stage.n) {
		fprintf(err, "ckc: --stage: expected --pp 2 or more, without "
		        "--dump=memory and --interleave, which plan no "
		        "stages\n");
		return 2;
	}
	if (!are_planned(c) && o->pp > 1 && o->zero_bubble) {
		fprintf(err, "ckc: --schedule zb-h1: expected --pp without "
		        "--dump=memory and --interleave, whose account knows "
		        "1f1b and interleaved=V; try: --dump=plan\n");
		return 2;
	}
	if (!are_planned(c)) {
		/* of the account of memory */
		if (o->chunks && !o->interleave)
			o->interleave = o->chunks;
		return CLI_GO;
	}
	option = stages_conflict(c, &remedy);
	if (option) {
		fprintf(err, "ckc: --pp and %s cannot be combined; try: %s\n",
		        option, remedy);
		return 2;
	}
	if (o->microbatches && option_given(c, "grad-accum")
	    && o->microbatches != o->grad_accum) {
		fprintf(err, "ckc: --microbatches %lld --grad-accum %lld: "
		        "expected equal numbers: both are the micro-batches of "
		        "a step; leave out --grad-accum\n",
		        (long long)o->microbatches, (long long)o->grad_accum);
		return 2;
	}
	if (o->stage.n && o->stage.n != stages - 1) {
		fprintf(err, "ckc: %lld stages: expected %lld --stage, or "
		        "none, found %d\n", (long long)stages,
		        (long long)stages - 1, o->stage.n);
		return 2;
	}
	if (c->automatic)               /* it chooses micro-batches */
		return CLI_GO;
	if (o->microbatches)
		o->grad_accum = o->microbatches;
	else if (!option_given(c, "grad-accum"))
		o->grad_accum = o->pp;
	o->update_in_backward = TRI_OFF;
	o->stages = true;
	return check_numbers(o, err);
}
