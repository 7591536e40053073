/* Every op row that codegen carries out: kernels against the reference
 * interpreter, under gcc and clang, with one thread and several.
 *
 *     kernels --rows                       each row has a case
 *     kernels [--cuda] [--only GROUP] [CC ...]
 */
#include "tests/codegen/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cases_elementwise(struct setup *);
void cases_nn(struct setup *);
void cases_experts(struct setup *);
void cases_tiles(struct setup *);
void cases_conv(struct setup *);
void cases_image(struct setup *);
void cases_typed(struct setup *);

static const struct {
	const char *name;
	void (*add)(struct setup *);
} group[] = {
	{ "elementwise", cases_elementwise },
	{ "nn", cases_nn },
	{ "experts", cases_experts },
	{ "tiles", cases_tiles },
	{ "conv", cases_conv },
	{ "image", cases_image },
	{ "typed", cases_typed },
};

static const char *const emit_name[OP_COUNT] = {
#define EMIT(rule) #rule
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

/* Of sharded graphs, which e2e/ranks.py trains, transfers of host memory, and
 * what autodiff replaces. */
static bool
is_of_others(Op op)
{
	return op_info[op].flags & (F_COMM | F_HOST) || op == OP_REPLICATE
	       || op == OP_VOCAB_STATS || op == OP_SUM_SQUARES
	       || op == OP_BATCH_TOTAL;
}

/* A row without a case is a fault; fused loops count for themselves, not
 * for the ops in their body, and what no CPU runs is of tests/cuda. */
static int
check_rows(const Graph *g)
{
	bool seen[OP_COUNT] = { false };
	int missing = 0;

	FOR_NODES (n, g)
		if (!n->out[0] || !g->val[n->out[0]].base ||
		    !(op_info[n->op].flags & F_VIEW))
			seen[n->op] = true;
	for (Op op = OP_NONE + 1; op < OP_COUNT; op++)
		if (strcmp(emit_name[op], "fail")
		    && op != OP_MATMUL_END && !seen[op]
		    && !is_of_others(op)) {
			fprintf(stderr, "no case for %s\n", op_info[op].text);
			missing++;
		}
	return missing;
}

static bool
have(const char *cc)
{
	char command[100];

	snprintf(command, sizeof command, "command -v '%.*s' >/dev/null 2>&1",
	         (int)strcspn(cc, " "), cc);
	return system(command) == 0;
}

/* All owners' bytes, to compare runs bit by bit. */
static unsigned char *
snapshot(const struct run *r)
{
	const struct ckr_program *p = &r->lib->program[0];
	unsigned char *s = calloc(1, p->arena_bytes + 1);

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		/* scratch may differ */
		if (t->kind == CKR_OTHER && t->dtype != CKR_NONE &&
		    !(t->flags & CKR_RESIDENT))
			memcpy(s + t->offset, r->arena + t->offset, t->nbytes);
	}
	return s;
}

/* Values as the interpreter's, and the same bits from up to so many threads: of
 * an emulated GPU, in so many orders. */
static int
check_runs(struct run *r, struct setup *t, int most)
{
	static const char *const order[] = { "forwards", "backwards",
		"shuffled" };
	const char *races = getenv("CKR_EMULATE_RACES");
	char was[10] = "";
	unsigned char *one, *many;
	int bad;

	snprintf(was, sizeof was, "%s", races ? races : "0");
	setenv("CKR_EMULATE_ORDER", order[0], 1);
	run_once(r, t, 1);
	/* a race is one in any order */
	setenv("CKR_EMULATE_RACES", "0", 1);
	bad = run_compare(r, t);
	if (r->env.fault) {
		fprintf(stderr, "fault: %s\n", r->env.fault);
		bad++;
	}
	one = snapshot(r);
	for (int threads = 2; threads <= most; threads++) {
		setenv("CKR_EMULATE_ORDER", order[threads - 1], 1);
		run_once(r, t, threads);
		many = snapshot(r);
		if (memcmp(one, many, r->lib->program[0].arena_bytes)) {
			fprintf(stderr, "%d threads, or lanes %s, give other "
			        "bits\n", threads, order[threads - 1]);
			bad++;
		}
		free(many);
	}
	setenv("CKR_EMULATE_RACES", was, 1);
	free(one);
	return bad;
}

static int
check_library(struct setup *t, const char *so, int threads)
{
	struct run r;
	int bad = 0;

	if (!run_open(&r, so))
		return 1;
	/* the library's convolutions are refused, or there, and so are the
	 * processor's units for bf16 */
	for (int units = 0; units < (run_has_bf16(&r) ? 2 : 1); units++)
		for (int convs = 0; convs < (r.lib->nblocked
		                             || r.lib->nconvolved ? 2 : 1);
		     convs++) {
			run_units(&r, units);
			run_convs(&r, convs);
			bad += check_runs(&r, t, convs && threads > 2 ? 2
			                  : threads);
		}
	run_units(&r, false);
	r.env.training = 0;
	r.env.clip = 0;
	r.env.micro = 0;
	run_once(&r, t, threads > 2 ? 2 : 1);
	run_close(&r);
	return bad;
}

/* Faults under one compiler, of a library for so many threads. */
static int
check_compiler(struct setup *t, const Plan *plan, const char *cc,
               const char *so, int threads)
{
	int bad;

	if (!setup_compile(t, plan, cc, so, getenv("CODEGEN_KEEP"),
	                   threads))
		return 1;
	bad = check_library(t, so, threads);
	unlink(so);
	return bad;
}

/* The cases of one group, or of all: NULL; how many groups. */
static int
add_cases(struct setup *t, const char *only)
{
	int n = 0;

	for (size_t i = 0; i < sizeof group / sizeof *group; i++)
		if (!only || !strcmp(only, group[i].name)) {
			group[i].add(t);
			n++;
		}
	return n;
}

static int
rows_main(void)
{
	struct setup t;
	int bad;

	setup_open(&t, "rows");
	bad = add_cases(&t, NULL) ? check_rows(t.g) : 1;
	setup_close(&t);
	return bad != 0;
}

/* Arguments are compilers to use in place of gcc and clang; after --cuda they
 * are for GPUs, after --only and the name of a group the others are left out.
 * A compiler that was asked for must be there; of the usual ones one is enough.
 *
 * By hand, every tensor between red zones, with kernels that look at them:
 * CKR_EMULATE_FLAGS="-fsanitize=address --param asan-stack=0"
 * LD_PRELOAD=libasan.so ASAN_OPTIONS=detect_leaks=0 codegen_kernels --cuda .. */
int
main(int argc, char **argv)
{
	const char *const usual[] = { "gcc", "clang" };
	bool cuda = argc > 1 && !strcmp(argv[1], "--cuda");
	const char *only;
	const char *const *cc;
	size_t ncc, ran = 0;
	int first;
	struct setup t;
	char dir[] = "/tmp/ckc-kernels-XXXXXX", so[100];
	int bad = 0;

	if (argc == 2 && !strcmp(argv[1], "--rows"))
		return rows_main();
	argc -= cuda;
	argv += cuda;
	only = argc > 2 && !strcmp(argv[1], "--only") ? argv[2] : NULL;
	first = only ? 3 : 1;
	cc = argc > first ? (const char *const *)argv + first : usual;
	ncc = argc > first ? (size_t)(argc - first) : 2;
	if (!mkdtemp(dir))
		return 1;
	setup_open(&t, "kernels */ \"model\"");
	if (cuda) {
		t.machine = machines + 1;
		setenv("CKR_EMULATE_RACES", "1", 0);
	}
	if (!add_cases(&t, only))
		return 1;
	for (size_t i = 0; i < ncc; i++) {
		if (!have(cc[i])) {
			printf("no %s\n", cc[i]);
			bad += argc > first;
			continue;
		}
		snprintf(so, sizeof so, "%s/%zu.so", dir, i);
		/* workspace for one thread ends where that thread's does */
		bad += check_compiler(&t, ran && !cuda ? setup_plan(&t, 1)
		                      : setup_plan(&t, 3), cc[i], so,
		                      ran && !cuda ? 1 : 3);
		ran++;
	}
	if (!ran) {
		fprintf(stderr, "no compiler: no kernel was run\n");
		bad++;
	}
	rmdir(dir);
	printf("%u nodes, %d faults\n", t.g->nnode - 1, bad);
	setup_close(&t);
	return bad != 0;
}
