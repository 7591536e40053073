#include "frontend/opts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum group { G_INPUT, G_TRAIN, G_MEMORY, G_TARGET, G_LOOK, G_OUTPUT, G_COUNT };

static const char *const group_title[G_COUNT] = {
	"input", "training", "memory", "target", "look", "output",
};

struct parser {
	struct cli *c;
	Arena *arena;
	FILE *err;
	const char *option;             /* being parsed, for messages */
};

/* A handler stores a value; arg is NULL for options without one. */
typedef bool Handler(struct parser *, const char *arg, void *field);

struct option_row {
	const char *name, *arg;         /* arg NULL: takes none */
	enum group group;
	Handler *handle;
	size_t field;
	unsigned verbs;                 /* that have it: bits 1 << VERB_... */
	const char *help;
};

static bool
bad(struct parser *p, const char *arg, const char *expected)
{
	fprintf(p->err, "ckc: %s: expected %s, found '", p->option, expected);
	diag_escape(p->err, arg);
	fprintf(p->err, "'\n");
	return false;
}

static bool
is_one_of(const char *arg, const char *const *words, int *which)
{
	for (*which = 0; words[*which]; ++*which)
		if (!strcmp(words[*which], arg))
			return true;
	return false;
}

/* ---- handlers ---- */

static bool
set_string(struct parser *p, const char *arg, void *field)
{
	if (!*arg)
		return bad(p, arg, "a value");
	*(const char **)field = arg;
	return true;
}

static bool
set_true(struct parser *p, const char *arg, void *field)
{
	(void)p;
	(void)arg;
	*(bool *)field = true;
	return true;
}

/* A list of strings is a count followed by the pointer to its array. */
static void
append(struct parser *p, int *n, const char ***list, const char *s)
{
	const char **grown = arena_array(p->arena, (size_t)*n + 1,
	                                 sizeof *grown);

	if (*n)
		memcpy(grown, *list, (size_t)*n * sizeof *grown);
	grown[(*n)++] = s;
	*list = grown;
}

#define LIST_HANDLER(fn, count, list) \
static bool \
fn(struct parser *p, const char *arg, void *field) \
{ \
	struct options *o = field; \
	if (!*arg) \
		return bad(p, arg, "a name or pattern"); \
	append(p, &o->count, &o->list, arg); \
	return true; \
}

LIST_HANDLER(add_train, ntrain, train)
LIST_HANDLER(add_freeze, nfreeze, freeze)
LIST_HANDLER(add_param, nparam, param)
LIST_HANDLER(add_nodecay, nnodecay, nodecay)
LIST_HANDLER(add_output, noutput, output)
LIST_HANDLER(add_keep, nkeep, keep)
LIST_HANDLER(add_recompute, nrecompute, recompute)

static bool
parse_count(const char *s, int64_t *x)
{
	char *end;

	errno = 0;
	*x = strtoll(s, &end, 10);
	return isdigit((unsigned char)*s) && !*end && !errno;
}

/* NAME=N: the last '=' counts, as names may hold one. */
static const char *
split_binding(struct parser *p, const char *arg, const char **name)
{
	const char *eq = strrchr(arg, '=');

	if (!eq || eq == arg || !eq[1])
		return NULL;
	*name = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	return eq + 1;
}

static bool
add_dim(struct parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct dim_binding *grown, b = { 0 };
	const char *size = split_binding(p, arg, &b.name);

	if (!size || !parse_count(size, &b.size) || b.size <= 0)
		return bad(p, arg, "NAME=N or INPUT.AXIS=N with N > 0");
	grown = arena_array(p->arena, (size_t)o->ndim + 1, sizeof *grown);
	if (o->ndim)
		memcpy(grown, o->dim, (size_t)o->ndim * sizeof *grown);
	grown[o->ndim++] = b;
	o->dim = grown;
	return true;
}

static bool
parse_shape(const char *s, Shape *shape)
{
	memset(shape, 0, sizeof *shape);
	if (!strcmp(s, "scalar"))
		return true;
	for (;;) {
		char *end;
		int64_t x;

		errno = 0;
		x = strtoll(s, &end, 10);
		if (!isdigit((unsigned char)*s) || errno || x < 0
		    || shape->rank == MAX_RANK)
			return false;
		shape->dim[shape->rank++] = x;
		if (!*end)
			return true;
		if (*end != 'x')
			return false;
		s = end + 1;
	}
}

static bool
add_shape(struct parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct shape_binding *grown, b = { 0 };
	const char *shape = split_binding(p, arg, &b.input);

	if (!shape || !parse_shape(shape, &b.shape))
		return bad(p, arg, "INPUT=8x128 (at most 8 extents)");
	grown = arena_array(p->arena, (size_t)o->nshape + 1, sizeof *grown);
	if (o->nshape)
		memcpy(grown, o->shape, (size_t)o->nshape * sizeof *grown);
	grown[o->nshape++] = b;
	o->shape = grown;
	return true;
}

static bool
add_const(struct parser *p, const char *arg, void *field)
{
	struct cli *c = field;
	struct import_const *grown, b;
	const char *eq = strchr(arg, '=');

	if (!eq || eq == arg || !eq[1])
		return bad(p, arg, "INPUT=FILE (.npy or .pb)");
	b.input = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	b.file = eq + 1;
	grown = arena_array(p->arena, (size_t)c->nconst + 1, sizeof *grown);
	if (c->nconst)
		memcpy(grown, c->constant, (size_t)c->nconst * sizeof *grown);
	grown[c->nconst++] = b;
	c->constant = grown;
	return true;
}

/* "512MiB", "24GB", "1.5GiB", "4096". */
static bool
parse_size(const char *s, int64_t *nbytes)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {
		{ "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "KB", 1e3 },
		{ "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
		{ "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
		{ "TiB", 0x1p40 },
	};
	char *end;
	double x;

	if (parse_count(s, nbytes))
		return true;
	if (!isdigit((unsigned char)*s))
		return false;
	x = strtod(s, &end);
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].unit)) {
			x *= units[i].bytes;
			*nbytes = (int64_t)x;
			return x < 0x1p62;
		}
	return false;
}

static bool
set_budget(struct parser *p, const char *arg, void *field)
{
	struct options *o = field;
	size_t n = strlen(arg);
	char *end;

	o->budget_pct = 0;
	o->budget_bytes = -1;
	if (n && arg[n - 1] == '%' && isdigit((unsigned char)*arg)) {
		o->budget_pct = strtod(arg, &end);
		if (end == arg + n - 1 && o->budget_pct > 0
		    && o->budget_pct <= 1e6)
			return true;
	} else if (parse_size(arg, &o->budget_bytes) && o->budget_bytes > 0) {
		return true;
	}
	return bad(p, arg, "a size such as 512MiB, 24GB, or 60%");
}

static bool
set_recompute(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = {
		"auto", "none", "full", "selective", NULL
	};
	struct options *o = field;
	int which;

	if (is_one_of(arg, words, &which)) {
		o->remat = (enum remat_mode)which;
		return true;
	}
	if (!strncmp(arg, "every=", 6)
	    && parse_count(arg + 6, &o->remat_every) && o->remat_every > 0) {
		o->remat = REMAT_EVERY;
		return true;
	}
	return bad(p, arg, "auto, none, full, selective or every=K");
}

static bool
set_word(struct parser *p, const char *arg, const char *const *words,
         const char *expected, int *value)
{
	return is_one_of(arg, words, value) || bad(p, arg, expected);
}

static bool
set_optimizer(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "none", "sgd", "adamw", NULL };
	int which;

	if (!set_word(p, arg, words, "sgd, adamw or none", &which))
		return false;
	*(enum optimizer *)field = (enum optimizer)which;
	return true;
}

static bool
set_tri(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "auto", "on", "off", NULL };
	int which;

	if (!set_word(p, arg, words, "auto, on or off", &which))
		return false;
	*(enum tri *)field = (enum tri)which;
	return true;
}

static bool
set_curve_svg(struct parser *p, const char *arg, void *field)
{
	struct cli *c = field;

	(void)p;
	c->curve_svg = arg;
	c->opt.curve = true;
	return true;
}

static bool
set_on_off(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "off", "on", NULL };
	int which;

	if (!set_word(p, arg, words, "on or off", &which))
		return false;
	*(bool *)field = which;
	return true;
}

static bool
set_untie(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "off", "auto", NULL };
	int which;

	if (!set_word(p, arg, words, "auto or off", &which))
		return false;
	*(bool *)field = which;
	return true;
}

static bool
set_attention(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "unfused", "fused", NULL };
	int which;

	if (!set_word(p, arg, words, "fused or unfused", &which))
		return false;
	*(bool *)field = which;
	return true;
}

static bool
set_dtype(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "f32", "bf16", "f16", NULL };
	static const DType dt[] = { DT_F32, DT_BF16, DT_F16 };
	int which;

	if (!set_word(p, arg, words, "f32, bf16 or f16", &which))
		return false;
	*(DType *)field = dt[which];
	return true;
}

static bool
set_masks(struct parser *p, const char *arg, void *field)
{
	static const char *const words[] = { "replay", "store", NULL };
	int which;

	if (!set_word(p, arg, words, "replay or store", &which))
		return false;
	*(bool *)field = which;
	return true;
}

static bool
set_target(struct parser *p, const char *arg, void *field)
{
	if (strcmp(arg, "cpu") != 0)
		return bad(p, arg, "cpu (other targets are not supported)");
	(void)field;
	return true;
}

static bool
set_positive(struct parser *p, const char *arg, void *field)
{
	int64_t *x = field;

	if (!parse_count(arg, x) || *x <= 0 || *x > 1000000)
		return bad(p, arg, "a number from 1 to 1000000");
	return true;
}

static bool
set_threads(struct parser *p, const char *arg, void *field)
{
	int64_t x;

	if (!parse_count(arg, &x) || x < 1 || x > 1024)
		return bad(p, arg, "a number from 1 to 1024");
	*(int *)field = (int)x;
	return true;
}

static bool
set_double(struct parser *p, const char *arg, void *field)
{
	char *end;
	double x = strtod(arg, &end);

	if (end == arg || *end || !isfinite(x) || x < 0)
		return bad(p, arg, "a number >= 0");
	*(double *)field = x;
	return true;
}

static bool
set_graph_budget(struct parser *p, const char *arg, void *field)
{
	struct cli *c = field;
	char *end;

	c->budget = -1;
	c->budget_bytes = -1;
	if (strtod(arg, &end) > 0 && end != arg && !*end
	    && strtod(arg, NULL) <= 1) {
		c->budget = strtod(arg, NULL);
		return true;
	}
	if (parse_size(arg, &c->budget_bytes) && c->budget_bytes > 0)
		return true;
	if (end != arg && !*end && strtod(arg, NULL) < 0x1p62
	    && strtod(arg, NULL) > 1) {
		c->budget_bytes = (int64_t)ceil(strtod(arg, NULL));
		return true;
	}
	return bad(p, arg, "a fraction from 0 to 1, or bytes");
}

static bool
set_capacity(struct parser *p, const char *arg, void *field)
{
	return parse_count(arg, field) || bad(p, arg, "a number of bytes");
}

static bool
set_fold_limit(struct parser *p, const char *arg, void *field)
{
	return (parse_size(arg, field) && *(int64_t *)field > 0)
		|| bad(p, arg, "a size such as 256MiB");
}

/* ---- the table ---- */

#define FIELD(f) offsetof(struct cli, f)

enum {
	C = 1 << VERB_COMPILE, CI = C | 1 << VERB_INSPECT, P = 1 << VERB_PLAN,
	K = 1 << VERB_PACK
};

static const struct option_row table[] = {
	{ "dim", "NAME=N", G_INPUT, add_dim, FIELD(opt), CI,
	  "bind a symbolic extent (or INPUT.AXIS=N)" },
	{ "shape", "INPUT=8x128", G_INPUT, add_shape, FIELD(opt), CI,
	  "bind all extents of an input" },
	{ "const", "INPUT=FILE", G_INPUT, add_const, 0, CI,
	  "bind an input to the constant in FILE (.npy or TensorProto .pb)" },
	{ "train", "GLOB", G_INPUT, add_train, FIELD(opt), CI,
	  "train initializers of that name" },
	{ "freeze", "GLOB", G_INPUT, add_freeze, FIELD(opt), CI,
	  "do not train initializers of that name" },
	{ "param", "NAME", G_INPUT, add_param, FIELD(opt), CI,
	  "this graph input is a parameter" },
	{ "untie", "auto|off", G_INPUT, set_untie, FIELD(opt.untie), CI,
	  "train parameters apart that were tied only because they were equal "
	  "(auto)" },

	{ "loss", "OUTPUT", G_TRAIN, set_string, FIELD(opt.loss), CI,
	  "scalar output to minimise, or ce[:LOGITS] or mse[:OUTPUT] to add "
	  "one" },
	{ "output", "GLOB", G_TRAIN, add_output, FIELD(opt), C,
	  "keep further graph outputs beside the loss" },
	{ "optimizer", "adamw|sgd|none", G_TRAIN, set_optimizer,
	  FIELD(opt.optimizer), C, "update rule (adamw)" },
	{ "no-decay", "GLOB", G_TRAIN, add_nodecay, FIELD(opt), C,
	  "no weight decay for these parameters" },
	{ "grad-accum", "N", G_TRAIN, set_positive, FIELD(opt.grad_accum),
	  C, "micro-batches per update (1)" },
	{ "dropout", "on|off", G_TRAIN, set_on_off, FIELD(opt.dropout), C,
	  "on: as the graph says (on)" },
	{ "attention", "fused|unfused", G_TRAIN, set_attention,
	  FIELD(opt.fused_attention), C,
	  "compute attention in blocks, or op by op (fused)" },
	{ "dropout-mask", "replay|store", G_TRAIN, set_masks,
	  FIELD(opt.store_masks), C,
	  "draw dropout's random numbers again in backward, or keep a byte per "
	  "element (replay)" },
	{ "dtype", "f32|bf16|f16", G_TRAIN, set_dtype, FIELD(opt.dtype), C,
	  "float type of parameters and activations, with --plan-only (as the "
	  "file has them)" },
	{ "update-in-backward", "auto|on|off", G_TRAIN, set_tri,
	  FIELD(opt.update_in_backward), C,
	  "apply a gradient as soon as it is there: less memory, no clipping; "
	  "auto: when a budget asks for it (auto)" },
	{ "forward-only", NULL, G_TRAIN, set_true, FIELD(opt.forward_only),
	  C, "compile inference: no backward" },

	{ "memory-budget", "SIZE|PCT", G_MEMORY, set_budget, FIELD(opt), C,
	  "bytes that a step may own in all, e.g. 6GiB, or 60% of what it owns "
	  "when everything is kept" },
	{ "recompute", "MODE", G_MEMORY, set_recompute, FIELD(opt), C,
	  "auto, none, full, selective or every=K (auto)" },
	{ "keep", "GLOB", G_MEMORY, add_keep, FIELD(opt), C,
	  "never recompute these values or nodes" },
	{ "recompute-values", "GLOB", G_MEMORY, add_recompute, FIELD(opt),
	  C, "always recompute these values or nodes" },
	{ "gap", "PCT", G_MEMORY, set_double, FIELD(opt.gap_pct), C | P,
	  "stop this close to the bound, in % of a step (0.1; plan: 0)" },
	{ "plan-time", "SECONDS", G_MEMORY, set_double, FIELD(opt.plan_sec),
	  C | P, "cut the search short after this time" },

	{ "budget", "F|BYTES", G_MEMORY, set_graph_budget, 0, P,
	  "up to 1: a fraction of the peak of the order as given; else bytes" },
	{ "place", NULL, G_MEMORY, set_true, FIELD(place), P,
	  "give offsets in an arena, which must then fit the budget" },
	{ "capacity", "N", G_MEMORY, set_capacity, FIELD(capacity), K,
	  "bytes that there are (as few as can be found)" },

	{ "target", "cpu", G_TARGET, set_target, 0, C,
	  "what to compile for (cpu)" },
	{ "device", "NAME|FILE", G_TARGET, set_string, FIELD(opt.device), C,
	  "what costs are reckoned for: cpu, host (measured once), "
	  "A100-80GB, H100, H200, or a file such as ckrun --profile writes "
	  "(cpu)" },
	{ "march", "ARCH", G_TARGET, set_string, FIELD(march), C,
	  "instruction set, as the C compiler's -march (native)" },
	{ "threads", "N", G_TARGET, set_threads, FIELD(opt.threads), C,
	  "most threads that the library will use (those of this machine)" },
	{ "cc", "CMD", G_TARGET, set_string, FIELD(cc), C,
	  "C compiler (cc)" },

	{ "dump", "WHAT[,WHAT]", G_LOOK, set_string, FIELD(dump), C,
	  "plan, memory, a pass's name, or all" },
	{ "dump-dir", "DIR", G_LOOK, set_string, FIELD(dump_dir), C,
	  "dumps of passes go to DIR/NN-pass.ck" },
	{ "json", "FILE", G_LOOK, set_string, FIELD(json), CI | P,
	  "write the plan (inspect: the findings) as JSON" },
	{ "explain", "VALUE", G_LOOK, set_string, FIELD(explain), C,
	  "why this value is kept, recomputed or free" },
	{ "tp", "T", G_LOOK, set_positive, FIELD(opt.tp), C,
	  "--dump=memory: account for T devices that share every layer" },
	{ "sp", NULL, G_LOOK, set_true, FIELD(opt.sp), C,
	  "... which split the sequence between products, too" },
	{ "pp", "P", G_LOOK, set_positive, FIELD(opt.pp), C,
	  "--dump=memory: account for a pipeline of P stages" },
	{ "interleave", "M", G_LOOK, set_positive, FIELD(opt.interleave), C,
	  "... each with M parts of the model in turn (1)" },
	{ "microbatches", "N", G_LOOK, set_positive, FIELD(opt.microbatches),
	  C, "... and N micro-batches in a step (P)" },
	{ "step-time", "SECONDS", G_LOOK, set_double, FIELD(opt.step_time), C,
	  "--dump=memory: measured time of a step, for MFU and HFU" },
	{ "curve", NULL, G_LOOK, set_true, FIELD(opt.curve), C,
	  "step time for every memory budget, presets beside; no code unless "
	  "-o is given" },
	{ "curve-svg", "FILE", G_LOOK, set_curve_svg, 0, C,
	  "... and as a picture" },
	{ "stats", NULL, G_LOOK, set_true, FIELD(opt.stats), C | P,
	  "time and effort of every pass" },
	{ "passes", "A,B", G_LOOK, set_string, FIELD(passes), C,
	  "run only these passes and print the graph" },
	{ "stop-after", "PASS", G_LOOK, set_string, FIELD(stop_after), C,
	  "stop there and print the graph" },
	{ "fold-limit", "SIZE", G_LOOK, set_fold_limit,
	  FIELD(opt.fold_limit), C,
	  "largest constant that folding may make (256MiB)" },
	{ "debug", NULL, G_LOOK, set_true, FIELD(debug), C,
	  "check the graph after every pass" },
	{ "quiet", NULL, G_LOOK, set_true, FIELD(quiet), C | P | K,
	  "no progress and no summary" },

	{ "plan-only", NULL, G_OUTPUT, set_true, FIELD(plan_only), C,
	  "no code: plan and report; weights are never read" },
	{ "emit-c", "DIR", G_OUTPUT, set_string, FIELD(emit_dir), C,
	  "keep the generated sources in DIR" },
};

enum { NROW = sizeof table / sizeof *table };

static const struct {
	const char *name, *usage;
} verb_row[] = {
	[VERB_COMPILE] = { "compile",
		"usage: ckc MODEL.onnx -o MODEL.so [options]\n"
		"       ckc inspect MODEL.onnx [options]\n"
		"       ckc plan GRAPH.json --budget F [options]\n"
		"       ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"Compiles an ONNX model into a library that trains it inside "
		"a memory budget.\nRun the library with ckrun.\n" },
	[VERB_INSPECT] = { "inspect",
		"usage: ckc inspect MODEL.onnx [options]\n"
		"Says whether a file can be trained: extents to bind, "
		"parameters with the reason\nfor each, op coverage, and what "
		"its export lost.\n" },
	[VERB_PLAN] = { "plan",
		"usage: ckc plan GRAPH.json --budget F [options]\n"
		"Chooses what a graph of costs keeps and what it computes "
		"again to stay within a\nbudget.  --json without a file "
		"writes to standard output.\n" },
	[VERB_PACK] = { "pack",
		"usage: ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"Places buffers with known lifetimes in one block of memory.\n"
		"Columns: id,lower,upper,size.\n" },
};

static void
print_help(FILE *out, enum verb verb)
{
	fputs(verb_row[verb].usage, out);
	for (enum group g = 0; g < G_COUNT; g++) {
		bool titled = false;

		for (int i = 0; i < NROW; i++) {
			const struct option_row *r = &table[i];
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
	fputs("\n  --help, --version\n\n"
	      "Exit status: 0 done, 1 an error in the model or its use (on "
	      "stderr), 2 wrong usage.\n", out);
}

static const struct option_row *
find_row(const char *name, size_t n)
{
	for (int i = 0; i < NROW; i++)
		if (strlen(table[i].name) == n
		    && !strncmp(table[i].name, name, n))
			return &table[i];
	return NULL;
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
parse_long(struct parser *p, int argc, char **argv, int *i)
{
	const char *arg = argv[*i] + 2, *eq = strchr(arg, '='), *value = NULL;
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct option_row *r = find_row(arg, n);

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
	p->option = arena_printf(p->arena, "--%s", r->name);
	return r->handle(p, value, (char *)p->c + r->field) ? CLI_GO : 2;
}

static void
set_defaults(struct cli *c)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	memset(c, 0, sizeof *c);
	c->opt.untie = true;
	c->opt.optimizer = OPT_ADAMW;
	c->opt.grad_accum = 1;
	c->opt.dropout = true;
	c->opt.fused_attention = true;
	c->opt.budget_bytes = -1;
	c->budget = -1;
	c->budget_bytes = c->capacity = -1;
	c->opt.gap_pct = 0.1;
	c->opt.threads = n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
	c->opt.fold_limit = 256 << 20;
	c->cc = "cc";
	c->march = "native";
}

int
cli_parse(struct cli *c, int argc, char **argv, Arena *arena, FILE *out,
          FILE *err)
{
	struct parser p = { c, arena, err, NULL };
	bool options = true;
	int i = 1, status;

	set_defaults(c);
	for (int k = 1; k < argc; k++)
		append(&p, &c->nflag, &c->flag, argv[k]);
	for (enum verb v = VERB_INSPECT; argc > 1 && v <= VERB_PACK; v++)
		if (!strcmp(argv[1], verb_row[v].name)) {
			c->verb = v;
			i = 2;
		}
	if (c->verb == VERB_PLAN)
		c->opt.gap_pct = 0;     /* the search is bounded anyhow */
	for (; i < argc; i++) {
		if (options && !strcmp(argv[i], "--help")) {
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
			c->out = argv[i][2] ? argv[i] + 2 : argv[++i];
			if (i >= argc || !*c->out)
				return usage_error(err, "a value is missing "
				                   "after", "-o");
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			return usage_error(err, "unknown option", argv[i]);
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
	if (c->opt.curve && !c->out)
		c->plan_only = true;
	if (!c->model || (c->verb == VERB_PACK && !c->out)
	    || (c->verb == VERB_PLAN && c->budget < 0
	        && c->budget_bytes < 0)) {
		print_help(err, c->verb);
		return 2;
	}
	return CLI_GO;
}
