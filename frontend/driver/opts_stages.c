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

/* What a pipeline cannot be combined with, and what to do; NULL: nothing. */
static const char *
conflict(const struct cli *c, const char **remedy)
{
	const struct options *o = &c->opt;
	const struct { bool given; const char *option, *remedy; } row[] = {
		{ o->curve, "--curve and --report", "--dump=plan" },
		{ o->explain, "--explain", "leave out --explain" },
		{ o->forward_only, "--forward-only", "leave out --pp" },
		{ o->update_in_backward == TRI_ON, "--update-in-backward on",
		  "--update-in-backward off" },
		{ o->offload != OFFLOAD_OFF, "--offload", "--offload off" },
		{ o->zero >= 2 || o->zero == ZERO_AUTO, "--zero 2, 3 and auto",
		  "--zero 1" },
		{ o->ep > 1, "--ep", "leave out --ep" },
		{ o->cp > 1, "--cp", "leave out --cp" },
		{ o->halves != SPLIT_OFF, "--halves", "--halves off" },
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

int
check_stages(struct cli *c, FILE *err)
{
	struct options *o = &c->opt;
	const char *remedy, *option;

	if (!are_planned(c))
		return CLI_GO;
	option = conflict(c, &remedy);
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
	if (o->pp > GROUP_MAX) {
		fprintf(err, "ckc: --pp %lld: expected at most %d stages; try: "
		        "--pp %d\n", (long long)o->pp, GROUP_MAX, GROUP_MAX);
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
	return CLI_GO;
}
