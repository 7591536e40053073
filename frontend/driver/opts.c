/* ckc's command line: the table of options, --help and the parser. */
#include "frontend/driver/opts_check.h"
#include "frontend/driver/opts_set.h"
#include "passes/canon/canon.h"
#include "passes/passes.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const group_title[G_COUNT] = {
	"\ninput:\n", "\ntraining:\n", "\nmemory:\n", "\ntarget:\n",
	"\nreports:\n", "\noutput:\n",
};

/* ---- the table ---- */

#define FIELD(f) .field = offsetof(struct cli, f)

enum {
	C = 1 << VERB_COMPILE, A = 1 << VERB_ADVISE, CA = C | A,
	CI = CA | 1 << VERB_INSPECT, P = 1 << VERB_PLAN,
	K = 1 << VERB_PACK, D = 1 << VERB_DOCTOR
};

#define FROM_TO(a, b) .least = (a), .most = (b)
#define POSITIVE(text) .least = DBL_TRUE_MIN, .expected = (text)
#define WORDS(...) .value = (const int[]){ __VA_ARGS__ }

static const int optimizer_value[] = {
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	OPT_##id,
#include "runtime/support/optimizers.h"
	OPT_NONE,
};

/* %s stands for the kinds of losses. */
static const struct option_spec table[] = {
	{ "dim", "NAME=N", G_INPUT, add_dim_binding, FIELD(opt), CI,
	  "set a symbolic dimension (or INPUT.AXIS=N); with --auto, N=?: the "
	  "batch dimension, whose size is chosen" },
	{ "shape", "INPUT=8x128", G_INPUT, add_shape, FIELD(opt), CI,
	  "set the shape of an input" },
	{ "const", "INPUT=FILE", G_INPUT, add_const, .field = 0, CI,
	  "replace an input with the constant in FILE (.npy or TensorProto "
	  ".pb)" },
	{ "train", "GLOB", G_INPUT, add_train, FIELD(opt), CI,
	  "train the initializers that match GLOB; the last --train or "
	  "--freeze that matches wins" },
	{ "freeze", "GLOB", G_INPUT, add_freeze, FIELD(opt), CI,
	  "do not train the initializers that match GLOB (to train only A: "
	  "--freeze '*' --train A)" },
	{ "param", "NAME", G_INPUT, add_name, FIELD(opt.param), CI,
	  "treat this graph input or initializer as a parameter (with "
	  "--freeze: a frozen one)" },
	{ "untie", "auto|off", G_INPUT, set_first, FIELD(opt.untie), CI,
	  "separate parameters that the exporter merged only because their "
	  "values were equal (default: auto)" },

	{ "loss", "OUTPUT", G_TRAIN, set_once, FIELD(opt.loss), CI,
	  "scalar output to minimise, or a loss to add, as "
	  "KIND[:OUTPUT][,KEY=VALUE]...; kinds: %s; "
	  "keys: axis, ignore, smoothing, weights, pos_weight, delta, "
	  "reduction" },
	{ "output", "GLOB", G_TRAIN, add_name, FIELD(opt.output), CI,
	  "keep these graph outputs as well as the loss; logits: evaluation "
	  "gives the class scores that the loss reads" },
	{ "lora", "GLOB=RANK[:ALPHA]", G_TRAIN, add_lora, FIELD(opt), CI,
	  "train low-rank adapters (LoRA), scaled by ALPHA/RANK (default: 1), "
	  "on the weights that match GLOB; freeze all other parameters except "
	  "those of --train" },
	{ "optimizer",
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	  name "|"
#include "runtime/support/optimizers.h"
	  "none", G_TRAIN, set_word, FIELD(opt.optimizer), CI,
	  "update rule; sgdm: SGD with momentum; adam: weight decay in the "
	  "gradient; adamw: decoupled weight decay (default: adamw)",
	  .value = optimizer_value },
	{ "no-decay", "GLOB", G_TRAIN, add_name, FIELD(opt.nodecay), CI,
	  "exclude these parameters from weight decay" },
	{ "ema", NULL, G_TRAIN, set_true, FIELD(opt.ema), CI,
	  "keep exponential moving averages of the trained parameters, in f32, "
	  "4 bytes per parameter (ckrun --ema, --ema-decay)" },
	{ "grad-accum", "N", G_TRAIN, set_whole, FIELD(opt.grad_accum),
	  CI, "accumulate gradients over N micro-batches per update, as for "
	  "one batch of all their samples (default: 1)", FROM_TO(1, 1000000) },
	{ "dropout", "on|off", G_TRAIN, set_first, FIELD(opt.dropout), CI,
	  "apply dropout as in the graph, or omit it (default: on)" },
	{ "batchnorm", "[GLOB=]FORM", G_TRAIN, add_batchnorm, .field = 0, CI,
	  "batch: use batch statistics and update the running statistics; "
	  "running: use the running statistics unchanged; GLOB: of a node or "
	  "its scale, the last match wins (default: as in the graph)" },
	{ "attention", "fused|unfused", G_TRAIN, set_first,
	  FIELD(opt.fused_attention), CI,
	  "compute attention in blocks, or op by op (default: fused)" },
	{ "epilogues", "auto|off", G_TRAIN, set_first, FIELD(opt.epilogues),
	  CI, "fuse the GELU gradient and the sums for bias gradients into "
	  "16-bit matrix products on a GPU (default: auto)" },
	{ "dropout-mask", "replay|store", G_TRAIN, set_second,
	  FIELD(opt.store_masks), CI,
	  "regenerate dropout masks in backward, or store one byte per element "
	  "(default: replay)" },
	{ "dtype", "f32|bf16|f16", G_TRAIN, set_word, FIELD(opt.dtype), CA,
	  "dtype of matrix products and of the values between them; norm "
	  "statistics, sums, losses and updates stay f32 (default: as in the "
	  "file)", WORDS(DT_F32, DT_BF16, DT_F16) },
	{ "precision", "VALUE=TYPE", G_TRAIN, add_precision, FIELD(opt), CA,
	  "with --dtype: compute this value in TYPE; op:NAME selects all nodes "
	  "of that op (globs)" },
	{ "master-weights", "on|off", G_TRAIN, set_first, FIELD(opt.masters),
	  CA, "with --dtype: keep f32 parameters; off: keep them in 16 bits "
	  "with stochastic rounding (default: on)" },
	{ "frozen-dtype", "[GLOB=]TYPE", G_TRAIN, add_frozen_dtype, FIELD(opt),
	  CA, "store frozen parameters as bf16, f16, or, for weights of matrix "
	  "products, in blocks of 64 with a scale: int8 or nf4 (4 bits, as "
	  "QLoRA); the last match that a parameter can follow wins (default: "
	  "as trained ones)" },
	{ "resident-copies", "auto|on|off", G_TRAIN, set_word,
	  FIELD(opt.resident_copies), CA,
	  "with --dtype: let updates also write 16-bit copies of the "
	  "parameters; off: cast the parameters in each step; auto: on for a "
	  "GPU if the budget has room (default: auto)",
	  WORDS(TRI_AUTO, TRI_ON, TRI_OFF) },
	{ "grad-dtype", "f32|computed", G_TRAIN, set_word,
	  FIELD(opt.grad_dtype), CA,
	  "dtype of parameter gradients: as computed, or f32 for all (default: "
	  "computed)", WORDS(DT_F32, DT_NONE) },
	{ "state-dtype", "f32|bf16", G_TRAIN, set_word,
	  FIELD(opt.state_dtype), CA,
	  "dtype of the optimizer state; bf16 is rounded stochastically "
	  "(default: f32)", WORDS(DT_F32, DT_BF16) },
	{ "save-dtype", "bf16|f16", G_MEMORY, set_word,
	  FIELD(opt.save_dtype), CA,
	  "allow activations saved for backward in 16 bits if that avoids "
	  "recomputation; rounds gradients (default: saved as computed)",
	  WORDS(DT_BF16, DT_F16) },
	{ "update-in-backward", "auto|on|off", G_TRAIN, set_word,
	  FIELD(opt.update_in_backward), CI,
	  "apply each gradient as soon as it is complete: less memory, no "
	  "clipping, no f16; auto: if the budget requires it (default: auto)",
	  WORDS(TRI_AUTO, TRI_ON, TRI_OFF) },
	{ "eval", "on|off", G_TRAIN, set_first, FIELD(eval), C,
	  "include a program for ckrun eval, predict and --valid, which uses "
	  "the same memory (default: on)" },
	{ "forward-only", NULL, G_TRAIN, set_true, FIELD(opt.forward_only),
	  CI, "compile for inference, without backward" },

	{ "memory-budget", "SIZE|PCT", G_MEMORY, set_budget, FIELD(opt),
	  C | 1 << VERB_INSPECT,
	  "memory limit of a training step: a size such as 6GiB or 6GB (6G), "
	  "or a percentage of its peak without recomputation" },
	{ "memory", "SIZE", G_MEMORY, set_size, FIELD(memory), A,
	  "memory of the device that a training step may use" },
	{ "offload", "auto|state|off", G_MEMORY, set_word, FIELD(opt.offload),
	  CI, "use host memory: pinned memory beside a GPU, a file on the CPU "
	  "(ckrun --offload-dir); state: keep the optimizer state and float32 "
	  "master weights there and transfer them around each update; auto: "
	  "also offload activations between forward and backward, where that "
	  "is faster than recomputation within the budget (default: off)",
	  WORDS(OFFLOAD_AUTO, OFFLOAD_STATE, OFFLOAD_OFF) },
	{ "host-memory", "SIZE", G_MEMORY, set_size,
	  FIELD(opt.host_memory), CI,
	  "with --offload: limit of the host memory that it uses (default: no "
	  "limit)" },
	{ "offload-values", "GLOB", G_MEMORY, add_name,
	  FIELD(opt.offload_values), CI,
	  "with --offload auto: always offload these values or nodes" },
	{ "recompute", "PRESET", G_MEMORY, set_recompute, FIELD(opt), CI,
	  "what is recomputed: nothing (none), all but the inputs of layers "
	  "(full), of every K-th layer (every=K), the core of attention "
	  "(selective); auto: search for the fastest plan (default: auto)" },
	{ "keep", "GLOB", G_MEMORY, add_name, FIELD(opt.keep), CI,
	  "never recompute these values or nodes" },
	{ "recompute-values", "GLOB", G_MEMORY, add_name,
	  FIELD(opt.recompute), CI, "always recompute these values or nodes" },
	{ "gap", "PCT", G_MEMORY, set_real, FIELD(opt.gap_pct), CI | P,
	  "stop the search when the plan is at most PCT % of a step slower "
	  "than the lower bound (default: 0.1; plan: 0)",
	  .expected = "a number >= 0" },
	{ "plan-time", "SECONDS", G_MEMORY, set_real, FIELD(opt.plan_sec),
	  CI | P, "stop the search after this time and use the best plan found "
	  "(default: no limit)", POSITIVE("a number of seconds > 0") },

	{ "budget", "F|BYTES", G_MEMORY, set_graph_budget, .field = 0, P,
	  "memory budget: up to 1, a fraction of the peak without "
	  "recomputation; above 1, bytes" },
	{ "place", NULL, G_MEMORY, set_true, FIELD(place), P,
	  "assign offsets in an arena, which must fit the budget" },
	{ "capacity", "N", G_MEMORY, set_whole, FIELD(capacity), K,
	  "available bytes (default: as few as possible)",
	  .most = INT64_MAX, .expected = "a number of bytes" },

	{ "auto", NULL, G_TARGET, set_true, FIELD(automatic), C,
	  "search for the fastest configuration within the budget: --tp, --sp, "
	  "--dp, --pp, --zero, --halves, --offload, batch size and "
	  "--grad-accum, except those given; print it as options, with "
	  "runners-up, and compile it if -o is given (--json: all "
	  "configurations)" },
	{ "devices", "N", G_TARGET, set_whole, FIELD(devices), C,
	  "with --auto: number of devices (default: 1)",
	  FROM_TO(1, GROUP_MAX) },
	{ "global-batch", "B", G_TARGET, set_whole, FIELD(global_batch), C,
	  "with --auto: samples of a step, over all devices and micro-batches",
	  FROM_TO(1, 1000000) },
	{ "tp", "T", G_TARGET, set_whole, FIELD(opt.tp), CI,
	  "shard the model over T ranks (tensor parallelism); sizes and the "
	  "budget are per rank", FROM_TO(1, GROUP_MAX) },
	{ "dp", "auto|off|N", G_TARGET, set_dp, FIELD(opt.dp), CI,
	  "let ckrun --ranks split the samples of a step over replicas (data "
	  "parallelism); sizes are per replica; step time is estimated for N "
	  "replicas (auto: 2) (default: off; with --tp: any number of replicas "
	  "if the samples can be split, with the step time of one)",
	  FROM_TO(1, GROUP_MAX) },
	{ "zero", "0|1|2|3|auto", G_TARGET, set_zero, FIELD(opt.zero), CI,
	  "shard over the replicas: 1, optimizer state and f32 master weights; "
	  "2, also accumulated gradients; 3, also parameters (ZeRO); auto, the "
	  "stage with the fastest step within the budget; needs --dp N "
	  "(default: 0)" },
	{ "zero-group", "G", G_TARGET, set_whole, FIELD(opt.zero_group), CI,
	  "with --zero: shard over every G replicas side by side, such as "
	  "those of a node, instead of over all; gradients are also summed "
	  "over these groups (default: all replicas)",
	  FROM_TO(2, GROUP_MAX) },
	{ "cp", "C", G_TARGET, set_whole, FIELD(opt.cp), CI,
	  "share the positions of each sample, such as the tokens of a "
	  "sequence, out to C replicas (context parallelism); sizes and the "
	  "budget are per replica, dims in the model those of whole samples; "
	  "with --dp N there are N * C replicas (default: 1)",
	  FROM_TO(1, GROUP_MAX) },
	{ "cp-dim", "INPUT=AXIS", G_TARGET, set_cp_dim, 0, CI,
	  "with --cp: the dim of an input that counts positions, from 0 "
	  "(default: the only named dim of inputs behind the first)",
	  .expected = "INPUT=AXIS" },
	{ "cp-attention", "auto|gather|heads", G_TARGET, set_word,
	  FIELD(opt.cp_attention), CI, "with --cp: gather keys and values for "
	  "attention, or exchange a part of the positions for a part of the "
	  "heads; auto: what takes less time (default: auto)",
	  WORDS(EXCHANGE_AUTO, EXCHANGE_KEYS, EXCHANGE_HEADS) },
	{ "ep", "E", G_TARGET, set_whole, FIELD(opt.ep), CI,
	  "share the experts of mixtures out to every E replicas side by side "
	  "(expert parallelism); each computes its experts for the tokens of "
	  "all E; needs --dp N, which E divides; --zero shards all other "
	  "parameters (default: each replica has all experts)",
	  FROM_TO(1, GROUP_MAX) },
	{ "expert-capacity", "F", G_TARGET, set_real,
	  FIELD(opt.expert_capacity), CI, "with --ep: send each replica the "
	  "rows of its experts alone, with room for F times as many from each "
	  "as if all had equally many, such as 1.25 (default: all rows go to "
	  "all replicas)", .expected = "a number above 0" },
	{ "expert-overflow", "fail|drop", G_TARGET, set_second,
	  FIELD(opt.expert_drop), CI, "with --expert-capacity: end the step if "
	  "there is no room for a row, or give zeros for it (default: fail)" },
	{ "halves", "auto|on|off", G_TARGET, set_word, FIELD(opt.halves), CA,
	  "run the two halves of a batch side by side: one computes while the "
	  "other waits for ranks; auto: if that makes a step faster (default: "
	  "off)", WORDS(SPLIT_AUTO, SPLIT_ON, SPLIT_OFF) },
	{ "sp", NULL, G_TARGET, set_true, FIELD(opt.sp), CI,
	  "with --tp: also shard the activations between matrix products by "
	  "token (sequence parallelism)" },
	{ "shard", "VALUE=PLACEMENT", G_TARGET, add_shard_constraint,
	  FIELD(opt), CI,
	  "with --tp: placement of this value: I (replicated), R (replicated, "
	  "gradient summed over ranks), P (partial sum per rank) or S0, S1 ... "
	  "(sharded along that dim)" },
	{ "device", "NAME|FILE", G_TARGET, set_string, FIELD(opt.device), CI,
	  "device profile for cost estimates: cpu, host (measured once), a GPU "
	  "such as A100-80GB, H100, L40S or RTX-4090 (a wrong name lists "
	  "all), or a file from ckrun --profile (default: cpu; with --target "
	  "cuda: H100)" },
	{ "threads", "N", G_TARGET, set_thread_count, FIELD(opt.threads),
	  CI | D,
	  "maximum number of threads of the library (default: all of this "
	  "machine)", FROM_TO(1, GROUP_MAX) },

	{ "dump", "WHAT[,WHAT]", G_LOOK, set_once, FIELD(dump), C,
	  "print plan, memory, shard (placement of values on ranks), precision "
	  "(dtypes and reasons), the graph after a PASS, or all; no code "
	  "unless -o is given" },
	{ "dump-dir", "DIR", G_LOOK, set_folder, FIELD(dump_dir), C,
	  "write the dumps of passes to DIR/NN-pass.ck" },
	{ "json", "FILE", G_LOOK, set_once, FIELD(json),
	  C | 1 << VERB_INSPECT | P,
	  "write the plan (inspect: the findings) as JSON; -: standard "
	  "output" },
	{ "explain", "VALUE", G_LOOK, set_once, FIELD(opt.explain), C,
	  "explain why this value is kept, recomputed or free; with --tp: the "
	  "cost of other placements" },
	{ "pp", "P", G_LOOK, set_whole, FIELD(opt.pp), C,
	  "cut the model into P stages of a pipeline, and plan each within "
	  "the budget; with --dump=memory: an account of their memory from "
	  "the plan of the whole model",
	  FROM_TO(1, 1000000) },
	{ "schedule", "1f1b|interleaved=V|zb-h1", G_LOOK, set_schedule,
	  FIELD(opt), C,
	  "with --pp: order of forward and backward turns of micro-batches; "
	  "interleaved=V: each rank has V stages and is idle for one V-th of "
	  "the time, but needs more memory and V times the messages; zb-h1: "
	  "gradients of parameters are computed while others would wait "
	  "(default: 1f1b)" },
	{ "interleave", "M", G_LOOK, set_whole, FIELD(opt.interleave), C,
	  "with --pp and --dump=memory: model chunks per stage (default: 1)",
	  FROM_TO(1, 1000000) },
	{ "microbatches", "N", G_LOOK, set_whole, FIELD(opt.microbatches),
	  C, "with --pp: micro-batches per step, as --grad-accum (default: P)",
	  FROM_TO(1, 1000000) },
	{ "stage", "VALUE", G_LOOK, add_name, FIELD(opt.stage), C,
	  "with --pp P: cut after this value; repeat for all P - 1 cuts "
	  "(default: stages that take equally long)" },
	{ "step-time", "SECONDS", G_LOOK, set_real, FIELD(opt.step_time), C,
	  "with --dump=memory: measured time of a step; prints MFU and HFU, "
	  "the share of the device's peak FLOP/s",
	  POSITIVE("a number of seconds > 0") },
	{ "curve", NULL, G_LOOK, set_true, FIELD(curve), C,
	  "print the step time for every memory budget and for the presets; no "
	  "code unless -o is given" },
	{ "curve-svg", "FILE", G_LOOK, set_curve_svg, .field = 0, C,
	  "as --curve, and plot it to FILE" },
	{ "report", "FILE.html", G_LOOK, set_once, FIELD(page), C,
	  "write an HTML page: arena over the step, step time against budget, "
	  "kept values by layer" },
	{ "stats", NULL, G_LOOK, set_true, FIELD(opt.stats), C | P,
	  "print the time and work of every pass" },
	{ "passes", "PASS[,PASS]", G_LOOK, set_once, FIELD(passes), C,
	  "run only these passes and print the graph" },
	{ "stop-after", "PASS", G_LOOK, set_once, FIELD(stop_after), C,
	  "stop after PASS and print the graph" },
	{ "fold-limit", "SIZE", G_LOOK, set_size,
	  FIELD(opt.fold_limit), CI,
	  "largest constant that folding may create (default: 4MiB)" },
	{ "debug", NULL, G_LOOK, set_true, FIELD(debug), C,
	  "verify the graph after every pass" },
	{ "quiet", NULL, G_LOOK, set_true, FIELD(opt.quiet), CA | P | K,
	  "print no progress, summary, notes or warnings about the export" },

	{ "plan-only", NULL, G_OUTPUT, set_true, FIELD(plan_only), C,
	  "plan and report without code generation; external data may be "
	  "missing" },
	{ "emit-c", "DIR", G_OUTPUT, set_folder, FIELD(emit_dir), C,
	  "keep the generated sources in DIR: tables in model.c, kernels in "
	  "kernels.c (GPU: model.cu)" },
};

enum { NROW = sizeof table / sizeof *table };
_Static_assert((size_t)NROW <= OPTIONS_MAX, "OPTIONS_MAX is too small");

static const struct {
	const char *name, *missing, *usage;     /* missing: its file */
} verb_row[] = {
	[VERB_COMPILE] = { "compile", "missing model file",
		"usage: ckc MODEL.onnx -o MODEL.so [options]\n"
		"       ckc inspect MODEL.onnx [options]\n"
		"       ckc advise MODEL.onnx --memory SIZE [options]\n"
		"       ckc plan GRAPH.json --budget F [options]\n"
		"       ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"       ckc doctor\n"
		"Compiles an ONNX model into a library that trains it within "
		"a memory budget.\nRun the library with ckrun.\n" },
	[VERB_INSPECT] = { "inspect", "missing model file",
		"usage: ckc inspect MODEL.onnx [options]\n"
		"Reports whether a model can be trained, with the verdict and "
		"the exit status of a\ncompile with the same options: "
		"dimensions to bind, parameters with reasons,\noperator "
		"coverage, and what the export lost.\n" },
	[VERB_ADVISE] = { "advise", "missing model file",
		"usage: ckc advise MODEL.onnx --memory SIZE [options]\n"
		"Lists options under which a training step fits into the "
		"memory of a device, by\ntheir cost, each as a line to type "
		"whose plan was made.\n" },
	[VERB_PLAN] = { "plan", "missing graph file",
		"usage: ckc plan GRAPH.json --budget F [options]\n"
		"Chooses which nodes of a cost graph to keep and which to "
		"recompute within a\nbudget.  --json without a file writes "
		"to standard output.\n"
		"GRAPH.json: {\"nodes\": [{\"id\": 0, \"cost_ram\": BYTES, "
		"\"cost_cpu\": TIME,\n\"backward\": false}, ...], \"links\": "
		"[{\"source\": 0, \"target\": 1}, ...]}; ids count\nfrom 0, in "
		"the order of execution.\n" },
	[VERB_PACK] = { "pack", "missing table of buffers",
		"usage: ckc pack BUFFERS.csv [--capacity N] -o OUT.csv\n"
		"Places buffers with known lifetimes in one block of memory.\n"
		"Columns: id,lower,upper,size.\n" },
	[VERB_DOCTOR] = { "doctor", NULL,
		"usage: ckc doctor [options]\n"
		"Lists the compilers and libraries on this machine that ckc "
		"uses, and checks\nwhether a model can be compiled and "
		"trained.\n" },
};

static void
print_help(FILE *out, const struct cli *c)
{
	enum ckc_verb verb = c->verb;

	fputs(verb_row[verb].usage, out);
	for (int g = 0; g < G_COUNT; g++)
		option_help(c->row, c->nrow, g, 1u << verb, group_title[g], 32,
		            out);
	if (verb == VERB_PACK)
		fprintf(out, "\n  -o FILE%*soutput table: the same rows with "
		        "their offsets\n", 23, "");
	if (verb == VERB_COMPILE)
		fprintf(out, "  -o FILE%*soutput library (default: MODEL.so); "
		        "weights go to MODEL.safetensors\n", 23, "");
	if (verb == VERB_COMPILE) {
		fputs("\nPASS is one of", out);
		for (const struct pass_info *p = pass_table; p->name; p++)
			fprintf(out, "%s%s%s", p == pass_table + 10 ? "\n"
			        : " ", p->name, p[1].name ? "," : ".\n");
	}
	fputs("\n  --help, -h, --version\n\n"
	      "Exit status: 0 success, 1 error in the model or its use (on "
	      "stderr), 2 wrong usage.\n", out);
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
	struct cli *c = p->object;
	const struct option_spec *r = option_find(c->row, c->nrow, argv[*i]);
	bool joined = strchr(argv[*i], '=');
	const char *value = NULL;

	if (!r)
		return usage_error(p->err, "unknown option", argv[*i]);
	if (!(r->verbs >> c->verb & 1))
		return usage_error(p->err, arena_printf(p->arena, "unknown "
			"option of %s:", verb_row[c->verb].name), argv[*i]);
	if (r->arg) {
		value = option_value(argc, argv, i);
		if (c->verb == VERB_PLAN && !strcmp(r->name, "json")
		    && !joined && (!value || !strncmp(value, "--", 2))) {
			*i -= value != NULL;
			value = "-";
		}
		if (!value)
			return usage_error(p->err, "missing value after",
			                   argv[*i]);
	} else if (joined) {
		return usage_error(p->err, "unexpected value in", argv[*i]);
	}
	p->row = r;
	c->given[r - c->row] = true;
	return r->set(p, value, (char *)c + r->field) ? CLI_GO : 2;
}

/* The text with the kinds of losses in the place of %s. */
static const char *
list_losses(const char *help, Arena *a)
{
	const char *at = strstr(help, "%s"), *kinds = loss_kind(0);

	for (size_t i = 1; loss_kind(i); i++)
		kinds = arena_printf(a, "%s, %s", kinds, loss_kind(i));
	return arena_printf(a, "%.*s%s%s", (int)(at - help), help, kinds,
	                    at + 2);
}

static void
set_defaults(struct cli *c, Arena *a)
{
	struct option_spec *row = arena_array(a, OPTIONS_MAX, sizeof *row);
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
	c->machine = machines;
	memcpy(row, table, sizeof table);
	for (int i = 0; i < NROW; i++)
		if (strstr(row[i].help, "%s"))
			row[i].help = list_losses(row[i].help, a);
	c->row = row;
	c->nrow = NROW + machine_rows(c, row + NROW, OPTIONS_MAX - NROW, a);
}

/* Check the arguments that a verb requires. */
static int
check_complete(const struct cli *c, FILE *err)
{
	const char *file = verb_row[c->verb].missing;
	const char *missing = !c->model ? file
		: c->verb == VERB_PACK && !c->out ? "missing -o OUT.csv"
		: c->verb == VERB_PLAN && c->budget < 0 && c->budget_bytes < 0
		? "missing --budget F"
		: c->verb == VERB_ADVISE && !c->memory
		? "missing --memory SIZE" : NULL;
	const char *usage = verb_row[c->verb].usage;

	if (!missing && (!c->model || file))
		return CLI_GO;
	fprintf(err, "ckc: %s; %.*s; see ckc %s%s--help\n",
	        missing ? missing : "unexpected file",
	        (int)strcspn(usage, "\n"), usage,
	        c->verb ? verb_row[c->verb].name : "", c->verb ? " " : "");
	return 2;
}

/* The divisor of dp, of those between 1 and it, nearest to that number; 0: it
 * has none. */
static int64_t
nearest_divisor(int64_t dp, int64_t to)
{
	int64_t best = 0;

	for (int64_t k = 2; k < dp; k++)
		if (dp % k == 0 && (!best || llabs(k - to) < llabs(best - to)))
			best = k;
	return best;
}

/* All replicas in one group are none. */
static int
check_zero_group(struct cli *c, FILE *err)
{
	long long group = c->opt.zero_group, near;
	long long dp = (c->opt.dp > 0 ? c->opt.dp : 1)
		     * (c->opt.cp > 1 ? c->opt.cp : 1);

	if (group == dp)
		c->opt.zero_group = 0;
	if (!group || dp % group == 0)
		return CLI_GO;
	near = nearest_divisor(dp, group);
	if (near)
		fprintf(err, "ckc: --zero-group %lld: expected a divisor of "
		        "%s %lld; try: --zero-group %lld\n", group,
		        c->opt.cp > 1 ? "--dp times --cp, which is" : "--dp",
		        dp, near);
	else
		fprintf(err, "ckc: --zero-group %lld: %s %lld has no "
		        "divisors, so that replicas form no groups; leave out "
		        "--zero-group\n", group,
		        c->opt.cp > 1 ? "--dp times --cp, which is" : "--dp",
		        dp);
	return 2;
}

static int
check_ep(struct cli *c, FILE *err)
{
	long long ep = c->opt.ep, cp = c->opt.cp > 1 ? c->opt.cp : 1;
	long long dp = (c->opt.dp > 0 || cp == 1 ? c->opt.dp : 1) * cp;
	long long near = dp > 0 && ep > 1 ? nearest_divisor(dp, ep) : 0;

	if (option_given(c, "expert-capacity")
	    && c->opt.expert_capacity <= 0) {
		fprintf(err, "ckc: --expert-capacity %g: expected a number "
		        "above 0; try: --expert-capacity 1.25\n",
		        c->opt.expert_capacity);
		return 2;
	}
	if (c->opt.expert_capacity > 0 && ep < 2) {
		fprintf(err, "ckc: --expert-capacity %g: expected --ep E, the "
		        "replicas that share experts; try: --dp 2 --ep 2\n",
		        c->opt.expert_capacity);
		return 2;
	}
	if (ep < 2)
		return CLI_GO;
	/* --auto chooses replicas and halves that go with it */
	if (c->automatic && c->opt.halves == SPLIT_AUTO)
		c->opt.halves = SPLIT_OFF;
	if (c->automatic && dp <= 0 && c->opt.halves == SPLIT_OFF)
		return CLI_GO;
	if (dp <= 0)
		fprintf(err, "ckc: --ep %lld: expected --dp N, the number of "
		        "replicas, a multiple of %lld, found %s; try: --ep "
		        "%lld --dp %lld\n", ep, ep, c->opt.dp ? "--dp auto"
		        : "no --dp", ep, ep);
	else if (dp % ep)
		fprintf(err, "ckc: --ep %lld: expected a divisor of %s %lld; "
		        "try: --ep %lld\n", ep, cp > 1 ? "--dp times --cp, "
		        "which is" : "--dp", dp, near ? near : dp);
	else if (c->opt.halves != SPLIT_OFF)
		fprintf(err, "ckc: --ep and --halves cannot be combined; try: "
		        "--halves off\n");
	else
		return CLI_GO;
	return 2;
}

/* Bytes of shards follow only from a known number of replicas. */
static int
check_zero(struct cli *c, FILE *err)
{
	static const char *const stages[] = { "auto", "0", "1", "2", "3" };
	const char *stage = stages[c->opt.zero - ZERO_AUTO];

	if (!c->opt.zero)
		return CLI_GO;
	if (c->opt.dp > 0 || c->opt.cp > 1)
		return check_zero_group(c, err);
	fprintf(err, "ckc: --zero %s: expected --dp N, the number of replicas "
	        "that shard the optimizer state, found %s; try: --zero %s --dp "
	        "2\n", stage, c->opt.dp ? "--dp auto" : "no --dp", stage);
	return 2;
}

/* What cannot be combined with shared positions. */
static int
check_cp(struct cli *c, FILE *err)
{
	long long n = c->opt.dp > 0 ? c->opt.dp : 1;

	if (!c->opt.cp && c->opt.cp_input)
		fprintf(err, "ckc: --cp-dim %s=%lld: expected --cp C, the "
		        "replicas that share positions; try: --cp 2\n",
		        c->opt.cp_input, (long long)c->opt.cp_axis);
	else if (!c->opt.cp && option_given(c, "cp-attention"))
		fprintf(err, "ckc: --cp-attention: expected --cp C, the "
		        "replicas that share positions; try: --cp 2\n");
	else if (c->opt.cp > 1 && c->automatic)
		fprintf(err, "ckc: --cp and --auto cannot be combined: --auto "
		        "chooses among replicas that have whole samples; leave "
		        "out --auto\n");
	else if (c->opt.cp > 1 && c->opt.dp == DP_ANY)
		fprintf(err, "ckc: --cp and --dp auto cannot be combined; try: "
		        "--dp 2\n");
	else if (c->opt.cp > 1 && n * c->opt.cp > GROUP_MAX)
		fprintf(err, "ckc: --dp %lld --cp %lld: expected at most %d "
		        "replicas, found %lld\n", n, (long long)c->opt.cp,
		        GROUP_MAX, n * (long long)c->opt.cp);
	else
		return CLI_GO;
	return 2;
}

int
cli_parse(struct cli *c, int argc, char **argv, Arena *arena, FILE *out,
          FILE *err)
{
	struct arg_parser p = { .object = c, .arena = arena, .err = err,
		                .reject = reject_option };
	bool options = true;
	int i = 1, status;

	set_defaults(c, arena);
	c->nflag = argc > 0 ? argc - 1 : 0;
	c->flag = (const char *const *)argv + 1;
	for (enum ckc_verb v = VERB_INSPECT; argc > 1 && v <= VERB_DOCTOR; v++)
		if (!strcmp(argv[1], verb_row[v].name)) {
			c->verb = v;
			i = 2;
		}
	if (c->verb == VERB_PLAN)
		c->opt.gap_pct = 0;     /* other limits bound the search */
	for (; i < argc; i++) {
		if (options && (!strcmp(argv[i], "--help")
		                || !strcmp(argv[i], "-h"))) {
			print_help(out, c);
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
				return usage_error(err, "missing value after",
					"-o");
			if (before && strcmp(before, c->out) != 0)
				return usage_error(err, "-o is given twice; "
					"unexpected second file", c->out);
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			return usage_error(err, "unknown option", argv[i]);
		} else if (c->model && c->verb == VERB_COMPILE
		           && !strpbrk(c->model, "./")) {
			return usage_error(err, "unknown verb: expected "
			                   "inspect, advise, plan, pack or "
			                   "doctor, "
			                   "found", c->model);
		} else if (c->model) {
			return usage_error(err, "expected one model file; "
				"unexpected argument", argv[i]);
		} else {
			c->model = argv[i];
		}
	}
	if (!c->model && c->verb == VERB_PLAN && c->json) {
		c->model = c->json;     /* --json GRAPH: the input file */
		c->json = "-";
	}
	if ((c->curve || c->dump) && !c->out)
		c->plan_only = true;
	c->opt.curve = c->curve || c->page;
	status = check_complete(c, err);
	if (status == CLI_GO)
		status = check_ep(c, err);
	if (status == CLI_GO && c->automatic)
		status = check_stages(c, err);
	if (status == CLI_GO)
		status = c->automatic || c->opt.batch_dim
			? check_auto(c, err)
			: check_zero(c, err);
	if (status == CLI_GO)
		status = check_cp(c, err);
	if (c->opt.tp && c->opt.cp < 2 && !option_given(c, "dp"))
		c->opt.dp = DP_TRY;
	return status == CLI_GO && !c->automatic ? check_stages(c, err)
		: status;
}

/* ---- options that decide what is trained ---- */

static bool
decides_training(const struct option_spec *row)
{
	static const char *const other[] = { "dim", "shape", "grad-accum",
		"eval", "output", "epilogues" };

	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (!strcmp(row->name, other[i]))
			return false;
	return row->group == G_TRAIN || row->group == G_INPUT;
}

static int
by_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *
cli_training_options(const struct cli *c, Arena *a)
{
	const char **each = arena_array(a, (size_t)c->nflag + 1, sizeof *each);
	char **flag = arena_copy(a, c->flag, ((size_t)c->nflag + 1)
	                                     * sizeof *flag);
	const char *text = "";
	int n = 0;

	for (int i = 0; i < c->nflag && strcmp(flag[i], "--"); i++) {
		const struct option_spec *row = option_find(c->row, c->nrow,
		                                            flag[i]);
		const char *value = row && row->arg
			? option_value(c->nflag, flag, &i) : NULL;

		if (row && decides_training(row))
			each[n++] = arena_printf(a, value ? "--%s %s" : "--%s",
			                         row->name, value);
	}
	qsort(each, (size_t)n, sizeof *each, by_words);
	for (int i = 0; i < n; i++)
		text = arena_printf(a, "%s%s%s", text, *text ? " " : "",
		                    each[i]);
	return text;
}
