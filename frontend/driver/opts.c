/* ckc's command line: the table of options, --help and the parser. */
#include "frontend/driver/opts_set.h"

#include <string.h>
#include <unistd.h>

static const char *const group_title[G_COUNT] = {
	"input", "training", "memory", "target", "look", "output",
};

/* ---- the table ---- */

#define FIELD(f) offsetof(struct cli, f)

enum {
	C = 1 << VERB_COMPILE, CI = C | 1 << VERB_INSPECT, P = 1 << VERB_PLAN,
	K = 1 << VERB_PACK, D = 1 << VERB_DOCTOR
};

static const struct option_spec table[] = {
	{ "dim", "NAME=N", G_INPUT, add_dim_binding, FIELD(opt), CI,
	  "bind a symbolic extent (or INPUT.AXIS=N)" },
	{ "shape", "INPUT=8x128", G_INPUT, add_shape, FIELD(opt), CI,
	  "bind all extents of an input" },
	{ "const", "INPUT=FILE", G_INPUT, add_const, 0, CI,
	  "bind an input to the constant in FILE (.npy or TensorProto .pb)" },
	{ "train", "GLOB", G_INPUT, add_train, FIELD(opt), CI,
	  "train initializers of that name; of these and --freeze the last "
	  "that matches counts" },
	{ "freeze", "GLOB", G_INPUT, add_freeze, FIELD(opt), CI,
	  "do not train initializers of that name (--freeze '*' --train A: "
	  "A alone)" },
	{ "param", "NAME", G_INPUT, add_param, FIELD(opt), CI,
	  "this graph input or initializer is a parameter (frozen beside "
	  "--freeze)" },
	{ "untie", "auto|off", G_INPUT, set_first, FIELD(opt.untie), CI,
	  "train parameters apart that were tied only because they were equal "
	  "(auto)" },

	{ "loss", "OUTPUT", G_TRAIN, set_once, FIELD(opt.loss), CI,
	  "scalar output to minimise, or KIND[:OUTPUT][,KEY=VALUE]... to add "
	  "one: ce, bce, kl, mse, l1, huber; axis, ignore, smoothing, weights, "
	  "pos_weight, delta, reduction" },
	{ "output", "GLOB", G_TRAIN, add_output, FIELD(opt), CI,
	  "keep further graph outputs beside the loss" },
	{ "lora", "GLOB=RANK[:ALPHA]", G_TRAIN, add_lora, FIELD(opt), CI,
	  "train low-rank matrices beside each weight GLOB of products, their "
	  "product times ALPHA/RANK (1), and else what --train names alone" },
	{ "optimizer", "sgd|sgdm|adam|adamw|lion|adafactor|none", G_TRAIN,
	  set_optimizer, FIELD(opt.optimizer), CI,
	  "update rule; sgdm keeps momentum; adam has weight decay in the "
	  "gradient, adamw apart from it (adamw)" },
	{ "no-decay", "GLOB", G_TRAIN, add_nodecay, FIELD(opt), CI,
	  "no weight decay for these parameters" },
	{ "grad-accum", "N", G_TRAIN, set_positive, FIELD(opt.grad_accum),
	  CI, "micro-batches per update, which is that of all their samples "
	  "as one batch (1)" },
	{ "dropout", "on|off", G_TRAIN, set_first, FIELD(opt.dropout), CI,
	  "on: as the graph says (on)" },
	{ "batchnorm", "batch|running", G_TRAIN, set_batchnorm,
	  FIELD(batchnorm), CI,
	  "batch: by the batch's statistics, and running ones follow; running: "
	  "by those, which stay (as the graph says)" },
	{ "attention", "fused|unfused", G_TRAIN, set_first,
	  FIELD(opt.fused_attention), CI,
	  "compute attention in blocks, or op by op (fused)" },
	{ "epilogues", "auto|off", G_TRAIN, set_first, FIELD(opt.epilogues),
	  CI, "products of 16 bits on a GPU end with GELU's gradient and with "
	  "the sums that are gradients of biases (auto)" },
	{ "dropout-mask", "replay|store", G_TRAIN, set_second,
	  FIELD(opt.store_masks), CI,
	  "draw dropout's random numbers again in backward, or keep a byte per "
	  "element (replay)" },
	{ "dtype", "f32|bf16|f16", G_TRAIN, set_dtype, FIELD(opt.dtype), C,
	  "float type of products and of what is between them; norms' "
	  "statistics, sums, losses and updates are f32 (as the file has it)" },
	{ "precision", "VALUE=TYPE", G_TRAIN, add_precision, FIELD(opt), C,
	  "... but what computes this value in f32, or in that type; op:NAME "
	  "for all of that op (globs)" },
	{ "master-weights", "on|off", G_TRAIN, set_first, FIELD(opt.masters),
	  C, "--dtype: parameters are f32, or of that type too and rounded at "
	  "random (on)" },
	{ "resident-copies", "auto|on|off", G_TRAIN, set_tri,
	  FIELD(opt.resident_copies), C,
	  "--dtype: updates write parameters in 16 bits, too, for products to "
	  "read; else each step casts them.  auto: for a GPU, but where a "
	  "budget asks for those bytes (auto)" },
	{ "grad-dtype", "f32|computed", G_TRAIN, set_grad_dtype,
	  FIELD(opt.grad_dtype), C,
	  "type of parameters' gradients: as they are computed, or f32 for all "
	  "(computed)" },
	{ "state-dtype", "f32|bf16", G_TRAIN, set_state_dtype,
	  FIELD(opt.state_dtype), C,
	  "type of the optimizer's state; bf16 is rounded at random (f32)" },
	{ "save-dtype", "bf16|f16", G_MEMORY, set_save_dtype,
	  FIELD(opt.save_dtype), C,
	  "what backward reads of forward may be kept in 16 bits where that "
	  "saves recomputing, which rounds gradients (kept as computed)" },
	{ "update-in-backward", "auto|on|off", G_TRAIN, set_tri,
	  FIELD(opt.update_in_backward), CI,
	  "apply a gradient as soon as it is there: less memory, no clipping, "
	  "no f16; auto: when a budget asks for it (auto)" },
	{ "eval", "on|off", G_TRAIN, set_first, FIELD(eval), C,
	  "a program beside training for ckrun eval, predict and --valid, in "
	  "the same memory (on)" },
	{ "forward-only", NULL, G_TRAIN, set_true, FIELD(opt.forward_only),
	  CI, "compile inference: no backward" },

	{ "memory-budget", "SIZE|PCT", G_MEMORY, set_budget, FIELD(opt), CI,
	  "bytes that a step may own in all, e.g. 6GiB, or 6GB (also 6G), or "
	  "60% of what it owns when everything is kept" },
	{ "recompute", "MODE", G_MEMORY, set_recompute, FIELD(opt), CI,
	  "auto, none, full, selective or every=K (auto)" },
	{ "keep", "GLOB", G_MEMORY, add_keep, FIELD(opt), CI,
	  "never recompute these values or nodes" },
	{ "recompute-values", "GLOB", G_MEMORY, add_recompute, FIELD(opt),
	  CI, "always recompute these values or nodes" },
	{ "gap", "PCT", G_MEMORY, set_double, FIELD(opt.gap_pct), CI | P,
	  "stop this close to the bound, in % of a step (0.1; plan: 0)" },
	{ "plan-time", "SECONDS", G_MEMORY, set_seconds, FIELD(opt.plan_sec),
	  CI | P, "cut the search short after this time" },

	{ "budget", "F|BYTES", G_MEMORY, set_graph_budget, 0, P,
	  "up to 1: a fraction of the peak of the order as given; else bytes" },
	{ "place", NULL, G_MEMORY, set_true, FIELD(place), P,
	  "give offsets in an arena, which must then fit the budget" },
	{ "capacity", "N", G_MEMORY, set_capacity, FIELD(capacity), K,
	  "bytes that there are (as few as can be found)" },

	{ "tp", "T", G_TARGET, set_ranks, FIELD(opt.tp), CI,
	  "cut products over T ranks (tensor parallelism); sizes, the budget "
	  "too, are one rank's" },
	{ "dp", "auto|off|N", G_TARGET, set_dp, FIELD(opt.dp), CI,
	  "let ckrun --ranks train replicas that share out the samples of a "
	  "step (data parallelism); sizes are one's, costs those of N (2) "
	  "(off; with --tp auto at the costs of one, where it can be)" },
	{ "zero", "0|1", G_TARGET, set_second, FIELD(opt.zero), CI,
	  "1: replicas, exactly N then, share out the optimizer's state and "
	  "masters of 16-bit copies (ZeRO-1) (0)" },
	{ "sp", NULL, G_TARGET, set_true, FIELD(opt.sp), CI,
	  "... and rows between them (sequence parallelism)" },
	{ "shard", "VALUE=STATE", G_TARGET, add_shard_wish, FIELD(opt), CI,
	  "... with this value I (whole), R (whole, its gradient added up "
	  "over ranks), P (a summand on each) or S0, S1 ... (cut along that "
	  "dim)" },
	{ "target", "cpu|cuda", G_TARGET, set_target, FIELD(cuda), CI,
	  "what to compile for: this processor, or a GPU of NVIDIA's (cpu)" },
	{ "arch", "sm_NN", G_TARGET, set_arch, FIELD(arch), CI,
	  "... the GPU's architecture (sm_90)" },
	{ "nvcc", "CMD", G_TARGET, set_string, FIELD(nvcc), C | D,
	  "... its compiler (nvcc)" },
	{ "device", "NAME|FILE", G_TARGET, set_string, FIELD(opt.device), CI,
	  "what costs are reckoned for: cpu, host (measured once), "
	  "A100-80GB, H100, H200, or a file such as ckrun --profile writes "
	  "(cpu; with --target cuda H100)" },
	{ "march", "ARCH", G_TARGET, set_string, FIELD(march), C | D,
	  "instruction set, as the C compiler's -march (native)" },
	{ "threads", "N", G_TARGET, set_thread_count, FIELD(opt.threads),
	  CI | D,
	  "most threads that the library will use (those of this machine)" },
	{ "cc", "CMD", G_TARGET, set_string, FIELD(cc), C | D,
	  "C compiler, by way of a cache perhaps: \"ccache gcc\" (cc)" },

	{ "dump", "WHAT[,WHAT]", G_LOOK, set_once, FIELD(dump), C,
	  "plan, memory, shard (how values lie on ranks), precision (types "
	  "and why), a pass's name, or all" },
	{ "dump-dir", "DIR", G_LOOK, set_folder, FIELD(dump_dir), C,
	  "dumps of passes go to DIR/NN-pass.ck" },
	{ "json", "FILE", G_LOOK, set_once, FIELD(json), CI | P,
	  "write the plan (inspect: the findings) as JSON; -: to standard "
	  "output" },
	{ "explain", "VALUE", G_LOOK, set_once, FIELD(opt.explain), C,
	  "why this value is kept, recomputed or free; with --tp what another "
	  "state of it would cost" },
	{ "pp", "P", G_LOOK, set_positive, FIELD(opt.pp), C,
	  "--dump=memory: account for a pipeline of P stages" },
	{ "interleave", "M", G_LOOK, set_positive, FIELD(opt.interleave), C,
	  "... each with M parts of the model in turn (1)" },
	{ "microbatches", "N", G_LOOK, set_positive, FIELD(opt.microbatches),
	  C, "... and N micro-batches in a step (P)" },
	{ "step-time", "SECONDS", G_LOOK, set_seconds, FIELD(opt.step_time), C,
	  "--dump=memory: measured time of a step, for MFU and HFU" },
	{ "curve", NULL, G_LOOK, set_true, FIELD(curve), C,
	  "step time for every memory budget, presets beside; no code unless "
	  "-o is given" },
	{ "curve-svg", "FILE", G_LOOK, set_curve_svg, 0, C,
	  "... and as a picture" },
	{ "report", "FILE.html", G_LOOK, set_once, FIELD(page), C,
	  "a page to look at: the arena over the step, time against budget, "
	  "what is kept, by layer" },
	{ "stats", NULL, G_LOOK, set_true, FIELD(opt.stats), C | P,
	  "time and effort of every pass" },
	{ "passes", "A,B", G_LOOK, set_once, FIELD(passes), C,
	  "run only these passes and print the graph" },
	{ "stop-after", "PASS", G_LOOK, set_once, FIELD(stop_after), C,
	  "stop there and print the graph" },
	{ "fold-limit", "SIZE", G_LOOK, set_fold_limit,
	  FIELD(opt.fold_limit), CI,
	  "largest constant that folding may make (default: 4MiB)" },
	{ "debug", NULL, G_LOOK, set_true, FIELD(debug), C,
	  "check the graph after every pass" },
	{ "quiet", NULL, G_LOOK, set_true, FIELD(opt.quiet), C | P | K,
	  "no progress, no summary, no notes, no warnings of what the export "
	  "damaged" },

	{ "plan-only", NULL, G_OUTPUT, set_true, FIELD(plan_only), C,
	  "no code: plan and report; external data may be absent" },
	{ "emit-c", "DIR", G_OUTPUT, set_folder, FIELD(emit_dir), C,
	  "keep the generated sources in DIR: model.c has the tables, "
	  "kernels.c (a GPU's: model.cu) the kernels" },
};

enum { NROW = sizeof table / sizeof *table };
_Static_assert((size_t)NROW <= OPTIONS_MAX, "struct cli has a place for each");

static const struct {
	const char *name, *usage;
} verb_row[] = {
	[VERB_COMPILE] = { "compile",
		"usage: ckc MODEL.onnx -o MODEL.so [options]\n"
		"       ckc inspect MODEL.onnx [options]\n"
		"       ckc plan GRAPH.json --budget F [options]\n"
		"       ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"       ckc doctor\n"
		"Compiles an ONNX model into a library that trains it inside "
		"a memory budget.\nRun the library with ckrun.\n" },
	[VERB_INSPECT] = { "inspect",
		"usage: ckc inspect MODEL.onnx [options]\n"
		"Says whether a file can be trained, as a compile with the "
		"same options would and\nwith its exit status: extents to "
		"bind, parameters with the reason for each, op\ncoverage, "
		"and what its export lost.\n" },
	[VERB_PLAN] = { "plan",
		"usage: ckc plan GRAPH.json --budget F [options]\n"
		"Chooses what a graph of costs keeps and what it computes "
		"again to stay within a\nbudget.  --json without a file "
		"writes to standard output.\n"
		"GRAPH.json: {\"nodes\": [{\"id\": 0, \"cost_ram\": BYTES, "
		"\"cost_cpu\": TIME,\n\"backward\": false}, ...], \"links\": "
		"[{\"source\": 0, \"target\": 1}, ...]}; ids count\nfrom 0, in "
		"the order of execution.\n" },
	[VERB_PACK] = { "pack",
		"usage: ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"Places buffers with known lifetimes in one block of memory.\n"
		"Columns: id,lower,upper,size.\n" },
	[VERB_DOCTOR] = { "doctor",
		"usage: ckc doctor [options]\n"
		"Says what there is on this machine of what ckc works with, "
		"and whether a model\ncan be compiled and trained.\n" },
};

static void
print_help(FILE *out, enum ckc_verb verb)
{
	fputs(verb_row[verb].usage, out);
	for (enum option_group g = 0; g < G_COUNT; g++) {
		bool titled = false;

		for (int i = 0; i < NROW; i++) {
			const struct option_spec *r = &table[i];
			int n;

			if (r->group != g
			    || !(r->verbs >> verb & 1))
				continue;
			if (!titled)
				fprintf(out, "\n%s:\n", group_title[g]);
			titled = true;
			n = fprintf(out, "  --%s%s%s", r->name,
			            r->arg ? " " : "", r->arg ? r->arg : "");
			fprintf(out, "%*s%s\n", n < 32 ? 32 - n : 1, "",
			        r->help);
		}
	}
	if (verb == VERB_PACK)
		fprintf(out, "\n  -o FILE%*sthe same rows with their offsets\n",
		        23, "");
	if (verb == VERB_COMPILE)
		fprintf(out, "  -o FILE%*sthe library (MODEL.so); weights go "
		        "to MODEL.safetensors\n", 23, "");
	fputs("\n  --help, -h, --version\n\n"
	      "Exit status: 0 done, 1 an error in the model or its use (on "
	      "stderr), 2 wrong usage.\n", out);
}

static const struct option_spec *
find_option(const char *name, size_t n)
{
	for (int i = 0; i < NROW; i++)
		if (strlen(table[i].name) == n
		    && !strncmp(table[i].name, name, n))
			return &table[i];
	return NULL;
}

bool
option_given(const struct cli *c, const char *name)
{
	const struct option_spec *r = find_option(name, strlen(name));

	return r && c->given[r - table];
}

static int
usage_error(FILE *err, const char *what, const char *arg)
{
	fprintf(err, "ckc: %s '", what);
	diag_escape(err, arg);
	fprintf(err, "'; see ckc --help\n");
	return 2;
}

/* One long option at argv[*i]; --name=value or --name value. */
static int
parse_long(struct arg_parser *p, int argc, char **argv, int *i)
{
	const char *arg = argv[*i] + 2, *eq = strchr(arg, '='), *value = NULL;
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct option_spec *r = find_option(arg, n);

	if (!r)
		return usage_error(p->err, "unknown option", argv[*i]);
	if (!(r->verbs >> p->c->verb & 1))
		return usage_error(p->err, arena_printf(p->arena, "not an "
			"option of %s:", verb_row[p->c->verb].name), argv[*i]);
	if (r->arg) {
		value = eq ? eq + 1 : *i + 1 < argc ? argv[++*i] : NULL;
		if (p->c->verb == VERB_PLAN && !strcmp(r->name, "json")
		    && !eq && (!value || !strncmp(value, "--", 2))) {
			*i -= value != NULL;
			value = "-";
		}
		if (!value)
			return usage_error(p->err, "a value is missing after",
			                   argv[*i]);
	} else if (eq) {
		return usage_error(p->err, "no value is allowed in", argv[*i]);
	}
	p->row = r;
	p->c->given[r - table] = true;
	return r->set(p, value, (char *)p->c + r->field) ? CLI_GO : 2;
}

static void
set_defaults(struct cli *c)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof *c);
	c->opt.untie = true;
	c->opt.epilogues = true;
	c->opt.optimizer = OPT_ADAMW;
	c->opt.grad_accum = 1;
	c->opt.dropout = true;
	c->eval = true;
	c->opt.fused_attention = true;
	c->opt.masters = true;
	c->opt.budget_bytes = -1;
	c->budget = -1;
	c->budget_bytes = c->capacity = -1;
	c->opt.gap_pct = 0.1;
	c->opt.threads = n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
	c->opt.fold_limit = 4 << 20;
	c->cc = "cc";
	c->march = "native";
	c->nvcc = "nvcc";
	c->arch = "sm_90";
}

/* What a verb cannot do without. */
static int
check_complete(const struct cli *c, FILE *err)
{
	static const char *const file[] = {
		[VERB_COMPILE] = "a model is missing",
		[VERB_INSPECT] = "a model is missing",
		[VERB_PLAN] = "a graph is missing",
		[VERB_PACK] = "a table of buffers is missing",
		[VERB_DOCTOR] = NULL,
	};
	const char *missing = !c->model ? file[c->verb]
		: c->verb == VERB_PACK && !c->out ? "-o OUT.csv is missing"
		: c->verb == VERB_PLAN && c->budget < 0 && c->budget_bytes < 0
		? "--budget F is missing" : NULL;
	const char *usage = verb_row[c->verb].usage;

	if (!missing && (!c->model || file[c->verb]))
		return CLI_GO;
	fprintf(err, "ckc: %s; %.*s; see ckc %s%s--help\n",
	        missing ? missing : "a file is unexpected",
	        (int)strcspn(usage, "\n"), usage,
	        c->verb ? verb_row[c->verb].name : "", c->verb ? " " : "");
	return 2;
}

/* What is cut over replicas is so many bytes only if their number is known. */
static int
check_zero(const struct cli *c, FILE *err)
{
	if (!c->opt.zero || c->opt.dp > 0)
		return CLI_GO;
	fprintf(err, "ckc: --zero 1: expected the number of replicas that "
	        "share out the optimizer's state, found %s; try: --zero 1 "
	        "--dp 2\n", c->opt.dp ? "--dp auto" : "no --dp");
	return 2;
}

int
cli_parse(struct cli *c, int argc, char **argv, Arena *arena, FILE *out,
          FILE *err)
{
	struct arg_parser p = { c, arena, err, NULL };
	bool options = true;
	int i = 1, status;

	set_defaults(c);
	c->nflag = argc > 0 ? argc - 1 : 0;
	c->flag = (const char *const *)argv + 1;
	for (enum ckc_verb v = VERB_INSPECT; argc > 1 && v <= VERB_DOCTOR; v++)
		if (!strcmp(argv[1], verb_row[v].name)) {
			c->verb = v;
			i = 2;
		}
	if (c->verb == VERB_PLAN)
		c->opt.gap_pct = 0;     /* the search is bounded anyhow */
	for (; i < argc; i++) {
		if (options && (!strcmp(argv[i], "--help")
		                || !strcmp(argv[i], "-h"))) {
			print_help(out, c->verb);
			return 0;
		}
		if (options && !strcmp(argv[i], "--version")) {
			fprintf(out, "ckc %s\n", CKC_VERSION);
			return 0;
		}
		if (options && !strcmp(argv[i], "--")) {
			options = false;
		} else if (options && !strncmp(argv[i], "--", 2)) {
			status = parse_long(&p, argc, argv, &i);
			if (status != CLI_GO)
				return status;
		} else if (options && !strncmp(argv[i], "-o", 2)
		           && (c->verb == VERB_COMPILE
		               || c->verb == VERB_PACK)) {
			const char *before = c->out;

			c->out = argv[i][2] ? argv[i] + 2 : argv[++i];
			if (i >= argc || !*c->out)
				return usage_error(err, "a value is missing "
				                   "after", "-o");
			if (before && strcmp(before, c->out) != 0)
				return usage_error(err, "-o is given twice; "
				                   "unexpected", c->out);
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			return usage_error(err, "unknown option", argv[i]);
		} else if (c->model && c->verb == VERB_COMPILE
		           && !strpbrk(c->model, "./")) {
			return usage_error(err, "unknown verb, none of "
			                   "inspect, plan, pack, doctor:",
			                   c->model);
		} else if (c->model) {
			return usage_error(err, "one model only; unexpected",
			                   argv[i]);
		} else {
			c->model = argv[i];
		}
	}
	if (!c->model && c->verb == VERB_PLAN && c->json) {
		c->model = c->json;     /* --json GRAPH: it was no value */
		c->json = "-";
	}
	if (c->curve && !c->out)
		c->plan_only = true;
	c->opt.curve = c->curve || c->page;
	status = check_complete(c, err);
	if (status == CLI_GO)
		status = check_zero(c, err);
	if (c->opt.tp && !option_given(c, "dp"))
		c->opt.dp = DP_TRY;
	return status;
}
