/* Which tables of transfers a library may have: those of one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/library/program.h"

enum { PIECES = 3 };

/* Three gathers from pieces of two ranks, then an op. */
struct tables {
	struct ckr_placement split;
	struct ckr_tensor tensor[2 * PIECES];
	struct ckr_comm comm[PIECES];
	struct ckr_instr instr[PIECES + 1];
	int32_t arg[2 * PIECES];
	struct ckr_library lib;
};

static void
fill(struct tables *t)
{
	*t = (struct tables){ .split = { .replication = 1, .nsegment = 1,
		.segment = { 4 } } };
	for (int i = 0; i < 2 * PIECES; i++) {
		t->arg[i] = i;
		t->tensor[i] = (struct ckr_tensor){ .name = "t",
			.dtype = CKR_F32, .kind = CKR_OTHER, .rank = 1,
			.dim = { i % 2 ? 4 : 2 }, .stride = { 1 },
			.offset = 64 * (uint64_t)i, .param = -1, .ready = -1 };
	}
	for (uint32_t i = 0; i < PIECES; i++) {
		t->comm[i] = (struct ckr_comm){ .kind = CKR_ALL_GATHER,
			.axis = CKR_TP, .placement = &t->split, .end = PIECES,
			.joined = i + 1 < PIECES };
		t->instr[i] = (struct ckr_instr){ .op = "all_gather",
			.origin = "", .arg0 = 2 * i, .narg = 2,
			.comm = &t->comm[i] };
	}
	t->instr[PIECES] = (struct ckr_instr){ .op = "op", .origin = "" };
	t->lib = (struct ckr_library){ .abi = CKR_ABI_VERSION, .ranks = 2,
		.program = { { .instr = t->instr, .ninstr = PIECES + 1,
		.arg = t->arg, .tensor = t->tensor, .ntensor = 2 * PIECES,
		.arena_bytes = 1024, .loss = -1 } } };
}

static void
test_messages(void **unused)
{
	struct tables t;

	(void)unused;
	fill(&t);
	assert_true(program_tables_are_sane(&t.lib));
	t.comm[1].end = 2;
	assert_true(program_tables_are_sane(&t.lib));
	/* it would be waited for before it is sent */
	t.comm[0].end = 1;
	assert_false(program_tables_are_sane(&t.lib));
	fill(&t);
	t.comm[1].axis = CKR_DP;
	t.lib.replicas = 2;
	assert_false(program_tables_are_sane(&t.lib));
	t.comm[0].joined = t.comm[1].joined = 0;
	assert_true(program_tables_are_sane(&t.lib));
	/* with what runs once for all micro-batches */
	fill(&t);
	t.instr[0].phase = t.instr[1].phase = CKR_BACKWARD;
	t.instr[2].phase = t.instr[3].phase = CKR_UPDATE;
	assert_false(program_tables_are_sane(&t.lib));
	t.instr[0].phase = t.instr[1].phase = CKR_UPDATE;
	assert_true(program_tables_are_sane(&t.lib));
	/* with nothing, with what is no transfer */
	fill(&t);
	t.comm[2].joined = 1;
	assert_false(program_tables_are_sane(&t.lib));
	t.lib.program[0].ninstr = PIECES;
	t.comm[0].end = t.comm[1].end = t.comm[2].end = PIECES - 1;
	assert_false(program_tables_are_sane(&t.lib));
	t.comm[2].joined = 0;
	assert_true(program_tables_are_sane(&t.lib));
}

/* A fetch of tensor 0, which is in the host block, as tensor 1; an op; tensor 2
 * over tensor 0. */
static void
fill_offload(struct tables *t)
{
	fill(t);
	for (int i = 0; i < 3; i++)
		t->tensor[i].dim[0] = 4;
	t->tensor[0].flags = CKR_HOST;
	t->comm[0] = (struct ckr_comm){ .kind = CKR_FETCH, .end = 1 };
	t->comm[2] = (struct ckr_comm){ .kind = CKR_OFFLOAD, .end = 2 };
	t->arg[2] = 2;
	t->arg[3] = 0;
	t->instr[1] = t->instr[PIECES];
	t->instr[2].arg0 = 2;
	t->lib.program[0].ninstr = 3;
	t->lib.program[0].host_bytes = 64;
}

static void
do_nothing(void *const *p, const int64_t *c, struct ckr_env *env)
{
	(void)p;
	(void)c;
	(void)env;
}

static void
test_offload(void **unused)
{
	struct tables t;

	(void)unused;
	fill_offload(&t);
	assert_true(program_tables_are_sane(&t.lib));
	t.comm[0].end = 2;
	assert_true(program_tables_are_sane(&t.lib));
	t.comm[0].end = 3;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.comm[2].end = 1;
	assert_false(program_tables_are_sane(&t.lib));
	/* in the wrong direction, on one side */
	fill_offload(&t);
	t.comm[0].kind = CKR_OFFLOAD;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.comm[2].kind = CKR_FETCH;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.tensor[1].flags = CKR_HOST;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.tensor[0].flags = 0;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.comm[0].kind = CKR_OFFLOAD + 1;
	assert_false(program_tables_are_sane(&t.lib));
	/* of other sizes, with gaps, of nothing */
	fill_offload(&t);
	t.tensor[1].dim[0] = 3;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.tensor[1].stride[0] = 2;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.arg[0] = -1;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.instr[0].narg = 1;
	assert_false(program_tables_are_sane(&t.lib));
	/* with a kernel, in one message with another one */
	fill_offload(&t);
	t.instr[0].run = do_nothing;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.comm[0].joined = 1;
	assert_false(program_tables_are_sane(&t.lib));
	/* behind the block's end */
	fill_offload(&t);
	t.lib.program[0].host_bytes = 15;
	assert_false(program_tables_are_sane(&t.lib));
	fill_offload(&t);
	t.tensor[0].offset = 64;
	assert_false(program_tables_are_sane(&t.lib));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_offload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
